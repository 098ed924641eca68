//! When a lease worker is started, in which database, and when a lease is renewed.
#![cfg(not(loom))]
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

use snowflake_ids_core::registry::lease_launch::{
    Action, Databases, End, Ended, Errand, Lapse, Launch, Move, Named, Nowhere, Renewal, RenewalRound,
};
use std::time::Duration;

const ZERO: Duration = Duration::ZERO;
const SECOND: Duration = Duration::from_secs(1);
const ARRIVED: End = End { arrived: true, report: None };
const NOT_ARRIVED: End = End { arrived: false, report: None };

/// A server with databases 1 to 3.
struct Server {
    named: Named,
    remembered: Option<u32>,
    dropped: Vec<u32>,
}

impl Default for Server {
    fn default() -> Self {
        Self { named: Named::None, remembered: None, dropped: Vec::new() }
    }
}

impl Databases for Server {
    fn named(&self) -> Named {
        self.named
    }
    fn all(&self) -> Vec<u32> {
        (1..=3).filter(|database| self.may_be_used(*database)).collect()
    }
    fn may_be_used(&self, database: u32) -> bool {
        !self.dropped.contains(&database)
    }
    fn remembered(&self) -> Option<u32> {
        self.remembered
    }
}

/// What is done for sessions that wait.
fn next(launch: &mut Launch, server: &Server) -> Action {
    launch.next(true, true, || None, server, ZERO)
}

fn survey(report: Option<u32>) -> End {
    End { arrived: true, report: Some(report) }
}

/// Looks into all databases, each of which ranks as given; what is done then.
fn looked(launch: &mut Launch, server: &Server, ranks: [Option<u32>; 3]) -> Action {
    for _ in 0..3 {
        let Action::Start(Errand::Survey, database) = next(launch, server) else { panic!("no survey") };
        let report = ranks[usize::try_from(database).unwrap() - 1];
        assert_eq!(launch.ended(survey(report), server, ZERO), Ended::Fine);
    }
    next(launch, server)
}

#[test]
fn the_first_by_rank_is_the_registry_whichever_was_looked_into_first() {
    let server = Server::default();
    for (ranks, registry) in
        [([Some(30), Some(20), None], 2), ([Some(20), Some(30), None], 1), ([Some(2), None, Some(1)], 3)]
    {
        let action = looked(&mut Launch::default(), &server, ranks);
        assert_eq!(action, Action::Start(Errand::Serve, registry), "{ranks:?}");
    }
    let nothing = looked(&mut Launch::default(), &server, [None; 3]);
    assert_eq!(nothing, Action::Refuse(Nowhere::Nothing));
}

#[test]
fn a_registry_that_the_state_or_a_setting_names_is_not_looked_for() {
    let mut server = Server { remembered: Some(3), ..Server::default() };
    assert_eq!(next(&mut Launch::default(), &server), Action::Start(Errand::Serve, 3));
    server.named = Named::Database(2);
    assert_eq!(next(&mut Launch::default(), &server), Action::Start(Errand::Serve, 2));
    server.named = Named::Missing;
    assert_eq!(next(&mut Launch::default(), &server), Action::Refuse(Nowhere::NamedIsMissing));
}

#[test]
fn a_registry_that_was_dropped_is_looked_for_again() {
    let mut server = Server { remembered: Some(3), ..Server::default() };
    let mut launch = Launch::default();
    assert_eq!(next(&mut launch, &server), Action::Start(Errand::Serve, 3));
    launch.ended(ARRIVED, &server, ZERO);
    server.dropped.push(3);
    assert!(matches!(next(&mut launch, &server), Action::Start(Errand::Survey, 1 | 2)));
}

#[test]
fn a_database_that_has_lost_the_extension_makes_room_for_another() {
    let mut server = Server { remembered: Some(1), ..Server::default() };
    let mut launch = Launch::default();
    next(&mut launch, &server);
    assert_eq!(launch.ended(survey(None), &server, ZERO), Ended::Fine);
    assert_eq!(looked(&mut launch, &server, [None, Some(5), None]), Action::Start(Errand::Serve, 2));
    server.named = Named::Database(1);
    launch.ended(ARRIVED, &server, ZERO);
    next(&mut launch, &server);
    assert_eq!(launch.ended(survey(None), &server, ZERO), Ended::Refuse(Nowhere::NamedIsEmpty));
}

#[test]
fn one_that_could_not_be_looked_into_becomes_the_registry_in_time_if_it_comes_first() {
    let server = Server::default();
    let mut launch = Launch::default();
    for _ in 0..3 {
        let Action::Start(Errand::Survey, database) = next(&mut launch, &server) else { panic!("no survey") };
        let end = if database == 1 { NOT_ARRIVED } else { survey(Some(10 + database)) };
        launch.ended(end, &server, ZERO);
    }
    assert_eq!(next(&mut launch, &server), Action::Start(Errand::Serve, 2));
    launch.ended(ARRIVED, &server, ZERO);
    let idle = |launch: &mut Launch, now| launch.next(false, true, || None, &server, now);
    assert_eq!(idle(&mut launch, SECOND), Action::Wait(Some(4 * SECOND)));
    assert_eq!(idle(&mut launch, 5 * SECOND), Action::Start(Errand::Survey, 1));
    assert_eq!(launch.ended(survey(Some(11)), &server, 5 * SECOND), Ended::Move(1));
    let moved = launch.next(true, true, || Some(Move::To(1)), &server, 6 * SECOND);
    assert_eq!(moved, Action::Start(Errand::Serve, 1));
}

#[test]
fn one_worker_at_a_time_and_a_pause_after_one_that_did_not_get_through() {
    let server = Server { remembered: Some(1), ..Server::default() };
    let mut launch = Launch::default();
    assert_eq!(next(&mut launch, &server), Action::Start(Errand::Serve, 1));
    assert!(matches!(next(&mut launch, &server), Action::Wait(Some(_))), "one is running");
    assert_eq!(launch.ended(NOT_ARRIVED, &server, ZERO), Ended::OutOfReach(1));
    let Action::Wait(Some(pause)) = next(&mut launch, &server) else { panic!("no pause") };
    assert!(matches!(launch.next(true, true, || None, &server, pause), Action::Start(..)));
    launch.not_started(pause);
    assert!(launch.is_short());
    // Whenever a place may have become free.
    assert!(matches!(launch.next(true, true, || None, &server, pause), Action::Start(..)));
    assert!(!launch.is_short());
}

const LEASE: Lapse = Lapse {
    left: Duration::from_hours(24),
    until_renewal: Duration::from_hours(6),
    length: Duration::from_hours(24),
    setting: Duration::from_hours(24),
    is_asked: false,
    has_jumped: false,
};

/// A renewal that has seen the server's start over.
fn started() -> Renewal {
    let mut renewal = Renewal::default();
    assert!(!renewal.round(LEASE, ZERO).ask);
    assert!(renewal.round(LEASE, 10 * SECOND).ask, "soon after the start");
    let done = renewal.round(LEASE, 11 * SECOND);
    assert_eq!(done, RenewalRound { ask: false, remind: false, due: LEASE.until_renewal });
    renewal
}

#[test]
fn a_lease_is_renewed_when_it_is_due_or_the_setting_changes() {
    let due = Lapse { until_renewal: ZERO, ..LEASE };
    assert!(started().round(due, 12 * SECOND).ask);
    let longer = Lapse { setting: Duration::from_hours(48), ..LEASE };
    assert!(started().round(longer, 12 * SECOND).ask);
    let jumped = Lapse { has_jumped: true, ..LEASE };
    assert!(started().round(jumped, 12 * SECOND).ask);
}

#[test]
fn a_renewal_that_does_not_come_is_asked_for_less_and_less_often() {
    let mut renewal = started();
    let due = Lapse { until_renewal: ZERO, is_asked: true, ..LEASE };
    let asked: Vec<u64> =
        (12..200).filter(|at| renewal.round(due, SECOND * *at).ask).map(u64::from).collect();
    assert_eq!(asked, [12, 13, 15, 19, 27, 43, 75, 135, 195]);
}

#[test]
fn the_log_is_told_once_an_hour_when_half_of_the_lease_is_gone() {
    let mut renewal = started();
    let due = Lapse { until_renewal: ZERO, is_asked: true, ..LEASE };
    let told = |renewal: &mut Renewal, lease: Lapse, from: u32| {
        (from..from + 7_200).step_by(10).filter(|at| renewal.round(lease, SECOND * *at).remind).count()
    };
    assert_eq!(told(&mut renewal, due, 12), 0);
    let half = Lapse { left: Duration::from_hours(11), ..due };
    assert_eq!(told(&mut renewal, half, 8_000), 2);
}
