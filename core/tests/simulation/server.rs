//! One server: its machine, which survives it, and what its processes share while it runs.

use super::databases::{Database, LeaseSlot};
use super::disk::{Disk, File};
use super::faults::Backup;
use snowflake_ids_core::registry::lease::Policy;
use snowflake_ids_core::registry::lease_worker::LeaseRequests;
use snowflake_ids_core::server::clock_reference::Reading;
use snowflake_ids_core::server::issuer::{GeneratorSlot, IssuerMemory, Issuing, Occupancy};
use snowflake_ids_core::server::state::{Chosen, Identity, StateError};
use snowflake_ids_core::{ClockRollback, Layout, Node, Position, Rules, SequenceStart, Tick, UnixMicros};
use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::rc::Rc;
use std::time::Duration;

pub const SECOND: i64 = 1_000_000;
pub const MAX_DRIFT: i64 = 10 * SECOND;
pub const RESERVE: i64 = 3 * SECOND;
pub const MAX_JUMP: i64 = 60 * SECOND;
pub const MAX_SKEW: i64 = 5 * SECOND;
pub const EXPIRY: i64 = 120 * SECOND;
/// How long a registry reckons with leases of a former one: its clock may be stepped by as much as faults do.
pub const FORMER: i64 = EXPIRY + 30 * SECOND;

/// So many microseconds.
pub const fn time(micros: i64) -> Duration {
    Duration::from_micros(micros.cast_unsigned())
}

/// The clocks of the machine.
pub struct Clocks {
    /// How far the wall clock is off.
    pub offset: Cell<i64>,
    /// How many microseconds it gains each second.
    pub gain: Cell<i64>,
    pub boot: Cell<u64>,
    pub booted: Cell<i64>,
}

impl Clocks {
    pub fn wall(&self, now: i64) -> UnixMicros {
        let gained = (now - super::event::BEGIN) / SECOND * self.gain.get();
        UnixMicros(now + self.offset.get() + gained)
    }

    pub fn since_boot(&self, now: i64) -> u64 {
        (now - self.booted.get()).cast_unsigned()
    }

    pub fn reading(&self, now: i64) -> Reading {
        let boot = self.boot.get().to_string();
        Reading { wall: self.wall(now), boot, since_boot: self.since_boot(now) }
    }

    pub fn step(&self, by: i64) {
        self.offset.set(self.offset.get() + by);
    }
}

/// What the processes of a running server share: what lies in shared memory.
pub struct Live {
    pub shared: IssuerMemory,
    /// What the state lock guards, and the lock.
    pub issuing: RefCell<Issuing>,
    /// Until when each session does nothing.
    pub paused: Vec<Cell<i64>>,
    /// What is asked of the lease worker.
    pub requests: LeaseRequests,
    pub slot: LeaseSlot,
    /// What the lease worker awaits an answer to, and the answer.
    pub sent: Cell<u64>,
    pub answer: RefCell<Option<String>>,
    /// The launcher is to end the term, as the server stops.
    pub stopping: Cell<bool>,
    /// An operator is at work.
    pub operated: Cell<bool>,
    /// What an operator has to decide about.
    pub trouble: RefCell<Option<StateError>>,
}

/// The machine, and what operators have set.
pub struct Server {
    pub number: usize,
    pub layout: Layout,
    pub scope: Cell<u32>,
    pub databases: Vec<Database>,
    /// The registry that it uses, where others share it: the one that was made anew so often.
    pub introduced: Cell<u32>,
    pub system_identifier: Cell<u64>,
    pub timeline: Cell<u32>,
    pub identity: Cell<Identity>,
    pub policy: Cell<Policy>,
    pub rollback: Cell<ClockRollback>,
    pub start: SequenceStart,
    pub replayed: Cell<Option<UnixMicros>>,
    pub disk: RefCell<Disk>,
    /// How many state files it ever had.
    pub files: Cell<u64>,
    pub clocks: Clocks,
    pub live: RefCell<Option<Rc<Live>>>,
    pub slot_generation: Cell<u64>,
    pub paused: Cell<i64>,
    pub cut_off: Cell<i64>,
    /// Gone for good.
    pub retired: Cell<bool>,
    /// When it last issued, and which tick.
    pub last: Cell<Option<(i64, Tick)>>,
    pub highest: Cell<Position>,
    /// Where each tick begins in which it issued.
    pub ticks: RefCell<BTreeSet<Position>>,
    pub last_commit: Cell<Option<UnixMicros>>,
    pub backups: RefCell<Vec<Backup>>,
    pub succeeded: Cell<bool>,
    /// Whether its data directory was copied from another server that went on.
    pub copied: Cell<bool>,
    /// Of a copy without a registry: worker ids that are its original's.
    pub of_original: RefCell<Vec<u32>>,
}

impl Server {
    pub fn live(&self) -> Option<Rc<Live>> {
        self.live.borrow().clone()
    }

    pub fn is_running(&self) -> bool {
        self.live.borrow().is_some()
    }

    /// Whether it has no registry.
    pub fn is_alone(&self) -> bool {
        !self.databases[1].draws.get()
    }

    /// The worker ids that its table names.
    pub fn chosen(&self) -> Option<Vec<Chosen>> {
        self.databases[0].chosen.borrow().clone()
    }

    /// The last tick before this position in which it issued.
    pub fn highest_before(&self, end: Position) -> Position {
        self.ticks.borrow().range(..end).next_back().copied().unwrap_or_default()
    }

    pub fn is_fixed(&self) -> bool {
        matches!(self.identity.get(), Identity::Fixed { .. })
    }

    pub fn rules(&self) -> Rules {
        Rules { max_drift: MAX_DRIFT.cast_unsigned(), start: self.start }
    }

    /// Lays out shared memory.
    pub fn start(&self, sessions: usize, slots: usize, now: i64) {
        self.slot_generation.set(self.slot_generation.get() + 1);
        let (wall, since_boot) = (self.clocks.wall(now), self.clocks.since_boot(now));
        let checkpoint = self.disk.borrow().checkpoint;
        *self.live.borrow_mut() = Some(Rc::new(Live {
            shared: IssuerMemory::new(self.layout, self.identity.get(), wall, since_boot, checkpoint)
                .with_slots((0..slots).map(|_| GeneratorSlot::default()).collect::<Vec<_>>().leak()),
            issuing: Issuing::new((0..slots).map(|_| Occupancy::default()).collect::<Vec<_>>().leak()).into(),
            paused: (0..sessions).map(|_| Cell::new(0)).collect(),
            requests: LeaseRequests::default(),
            slot: LeaseSlot::default(),
            sent: Cell::new(0),
            answer: RefCell::new(None),
            stopping: Cell::new(false),
            operated: Cell::new(false),
            trouble: RefCell::new(None),
        }));
    }

    /// Whether its own file tells of the node that it is to issue as. A copy made before that, of a directory with a number
    /// in its settings, can't know that it is one.
    pub fn has_issued(&self) -> bool {
        self.disk.borrow().file.as_ref().is_some_and(|file| self.knows_itself(file))
    }

    pub fn knows_itself(&self, file: &File) -> bool {
        file.state().is_ok_and(|state| {
            let own = match self.identity.get() {
                Identity::Fixed { datacenter, worker } => {
                    let same = |node: Node| node.is_of(datacenter, worker);
                    let has_issued =
                        state.own.high_water_marks.iter().any(|high_water_mark| same(high_water_mark.node));
                    has_issued && state.node.is_some_and(same)
                }
                Identity::Leased { .. } => true,
            };
            own && state.home.identity == self.number.to_string()
        })
    }

    /// The time to go by: the wall clock's, or the clock reference's where that jumped ahead.
    pub fn believed(&self, now: i64) -> UnixMicros {
        let wall = self.clocks.wall(now);
        self.live()
            .map_or(wall, |live| live.shared.believed(wall, self.clocks.since_boot(now), time(MAX_JUMP)))
    }

    /// Whether the clock is ahead and not followed.
    pub fn is_ahead(&self, now: i64) -> bool {
        self.believed(now) != self.clocks.wall(now)
    }
}
