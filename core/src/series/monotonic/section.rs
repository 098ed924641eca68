//! A section of a monotonic series: the numbers that its keys may have.
//!
//! Shared memory stores numbers as **offsets** from the section's **origin**. The lowest offset is 1. The number at an
//! offset is `origin + offset * increment`.

use crate::guard::{Guard, holds};
use crate::sync::{AtomicU64, CacheLine, Ordering};
use crate::tag::definition::Range;

/// The state that all keys of a section share. Only one process at a time may open, extend, shut or sweep a section; the
/// callers hold a lock. Takers need no lock.
#[derive(Debug, Default)]
#[cfg_attr(not(loom), repr(C))]
pub struct Section {
    front: CacheLine<Front>,
    /// The highest offset of all evicted keys.
    base: CacheLine<AtomicU64>,
}

/// The part that every taker reads.
#[derive(Debug, Default)]
struct Front {
    /// The owner; 0 if the section has no owner.
    owner: AtomicU64,
    origin: AtomicU64,
    increment: AtomicU64,
    /// The current range: the lowest offset in the low half, and the highest offset in the high half. Readers load both
    /// offsets together.
    bounds: AtomicU64,
    /// Not 0 if a number was taken since the last check.
    used: AtomicU64,
    /// 0 if the buckets have no entries of former sections in this slot; `IN_SWEEP` if a sweep is removing such entries.
    littered: AtomicU64,
}

/// The value of `littered` during a sweep that began when the section had no owner.
const IN_SWEEP: u64 = 2;

#[cfg(not(loom))]
const _: () = assert!(size_of::<Section>() == 2 * size_of::<CacheLine<Front>>());

/// The range of a section, as a taker read it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SectionBounds(u64);

/// The step that is needed before a section can give more numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SectionNeed {
    /// The section has this owner, and needs nothing: the section's range has changed since the taker read the range.
    Nothing(u64),
    /// The entries of the last owner must be swept.
    Sweep,
    /// The section needs a range.
    Range,
}

impl SectionBounds {
    const fn new(low: u32, high: u32) -> Self {
        Self((high as u64) << u32::BITS | low as u64)
    }

    #[inline]
    #[allow(clippy::cast_possible_truncation, reason = "the lower half is what is asked for")]
    pub(super) const fn low(self) -> u32 {
        self.0 as u32
    }

    #[inline]
    #[allow(clippy::cast_possible_truncation, reason = "what is left has 32 bits")]
    pub(super) const fn high(self) -> u32 {
        (self.0 >> u32::BITS) as u32
    }
}

impl Section {
    /// Returns the owner; 0 if the section has no owner.
    pub fn owner(&self) -> u64 {
        self.front.owner.load(Ordering::Acquire)
    }

    /// Returns the range.
    #[inline]
    pub fn bounds(&self) -> SectionBounds {
        // Acquire: a taker that reads the range of another section also sees the changed owner. This also applies to
        // `origin` and `increment`.
        SectionBounds(self.front.bounds.load(Ordering::Acquire))
    }

    #[inline]
    pub(super) fn number(&self, offset: u32) -> i64 {
        let increment = self.front.increment.load(Ordering::Acquire);
        let origin = self.front.origin.load(Ordering::Acquire);
        origin.wrapping_add(u64::from(offset).wrapping_mul(increment)).cast_signed()
    }

    pub(super) fn base(&self) -> u64 {
        // Relaxed: a key is evicted and added again under the same bucket's lock, so the lock orders the two steps.
        self.base.0.load(Ordering::Relaxed)
    }

    pub(super) fn raise_base(&self, offset: u32) {
        self.base.0.fetch_max(offset.into(), Ordering::Relaxed);
    }

    #[inline]
    pub(super) fn touch(&self) {
        // All takers read this cache line, so takers write to it at most once between two checks.
        if self.front.used.load(Ordering::Relaxed) == 0 {
            self.front.used.store(1, Ordering::Relaxed);
        }
    }

    /// Returns true if a number was taken since the last call.
    pub fn was_used(&self) -> bool {
        self.front.used.load(Ordering::Relaxed) != 0 && self.front.used.swap(0, Ordering::Relaxed) != 0
    }

    /// Returns true if the section must be swept before it can be opened.
    pub fn is_littered(&self) -> bool {
        self.front.littered.load(Ordering::Acquire) != 0
    }

    /// Returns true if the section can be swept: it has no owner, and may have entries of its last owner.
    pub fn is_left(&self) -> bool {
        // The owner is read last: while another process opens the section, it has no owner before it is littered.
        self.is_littered() && self.owner() == 0
    }

    pub(super) fn begin_sweep(&self) {
        if self.is_left() {
            self.front.littered.store(IN_SWEEP, Ordering::Release);
        }
    }

    pub(super) fn is_in_sweep(&self) -> bool {
        self.front.littered.load(Ordering::Acquire) == IN_SWEEP
    }

    pub(super) fn end_sweep(&self) {
        // A section that lost its owner later may have entries in buckets that the sweep had passed.
        if self.is_in_sweep() || (self.is_left() && !holds(Guard::WholeSweep)) {
            self.front.littered.store(0, Ordering::Release);
        }
    }

    /// Removes the owner. The rest of the range is discarded.
    pub fn shut(&self) {
        self.front.owner.store(0, Ordering::Release);
    }

    /// Discards the rest of the range. Keys continue in the next range.
    pub fn close(&self) {
        let high = self.bounds().high();
        match high.checked_add(1) {
            Some(low) => self.front.bounds.store(SectionBounds::new(low, high).0, Ordering::Release),
            None => self.shut(),
        }
    }

    /// Opens a section for a new owner with its first range. Returns false and changes nothing if the section has an
    /// owner, or must be swept first.
    pub fn open(&self, owner: u64, range: &Range) -> bool {
        let Range { first, count, increment } = *range;
        if self.owner() != 0 || self.is_littered() || owner == 0 || count == 0 || increment < 1 {
            return false;
        }
        let front = &self.front;
        if !holds(Guard::OpenNotLeft) {
            front.littered.store(1, Ordering::Release);
        }
        front.used.store(1, Ordering::Relaxed);
        self.base.0.store(0, Ordering::Relaxed);
        front.origin.store(first.wrapping_sub(increment).cast_unsigned(), Ordering::Release);
        front.increment.store(increment.cast_unsigned(), Ordering::Release);
        front.bounds.store(SectionBounds::new(1, count).0, Ordering::Release);
        front.owner.store(owner, Ordering::Release);
        // Release: a sweep that sees this value also sees the owner.
        front.littered.store(1, Ordering::Release);
        true
    }

    /// Returns the section's need. `seen` is the owner and the range that a taker read when it got no number.
    pub fn need(&self, seen: Option<(u64, SectionBounds)>) -> SectionNeed {
        match self.owner() {
            0 if self.is_littered() => SectionNeed::Sweep,
            0 => SectionNeed::Range,
            owner if seen == Some((owner, self.bounds())) => SectionNeed::Range,
            owner => SectionNeed::Nothing(owner),
        }
    }

    /// Gives the section the range that it needs. Opens the section for `owner` if it has no owner.
    pub fn take_up(&self, owner: u64, range: &Range) {
        if self.owner() == 0 {
            self.open(owner, range);
        } else if !self.extend(range) {
            self.shut();
        }
    }

    /// Gives the section its next range. A range that is not above the current range is dropped. Returns false if the
    /// range is too far from the section's origin, or has another increment. The caller must then shut the section and
    /// open it again.
    pub fn extend(&self, range: &Range) -> bool {
        let had = self.bounds();
        // If several registries are in use, the range may be lower because another registry supplied it. Numbers of
        // another registry have another remainder.
        if range.first <= self.number(had.high()) {
            return true;
        }
        let Some((first, last)) = self.offsets(range) else { return false };
        // If the two ranges do not adjoin, the numbers between them belong to another server.
        let low = if first - had.high() == 1 { had.low() } else { first };
        self.front.bounds.store(SectionBounds::new(low, last).0, Ordering::Release);
        true
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
        // The highest possible offset is not used, because the next offset would overflow.
        (last < u32::MAX).then_some((first, last))
    }
}
