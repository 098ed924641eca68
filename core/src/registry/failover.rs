//! The choice of the next registry, and the pause before a failed registry is asked again. `process/refill/remote.rs` limits the
//! wait for an answer.
//!
//! Healthy registries take turns. A failed registry is skipped for a pause that doubles with each failure, as in Tinyid and
//! TDDL. A retry may take the whole time limit of a request, so healthy registries are asked first while a session waits for
//! ids.

use crate::backoff::Backoff;
use std::time::Duration;

/// The pauses before a failed registry is asked again.
pub const BACKOFF: Backoff = Backoff::new(Duration::from_secs(1), Duration::from_secs(15));

/// The health of a registry. Times are readings of a monotonic clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Health {
    /// The number of failures since the last answer.
    pub failures: u32,
    /// The time of the last failure.
    pub failed_at: Duration,
}

impl Health {
    /// Returns the time of the next retry.
    pub fn retry_at(self) -> Duration {
        if self.is_well() {
            return Duration::ZERO;
        }
        self.failed_at.saturating_add(BACKOFF.after(self.failures))
    }

    fn is_well(self) -> bool {
        self.failures == 0
    }
}

/// Returns the indexes of the registries to ask, in order. The list is empty if no registry is to be asked now. `after`
/// is the index of the registry that was asked last. `waited_for` is true if a session waits for the response.
pub fn order(all: &[Health], after: usize, now: Duration, waited_for: bool) -> Vec<usize> {
    let turns = || (1..=all.len()).map(|step| (after % all.len().max(1) + step) % all.len());
    let well = turns().filter(|index| all[*index].is_well());
    let due = turns().filter(|index| !all[*index].is_well() && is_due(all[*index], now, waited_for));
    if waited_for { well.chain(due).collect() } else { due.chain(well).collect() }
}

/// Returns the time until a failed registry is asked again; None if no registry has failed.
pub fn until_due(all: &[Health], now: Duration, waited_for: bool) -> Option<Duration> {
    let failing = all.iter().filter(|health| !health.is_well());
    failing.map(|health| due_at(*health, waited_for).saturating_sub(now)).min()
}

/// Returns whether it is time to ask a failed registry again, even if no session needs ids.
pub fn is_to_be_probed(health: Health, now: Duration) -> bool {
    !health.is_well() && is_due(health, now, false)
}

fn is_due(health: Health, now: Duration, waited_for: bool) -> bool {
    now >= due_at(health, waited_for)
}

/// Returns the time of the next retry. If a session waits, the pause before the retry is at most `BACKOFF.first`.
fn due_at(health: Health, waited_for: bool) -> Duration {
    let soon = health.failed_at.saturating_add(BACKOFF.first);
    if waited_for { health.retry_at().min(soon) } else { health.retry_at() }
}
