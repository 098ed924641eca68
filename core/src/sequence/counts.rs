//! Counters of tags.
//!
//! Counts only grow, whoever adds to them. To set them back is to note how far they came: nothing that is added meanwhile gets lost, and
//! no count is ever negative.

use crate::sync::{AtomicU64, Ordering::Relaxed};
use std::iter::Sum;
use std::ops::Sub;

/// The counts of a tag, or of several.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TagCounts {
    /// Ids that were handed out.
    pub issued: u64,
    /// Refills, and how long they took in all, in microseconds.
    pub refills: u64,
    /// See above.
    pub refill_time: u64,
    /// Waits of calls, and how long they took in all, in microseconds.
    pub waits: u64,
    /// See above.
    pub wait_time: u64,
}

impl TagCounts {
    const fn to_array(self) -> [u64; 5] {
        [self.issued, self.refills, self.refill_time, self.waits, self.wait_time]
    }

    const fn of_array([issued, refills, refill_time, waits, wait_time]: [u64; 5]) -> Self {
        Self { issued, refills, refill_time, waits, wait_time }
    }
}

/// The counts beyond a part. Counts are read one after the other, while others change them: one that is less than its part is 0.
impl Sub for TagCounts {
    type Output = Self;

    fn sub(self, part: Self) -> Self {
        let mut counts = self.to_array();
        counts.iter_mut().zip(part.to_array()).for_each(|(count, part)| *count = count.saturating_sub(part));
        Self::of_array(counts)
    }
}

impl Sum for TagCounts {
    fn sum<I: Iterator<Item = Self>>(each: I) -> Self {
        let mut sum = [0_u64; 5];
        for counts in each {
            sum.iter_mut().zip(counts.to_array()).for_each(|(sum, count)| *sum = sum.saturating_add(count));
        }
        Self::of_array(sum)
    }
}

/// Counts that processes share: how far others had come at some moment.
#[derive(Debug, Default)]
pub struct CountsCell([AtomicU64; 5]);

impl CountsCell {
    /// Returns what is there.
    pub fn get(&self) -> TagCounts {
        TagCounts::of_array(self.0.each_ref().map(|count| count.load(Relaxed)))
    }

    /// Puts others in their place.
    pub fn set(&self, counts: TagCounts) {
        self.0.iter().zip(counts.to_array()).for_each(|(cell, count)| cell.store(count, Relaxed));
    }

    /// Adds others to them. One process at a time, which the caller sees to.
    pub fn add(&self, counts: TagCounts) {
        self.set([self.get(), counts].into_iter().sum());
    }
}
