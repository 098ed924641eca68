//! The refill worker's memory from one round to the next.

use std::cell::Cell;
use std::time::Duration;

/// How soon it tries again where a row is locked,
pub const RETRY: Duration = Duration::from_millis(20);
/// and where a transaction failed.
pub const RETRY_AFTER_FAILURE: Duration = Duration::from_millis(200);

/// The worker.
pub struct RefillWorker<'h, H, L, C> {
    pub(super) host: &'h H,
    pub(super) link: L,
    pub(super) carry_over: C,
    /// True if the ids came from registries when that was looked at last.
    pub(super) remote: bool,
    /// Rows that are locked are waited for in turns.
    pub(super) turn: Cell<usize>,
    /// When a row at a registry that was locked was waited for last, by uptime.
    pub(super) waited: Duration,
    /// When ids were lost last, as they could not be noted.
    pub(super) lost: Option<Duration>,
}

impl<'h, H, L, C> RefillWorker<'h, H, L, C> {
    /// A worker that begins.
    pub fn new(host: &'h H, link: L, carry_over: C) -> Self {
        let (remote, turn, waited, lost) = (false, Cell::new(0), Duration::ZERO, None);
        Self { host, link, carry_over, remote, turn, waited, lost }
    }
}
