//! The clock that ids follow.

use super::host::Host;
use super::issuing::Issuer;
use crate::clock::{UnixMicros, micros};
use crate::ids::layout::Layout;
use crate::ids::position::Tick;
use crate::server::anchor::{Reading, Verdict};
use crate::server::state::State;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

/// The smallest step forward that is counted: less is a clock that is kept right.
const NOTABLE: Duration = Duration::from_secs(1);

/// The tick of an instant; the first where it has none.
pub(super) fn tick_of(layout: &Layout, at: UnixMicros) -> Tick {
    layout.tick(at).unwrap_or_default()
}

impl<H: Host> Issuer<'_, H> {
    /// The wall clock, or the time by the anchor where it has jumped too far ahead.
    pub fn believed_now(&self) -> UnixMicros {
        let now = self.host.reading();
        self.shared.believed(now.wall, now.since_boot, self.host.settings().max_clock_jump)
    }

    /// Looks at the clock once in a while, so that many small corrections do not add up to a jump.
    pub fn watch(&self) {
        self.judge(&self.host.reading());
    }

    /// Reads the clocks, and gives the time to reserve for. What is believed becomes the anchor, here and in the state.
    pub(super) fn believe(&self, state: &mut State) -> UnixMicros {
        let now = self.host.reading();
        let at = self.judge(&now);
        state.seen = now.wall;
        state.clock = self.shared.anchor(&now);
        at
    }

    /// The time to go by; counts steps forward, and makes a reading that is believed the anchor.
    fn judge(&self, now: &Reading) -> UnixMicros {
        let counts = &self.shared.counts;
        match now.judged_by(&self.shared.anchor(now), self.host.settings().max_clock_jump) {
            Verdict::Believed { step } => {
                if step >= NOTABLE {
                    counts.last_step_forward.store(micros(step), Relaxed);
                    counts.steps_forward.fetch_add(1, Relaxed);
                }
                counts.clock_ahead.store(0, Relaxed);
                self.shared.set_anchor(now.wall, now.since_boot);
                now.wall
            }
            Verdict::Behind => {
                counts.clock_ahead.store(0, Relaxed);
                now.wall
            }
            Verdict::Ahead { by, instead } => {
                counts.clock_ahead.store(micros(by), Relaxed);
                instead
            }
        }
    }

    /// Goes on from the clock as it was when the state was written: whether it was stepped back since then, and what it
    /// can be compared with.
    pub(super) fn resume(&self, stored: &State, now: &Reading) {
        let tick = |at| tick_of(&self.shared.layout, at);
        self.shared.generator.resume(tick(stored.seen), tick(now.wall));
        if now.step_since(&stored.clock).is_some() {
            self.shared.set_anchor(stored.clock.wall, stored.clock.since_boot);
        } else if stored.clock.wall > now.wall {
            // The machine was started since then, with a clock that cannot be right, and will be set: no jump.
            self.shared.set_anchor(stored.clock.wall, now.since_boot);
        }
    }
}
