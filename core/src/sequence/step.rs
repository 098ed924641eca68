//! The size of a tag's next segment.
//!
//! The step follows demand by the rule of Meituan's Leaf (`SegmentIDGenImpl`, 15 minutes a segment): a segment
//! that lasted less than the target doubles the step, one that lasted twice the target or longer halves it.
//! Unlike Leaf's, a step that would leave its bounds goes to the bound rather than staying where it is.
//!
//! One doubling a segment is slow where demand rises from nothing to thousands a second. So a tag that makes
//! callers wait is hungry for [`WAITED_LATELY`], as in `CosId`'s `SegmentChainId` (`PrefetchJob`). Its depth, the number
//! of steps reserved at once, doubles with every segment, and the next one is fetched at once. Without hunger
//! the depth goes back by halves; what the demand deserves is by then in the step.

use crate::sequence::definition::limits::MAX_STEP;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Time that a tag is hungry after a caller had to wait for it.
pub const WAITED_LATELY: Duration = Duration::from_secs(5);

/// The size that a tag's segments have come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pace {
    /// Ids in a step; 0 before the first segment.
    pub step: u32,
    /// Steps in a segment: 1 or more.
    #[serde(rename = "depth")]
    pub multiplier: u32,
}

impl Default for Pace {
    /// Nothing is reserved yet.
    fn default() -> Self {
        Self { step: 0, multiplier: 1 }
    }
}

/// The row's `step` and `max_step`, as they are at this refill: a change takes effect at once. Where `min`
/// is above `max`, `max` holds; both are taken as at least 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Ids of the smallest segment: 1 or more.
    pub min: u32,
    /// Ids of the largest: `min` or more.
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
    /// Returns whether a tag's segments can have come to this.
    pub fn is_sane(self) -> bool {
        [self.step, self.multiplier].iter().all(|ids| i64::from(*ids) <= MAX_STEP)
    }

    /// The pace of the next segment.
    ///
    /// `lasted` is the time since the reservation before, None where it is not known; `target` the time that a
    /// segment should last. The first segment of all is one smallest step even for a hungry tag: a session
    /// always waits for that one, and it says nothing about demand.
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
        // No deeper than it takes to fill the largest segment.
        Self { step, multiplier: multiplier.clamp(1, bounds.max().div_ceil(step)) }
    }

    /// Returns the number of ids to reserve: 1 to the largest segment.
    pub fn ids(self, bounds: Bounds) -> u32 {
        bounds.clamp(self.step).saturating_mul(self.multiplier.max(1)).min(bounds.max())
    }

    /// Returns how many of a segment's `ids` are used when the next one is fetched: 0 to `ids`. `percent` of them,
    /// rounded up; none for a hungry tag, whose next segment is fetched as soon as this one is begun.
    pub fn prefetch_at(waited_lately: bool, percent: u8, ids: u32) -> u32 {
        if waited_lately {
            return 0;
        }
        let used = (u64::from(ids) * u64::from(percent)).div_ceil(100);
        u32::try_from(used).unwrap_or(ids).min(ids)
    }
}

/// The grants to a tag that came while no slot was free: what its callers want, then twice as many each time, until that is its
/// step. So what is lost with its slot is about what it used of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SlowStart {
    /// Ids of the last grant; 0 before the first.
    pub granted: u32,
}

impl SlowStart {
    /// The most ids of the next grant, where calls wait for so many.
    pub fn most(self, wanted: u32) -> u32 {
        self.granted.saturating_mul(2).max(wanted).max(1)
    }

    /// After a grant; None: the tag has come to its step.
    #[must_use]
    pub fn after(self, granted: u32, step: u32) -> Option<Self> {
        (granted < step).then_some(Self { granted })
    }
}
