//! What happens in a run, and where.

use snowflake_ids_core::registry::lease_launch::LeaseTask;
use std::cmp::Ordering;

/// When every run begins: some instant of 2026.
pub const BEGIN: i64 = 1_770_000_000_000_000;

/// Where worker ids come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// One registry for all.
    Shared,
    /// The same, with hardly more worker ids than servers.
    Tight,
    /// Each server chooses its own.
    Alone,
    /// Numbers that an operator chose.
    Numbers,
    /// The same, with standbys that succeed under their number.
    Succession,
}

#[derive(Clone, Debug)]
pub enum Event {
    /// A process goes on, if it still waits for this turn.
    Run {
        server: usize,
        slot_generation: u64,
        process: usize,
        turn: u64,
    },
    /// A request reaches the registry that servers share,
    Request {
        server: usize,
        slot_generation: u64,
        number: u64,
        text: String,
    },
    /// which goes on serving it,
    Serve {
        process: usize,
    },
    /// and its answer reaches the server.
    Answer {
        server: usize,
        slot_generation: u64,
        number: u64,
        answer: String,
    },
    /// The lease worker is started in a database.
    LeaseWorker {
        server: usize,
        slot_generation: u64,
        task: LeaseTask,
        database: u32,
    },
    Start {
        server: usize,
    },
    /// The server is to stop,
    Stop {
        server: usize,
        slot_generation: u64,
    },
    /// and its launcher has ended.
    Stopped {
        server: usize,
        slot_generation: u64,
    },
    /// An operator has a server use the registry that was made anew.
    Introduce {
        server: usize,
    },
    ClockRight {
        server: usize,
    },
    Fault,
    Operator,
}

/// When an event happens, and which of those of that instant it is.
pub struct At(pub i64, pub u64, pub Event);

impl PartialEq for At {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}
impl Eq for At {}
impl PartialOrd for At {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for At {
    /// The earliest is the largest: a heap gives that first.
    fn cmp(&self, other: &Self) -> Ordering {
        (other.0, other.1).cmp(&(self.0, self.1))
    }
}
