//! A bucket: the numbers of some keys, in two cache lines, and the choice of the key that is evicted.

use crate::sync::{AtomicU64, Ordering, pause};

/// The number of keys for which a bucket has room.
#[cfg(not(loom))]
pub(super) const ENTRIES: usize = 15;
/// One entry, so that loom has fewer steps to interleave.
#[cfg(loom)]
pub(super) const ENTRIES: usize = 1;

/// A lock, and an entry for each key. The bits of an entry: `offset (32) | used since the last check (1) | label (31)`. A
/// free entry is 0. Entries are added and removed only under the lock. Takers advance an entry's offset without the lock.
#[derive(Debug, Default)]
#[cfg_attr(not(loom), repr(C, align(128)))]
pub struct Bucket {
    /// The lock bit. The higher bits are the index of the entry at which the next eviction starts its search.
    head: AtomicU64,
    entries: [AtomicU64; ENTRIES],
}

#[cfg(not(loom))]
const _: () = assert!(size_of::<Bucket>() == 128);

const LOCKED: u64 = 1;
const LABEL: u64 = (1 << 31) - 1;
const USED: u64 = 1 << 31;

/// The bits that distinguish the keys of a bucket, never 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Label(pub(super) u32);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BucketEntry(u64);

impl BucketEntry {
    const FREE: Self = Self(0);

    pub(super) const fn new(offset: u32, label: Label) -> Self {
        Self((offset as u64) << u32::BITS | label.0 as u64)
    }

    pub(super) const fn used(self) -> Self {
        Self(self.0 | USED)
    }

    const fn is_used(self) -> bool {
        self.0 & USED != 0
    }

    #[inline]
    #[allow(clippy::cast_possible_truncation, reason = "what is left has 32 bits")]
    pub(super) const fn offset(self) -> u32 {
        (self.0 >> u32::BITS) as u32
    }

    /// Replaces this entry with the entry `to`. Returns false if the stored entry has changed.
    #[inline]
    pub(super) fn swap(self, place: &AtomicU64, to: Self) -> bool {
        // Release: the reads of the section come before the swap. Acquire: later reads see the section's owner as the
        // entry's writer saw it.
        place.compare_exchange(self.0, to.0, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }

    #[inline]
    #[allow(clippy::cast_possible_truncation, reason = "it has 31 bits")]
    pub(super) const fn label(self) -> Label {
        Label((self.0 & LABEL) as u32)
    }
}

impl Bucket {
    #[inline]
    pub(super) fn find(&self, label: Label) -> Option<(&AtomicU64, BucketEntry)> {
        self.entries.iter().find_map(|place| {
            // Acquire: a taker that sees an entry of another section also sees the changed owner.
            let entry = BucketEntry(place.load(Ordering::Acquire));
            (entry.label() == label).then_some((place, entry))
        })
    }

    pub(super) fn len(&self) -> usize {
        let taken = |place: &&AtomicU64| BucketEntry(place.load(Ordering::Relaxed)) != BucketEntry::FREE;
        self.entries.iter().filter(taken).count()
    }

    /// Waits for the lock. The holder of the lock never waits or fails.
    pub(super) fn lock(&self) -> LockedBucket<'_> {
        let mut attempt = 0_u32;
        loop {
            let head = self.head.load(Ordering::Relaxed);
            let (open, locked) = (head & !LOCKED, head | LOCKED);
            // Acquire: the changes of the previous holder are visible.
            if self.head.compare_exchange_weak(open, locked, Ordering::Acquire, Ordering::Relaxed).is_ok() {
                return LockedBucket { bucket: self, hand: open >> 1 };
            }
            pause(attempt);
            attempt = attempt.wrapping_add(1);
        }
    }
}

pub(super) struct LockedBucket<'b> {
    bucket: &'b Bucket,
    hand: u64,
}

impl Drop for LockedBucket<'_> {
    fn drop(&mut self) {
        // Release: the next holder sees the changes.
        self.bucket.head.store(self.hand << 1, Ordering::Release);
    }
}

impl<'b> LockedBucket<'b> {
    /// Stores an entry. If the bucket is full, calls `leave` with an entry and then evicts this entry.
    pub(super) fn put(&mut self, entry: BucketEntry, leave: impl Fn(BucketEntry)) {
        let free = |place: &&AtomicU64| BucketEntry(place.load(Ordering::Relaxed)) == BucketEntry::FREE;
        let bucket = self.bucket;
        let place = bucket.entries.iter().find(free).unwrap_or_else(|| self.make_room(&leave));
        // Release: a taker that finds the entry also sees the entry's section.
        place.store(entry.0, Ordering::Release);
    }

    /// Frees an entry by the clock algorithm. A used entry is skipped once. After two rounds, used entries are evicted
    /// too.
    fn make_room(&mut self, leave: &impl Fn(BucketEntry)) -> &'b AtomicU64 {
        let mut step = 0;
        loop {
            let at = usize::try_from(self.hand).unwrap_or_default() % ENTRIES;
            self.hand = u64::try_from((at + 1) % ENTRIES).unwrap_or_default();
            let place = &self.bucket.entries[at];
            let entry = BucketEntry(place.load(Ordering::Acquire));
            let passes = entry.is_used() && step < 2 * ENTRIES;
            let left = if passes { BucketEntry(entry.0 & !USED) } else { BucketEntry::FREE };
            if !passes {
                leave(entry);
            }
            // The swap fails if a taker has advanced the entry since it was read. The entry then stays.
            if entry.swap(place, left) && !passes {
                return place;
            }
            step += 1;
        }
    }

    /// Removes all entries whose labels `goes` selects.
    pub(super) fn sweep(&self, goes: &impl Fn(Label) -> bool) {
        for place in &self.bucket.entries {
            let entry = BucketEntry(place.load(Ordering::Relaxed));
            if entry != BucketEntry::FREE && goes(entry.label()) {
                // A swap and not a store, because a taker may advance the entry at the same time.
                place.swap(BucketEntry::FREE.0, Ordering::AcqRel);
            }
        }
    }
}
