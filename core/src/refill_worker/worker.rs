//! What the worker keeps from one round to the next.

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
    /// Whether the ids came from registries when that was looked at last.
    pub(super) remote: bool,
    /// When a row at a registry that was locked was waited for last, by uptime.
    pub(super) waited: Duration,
    /// When ids were lost last, as they could not be noted.
    pub(super) lost: Option<Duration>,
}

impl<'h, H, L, C> RefillWorker<'h, H, L, C> {
    /// A worker that begins.
    pub fn new(host: &'h H, link: L, carry_over: C) -> Self {
        Self { host, link, carry_over, remote: false, waited: Duration::ZERO, lost: None }
    }
}
