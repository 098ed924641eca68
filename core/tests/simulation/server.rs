//! One server: its machine, which survives the server's end, and the memory that its processes share.

use super::databases::{Database, LeaseSlot};
use super::disk::{Disk, File};
use super::faults::Backup;
use snowflake_ids_core::registry::lease_worker::LeaseRequests;
use snowflake_ids_core::server::clock_reference::Reading;
use snowflake_ids_core::server::issuer::{GeneratorSlot, IssuerMemory, Issuing, Occupancy};
use snowflake_ids_core::server::lease::Policy;
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
/// How long a registry respects leases of a former registry. The 30 s are a margin for faults that step the registry's clock.
pub const FORMER: i64 = EXPIRY + 30 * SECOND;

/// A duration in microseconds.
pub const fn time(micros: i64) -> Duration {
    Duration::from_micros(micros.cast_unsigned())
}

/// The clocks of the machine.
pub struct Clocks {
    /// The difference of the wall clock from the true time.
    pub offset: Cell<i64>,
    /// How many microseconds the wall clock gains per second.
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

/// The shared memory of a running server.
pub struct Live {
    pub shared: IssuerMemory,
    /// The data that the state lock protects, with the lock.
    pub issuing: RefCell<Issuing>,
    /// The time until which each session pauses.
    pub paused: Vec<Cell<i64>>,
    /// Requests to the lease worker.
    pub requests: LeaseRequests,
    pub slot: LeaseSlot,
    /// The number of the request whose response the lease worker waits for. The next field is the response.
    pub sent: Cell<u64>,
    pub answer: RefCell<Option<String>>,
    /// Whether the launcher should end the term because the server stops.
    pub stopping: Cell<bool>,
    /// Whether an operator is at work.
    pub operated: Cell<bool>,
    /// The error that needs an operator's decision.
    pub trouble: RefCell<Option<StateError>>,
}

/// The machine, with the operators' settings.
pub struct Server {
    pub number: usize,
    pub layout: Layout,
    pub scope: Cell<u32>,
    pub databases: Vec<Database>,
    /// The generation of the common registry that this server uses.
    pub introduced: Cell<u32>,
    pub system_identifier: Cell<u64>,
    pub timeline: Cell<u32>,
    pub identity: Cell<Identity>,
    pub policy: Cell<Policy>,
    pub rollback: Cell<ClockRollback>,
    pub start: SequenceStart,
    pub replayed: Cell<Option<UnixMicros>>,
    pub disk: RefCell<Disk>,
    /// The number of state files so far.
    pub files: Cell<u64>,
    pub clocks: Clocks,
    pub live: RefCell<Option<Rc<Live>>>,
    pub slot_generation: Cell<u64>,
    pub paused: Cell<i64>,
    pub cut_off: Cell<i64>,
    /// Whether the server is gone for good.
    pub retired: Cell<bool>,
    /// The time when the last id was issued, and the id's tick.
    pub last: Cell<Option<(i64, Tick)>>,
    pub highest: Cell<Position>,
    /// The first positions of all ticks in which the server issued.
    pub ticks: RefCell<BTreeSet<Position>>,
    pub last_commit: Cell<Option<UnixMicros>>,
    pub backups: RefCell<Vec<Backup>>,
    pub succeeded: Cell<bool>,
    /// Whether the data directory is a copy of another server's.
    pub copied: Cell<bool>,
    /// The worker ids of the original, for a copy without a registry.
    pub of_original: RefCell<Vec<u32>>,
}

impl Server {
    pub fn live(&self) -> Option<Rc<Live>> {
        self.live.borrow().clone()
    }

    pub fn is_running(&self) -> bool {
        self.live.borrow().is_some()
    }

    /// Whether the server uses no registry.
    pub fn is_alone(&self) -> bool {
        !self.databases[1].draws.get()
    }

    /// The worker ids in the server's own table.
    pub fn chosen(&self) -> Option<Vec<Chosen>> {
        self.databases[0].chosen.borrow().clone()
    }

    /// The last tick with an id before this position.
    pub fn highest_before(&self, end: Position) -> Position {
        self.ticks.borrow().range(..end).next_back().copied().unwrap_or_default()
    }

    pub fn is_fixed(&self) -> bool {
        matches!(self.identity.get(), Identity::Fixed { .. })
    }

    pub fn rules(&self) -> Rules {
        Rules { max_drift: MAX_DRIFT.cast_unsigned(), start: self.start }
    }

    /// Sets up shared memory.
    pub fn start(&self, sessions: usize, slots: usize, now: i64) {
        self.slot_generation.set(self.slot_generation.get() + 1);
        let (wall, since_boot) = (self.clocks.wall(now), self.clocks.since_boot(now));
        let checkpoint = self.disk.borrow().checkpoint;
        *self.live.borrow_mut() = Some(Rc::new(Live {
            shared: IssuerMemory::new(
                self.layout,
                self.identity.get(),
                wall,
                since_boot,
                checkpoint,
                (0..slots).map(|_| GeneratorSlot::default()).collect::<Vec<_>>().leak(),
            ),
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

    /// Whether the server's own file names the node under which the server issues. If a directory with a worker id in its settings is
    /// copied before that, the copy cannot know that it is a copy.
    pub fn has_issued(&self) -> bool {
        self.disk.borrow().file.as_ref().is_some_and(|file| self.knows_itself(file))
    }

    pub fn knows_itself(&self, file: &File) -> bool {
        file.state().is_ok_and(|state| {
            let own = match self.identity.get() {
                Identity::Fixed { datacenter, worker_id } => {
                    let same = |node: Node| node.is_of(datacenter, worker_id);
                    let has_issued =
                        state.own.high_water_marks.iter().any(|high_water_mark| same(high_water_mark.node));
                    has_issued && state.node.is_some_and(same)
                }
                Identity::Leased { .. } => true,
            };
            own && state.home.identity == self.number.to_string()
        })
    }

    /// The believed time: the wall clock, or the clock reference if the wall clock jumped ahead.
    pub fn believed(&self, now: i64) -> UnixMicros {
        let wall = self.clocks.wall(now);
        self.live()
            .map_or(wall, |live| live.shared.believed(wall, self.clocks.since_boot(now), time(MAX_JUMP)))
    }

    /// Whether the clock is ahead and its jump was not followed.
    pub fn is_ahead(&self, now: i64) -> bool {
        self.believed(now) != self.clocks.wall(now)
    }
}
