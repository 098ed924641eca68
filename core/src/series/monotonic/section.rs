//! The numbers that keys of a section may have.
//!
//! Numbers are counted in memory as **offsets**, from 1, from the section's **origin**: the number at an offset is
//! `origin + offset * increment`.

use crate::sequence::definition::Range;
use crate::sync::{AtomicU64, Ordering};

/// The state that all keys of a section share. It is opened, given ranges, shut and swept by one process at a time, which the caller sees to
/// with a lock; takers take no part in that.
#[derive(Debug, Default)]
#[cfg_attr(not(loom), repr(C))]
pub struct Section {
    front: Front,
    base: Base,
}

/// The part that every taker reads.
#[derive(Debug, Default)]
#[cfg_attr(not(loom), repr(C, align(64)))]
struct Front {
    /// 0: nobody's.
    owner: AtomicU64,
    origin: AtomicU64,
    increment: AtomicU64,
    /// The highest offset of the present range above the lowest: seen together.
    bounds: AtomicU64,
    /// Not 0 if a number was taken since the last look.
    used: AtomicU64,
    /// Not 0 if there may be entries of this place's.
    littered: AtomicU64,
}

/// The highest offset with which a key left.
#[derive(Debug, Default)]
#[cfg_attr(not(loom), repr(C, align(64)))]
struct Base(AtomicU64);

#[cfg(not(loom))]
const _: () = assert!(size_of::<Section>() == 128 && align_of::<Section>() == 64);

/// The range that a taker saw.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SectionBounds(u64);

/// The result of giving a section a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Supplied {
    /// Its keys go on in it.
    Yes,
    /// It is not above the one that the section has: dropped.
    Below,
    /// It is too far from the section's origin, or of another increment: the section has to be shut, and opened with it.
    Far,
}

/// The need of a section that is to give its keys numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SectionNeed {
    /// Nothing: it is this owner's, and has other bounds than the taker saw.
    Nothing(u64),
    /// A sweep.
    Sweep,
    /// A range.
    Range,
}

impl SectionBounds {
    const fn new(low: u32, high: u32) -> Self {
        Self((high as u64) << u32::BITS | low as u64)
    }

    /// The lowest offset.
    #[inline]
    #[allow(clippy::cast_possible_truncation, reason = "the lower half is what is asked for")]
    pub(super) const fn low(self) -> u32 {
        self.0 as u32
    }

    /// The highest.
    #[inline]
    #[allow(clippy::cast_possible_truncation, reason = "what is left has 32 bits")]
    pub(super) const fn high(self) -> u32 {
        (self.0 >> u32::BITS) as u32
    }
}

impl Section {
    /// Whose it is; 0: nobody's.
    pub fn owner(&self) -> u64 {
        self.front.owner.load(Ordering::Acquire)
    }

    /// Its range.
    #[inline]
    pub fn bounds(&self) -> SectionBounds {
        // Acquire: who sees bounds of another section sees that the owner has changed. So it is for origin and increment.
        SectionBounds(self.front.bounds.load(Ordering::Acquire))
    }

    /// The number at an offset.
    #[inline]
    pub(super) fn number(&self, offset: u32) -> i64 {
        let increment = self.front.increment.load(Ordering::Acquire);
        let origin = self.front.origin.load(Ordering::Acquire);
        origin.wrapping_add(u64::from(offset).wrapping_mul(increment)).cast_signed()
    }

    /// The highest offset with which a key left.
    pub(super) fn base(&self) -> u64 {
        // Relaxed: a key leaves and comes back under the lock of one bucket.
        self.base.0.load(Ordering::Relaxed)
    }

    /// A key leaves with this offset.
    pub(super) fn raise_base(&self, offset: u32) {
        self.base.0.fetch_max(offset.into(), Ordering::Relaxed);
    }

    /// Notes that it is used.
    #[inline]
    pub(super) fn touch(&self) {
        // All takers read the line: it is written to once.
        if self.front.used.load(Ordering::Relaxed) == 0 {
            self.front.used.store(1, Ordering::Relaxed);
        }
    }

    /// Returns whether a number was taken since this was called last.
    pub fn was_used(&self) -> bool {
        self.front.used.load(Ordering::Relaxed) != 0 && self.front.used.swap(0, Ordering::Relaxed) != 0
    }

    /// Returns whether it has to be swept before it can be opened.
    pub fn is_littered(&self) -> bool {
        self.front.littered.load(Ordering::Acquire) != 0
    }

    /// Returns whether the section can be swept: it has no owner, and may have entries of its last one.
    pub fn is_left(&self) -> bool {
        self.owner() == 0 && self.is_littered()
    }

    /// No entry is left in it.
    pub(super) fn swept(&self) {
        self.front.littered.store(0, Ordering::Release);
    }

    /// It is nobody's from now on: what is left of its range is given to nobody.
    pub fn shut(&self) {
        self.front.owner.store(0, Ordering::Release);
    }

    /// Discards the rest of the range: keys go on in the next one.
    pub fn close(&self) {
        let high = self.bounds().high();
        match high.checked_add(1) {
            Some(low) => self.front.bounds.store(SectionBounds::new(low, high).0, Ordering::Release),
            None => self.shut(),
        }
    }

    /// Opens a section that has no owner and is swept, for a new owner with its first range; returns false for any other, and does nothing.
    pub fn open(&self, owner: u64, range: &Range) -> bool {
        let Range { first, count, increment } = *range;
        if self.owner() != 0 || self.is_littered() || owner == 0 || count == 0 || increment < 1 {
            return false;
        }
        let front = &self.front;
        front.littered.store(1, Ordering::Relaxed);
        front.used.store(1, Ordering::Relaxed);
        self.base.0.store(0, Ordering::Relaxed);
        front.origin.store(first.wrapping_sub(increment).cast_unsigned(), Ordering::Release);
        front.increment.store(increment.cast_unsigned(), Ordering::Release);
        front.bounds.store(SectionBounds::new(1, count).0, Ordering::Release);
        front.owner.store(owner, Ordering::Release);
        true
    }

    /// Returns what it needs, given what a taker saw that had no number of it: whose it was, and its range.
    pub fn need(&self, seen: Option<(u64, SectionBounds)>) -> SectionNeed {
        match self.owner() {
            0 if self.is_littered() => SectionNeed::Sweep,
            0 => SectionNeed::Range,
            owner if seen == Some((owner, self.bounds())) => SectionNeed::Range,
            owner => SectionNeed::Nothing(owner),
        }
    }

    /// Takes up a range that it needed; where it is nobody's, for this owner.
    pub fn take_up(&self, owner: u64, range: &Range) {
        if self.owner() == 0 {
            self.open(owner, range);
        } else if self.extend(range) == Supplied::Far {
            self.shut();
        }
    }

    /// Gives it its next range.
    pub fn extend(&self, range: &Range) -> Supplied {
        let had = self.bounds();
        // Also where it is of another registry, whose numbers leave out those of this one.
        if range.first <= self.number(had.high()) {
            return Supplied::Below;
        }
        let Some((first, last)) = self.offsets(range) else { return Supplied::Far };
        // Numbers between the ranges are others': of another server that draws from the same registry.
        let low = if first - had.high() == 1 { had.low() } else { first };
        self.front.bounds.store(SectionBounds::new(low, last).0, Ordering::Release);
        Supplied::Yes
    }

    fn offsets(&self, range: &Range) -> Option<(u32, u32)> {
        let increment = self.front.increment.load(Ordering::Acquire).cast_signed();
        if range.increment != increment || range.count == 0 {
            return None;
        }
        let origin = self.front.origin.load(Ordering::Acquire).cast_signed();
        let distance = range.first.checked_sub(origin)?;
        if distance.checked_rem(increment)? != 0 {
            return None;
        }
        let first = u32::try_from(distance / increment).ok()?;
        let last = first.checked_add(range.count - 1)?;
        // No key gets to the last offset of all, which has no next one.
        (last < u32::MAX).then_some((first, last))
    }
}
