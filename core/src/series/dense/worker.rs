//! The round of the worker: what sessions ask for, and what leaves memory, in one transaction.

use super::host::Host;
use std::time::Duration;

/// What a round came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Served {
    /// There was nothing to do.
    Nothing,
    /// All that was asked for is done.
    All,
    /// Something is left, and is to be tried again after this pause.
    Failed(Duration),
}

impl Served {
    /// The pause before the next attempt at what is left.
    pub const fn pause(self) -> Option<Duration> {
        match self {
            Self::Failed(pause) => Some(pause),
            Self::Nothing | Self::All => None,
        }
    }
}

/// Frees what a worker of this database left that died: to be called when a worker begins, and no other is there.
pub fn begin<H: Host>(host: &H) {
    for number in 0..host.partitions() {
        host.with_partition(number, |partition| partition.sweep(host.database()));
    }
}

/// One round.
pub fn serve<H: Host>(host: &H) -> Served {
    let _ = host.uptime();
    Served::Nothing
}
