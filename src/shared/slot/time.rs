//! Instants and lengths of time in shared memory: microseconds of uptime.

use crate::pg::clock::uptime;
use snowflake_ids_core::clock;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// Microseconds, which are 1 for less than one: 0 stands for never.
pub fn micros(time: Duration) -> u64 {
    clock::micros(time).max(1)
}

/// The time since the instant in a cell; None where there is none.
pub fn since(cell: &AtomicU64) -> Option<Duration> {
    let then = Duration::from_micros(cell.load(Relaxed));
    (!then.is_zero()).then(|| uptime().saturating_sub(then))
}
