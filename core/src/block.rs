//! The ids that one session has taken and not yet handed out: its cache, like a sequence's CACHE.

use crate::snowflake::Stretch;
use crate::sync::{AtomicU64, Ordering};

/// A stretch of positions of which the first are used. One session owns it; the atomics are there so that
/// it can be a plain static without unsafe code, and cost nothing.
#[derive(Debug)]
pub struct Block {
    next: AtomicU64,
    end: AtomicU64,
}

impl Block {
    /// A block that holds nothing.
    #[cfg(not(loom))]
    pub const fn empty() -> Self {
        Self { next: AtomicU64::new(0), end: AtomicU64::new(0) }
    }

    /// The next position, None when the block is used up.
    #[inline]
    pub fn pop(&self) -> Option<u64> {
        let next = self.next.load(Ordering::Relaxed);
        if next >= self.end.load(Ordering::Relaxed) {
            return None;
        }
        self.next.store(next + 1, Ordering::Relaxed);
        Some(next)
    }

    /// Up to `want` positions off the front, None when the block is used up.
    pub fn pop_many(&self, want: u64) -> Option<Stretch> {
        let from = self.next.load(Ordering::Relaxed);
        let to = self.end.load(Ordering::Relaxed).min(from.saturating_add(want));
        if to <= from {
            return None;
        }
        self.next.store(to, Ordering::Relaxed);
        Some(Stretch { from, to })
    }

    /// Replaces what is left.
    #[inline]
    pub fn fill(&self, stretch: Stretch) {
        self.next.store(stretch.from, Ordering::Relaxed);
        self.end.store(stretch.to, Ordering::Relaxed);
    }
}
