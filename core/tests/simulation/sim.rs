//! What the processes of all servers reach of a run.

use super::chance::Chance;
use super::event::{BEGIN, Event, Scope};
use super::ledger::Ledger;
use super::server::{SECOND, Server};
use snowflake_ids_core::server::state::StateError;
use snowflake_ids_core::{Layout, Position, UnixMicros};
use std::cell::{Cell, RefCell};

/// An instant of a run, for people.
pub fn seconds(at: i64) -> String {
    format!("{}.{:03}", (at - BEGIN) / SECOND, (at - BEGIN) % SECOND / 1_000)
}

pub struct Sim {
    pub now: Cell<i64>,
    pub chance: Chance,
    pub scope: Scope,
    /// The servers' own layout.
    pub layout: Layout,
    /// Those of named generators, and how many places servers have for them.
    pub others: RefCell<Vec<Layout>>,
    pub max_slots: Cell<usize>,
    pub ledger: RefCell<Ledger>,
    pub healed: Cell<bool>,
    pub healed_at: Cell<i64>,
    /// Clocks are stepped back again and again, servers switch, and end in the middle of what they do.
    pub storm: bool,
    /// How often a state's file could not be read.
    pub damaged: Cell<u64>,
    /// How long a session sleeps between two calls, at most.
    pub pace: i64,
    /// Whether what happens is told at once.
    pub told: Cell<bool>,
    /// What processes have sent, and after how long it arrives.
    sent: RefCell<Vec<(i64, Event)>>,
}

impl Sim {
    pub fn new(seed: u64, scope: Scope, layout: Layout, pace: i64) -> Self {
        Self {
            now: Cell::new(BEGIN),
            chance: Chance::new(seed),
            scope,
            layout,
            others: RefCell::default(),
            max_slots: Cell::new(0),
            ledger: RefCell::default(),
            healed: Cell::new(false),
            healed_at: Cell::new(BEGIN),
            storm: seed.is_multiple_of(7) && scope != Scope::Succession,
            damaged: Cell::default(),
            pace,
            told: Cell::new(false),
            sent: RefCell::default(),
        }
    }

    pub fn now(&self) -> i64 {
        self.now.get()
    }

    pub fn is_healed(&self) -> bool {
        self.healed.get()
    }

    /// Now and then, while there are faults.
    pub fn happens_once_in(&self, of: usize) -> bool {
        !self.is_healed() && self.chance.once_in(of)
    }

    pub fn record(&self, what: impl FnOnce() -> String) {
        if self.told.get() {
            println!("{:>10} {}", seconds(self.now()), what());
        }
    }

    pub fn send(&self, delay: i64, event: Event) {
        self.sent.borrow_mut().push((delay, event));
    }

    pub fn take_sent(&self) -> Vec<(i64, Event)> {
        self.sent.take()
    }

    /// No fault here writes into a file: one that can't be read was not written as it has to be.
    pub fn record_damage(&self, error: &StateError) {
        if matches!(error, StateError::Damaged { .. }) {
            self.damaged.set(self.damaged.get() + 1);
        }
    }

    /// A client has an id, for good: of the servers' own layout, or of one of the others, by their numbers.
    /// `scope`: what it is unique in.
    pub fn issued(&self, server: &Server, scope: u32, number: usize, id: i64) {
        let now = self.now();
        let layout = self.layout_of(number);
        let decoded = layout.decode(id).expect("an id");
        let end = UnixMicros(decoded.timestamp.0 + layout.unit().cast_signed() - 1);
        // Operators think in the servers' own layout.
        let tick = self.layout.tick(end).expect("within the layout");
        let first = self.layout.first_of(tick);
        let position = if number == 0 {
            server.last.set(Some((now, tick)));
            Position(first.0 | u64::from(decoded.sequence))
        } else {
            first
        };
        let id = id.cast_unsigned();
        server.ticks.borrow_mut().insert(first);
        server.highest.set(server.highest.get().max(position));
        server.last_commit.set(Some(server.clocks.wall(now)));
        let name = server.number;
        self.ledger.borrow_mut().issue(scope, number, id, || {
            format!("{}: server {name} issued {id} of \"{layout}\" again: {decoded:?}", seconds(now))
        });
        if server.of_original.borrow().contains(&decoded.worker_id) {
            self.ledger
                .borrow_mut()
                .repeat(|| format!("{}: server {name} issues as its original", seconds(now)));
        }
        if self.scope == Scope::Succession {
            self.ledger.borrow_mut().not_yet_replicated(name, now, number, id);
        }
    }

    /// A layout by its number: 0 is the servers' own.
    pub fn layout_of(&self, number: usize) -> Layout {
        if number == 0 { self.layout } else { self.others.borrow()[number - 1] }
    }

    /// The number of a layout in which a session asks for ids now. Where there is one place, others take turns at it.
    pub fn some_layout(&self) -> usize {
        let others = self.others.borrow().len();
        if others == 0 || !self.chance.once_in(3) {
            return 0;
        }
        if self.max_slots.get() >= others {
            return 1 + self.chance.below(others);
        }
        let turn = usize::try_from((self.now() - BEGIN) / TIME_SLICE).unwrap();
        1 + turn % others
    }
}

/// How long one of several layouts is used where they have one place.
const TIME_SLICE: i64 = 150 * SECOND;
