//! The properties of a tag's ids: the numbers that are ids, the ids that are left, and a forecast of how long they
//! last.
//!
//! The ids of a tag are the numbers from `start` to `max_value` that leave `remainder` when divided by `increment`.
//! Registries with different remainders can thus serve the same tag, although they do not communicate with each other.
//! Only `max_id` changes as ids are reserved. All ids up to `max_id` count as issued.

mod error;
pub mod limits;

pub use error::{DefinitionError, Exhausted, TagError};
pub use limits::{MAX_DESCRIPTION_BYTES, MAX_NAME_BYTES, MAX_STEP, MAX_TAG_BYTES, MAX_TAG_CHARS};

use crate::clock::YEAR_MICROS;
use crate::tag::step::Bounds;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// The longest forecast, in microseconds: 10,000 years.
const MAX_FORECAST: u128 = 10_000 * YEAR_MICROS.unsigned_abs() as u128;

/// The properties in a tag's row. Calculations are safe for any values; [`Definition::check`] finds invalid values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Definition {
    /// The highest reserved id. If no id is reserved, a number below `start`, at least -1.
    pub max_id: i64,
    /// The lowest number that may be an id: 0 or more.
    pub start: i64,
    /// The number of ids in the smallest segment: 1 to `max_step`.
    pub step: i64,
    /// The number of ids in the largest segment: 1 to [`MAX_STEP`].
    pub max_step: i64,
    /// The distance from one id to the next: 1 to [`MAX_STEP`].
    pub increment: i64,
    /// The remainder of an id divided by `increment`: 0 to `increment - 1`.
    pub remainder: i64,
    /// The highest number that may be an id: `start` or more.
    pub max_value: i64,
}

impl Definition {
    /// Checks that each value is within its bounds, and that some id lies between `start` and `max_value`.
    pub fn check(&self) -> Result<(), DefinitionError> {
        let Self { max_id, start, step, max_step, increment, remainder, max_value } = *self;
        if !(1..=MAX_STEP).contains(&max_step) {
            Err(DefinitionError::MaxStep { max_step })
        } else if !(1..=max_step).contains(&step) {
            Err(DefinitionError::Step { step, max_step })
        } else if !(1..=MAX_STEP).contains(&increment) {
            Err(DefinitionError::Increment { increment })
        } else if !(0..increment).contains(&remainder) {
            Err(DefinitionError::Remainder { remainder, increment })
        } else if start < 0 {
            Err(DefinitionError::Start { start })
        } else if max_id < -1 {
            Err(DefinitionError::MaxId { max_id })
        } else if max_value < start {
            Err(DefinitionError::MaxValue { max_value, start })
        } else if self.first_after(-1).is_none() {
            Err(DefinitionError::NoId { start, max_value, increment, remainder })
        } else {
            Ok(())
        }
    }

    /// Returns the lowest id above the number `id`, reserved or not; None if no id up to `max_value` is above the
    /// number.
    pub fn first_after(&self, id: i64) -> Option<i64> {
        // This calculation cannot overflow 128 bits.
        let from = (i128::from(id) + 1).max(self.start.into());
        let first = from + (i128::from(self.remainder) - from).rem_euclid(self.increment.max(1).into());
        i64::try_from(first).ok().filter(|first| *first <= self.max_value)
    }

    /// Returns the next `want` ids after the highest reserved id, or fewer ids if fewer ids are left. A `want` of 0
    /// counts as 1. The ids belong to the caller once a row with the last id as `max_id` is durable.
    pub fn reserve(&self, want: u32) -> Result<Range, Exhausted> {
        let first = self.first_after(self.max_id).ok_or(Exhausted { max_value: self.max_value })?;
        let count = u32::try_from(self.count_from(first)).unwrap_or(u32::MAX).min(want.max(1));
        Ok(Range { first, count, increment: self.increment.max(1) })
    }

    /// Returns the count of ids above the number `id`.
    pub fn left_after(&self, id: i64) -> u64 {
        self.first_after(id).map_or(0, |first| self.count_from(first))
    }

    fn count_from(&self, first: i64) -> u64 {
        (self.max_value.abs_diff(first) / self.increment.max(1).unsigned_abs()).saturating_add(1)
    }

    /// Returns the properties for a new period, in which no id is reserved.
    #[must_use]
    pub fn restarted(&self) -> Self {
        Self { max_id: self.start.saturating_sub(1), ..*self }
    }

    /// Returns the properties after promotions. At each promotion, the previous primary may have reserved ids without
    /// replicating the changed row to its standby. The result skips the ids of two full buffers for each promotion, but
    /// at most half of the ids that are left.
    #[must_use]
    pub fn skipped_ahead(&self, promotions: u32) -> Self {
        let left = self.left_after(self.max_id);
        let of_one = 2 * self.max_step.clamp(1, MAX_STEP).unsigned_abs();
        let skipped = of_one.saturating_mul(promotions.into()).min(left / 2);
        let last = self.first_after(self.max_id).filter(|_| skipped > 0).and_then(|first| {
            let distance = i64::try_from(skipped - 1).ok()?.checked_mul(self.increment.max(1))?;
            first.checked_add(distance)
        });
        Self { max_id: last.unwrap_or(self.max_id), ..*self }
    }

    /// Returns the bounds of the segment size.
    pub fn bounds(&self) -> Bounds {
        let ids = |step: i64| u32::try_from(step.clamp(1, MAX_STEP)).unwrap_or(1);
        Bounds { min: ids(self.step), max: ids(self.max_step) }
    }
}

/// The ids of one segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Range {
    /// The first id, which is the lowest id.
    pub first: i64,
    /// The number of ids: 1 or more.
    pub count: u32,
    /// The distance from one id to the next: 1 or more.
    pub increment: i64,
}

impl Range {
    /// Returns the id at an offset. Only offsets below `count` are valid.
    #[inline]
    pub const fn at(&self, offset: u32) -> i64 {
        self.first.wrapping_add(self.increment.wrapping_mul(offset as i64))
    }

    pub(crate) fn is_representable(&self) -> bool {
        let steps = i64::from(self.count.saturating_sub(1));
        self.increment.checked_mul(steps).and_then(|way| self.first.checked_add(way)).is_some()
    }

    /// Returns true if the next range has the same increment and begins right after this range.
    pub const fn is_followed_by(&self, next: &Self) -> bool {
        self.increment == next.increment && self.at(self.count) == next.first
    }

    /// Returns the last id; `first` for an empty range.
    pub const fn last(&self) -> i64 {
        self.at(self.count.saturating_sub(1))
    }
}

/// Checks the number of characters of a tag's name.
///
/// # Errors
/// [`TagError`] for an empty name, and for more than [`MAX_TAG_CHARS`] characters.
pub const fn check_tag(chars: usize) -> Result<(), TagError> {
    match chars {
        0 => Err(TagError::Empty),
        1..=MAX_TAG_CHARS => Ok(()),
        _ => Err(TagError::TooLong { chars }),
    }
}

/// Returns the time that `left` ids last if sessions take `issued` ids in each time `over`; None if no ids are taken,
/// or if the result exceeds 10,000 years.
pub fn forecast(left: u64, issued: u64, over: Duration) -> Option<Duration> {
    let over = Some(over.as_micros()).filter(|over| *over > 0)?;
    let micros = over.checked_mul(left.into())?.checked_div(issued.into())?;
    u64::try_from(micros).ok().filter(|_| micros <= MAX_FORECAST).map(Duration::from_micros)
}
