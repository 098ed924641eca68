//! The standing of tags: how urgently each tag needs attention.

use crate::clock::YEAR_MICROS;
use crate::named_enum::named_enum;
use crate::tag::segment::BufferStates;
use std::time::Duration;

named_enum! {
    /// The standing of a tag, the worst first.
    pub enum Standing {
        /// Refills fail, and no ids are left in memory.
        WithoutIds = "without ids",
        /// Refills fail.
        RefillsFail = "refills fail",
        /// The tag is used up within 30 days, at its present pace.
        EndsSoon = "ends soon",
        /// No ids are left in memory.
        WaitsForRefill = "waits for a refill",
        /// The tag is used up within a year, at its present pace.
        EndsThisYear = "ends this year",
        /// The tag has ids.
        Fine = "fine",
        /// The tag has no ids in memory, and nobody has asked for any.
        Idle = "idle",
    }
}

impl Standing {
    /// Returns the standing of a tag: of its buffers, whether its last refill failed, and the time for which its ids last.
    pub fn of(buffers: &BufferStates, fails: bool, lasts: Option<Duration>) -> Self {
        let ends_within = |limit| lasts.is_some_and(|lasts| lasts <= limit);
        let is_empty = buffers.left() == 0;
        if fails && is_empty {
            Self::WithoutIds
        } else if fails {
            Self::RefillsFail
        } else if ends_within(Duration::from_hours(30 * 24)) {
            Self::EndsSoon
        } else if is_empty && buffers.current.is_some() {
            Self::WaitsForRefill
        } else if ends_within(Duration::from_micros(YEAR_MICROS.unsigned_abs())) {
            Self::EndsThisYear
        } else if is_empty {
            Self::Idle
        } else {
            Self::Fine
        }
    }

    /// Returns true if somebody should act before the tag's ids run out.
    pub const fn needs_attention(self) -> bool {
        matches!(self, Self::WithoutIds | Self::RefillsFail | Self::EndsSoon | Self::EndsThisYear)
    }
}
