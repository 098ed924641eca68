//! Settings of the refill worker.

use std::time::Duration;

/// What the settings say. They may change from one round to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RefillSettings {
    /// Time that a segment should last.
    pub target: Duration,
    /// The share of a segment, in percent, at which the next is fetched.
    pub prefetch: u8,
    /// Time that a registry is waited for, where there is one.
    pub registry_timeout: Duration,
}
