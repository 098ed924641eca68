//! The clock that ids follow.

use crate::settings;
use crate::shared::generator::Shared;
use crate::store::state as file;
use snowflake_ids_core::anchor::{Reading, Verdict};
use snowflake_ids_core::state::State;
use snowflake_ids_core::{Clock, UnixMicros};
use std::sync::atomic::Ordering::Relaxed;

/// The smallest step forward that is counted: less is a clock that is kept right.
const NOTABLE: u64 = 1_000_000;

/// The wall clock, or the time by the anchor where it has jumped too far ahead.
pub fn believed_now(shared: &Shared) -> UnixMicros {
    shared.now()
}

/// Reads the clocks, and gives the time to reserve for. What is believed becomes the anchor, here and in the state.
pub fn believe(shared: &Shared, state: &mut State) -> UnixMicros {
    let now = file::clocks();
    let at = judge(shared, &now);
    state.seen = now.wall;
    state.clock = Reading { wall: shared.expected(now.since_boot), ..now };
    at
}

/// Looks at the clock once in a while, so that many small corrections don't add up to a jump.
pub fn watch(shared: &Shared) {
    judge(shared, &file::clocks());
}

/// The time to go by; counts steps forward, and makes a reading that is believed the anchor.
fn judge(shared: &Shared, now: &Reading) -> UnixMicros {
    let counts = &shared.counts;
    let anchor = Reading { wall: shared.expected(now.since_boot), ..now.clone() };
    match now.judged_by(&anchor, settings::max_clock_jump()) {
        Verdict::Believed { step } => {
            if step >= NOTABLE {
                counts.last_step_forward.store(step, Relaxed);
                counts.steps_forward.fetch_add(1, Relaxed);
            }
            counts.clock_ahead.store(0, Relaxed);
            shared.set_anchor(now.wall, now.since_boot);
            now.wall
        }
        Verdict::Behind => {
            counts.clock_ahead.store(0, Relaxed);
            now.wall
        }
        Verdict::Ahead { by, instead } => {
            counts.clock_ahead.store(by, Relaxed);
            instead
        }
    }
}

/// Goes on from the clock as it was when the state was written: whether it was stepped back since then, and what it can
/// be compared with.
pub fn resume(shared: &Shared, stored: &State, now: &Reading) {
    let tick = |at| shared.layout.tick(at).unwrap_or(0);
    shared.generator.resume(tick(stored.seen), tick(now.wall));
    if now.step_since(&stored.clock).is_some() {
        shared.set_anchor(stored.clock.wall, stored.clock.since_boot);
    } else if stored.clock.wall > now.wall {
        // The machine was started since then, with a clock that can't be right, and will be set: no jump.
        shared.set_anchor(stored.clock.wall, now.since_boot);
    }
}
