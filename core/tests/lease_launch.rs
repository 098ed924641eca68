//! When a lease worker is started, in which database, and when a lease is renewed.

use super::memory::{self, Machine};
use snowflake_ids_core::UnixMicros;
use snowflake_ids_core::registry::lease_launch::{
    DatabaseUse, Databases, End, KnownRegistry, Lapse, Launch, LaunchAction, LeaseTask, RegistryChanges,
    Renewal, RenewalRound,
};
use snowflake_ids_core::registry::lease_worker::LeaseRequests;
use snowflake_ids_core::server::state::Identity;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

const ZERO: Duration = Duration::ZERO;
const SECOND: Duration = Duration::from_secs(1);
const ARRIVED: End = End { arrived: true, found: None };
const NOT_ARRIVED: End = End { arrived: false, found: None };
const NO_CHANGES: RegistryChanges = RegistryChanges { ended: None, under_way: false, unsettled: false };

/// A server with databases 1 to 3. The field is the oid of the database that was dropped.
#[derive(Default)]
struct Server(Option<u32>);

impl Databases for Server {
    fn all(&self) -> Vec<u32> {
        (1..=3).filter(|database| self.may_be_used(*database)).collect()
    }
    fn may_be_used(&self, database: u32) -> bool {
        self.0 != Some(database)
    }
}

/// The next action of the launcher while sessions wait.
fn next(launch: &mut Launch, known: KnownRegistry) -> LaunchAction {
    launch.next(true, true, known, NO_CHANGES, &Server(None), ZERO)
}

fn looked(found: DatabaseUse) -> End {
    End { arrived: true, found: Some(found) }
}

/// Surveys databases until the launcher chooses another action. `used`: the databases that use a registry.
fn look(launch: &mut Launch, mut action: LaunchAction, used: &[u32]) -> (Vec<u32>, LaunchAction) {
    let mut seen = Vec::new();
    while let LaunchAction::Start(LeaseTask::Look, database) = action {
        seen.push(database);
        assert_eq!(
            launch.ended(
                looked(if used.contains(&database) { DatabaseUse::Node } else { DatabaseUse::None }),
                &Server(None),
                ZERO
            ),
            None
        );
        action = next(launch, KnownRegistry::Nothing);
    }
    (seen, action)
}

#[test]
fn a_server_that_knows_nothing_looks_into_all_databases_until_it_finds_a_registry() {
    for (used, found) in [(&[][..], None), (&[2], Some(2)), (&[1], Some(1))] {
        let mut launch = Launch::default();
        let first = launch.next(false, true, KnownRegistry::Nothing, NO_CHANGES, &Server(None), ZERO);
        let (seen, action) = look(&mut launch, first, used);
        assert_eq!(action, LaunchAction::Record(found));
        assert!(found.is_some() || seen.len() == 3);
        assert_eq!(
            next(&mut launch, KnownRegistry::Nothing),
            LaunchAction::Record(found),
            "until the state says so"
        );
        let (known, then) = match found {
            Some(database) => (KnownRegistry::By(database), LaunchAction::Start(LeaseTask::Serve, database)),
            None => (KnownRegistry::Alone, LaunchAction::Answer),
        };
        assert_eq!(next(&mut launch, known), then);
    }
}

/// A server may use one registry and be the registry of another server.
#[test]
fn a_database_that_draws_from_a_registry_comes_before_one_that_is_one() {
    for node in [Some(1), None] {
        let mut launch = Launch::default();
        let mut action = next(&mut launch, KnownRegistry::Nothing);
        while let LaunchAction::Start(LeaseTask::Look, database) = action {
            let found = if Some(database) == node { DatabaseUse::Node } else { DatabaseUse::Registry };
            launch.ended(looked(if database == 2 { DatabaseUse::None } else { found }), &Server(None), ZERO);
            action = next(&mut launch, KnownRegistry::Nothing);
        }
        assert_eq!(action, LaunchAction::Record(node.or(Some(1))));
    }
}

#[test]
fn a_server_without_a_registry_starts_no_worker() {
    assert_eq!(next(&mut Launch::default(), KnownRegistry::Alone), LaunchAction::Answer);
    let idle = Launch::default().next(false, true, KnownRegistry::Alone, NO_CHANGES, &Server(None), ZERO);
    assert_eq!(idle, LaunchAction::Wait(None));
}

#[test]
fn a_database_whose_registry_changed_is_looked_into_first() {
    for used in [&[1][..], &[]] {
        let mut launch = Launch::default();
        let changes = RegistryChanges { ended: Some(1), ..NO_CHANGES };
        let first = launch.next(false, true, KnownRegistry::Alone, changes, &Server(None), ZERO);
        let (seen, action) = look(&mut launch, first, used);
        assert_eq!(seen[0], 1);
        assert_eq!(seen.len(), if used.is_empty() { 3 } else { 1 });
        assert_eq!(action, LaunchAction::Record(if used.is_empty() { None } else { Some(1) }));
    }
}

/// A server that stopped in such a transaction surveys its databases.
#[test]
fn a_transaction_is_unsettled_if_it_is_in_the_state_and_not_under_way() {
    let machine = Machine::new(UnixMicros(1_770_000_000_000_000));
    let layout = "34/0/5/2r/6 unit=1s epoch=2020-01-01".parse().unwrap();
    let server = memory::Server::start(&machine, layout, Identity::Fixed { datacenter: 0, worker_id: 3 }, 1);
    let (requests, status) = (LeaseRequests::default(), &server.shared.status);
    assert_eq!(RegistryChanges::take(&requests, status), NO_CHANGES);
    server.issuer().change(|state, _| state.source.move_by(2, None)).unwrap();
    assert_eq!(RegistryChanges::take(&requests, status), RegistryChanges { unsettled: true, ..NO_CHANGES });
    requests.changing.fetch_add(1, Relaxed);
    assert_eq!(RegistryChanges::take(&requests, status), RegistryChanges { under_way: true, ..NO_CHANGES });
}

#[test]
fn a_change_that_a_crash_cut_short_is_looked_for_until_the_state_is_settled() {
    let mut launch = Launch::default();
    let changes = RegistryChanges { unsettled: true, ..NO_CHANGES };
    let first = launch.next(false, true, KnownRegistry::Alone, changes, &Server(None), ZERO);
    assert!(matches!(first, LaunchAction::Start(LeaseTask::Look, _)));
    let (_, action) = look(&mut launch, first, &[]);
    assert_eq!(action, LaunchAction::Record(None));
    let again = launch.next(false, true, KnownRegistry::Alone, changes, &Server(None), ZERO);
    assert_eq!(again, LaunchAction::Record(None), "the state says what it said");
    let settled = launch.next(false, true, KnownRegistry::Alone, NO_CHANGES, &Server(None), ZERO);
    assert_eq!(settled, LaunchAction::Wait(None));
}

#[test]
fn a_change_under_way_is_waited_for_unless_a_session_waits() {
    let changes = RegistryChanges { under_way: true, ..NO_CHANGES };
    let mut launch = Launch::default();
    let idle = launch.next(false, true, KnownRegistry::Nothing, changes, &Server(None), ZERO);
    assert_eq!(idle, LaunchAction::Wait(None));
    let asked = launch.next(true, true, KnownRegistry::Nothing, changes, &Server(None), ZERO);
    assert!(matches!(asked, LaunchAction::Start(LeaseTask::Look, _)));
}

#[test]
fn a_database_that_is_gone_or_uses_no_registry_any_more_is_left() {
    let mut launch = Launch::default();
    let gone = launch.next(true, true, KnownRegistry::By(3), NO_CHANGES, &Server(Some(3)), ZERO);
    assert!(matches!(gone, LaunchAction::Start(LeaseTask::Look, 1 | 2)));
    let mut launch = Launch::default();
    assert_eq!(next(&mut launch, KnownRegistry::By(1)), LaunchAction::Start(LeaseTask::Serve, 1));
    assert_eq!(launch.ended(looked(DatabaseUse::None), &Server(None), ZERO), None);
    let action = next(&mut launch, KnownRegistry::By(1));
    assert_eq!(look(&mut launch, action, &[2]).1, LaunchAction::Record(Some(2)));
}

#[test]
fn one_that_could_not_be_looked_into_is_looked_into_again_before_the_server_is_alone() {
    for missed in [NOT_ARRIVED, ARRIVED] {
        let mut launch = Launch::default();
        for _ in 0..3 {
            let LaunchAction::Start(LeaseTask::Look, database) = next(&mut launch, KnownRegistry::Nothing)
            else {
                panic!("no look")
            };
            launch.ended(if database == 1 { missed } else { looked(DatabaseUse::None) }, &Server(None), ZERO);
        }
        assert_eq!(next(&mut launch, KnownRegistry::Nothing), LaunchAction::OutOfReach(1));
        let LaunchAction::Wait(Some(pause)) = next(&mut launch, KnownRegistry::Nothing) else {
            panic!("no pause")
        };
        let again = |launch: &mut Launch, gone| {
            launch.next(true, true, KnownRegistry::Nothing, NO_CHANGES, &Server(gone), pause)
        };
        assert_eq!(again(&mut launch, None), LaunchAction::Start(LeaseTask::Look, 1));
        launch.ended(missed, &Server(None), pause);
        assert_eq!(again(&mut launch, Some(1)), LaunchAction::Record(None), "it was dropped meanwhile");
    }
}

#[test]
fn one_worker_at_a_time_and_a_pause_after_one_that_did_not_get_through() {
    let (known, server) = (KnownRegistry::By(1), Server(None));
    let mut launch = Launch::default();
    assert_eq!(next(&mut launch, known), LaunchAction::Start(LeaseTask::Serve, 1));
    assert!(matches!(next(&mut launch, known), LaunchAction::Wait(Some(_))), "one is running");
    assert_eq!(launch.ended(NOT_ARRIVED, &server, ZERO), Some(1));
    let LaunchAction::Wait(Some(pause)) = next(&mut launch, known) else { panic!("no pause") };
    let then = |launch: &mut Launch| launch.next(true, true, known, NO_CHANGES, &server, pause);
    assert!(matches!(then(&mut launch), LaunchAction::Start(..)));
    launch.not_started(pause);
    assert!(launch.is_short());
    // A slot for a background worker may be free by now.
    assert!(matches!(then(&mut launch), LaunchAction::Start(..)));
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

/// The state of renewals after the renewal that follows the server's start.
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
    assert_eq!(asked, [12, 13, 15, 19, 27, 42, 57, 72, 87, 102, 117, 132, 147, 162, 177, 192]);
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
