//! Guards that matter only when another process acts in the middle of a call. Each test passes with the shipped code, and fails
//! without the guard.

pub mod needs;

use needs::needs;
use snowflake_ids_core::guard::Guard;
use snowflake_ids_core::registry::wire::{Entry, LeaseRequest, Leased, RegistryName};
use snowflake_ids_core::registry::worker_ids::{self, HeldWorkerId, LeaseLimits, WorkerIdRows};
use snowflake_ids_core::server::issuer::IssuerMemory;
use snowflake_ids_core::server::lease::{Holder, LeaseRow, Policy};
use snowflake_ids_core::server::state::{Identity, time_to_replicate};
use snowflake_ids_core::session::Session;
use snowflake_ids_core::tag::tag_rows::present;
use snowflake_ids_core::{
    Clock, Generator, Issued, Layout, NodeBits, Position, Rules, SequenceStart, Shard, TakenPositions,
    UnixMicros,
};
use std::cell::Cell;
use std::collections::HashSet;
use std::num::NonZeroU32;
use std::time::Duration;

const NOW: UnixMicros = UnixMicros(1_770_000_000_000_000);
const MINUTE: u64 = 60_000_000;

fn layout() -> Layout {
    "34/0/10/6 unit=1s epoch=2020-01-01".parse().unwrap()
}

fn row(worker_id: u32) -> LeaseRow {
    LeaseRow { worker_id, token: Some(99), expiry: UnixMicros(NOW.0 - 1), leased: UnixMicros(NOW.0 - 5) }
}

fn entry() -> Entry {
    Entry {
        datacenter: 0,
        token: 1,
        duration: Duration::from_mins(1),
        now: NOW,
        last: Some(NOW.plus(Duration::from_micros(60 * MINUTE))),
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

fn request() -> LeaseRequest {
    LeaseRequest {
        entry: entry(),
        policy: Policy::Reuse,
        token: None,
        except: Vec::new(),
        capacity: 1_024,
        preferred: None,
        max_clock_skew: Duration::from_micros(MINUTE),
        former: None,
    }
}

/// A worker id's row as the search reads it (`seen`), and as another server has changed it before this server locks the row (`now`).
struct Rows {
    seen: LeaseRow,
    now: LeaseRow,
    written: Option<LeaseRow>,
}

impl WorkerIdRows for Rows {
    type Error = ();

    fn overview(&mut self, _: &Entry, _: UnixMicros) -> Result<(Option<u32>, Option<UnixMicros>), ()> {
        Ok((Some(0), None))
    }
    fn held(&mut self, _: &Entry, _: [Option<i64>; 2], _: UnixMicros) -> Result<u64, ()> {
        Ok(0)
    }
    fn rows(&mut self, _: u32, all: bool, _: [Option<i64>; 2]) -> Result<Vec<LeaseRow>, ()> {
        Ok(if all { vec![std::mem::replace(&mut self.seen, self.now)] } else { Vec::new() })
    }
    fn lock(&mut self, _: u32, _: u32) -> Result<Option<LeaseRow>, ()> {
        Ok(Some(self.now))
    }
    fn insert(&mut self, _: &LeaseRow, _: &Entry) -> Result<bool, ()> {
        Ok(false)
    }
    fn update(&mut self, row: &LeaseRow, _: &Entry) -> Result<(), ()> {
        self.written = Some(*row);
        Ok(())
    }
    fn give_back(&mut self, _: u32, _: &LeaseRow) -> Result<(), ()> {
        Ok(())
    }
    fn former_leases_until(&mut self) -> Result<Option<UnixMicros>, ()> {
        Ok(None)
    }
    fn record_former_leases(&mut self, _: u32, _: u32, _: UnixMicros) -> Result<(), ()> {
        Ok(())
    }
    fn random(&mut self) -> u32 {
        0
    }
    fn holders(&mut self, _: u32, _: u32, _: usize, _: UnixMicros) -> Result<Vec<HeldWorkerId>, ()> {
        Ok(Vec::new())
    }
    fn fork(&mut self) -> Result<Option<i64>, ()> {
        Ok(None)
    }
}

#[test]
fn a_row_is_written_only_if_it_is_still_as_it_was_seen() {
    needs(Guard::CompareAndSwap, || {
        let now = LeaseRow { token: Some(55), expiry: NOW.plus(Duration::from_micros(MINUTE)), ..row(0) };
        let mut rows = Rows { seen: row(0), now, written: None };
        let only_one = LeaseRequest { capacity: 1, ..request() };
        let leased = worker_ids::lease(&mut rows, &only_one, &LeaseLimits::default(), NOW).unwrap();
        matches!(leased, Leased::None(_)) && rows.written.is_none()
    });
}

#[test]
fn a_registry_whose_last_worker_id_was_used_has_none_under_disposable() {
    let mut rows = Rows { seen: row(0), now: row(0), written: None };
    let full = LeaseRequest { capacity: 1, policy: Policy::Disposable, ..request() };
    let leased = worker_ids::lease(&mut rows, &full, &LeaseLimits::default(), NOW).unwrap();
    assert!(matches!(leased, Leased::None(_)), "{leased:?}");
}

/// A registry without rows to read.
#[derive(Default)]
struct Empty {
    /// The highest worker id of the rows.
    highest: Option<u32>,
    fork: Option<i64>,
    written: Option<LeaseRow>,
}

impl WorkerIdRows for Empty {
    type Error = ();

    fn overview(&mut self, _: &Entry, _: UnixMicros) -> Result<(Option<u32>, Option<UnixMicros>), ()> {
        Ok((self.highest, None))
    }
    fn held(&mut self, _: &Entry, _: [Option<i64>; 2], _: UnixMicros) -> Result<u64, ()> {
        Ok(0)
    }
    fn rows(&mut self, _: u32, _: bool, _: [Option<i64>; 2]) -> Result<Vec<LeaseRow>, ()> {
        Ok(Vec::new())
    }
    fn lock(&mut self, _: u32, _: u32) -> Result<Option<LeaseRow>, ()> {
        Ok(None)
    }
    fn insert(&mut self, row: &LeaseRow, _: &Entry) -> Result<bool, ()> {
        self.written = Some(*row);
        Ok(true)
    }
    fn update(&mut self, _: &LeaseRow, _: &Entry) -> Result<(), ()> {
        Err(())
    }
    fn give_back(&mut self, _: u32, _: &LeaseRow) -> Result<(), ()> {
        Err(())
    }
    fn former_leases_until(&mut self) -> Result<Option<UnixMicros>, ()> {
        Ok(None)
    }
    fn record_former_leases(&mut self, _: u32, _: u32, _: UnixMicros) -> Result<(), ()> {
        Ok(())
    }
    fn random(&mut self) -> u32 {
        0
    }
    fn holders(&mut self, _: u32, _: u32, _: usize, _: UnixMicros) -> Result<Vec<HeldWorkerId>, ()> {
        Ok(Vec::new())
    }
    fn fork(&mut self) -> Result<Option<i64>, ()> {
        Ok(self.fork)
    }
}

/// The registry's own server uses worker id 0 under a lease of another registry.
#[test]
fn a_registry_leases_nothing_that_its_own_server_issues_under() {
    let limits = LeaseLimits { taken: vec![0, 1], ..LeaseLimits::default() };
    needs(Guard::OwnWorkerIdTaken, || {
        let mut rows = Empty::default();
        worker_ids::lease(&mut rows, &request(), &limits, NOW).unwrap();
        rows.written.is_some_and(|row| row.worker_id == 2)
    });
    // The list may repeat a worker id, and may contain worker ids that the requesting server cannot use.
    let none = LeaseRequest { capacity: 2, ..request() };
    let limits = LeaseLimits { taken: vec![1, 1, 0, 2], ..limits };
    let Leased::None(error) = worker_ids::lease(&mut Empty::default(), &none, &limits, NOW).unwrap() else {
        panic!("both are taken");
    };
    assert!(error.detail.contains("The registry's own server uses worker ids 0, 1, or"), "{error:?}");
}

/// A registry that was promoted may have leased worker ids above all that it knows, so it stays in its eighth.
#[test]
fn a_promoted_registry_leases_an_unused_worker_id_of_its_eighth_under_disposable() {
    let request = LeaseRequest { capacity: 32, policy: Policy::Disposable, ..request() };
    let leased = |fork| {
        let mut rows = Empty { highest: Some(12), fork, ..Empty::default() };
        worker_ids::lease(&mut rows, &request, &LeaseLimits::default(), NOW).unwrap();
        rows.written.map(|row| row.worker_id)
    };
    assert_eq!([None, Some(5), Some(3)].map(leased), [Some(13), Some(20), Some(13)]);
}

const RULES: Rules = Rules { max_drift: 10_000_000, start: SequenceStart::Zero };

/// A clock whose reading lets another node begin to issue.
struct Succession<'a> {
    generator: &'a Generator,
    node_bits: NodeBits,
}

impl Clock for Succession<'_> {
    fn now(&self) -> UnixMicros {
        if self.generator.snapshot().node_bits != self.node_bits {
            self.generator.begin(self.node_bits, layout().position_at(NOW), Position(u64::MAX >> 1));
        }
        NOW
    }
}

fn many(count: u32) -> NonZeroU32 {
    NonZeroU32::new(count).unwrap()
}

/// The next ids of a generator.
fn take(generator: &Generator, clock: &impl Clock, count: u32) -> impl Iterator<Item = i64> {
    let TakenPositions { positions, node_bits } =
        generator.take(&layout(), &RULES, clock, many(count)).unwrap();
    (positions.from.0..positions.to.0)
        .map(move |position| layout().id(Position(position), node_bits).cast_signed())
}

fn are_all_different(ids: &[i64]) -> bool {
    ids.iter().collect::<HashSet<_>>().len() == ids.len()
}

const NODES: [NodeBits; 2] = [NodeBits(1 << 6), NodeBits(2 << 6)];

#[test]
fn an_id_is_made_with_the_bits_that_were_read_with_its_position() {
    needs(Guard::TermRead, || {
        let generator = Generator::default();
        generator.begin(NODES[0], layout().position_at(NOW), Position(u64::MAX >> 1));
        let mut ids: Vec<i64> = take(&generator, &NOW, 5).collect();
        ids.extend(take(&generator, &Succession { generator: &generator, node_bits: NODES[1] }, 5));
        are_all_different(&ids)
    });
}

fn refill(session: &Session, shared: &IssuerMemory, clock: &impl Clock) -> Issued {
    session.refill(shared, clock, &RULES, many(100), None, |_| {}).unwrap()
}

#[test]
fn ids_that_a_session_holds_keep_the_bits_that_they_were_taken_with() {
    needs(Guard::BlockKeepsBits, || {
        let shared = IssuerMemory::new(layout(), Identity::Leased { datacenter: Some(0) }, NOW, 1, None, &[]);
        let session = Session::new();
        shared.generator.begin(NODES[0], layout().position_at(NOW), Position(u64::MAX >> 1));
        let mut held = vec![refill(&session, &shared, &NOW)];
        held.extend(std::iter::from_fn(|| session.pop(&shared, None)));
        let clock = Succession { generator: &shared.generator, node_bits: NODES[1] };
        held.push(refill(&session, &shared, &clock));
        let mut ids: Vec<i64> = held.into_iter().map(|issued| shared.layout.id_of(issued)).collect();
        ids.extend(take(&shared.generator, &NOW, 100));
        are_all_different(&ids)
    });
}

/// The clock is read for each span of the block. A call that compared the block with the present generation would read on.
#[test]
fn a_shards_next_id_comes_from_the_block_when_the_node_changes_meanwhile() {
    struct Counted<'a>(Succession<'a>, Cell<u32>);
    impl Clock for Counted<'_> {
        fn now(&self) -> UnixMicros {
            self.1.set(self.1.get() + 1);
            assert!(self.1.get() < 100, "no end");
            self.0.now()
        }
    }
    let memory = IssuerMemory::new(layout(), Identity::Leased { datacenter: Some(0) }, NOW, 1, None, &[]);
    let (session, shard) = (Session::new(), Shard::new(2, 0).unwrap());
    memory.generator.begin(NODES[0], layout().position_at(NOW), Position(u64::MAX >> 1));
    session.refill(&memory, &NOW, &RULES, many(100), Some(&shard), |_| {}).unwrap();
    while session.pop(&memory, Some(&shard)).is_some() {}
    let clock = Counted(Succession { generator: &memory.generator, node_bits: NODES[1] }, Cell::new(0));
    let issued = session.refill(&memory, &clock, &RULES, many(100), Some(&shard), |_| {}).unwrap();
    assert_eq!(issued.node_bits, NODES[0]);
    assert!(shard.fits(layout().id_of(issued)));
}

/// The previous primary's clock may have been ahead by as much as clocks may differ, and its last replayed commit shows it.
#[test]
fn the_period_that_the_previous_primary_may_have_begun_is_begun() {
    let (skew, after) = (Duration::from_secs(5), |seconds| NOW.plus(Duration::from_secs(seconds)));
    assert_eq!(present(NOW, 0, Some(after(9)), skew), NOW);
    needs(Guard::PeriodAhead, || {
        let times =
            [None, Some(after(9)), Some(after(3_601))].map(|replayed| present(NOW, 1, replayed, skew));
        times == [after(5), after(14), after(5)]
    });
}

/// The first of two promoted servers has a clock behind the commit that it replayed last. Its standby replays a commit of this clock.
#[test]
fn a_standby_of_a_promoted_server_knows_how_far_the_previous_primary_came() {
    let (before, after) = (Some(NOW.plus(Duration::from_mins(10))), NOW.plus(Duration::from_mins(11)));
    needs(Guard::PromotionReplicated, || Some(NOW).max(time_to_replicate(before, NOW)) == before);
    assert_eq!(time_to_replicate(before, after), None);
    assert_eq!(time_to_replicate(Some(after.plus(Duration::from_hours(1))), NOW), None);
}

/// A node went from one promoted standby to another, on the same timeline.
#[test]
fn a_server_that_a_node_left_is_not_its_registry() {
    let of = |fork| RegistryName { identity: "a".into(), timeline: 2, fork: Some(fork), left: Vec::new() };
    let seen = of(10).after(&of(20)).unwrap();
    needs(Guard::ForkLeft, || of(10).check(&seen).is_err() && of(20).check(&seen).is_ok());
}
