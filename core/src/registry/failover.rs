//! The choice of the registry to ask next, and the pause before one that failed is asked again.
//!
//! Those that answer take turns. One that does not is left out, and asked again after a pause that doubles with each
//! failure, as Tinyid's and TDDL's clients do. That may cost the whole time limit: so it happens at a moment when no
//! session waits, if there is another to turn to.

use crate::worker::backoff::Backoff;
use std::time::Duration;

/// The pauses before one that failed is asked again.
pub const BACKOFF: Backoff = Backoff::new(Duration::from_secs(1), Duration::from_secs(15));

/// The health of a registry. Times are of any clock that only goes forward.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Health {
    /// Number of times that it failed since it answered last.
    pub failures: u32,
    /// Time at which it failed last.
    pub failed_at: Duration,
}

impl Health {
    /// The time at which it is asked again.
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

/// Returns the registries to ask, in their order. `after`: the one that was asked last; `waited_for`: a session waits for the
/// response. Empty where none is to be asked now.
pub fn order(all: &[Health], after: usize, now: Duration, waited_for: bool) -> Vec<usize> {
    let turns = || (1..=all.len()).map(|step| (after % all.len().max(1) + step) % all.len());
    let well = turns().filter(|index| all[*index].is_well());
    let due = turns().filter(|index| !all[*index].is_well() && is_due(all[*index], now, waited_for));
    if waited_for { well.chain(due).collect() } else { due.chain(well).collect() }
}

/// The time until one that failed is to be asked again; None where there is none of that kind.
pub fn until_due(all: &[Health], now: Duration, waited_for: bool) -> Option<Duration> {
    let failing = all.iter().filter(|health| !health.is_well());
    failing.map(|health| due_at(*health, waited_for).saturating_sub(now)).min()
}

/// Returns whether one that failed is to be asked again by now, though no call needs ids of it.
pub fn is_to_be_probed(health: Health, now: Duration) -> bool {
    !health.is_well() && is_due(health, now, false)
}

fn is_due(health: Health, now: Duration, waited_for: bool) -> bool {
    now >= due_at(health, waited_for)
}

/// The time at which one that failed is asked again: no later than after the first pause where a session waits.
fn due_at(health: Health, waited_for: bool) -> Duration {
    let soon = health.failed_at.saturating_add(BACKOFF.first);
    if waited_for { health.retry_at().min(soon) } else { health.retry_at() }
}
