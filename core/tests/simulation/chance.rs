//! Repeatable random numbers: `SplitMix64` (Steele, Lea, Flood 2014).

use std::cell::Cell;

/// A stream of numbers that follows from its seed.
pub struct Chance(Cell<u64>);

impl Chance {
    pub fn new(seed: u64) -> Self {
        Self(Cell::new(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x5851_f42d_4c95_7f2d))
    }

    pub fn next(&self) -> u64 {
        self.0.set(self.0.get().wrapping_add(0x9e37_79b9_7f4a_7c15));
        let mut z = self.0.get();
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `end`, which is above 0.
    pub fn below(&self, end: usize) -> usize {
        usize::try_from(self.next() % end as u64).unwrap()
    }

    /// A number from `from` up to but not including `to`.
    pub fn between(&self, from: i64, to: i64) -> i64 {
        from + (self.next() % (to - from).cast_unsigned()).cast_signed()
    }

    /// True once in `of` times.
    pub fn once_in(&self, of: usize) -> bool {
        self.below(of) == 0
    }

    pub fn one_of<T: Copy>(&self, of: &[T]) -> T {
        of[self.below(of.len())]
    }
}
