//! Counters of tags.
//!
//! Counts only grow. A reset records the counts at that time, and later reads subtract the recorded counts. No concurrent
//! count is lost, and no count becomes negative.

use crate::sync::{AtomicU64, Ordering::Relaxed};
use std::iter::Sum;
use std::ops::Sub;

/// The counts of one tag, or the sum over several tags.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TagCounts {
    /// The number of ids handed out.
    pub issued: u64,
    /// The number of refills.
    pub refills: u64,
    /// The total duration of the refills, in microseconds.
    pub refill_time: u64,
    /// The number of times that a call had to wait.
    pub waits: u64,
    /// The total duration of the waits, in microseconds.
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

/// The difference of counts. Counts are read one after the other while they change, so a difference can be negative. A
/// negative difference becomes 0.
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

/// A copy of counts in shared memory.
#[derive(Debug, Default)]
pub struct CountsCell([AtomicU64; 5]);

impl CountsCell {
    /// Returns the counts.
    pub fn get(&self) -> TagCounts {
        TagCounts::of_array(self.0.each_ref().map(|count| count.load(Relaxed)))
    }

    /// Replaces the counts.
    pub fn set(&self, counts: TagCounts) {
        self.0.iter().zip(counts.to_array()).for_each(|(cell, count)| cell.store(count, Relaxed));
    }

    /// Raises each count that is lower than the given count, and returns the counts.
    pub fn raise(&self, counts: TagCounts) -> TagCounts {
        let counts = counts.to_array();
        TagCounts::of_array(std::array::from_fn(|n| self.0[n].fetch_max(counts[n], Relaxed).max(counts[n])))
    }

    /// Adds to the counts. Only one process may call this function at a time.
    pub fn add(&self, counts: TagCounts) {
        self.set([self.get(), counts].into_iter().sum());
    }
}
