//! The check of the wall clock: a reading is compared with an earlier one by a clock that cannot be stepped.
//!
//! A wall clock that an operator, a virtual machine or a broken time server sets years ahead would take ids
//! with it, and they could never come back. So a sudden step forward beyond a limit is not followed: ids go on
//! with the time that has really passed since the *clock reference*, the furthest reading that was believed. A step back never
//! moves it: else the clock's coming back would look like a step forward.

use crate::clock::UnixMicros;
use crate::guard::{Guard, holds};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// The machine's clocks at one moment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reading {
    /// The wall clock, which is stepped by people and by NTP.
    pub wall: UnixMicros,
    /// The start of the machine that `since_boot` counts from; empty where that is not known.
    pub boot: String,
    /// Microseconds since then, of a clock that cannot be stepped and that goes on while the machine sleeps.
    pub since_boot: u64,
}

/// A judgement of the wall clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It agrees with the clock reference, is ahead of it by no more than the limit, or cannot be compared: the next clock reference.
    Believed {
        /// The step forward since the clock reference.
        step: Duration,
    },
    /// It is behind the clock reference, which stays: it is used, as ids that follow it cannot be too far ahead.
    Behind,
    /// It is too far ahead of the clock reference to be followed.
    Ahead {
        /// The distance ahead.
        by: Duration,
        /// The time by the clock reference.
        instead: UnixMicros,
    },
}

impl Reading {
    /// Returns how far the wall clock was stepped since an earlier reading, in microseconds, positive forward; None
    /// where the machine was started in between.
    pub fn step_since(&self, earlier: &Self) -> Option<i64> {
        let comparable = !self.boot.is_empty() && self.boot == earlier.boot;
        (comparable && self.since_boot >= earlier.since_boot)
            .then(|| self.wall.0.saturating_sub(earlier.expected(self.since_boot).0))
    }

    /// Returns what the wall clock shows so long after the boot if it is not stepped.
    pub fn expected(&self, since_boot: u64) -> UnixMicros {
        UnixMicros(self.wall.plus_micros(since_boot).0.saturating_sub_unsigned(self.since_boot))
    }

    /// Returns what to make of this reading, given the clock reference and the largest step forward to be followed.
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

/// Returns whether a step forward is too far to be followed.
pub fn is_too_far(step: Duration, max_clock_jump: Duration) -> bool {
    step > max_clock_jump && holds(Guard::JumpNotFollowed)
}
