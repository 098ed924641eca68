//! The part of a run that the processes of all servers share.

use super::chance::Chance;
use super::event::{BEGIN, Event, Scope};
use super::ledger::Ledger;
use super::server::{SECOND, Server};
use snowflake_ids_core::server::state::StateError;
use snowflake_ids_core::{Layout, Position, UnixMicros};
use std::cell::{Cell, RefCell};

/// An instant of a run, as text.
pub fn seconds(at: i64) -> String {
    format!("{}.{:03}", (at - BEGIN) / SECOND, (at - BEGIN) % SECOND / 1_000)
}

pub struct Sim {
    pub now: Cell<i64>,
    pub chance: Chance,
    pub scope: Scope,
    /// The servers' own layout.
    pub layout: Layout,
    /// The layouts of named generators, followed by each server's number of slots for them.
    pub others: RefCell<Vec<Layout>>,
    pub max_slots: Cell<usize>,
    pub ledger: RefCell<Ledger>,
    pub healed: Cell<bool>,
    pub healed_at: Cell<i64>,
    /// Whether trouble is frequent: clocks are stepped back, servers switch worker ids, and servers end in the middle of their work.
    pub storm: bool,
    /// How often a state file could not be read.
    pub damaged: Cell<u64>,
    /// The longest sleep of a session between two calls.
    pub pace: i64,
    /// Whether each event is printed as it happens.
    pub told: Cell<bool>,
    /// Events sent by processes, with their delays.
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

    /// True once in `of` times while there are faults.
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

    /// Counts an unreadable file. No fault here damages files, so the server must have written the file wrongly.
    pub fn record_damage(&self, error: &StateError) {
        if matches!(error, StateError::Damaged { .. }) {
            self.damaged.set(self.damaged.get() + 1);
        }
    }

    /// Records that a client received an id. `number`: the number of the id's layout; `scope`: the scope in which the id is unique.
    pub fn issued(&self, server: &Server, scope: u32, number: usize, id: i64) {
        let now = self.now();
        let layout = self.layout_of(number);
        let decoded = layout.decode(id).expect("an id");
        let end = UnixMicros(decoded.timestamp.0 + layout.unit().cast_signed() - 1);
        // Operators use the servers' own layout.
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

    /// The layout with this number; 0 is the servers' own.
    pub fn layout_of(&self, number: usize) -> Layout {
        if number == 0 { self.layout } else { self.others.borrow()[number - 1] }
    }

    /// The layout in which a session requests ids now. With a single slot, the other layouts take turns.
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

/// How long each layout uses a single slot.
const TIME_SLICE: i64 = 150 * SECOND;
