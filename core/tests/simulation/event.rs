//! Events of a run.

use snowflake_ids_core::registry::lease_launch::LeaseTask;
use std::cmp::Ordering;

/// The instant at which every run begins, in 2026.
pub const BEGIN: i64 = 1_770_000_000_000_000;

/// The source of worker ids.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// One registry for all servers.
    Shared,
    /// One registry, with hardly more worker ids than servers.
    Tight,
    /// Each server chooses its own worker id.
    Alone,
    /// An operator sets a worker id for each server.
    Numbers,
    /// An operator sets the worker ids; a promoted standby keeps its primary's worker id.
    Succession,
}

#[derive(Clone, Debug)]
pub enum Event {
    /// A process continues, if this is still the process's turn.
    Run {
        server: usize,
        slot_generation: u64,
        process: usize,
        turn: u64,
    },
    /// A request arrives at the common registry.
    Request {
        server: usize,
        slot_generation: u64,
        number: u64,
        text: String,
    },
    /// The registry continues to serve a request.
    Serve {
        process: usize,
    },
    /// The response arrives at the server.
    Answer {
        server: usize,
        slot_generation: u64,
        number: u64,
        answer: String,
    },
    /// The lease worker starts in a database.
    LeaseWorker {
        server: usize,
        slot_generation: u64,
        task: LeaseTask,
        database: u32,
    },
    Start {
        server: usize,
    },
    /// A server begins to stop.
    Stop {
        server: usize,
        slot_generation: u64,
    },
    /// The launcher of a stopping server has ended.
    Stopped {
        server: usize,
        slot_generation: u64,
    },
    /// An operator lets a server use the recreated registry.
    Introduce {
        server: usize,
    },
    ClockRight {
        server: usize,
    },
    Fault,
    Operator,
}

/// An event's time, its number among all events, and the event.
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
    /// Sorts the earliest event as the largest, because a heap returns the largest element first.
    fn cmp(&self, other: &Self) -> Ordering {
        (other.0, other.1).cmp(&(self.0, self.1))
    }
}
