//! The ids that one session has taken and not yet handed out: its cache, like a sequence's CACHE.

use crate::snowflake::Stretch;
use crate::sync::{AtomicU64, Ordering};

/// A stretch of positions of which the first are used. One session owns it; the atomics are there so that
/// it can be a plain static without unsafe code, and cost nothing.
///
/// Nobody looks at the clock for an id out of a block. So a block is only good as long as the clock was not
/// seen to step back: ids taken under a clock that was far ahead by mistake must not go on coming out of the
/// blocks when the mistake was mended. `steps_back` below is the number of such steps on the server so far.
#[derive(Debug)]
pub struct Block {
    next: AtomicU64,
    end: AtomicU64,
    steps_back: AtomicU64,
}

impl Block {
    /// A block that holds nothing.
    #[cfg(not(loom))]
    pub const fn empty() -> Self {
        Self { next: AtomicU64::new(0), end: AtomicU64::new(0), steps_back: AtomicU64::new(0) }
    }

    /// The next position, None when the block is used up or the clock has stepped back since.
    #[inline]
    pub fn pop(&self, steps_back: u64) -> Option<u64> {
        let next = self.next.load(Ordering::Relaxed);
        if next >= self.end.load(Ordering::Relaxed) || self.is_stale(steps_back) {
            return None;
        }
        self.next.store(next + 1, Ordering::Relaxed);
        Some(next)
    }

    /// Up to `want` positions off the front, None when the block is used up or the clock has stepped back.
    pub fn pop_many(&self, want: u64, steps_back: u64) -> Option<Stretch> {
        let from = self.next.load(Ordering::Relaxed);
        let to = self.end.load(Ordering::Relaxed).min(from.saturating_add(want));
        if to <= from || self.is_stale(steps_back) {
            return None;
        }
        self.next.store(to, Ordering::Relaxed);
        Some(Stretch { from, to })
    }

    /// Replaces what is left with positions taken after this many steps back.
    #[inline]
    pub fn fill(&self, stretch: Stretch, steps_back: u64) {
        self.next.store(stretch.from, Ordering::Relaxed);
        self.end.store(stretch.to, Ordering::Relaxed);
        self.steps_back.store(steps_back, Ordering::Relaxed);
    }

    #[inline]
    fn is_stale(&self, steps_back: u64) -> bool {
        self.steps_back.load(Ordering::Relaxed) != steps_back
    }
}
