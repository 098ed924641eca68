//! The rules of leases one by one: each is kept by the code that ships, and broken where it is left out.
#![cfg(not(loom))]
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

use snowflake_ids_core::anchor::Reading;
use snowflake_ids_core::guard::{Guard, leave_out};
use snowflake_ids_core::issuer::{Compared, IssuerError, IssuerState, Shared};
use snowflake_ids_core::lease::{Choice, Holder, Lease, Policy, Row};
use snowflake_ids_core::lease_worker::{
    Doubt, LeaseEvent, LeaseHost, LeaseRequests, LeaseSettings, LeaseWorker, LinkError, Other, Place,
    RegistryLink,
};
use snowflake_ids_core::state::{DataDirectory, Here, Identity, State};
use snowflake_ids_core::wire::{
    Entry, LeaseRequest, Leased, NoLease, Registry, RequestBody, Response, ResponseBody,
};
use snowflake_ids_core::worker_registry::{self, Held, WorkerRows};
use snowflake_ids_core::{Layout, Position, UnixMicros};
use std::cell::{Cell, RefCell};
use std::fmt;
use std::rc::Rc;
use std::time::Duration;

const NOW: UnixMicros = UnixMicros(1_770_000_000_000_000);
const MINUTE: Duration = Duration::from_mins(1);

/// Asserts that something holds with all rules, and not without this one.
fn needs(rule: Guard, holds: impl Fn() -> bool) {
    assert!(holds(), "it does not hold with {rule:?}");
    leave_out(Some(rule));
    let still = holds();
    leave_out(None);
    assert!(!still, "it holds without {rule:?}, too");
}

fn layout() -> Layout {
    "34/0/10/6 unit=1s epoch=2020-01-01".parse().unwrap()
}

/// A server's state in memory.
struct Issuer {
    state: Rc<RefCell<State>>,
    here: Here,
    shared: Shared,
}

impl Issuer {
    fn new() -> Self {
        let home =
            DataDirectory { identity: "1".into(), file: None, host: "h".into(), directory: "d".into() };
        let identity = Identity::Leased { datacenter: 0 };
        let here = Here {
            system_identifier: 7,
            timeline: 1,
            home,
            layout: layout(),
            identity,
            clock: Reading { wall: NOW, boot: "b".into(), since_boot: 1 },
            replayed: None,
            max_drift: Duration::from_secs(10),
            max_clock_jump: MINUTE,
            disposable: false,
        };
        let state = Rc::new(RefCell::new(State::fresh(&here)));
        Self { state, here, shared: Shared::new(layout(), identity, NOW, 1, None) }
    }
}

impl IssuerState for Issuer {
    fn change<T>(&self, change: impl FnOnce(&mut State, &Here) -> T) -> Result<T, IssuerError> {
        Ok(change(&mut self.state.borrow_mut(), &self.here))
    }
    fn believed_now(&self) -> UnixMicros {
        NOW
    }
    fn compare(&mut self, _: UnixMicros) -> Compared {
        Compared::Agrees
    }
    fn shared(&self) -> &Shared {
        &self.shared
    }
}

#[derive(Debug)]
struct Silent;

impl fmt::Display for Silent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("no answer came")
    }
}

impl LinkError for Silent {
    fn is_conflict(&self) -> bool {
        false
    }
    fn explain(self) -> NoLease {
        NoLease::yet(self.to_string(), "")
    }
}

/// A registry in this database, whose answers a test gives.
struct Link<F>(F);

impl<F: FnMut(RequestBody) -> Result<ResponseBody, Silent>> RegistryLink for Link<F> {
    type Error = Silent;

    fn find(&mut self) -> Result<Place, Silent> {
        Ok(Place::Here)
    }
    fn ask_own(&mut self, ask: RequestBody, _: UnixMicros) -> Result<ResponseBody, Silent> {
        (self.0)(ask)
    }
    fn ask_other(&mut self, _: &Other, _: RequestBody) -> Result<Response, Silent> {
        Err(Silent)
    }
    fn has_just_failed(&self, _: &Other) -> bool {
        false
    }
    fn note_seen(&mut self, _: &Registry) -> Result<(), Silent> {
        Ok(())
    }
    fn doubt(&self, _: &Other, _: Doubt) -> Silent {
        Silent
    }
}

/// A server whose random numbers are 1, 2, and so on.
struct Server(i64);

impl LeaseHost for Server {
    fn uptime(&self) -> Duration {
        Duration::from_secs(1)
    }
    fn token(&mut self) -> i64 {
        self.0 += 1;
        self.0
    }
    fn settings(&self) -> LeaseSettings {
        LeaseSettings { policy: Policy::Reuse, max_clock_skew: MINUTE, duration: Duration::from_hours(24) }
    }
    fn port(&self) -> Option<i32> {
        None
    }
    fn database(&self) -> u32 {
        1
    }
    fn note(&mut self, _: LeaseEvent<'_>) {}
    fn answer(&mut self, _: u64, _: Result<(), NoLease>) {}
}

/// Asks for a lease so many times, of a registry that answers so; gives the state.
fn leased(
    state: Rc<RefCell<State>>,
    times: u32,
    answer: impl FnMut(RequestBody) -> Result<ResponseBody, Silent>,
) {
    let requests = LeaseRequests::default();
    let issuer = Issuer { state, ..Issuer::new() };
    requests.want_another(issuer.shared.generator.era());
    let mut worker = LeaseWorker::new(issuer, Link(answer), Server(0), &requests);
    for _ in 0..times {
        requests.request.ask();
        worker.round();
    }
}

/// The registry has taken a worker id for whoever asked.
fn taken(choice: Choice) -> Result<ResponseBody, Silent> {
    Ok(ResponseBody::Leased(Leased::Taken { choice, expiry: NOW.plus(60 * MINUTE) }))
}

fn row(worker: u32) -> Row {
    Row { worker, token: Some(99), expiry: UnixMicros(NOW.0 - 1), leased: UnixMicros(NOW.0 - 5) }
}

/// Where a server begins after such an answer.
fn start(choice: Choice) -> Position {
    let state = Issuer::new().state;
    leased(Rc::clone(&state), 1, |_| taken(choice));
    let start = state.borrow().lease.as_ref().unwrap().start;
    start
}

#[test]
fn the_next_holder_begins_at_the_end_of_the_lease_before() {
    let row = row(3);
    needs(Guard::StartAtExpiry, || start(Choice::Free(row)) == layout().position_at(row.expiry));
}

#[test]
fn a_row_that_is_found_by_its_claim_was_begun_when_it_was_leased() {
    let row = row(3);
    needs(Guard::ClaimStart, || start(Choice::Own(row)) == layout().position_after(row.leased));
}

#[test]
fn the_claim_is_in_the_state_before_the_registry_sees_it() {
    needs(Guard::ClaimFirst, || {
        let (state, known) = (Issuer::new().state, Cell::new(false));
        leased(Rc::clone(&state), 1, |ask| {
            let RequestBody::Lease(wish) = ask else { panic!("not a lease") };
            known.set(state.borrow().claim == Some(wish.entry.token));
            Err(Silent)
        });
        known.get()
    });
}

#[test]
fn a_claim_is_kept_until_its_answer_has_come() {
    needs(Guard::KeepClaim, || {
        let tokens = RefCell::new(Vec::new());
        leased(Issuer::new().state, 2, |ask| {
            let RequestBody::Lease(wish) = ask else { panic!("not a lease") };
            tokens.borrow_mut().push(wish.entry.token);
            Err(Silent)
        });
        let tokens = tokens.take();
        tokens[0] == tokens[1]
    });
}

#[test]
fn a_worker_id_is_given_back_after_another_one_is_in_the_state() {
    needs(Guard::ReleaseLast, || {
        let (state, releases) = (Issuer::new().state, RefCell::new(Vec::new()));
        let former = Lease {
            datacenter: 0,
            worker: 5,
            token: 8,
            start: Position(0),
            expiry: NOW.plus(MINUTE),
            origin: None,
        };
        state.borrow_mut().take_up(former);
        leased(Rc::clone(&state), 1, |ask| match ask {
            RequestBody::Release { worker, .. } => {
                let switched = state.borrow().lease.as_ref().is_some_and(|lease| lease.worker == 6);
                releases.borrow_mut().push(worker == 5 && switched);
                Ok(ResponseBody::Released)
            }
            _ => taken(Choice::New { worker: 6 }),
        });
        releases.take() == [true]
    });
}

#[test]
fn a_server_that_is_its_own_registry_keeps_to_its_share() {
    needs(Guard::Shares, || {
        let only = Cell::new(false);
        leased(Issuer::new().state, 1, |ask| {
            let RequestBody::Lease(wish) = ask else { panic!("not a lease") };
            only.set(wish.preferred.is_some_and(|preferred| preferred.only));
            Err(Silent)
        });
        only.get()
    });
}

fn entry() -> Entry {
    Entry {
        datacenter: 0,
        token: 1,
        duration: Duration::from_mins(1),
        now: NOW,
        last: Some(NOW.plus(60 * MINUTE)),
        holder: Holder {
            system_identifier: 7,
            timeline: 1,
            host: "h".into(),
            port: None,
            directory: "d".into(),
            layout: layout().to_string(),
        },
    }
}

fn wish() -> LeaseRequest {
    LeaseRequest {
        entry: entry(),
        policy: Policy::Reuse,
        token: None,
        except: Vec::new(),
        capacity: 1_024,
        preferred: None,
        max_clock_skew: MINUTE,
    }
}

#[test]
fn what_a_holder_tells_of_its_ids_is_bounded() {
    needs(Guard::PeersBounded, || {
        let RequestBody::Lease(wish) = worker_registry::bounded(RequestBody::Lease(Box::new(wish())), NOW)
        else {
            panic!("not a lease")
        };
        wish.entry.last == Some(NOW)
    });
}

/// Rows as they were read first, one of which another server takes before it is locked.
struct Rows {
    seen: Row,
    now: Row,
    written: Option<Row>,
}

impl WorkerRows for Rows {
    type Error = ();

    fn overview(&mut self, _: &Entry, _: UnixMicros) -> Result<(Option<u32>, Option<UnixMicros>), ()> {
        Ok((Some(0), None))
    }
    fn held(&mut self, _: &Entry, _: [Option<i64>; 2], _: UnixMicros) -> Result<u64, ()> {
        Ok(0)
    }
    fn rows(&mut self, _: u32, _: bool, _: [Option<i64>; 2]) -> Result<Vec<Row>, ()> {
        Ok(vec![std::mem::replace(&mut self.seen, self.now)])
    }
    fn lock(&mut self, _: u32, _: u32) -> Result<Option<Row>, ()> {
        Ok(Some(self.now))
    }
    fn insert(&mut self, _: &Row, _: &Entry) -> Result<bool, ()> {
        Ok(false)
    }
    fn update(&mut self, row: &Row, _: &Entry) -> Result<(), ()> {
        self.written = Some(*row);
        Ok(())
    }
    fn give_back(&mut self, _: u32, _: &Row) -> Result<(), ()> {
        Ok(())
    }
    fn holders(&mut self, _: u32, _: u32, _: usize, _: UnixMicros) -> Result<Vec<Held>, ()> {
        Ok(Vec::new())
    }
    fn timeline(&self) -> u32 {
        1
    }
    fn check_for_interrupts(&self) {}
}

#[test]
fn a_row_is_written_only_if_it_is_still_as_it_was_seen() {
    needs(Guard::CompareAndSwap, || {
        let now = Row { token: Some(55), expiry: NOW.plus(MINUTE), ..row(0) };
        let mut rows = Rows { seen: row(0), now, written: None };
        let only_one = LeaseRequest { capacity: 1, ..wish() };
        let leased = worker_registry::lease(&mut rows, &only_one, NOW).unwrap();
        matches!(leased, Leased::None(_)) && rows.written.is_none()
    });
}
