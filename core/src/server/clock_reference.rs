//! The check of the wall clock against a monotonic clock: see "The clock that ids follow" in `docs/architecture.md`.
//! The *clock reference* is the trusted reading of the clocks that is furthest ahead.

use crate::clock::UnixMicros;
use crate::guard::{Guard, holds};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// One reading of the machine's clocks.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reading {
    /// The wall clock. People and NTP may step it.
    pub wall: UnixMicros,
    /// An identifier of the machine's last start; empty if unknown.
    pub boot: String,
    /// The microseconds since the machine's start, from a clock that cannot be stepped and that runs while the machine
    /// sleeps.
    pub since_boot: u64,
}

/// The result of a check of the wall clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The reading is at most the limit ahead of the time that the clock reference predicts, or cannot be compared with
    /// the clock reference. The reading becomes the clock reference.
    Believed {
        /// The size of the step forward since the clock reference.
        step: Duration,
    },
    /// The reading is behind the time that the clock reference predicts. Ids follow the reading, but the clock
    /// reference does not change.
    Behind,
    /// The reading is too far ahead of the time that the clock reference predicts, so ids do not follow the reading.
    Ahead {
        /// The time by which the reading is ahead of the time that the clock reference predicts.
        by: Duration,
        /// The time that ids follow instead: the clock reference plus the time since the clock reference.
        instead: UnixMicros,
    },
}

impl Reading {
    /// Returns the step of the wall clock since an earlier reading, in microseconds, positive for a step forward.
    /// Returns None if the machine may have been restarted between the readings.
    pub fn step_since(&self, earlier: &Self) -> Option<i64> {
        let comparable = !self.boot.is_empty() && self.boot == earlier.boot;
        (comparable && self.since_boot >= earlier.since_boot)
            .then(|| self.wall.0.saturating_sub(earlier.expected(self.since_boot).0))
    }

    /// Returns the time that the wall clock would show at `since_boot` if the wall clock were not stepped.
    pub fn expected(&self, since_boot: u64) -> UnixMicros {
        UnixMicros(self.wall.plus_micros(since_boot).0.saturating_sub_unsigned(self.since_boot))
    }

    /// Compares this reading with the clock reference. `max_clock_jump` is the largest step forward that ids follow.
    pub fn judged_by(&self, clock_reference: &Self, max_clock_jump: Duration) -> Verdict {
        match self.step_since(clock_reference) {
            None => Verdict::Believed { step: Duration::ZERO },
            Some(step) if step < 0 => Verdict::Behind,
            Some(step) => {
                let step = Duration::from_micros(step.unsigned_abs());
                if is_too_far(step, max_clock_jump) {
                    Verdict::Ahead { by: step, instead: clock_reference.expected(self.since_boot) }
                } else {
                    Verdict::Believed { step }
                }
            }
        }
    }
}

/// Returns true if ids must not follow a step forward of this size.
pub fn is_too_far(step: Duration, max_clock_jump: Duration) -> bool {
    step > max_clock_jump && holds(Guard::JumpNotFollowed)
}
