//! The time that ids follow.

use super::counter::tick_of;
use super::host::Host;
use super::shared::Issuer;
use crate::clock::{UnixMicros, micros};
use crate::server::clock_reference::{Reading, Verdict};
use crate::server::state::State;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

/// The smallest step forward of the clock that is counted as a step. Smaller steps are normal corrections by NTP.
const NOTABLE: Duration = Duration::from_secs(1);

impl<H: Host> Issuer<'_, H> {
    /// Returns the wall clock's time, or the time that the clock reference predicts if the wall clock jumped too far
    /// ahead.
    pub fn believed_now(&self) -> UnixMicros {
        let now = self.host.reading();
        self.shared.believed(now.wall, now.since_boot, self.host.settings().max_clock_jump)
    }

    /// Checks the clock against the clock reference. Because of regular checks, many small corrections of the clock do
    /// not add up to a jump.
    pub fn watch(&self) {
        self.judge(&self.host.reading());
    }

    /// Reads the clocks, and returns the time that ids follow. A trusted reading becomes the clock reference, in memory
    /// and in the state.
    pub(super) fn believe(&self, state: &mut State) -> UnixMicros {
        let now = self.host.reading();
        let at = self.judge(&now);
        state.seen = now.wall;
        state.clock = self.shared.clock_reference(&now);
        at
    }

    /// Returns the time that ids follow. Counts steps forward of the clock. A reading that is judged
    /// [`Verdict::Believed`] becomes the clock reference.
    fn judge(&self, now: &Reading) -> UnixMicros {
        let counts = &self.shared.counts;
        let (ahead, at) =
            match now.judged_by(&self.shared.clock_reference(now), self.host.settings().max_clock_jump) {
                Verdict::Believed { step } => {
                    if step >= NOTABLE {
                        counts.last_step_forward.store(micros(step), Relaxed);
                        counts.steps_forward.fetch_add(1, Relaxed);
                    }
                    self.shared.set_clock_reference(now.wall, now.since_boot);
                    (Duration::ZERO, now.wall)
                }
                Verdict::Behind => (Duration::ZERO, now.wall),
                Verdict::Ahead { by, instead } => (by, instead),
            };
        self.shared.status.clock_ahead.store(micros(ahead), Relaxed);
        at
    }

    /// Restores the generator's last tick and the clock reference from the stored state.
    pub(super) fn resume(&self, stored: &State, now: &Reading) {
        let tick = |at| tick_of(&self.shared.layout, at);
        self.shared.generator.resume(tick(stored.seen), tick(now.wall));
        if now.step_since(&stored.clock).is_some() {
            self.shared.set_clock_reference(stored.clock.wall, stored.clock.since_boot);
        } else if stored.clock.wall > now.wall {
            // The machine was restarted since the state was written, and the machine's clock is behind. The later
            // correction of the clock must not count as a jump.
            self.shared.set_clock_reference(stored.clock.wall, now.since_boot);
        }
    }
}
