//! The size of a tag's next segment.
//!
//! The step follows demand by the rule of Meituan's Leaf (`SegmentIDGenImpl`, 15 minutes for a segment). A segment that
//! lasted less than the target doubles the step. A segment that lasted twice the target or longer halves the step. A step
//! beyond a bound is set to the bound; Leaf leaves the step unchanged in this case.
//!
//! One doubling for each segment is slow if demand rises suddenly to thousands of ids a second. A tag is therefore
//! treated as busy for [`WAITED_LATELY`] after a call had to wait, as in `CosId`'s `SegmentChainId` (`PrefetchJob`).
//! The *multiplier* is the number of steps reserved at once. For a busy tag the multiplier doubles with every segment,
//! and the next segment is requested immediately. For other tags the multiplier is halved with every segment, because
//! their step has grown with the demand by then.

use crate::tag::definition::limits::MAX_STEP;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// The time for which a tag counts as busy after a call had to wait.
pub const WAITED_LATELY: Duration = Duration::from_secs(5);

/// The current size of a tag's segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pace {
    /// The number of ids in a step; 0 before the first segment.
    pub step: u32,
    /// The number of steps in a segment: 1 or more.
    pub multiplier: u32,
}

impl Default for Pace {
    /// The pace before the first reservation.
    fn default() -> Self {
        Self { step: 0, multiplier: 1 }
    }
}

/// The row's `step` and `max_step` as read at this refill, so a change takes effect with the next refill. Values below
/// 1 count as 1. `max` applies if `min` is above `max`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// The number of ids in the smallest segment: 1 or more.
    pub min: u32,
    /// The number of ids in the largest segment: `min` or more.
    pub max: u32,
}

impl Bounds {
    fn max(self) -> u32 {
        self.max.max(1)
    }

    fn clamp(self, step: u32) -> u32 {
        step.clamp(self.min.clamp(1, self.max()), self.max())
    }
}

impl Pace {
    /// Returns true if the values are within their limits.
    pub fn is_sane(self) -> bool {
        [self.step, self.multiplier].iter().all(|ids| i64::from(*ids) <= MAX_STEP)
    }

    /// Returns the pace of the next segment.
    ///
    /// `lasted` is the time since the last reservation, if known. `target` is the time that a segment should last. The
    /// very first segment is one step of the smallest size, even if calls wait. A session always waits for the first
    /// segment, so the wait says nothing about demand.
    #[must_use]
    pub fn next(
        self,
        bounds: Bounds,
        lasted: Option<Duration>,
        target: Duration,
        waited_lately: bool,
    ) -> Self {
        if self.step == 0 {
            return Self { step: bounds.clamp(0), multiplier: 1 };
        }
        let step = match lasted {
            Some(lasted) if lasted < target => self.step.saturating_mul(2),
            Some(lasted) if lasted >= target.saturating_mul(2) => self.step / 2,
            _ => self.step,
        };
        let step = bounds.clamp(step);
        let multiplier =
            if waited_lately { self.multiplier.max(1).saturating_mul(2) } else { self.multiplier / 2 };
        // A larger multiplier would exceed the largest segment.
        Self { step, multiplier: multiplier.clamp(1, bounds.max().div_ceil(step)) }
    }

    /// Returns the number of ids to reserve: 1 to the largest segment.
    pub fn ids(self, bounds: Bounds) -> u32 {
        bounds.clamp(self.step).saturating_mul(self.multiplier.max(1)).min(bounds.max())
    }

    /// Returns the number of used ids at which the next segment is requested: `percent` of `ids`, rounded up. Returns 0
    /// for a busy tag, whose next segment is requested with the first id.
    pub fn prefetch_at(waited_lately: bool, percent: u8, ids: u32) -> u32 {
        if waited_lately {
            return 0;
        }
        let used = (u64::from(ids) * u64::from(percent)).div_ceil(100);
        u32::try_from(used).unwrap_or(ids).min(ids)
    }
}

/// A slow start, for a tag that came into use while no slot was free. The first grant has as many ids as callers wait
/// for. The size then doubles with each grant, up to the tag's step. A tag that loses its slot thus loses at most about
/// as many unused ids as sessions have taken from it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SlowStart {
    /// The number of ids in the last grant; 0 before the first grant.
    pub granted: u32,
}

impl SlowStart {
    /// Returns the largest number of ids for the next grant, if calls wait for `wanted` ids.
    pub fn most(self, wanted: u32) -> u32 {
        self.granted.saturating_mul(2).max(wanted).max(1)
    }

    /// Returns the slow start after a grant; None if the tag has reached its step.
    #[must_use]
    pub fn after(self, granted: u32, step: u32) -> Option<Self> {
        (granted < step).then_some(Self { granted })
    }
}
