//! The ids that one session has taken and not yet handed out: its cache, like a sequence's CACHE.

use crate::generator::snowflake::TakenPositions;
use crate::ids::position::{NodeBits, Position, PositionRange};
use crate::sync::{AtomicU64, Ordering};

/// A range of positions of which the first are used. One session owns it; the atomics are there so that
/// it can be a plain static without unsafe code, and cost nothing.
///
/// Ids taken under a clock that was far ahead by mistake must not go on coming out of a block when the mistake
/// was mended. So a block is good for [`Block::SPAN`] positions at a time. Then its owner looks at the clock
/// and [renews](Block::renew) it or fills it anew. It is good for nothing once any session has seen the clock
/// step back, or the node has changed. `generation` below is a number that such an event changes. Ids are made with the
/// node's bits that the positions were taken with, even if the node has changed by then.
#[derive(Debug)]
pub struct Block {
    next: AtomicU64,
    /// Positions below this one may be handed out without a look at the clock.
    until: AtomicU64,
    end: AtomicU64,
    generation: AtomicU64,
    node_bits: AtomicU64,
}

impl Block {
    /// Positions between two looks at the clock.
    pub const SPAN: u64 = 64;

    /// A block that holds nothing.
    #[cfg(not(loom))]
    pub const fn empty() -> Self {
        Self {
            next: AtomicU64::new(0),
            until: AtomicU64::new(0),
            end: AtomicU64::new(0),
            generation: AtomicU64::new(0),
            node_bits: AtomicU64::new(0),
        }
    }

    /// A block that holds nothing.
    #[cfg(loom)]
    pub fn empty() -> Self {
        let zero = || AtomicU64::new(0);
        Self { next: zero(), until: zero(), end: zero(), generation: zero(), node_bits: zero() }
    }

    /// The next position; None when the block is used up, due for a look at the clock, or stale.
    #[inline]
    pub fn pop(&self, generation: u64) -> Option<Position> {
        let next = self.next.load(Ordering::Relaxed);
        if next >= self.until.load(Ordering::Relaxed) || self.is_stale(generation) {
            return None;
        }
        self.next.store(next + 1, Ordering::Relaxed);
        debug_assert!(self.is_within_end(), "{self:?}");
        Some(Position(next))
    }

    /// The next position that fits, the others before it being used up; None as for [`Block::pop`], which also means that
    /// none fits up to where the clock is to be looked at.
    pub fn pop_fitting(&self, generation: u64, fits: impl Fn(Position) -> bool) -> Option<Position> {
        let (next, until) = (self.next.load(Ordering::Relaxed), self.until.load(Ordering::Relaxed));
        if next >= until || self.is_stale(generation) {
            return None;
        }
        let fitting = (next..until).map(Position).find(|position| fits(*position));
        self.next.store(fitting.map_or(until, |position| position.0 + 1), Ordering::Relaxed);
        debug_assert!(self.is_within_end(), "{self:?}");
        fitting
    }

    /// Up to `want` positions off the front; None as for [`Block::pop`].
    pub fn pop_many(&self, want: u64, generation: u64) -> Option<PositionRange> {
        let from = self.next.load(Ordering::Relaxed);
        let to = self.until.load(Ordering::Relaxed).min(from.saturating_add(want));
        if to <= from || self.is_stale(generation) {
            return None;
        }
        self.next.store(to, Ordering::Relaxed);
        debug_assert!(self.is_within_end(), "{self:?}");
        Some(PositionRange { from: Position(from), to: Position(to) })
    }

    /// The bits of the node that the block's positions belong to.
    #[inline]
    pub fn node_bits(&self) -> NodeBits {
        NodeBits(self.node_bits.load(Ordering::Relaxed))
    }

    /// Replaces what is left with what was taken after this era had begun.
    #[inline]
    pub fn fill(&self, TakenPositions { positions, node_bits }: TakenPositions, generation: u64) {
        debug_assert!(positions.from <= positions.to, "{positions:?} goes backwards");
        let (from, to) = (positions.from.0, positions.to.0);
        self.node_bits.store(node_bits.0, Ordering::Relaxed);
        self.next.store(from, Ordering::Relaxed);
        self.until.store(to.min(from + Self::SPAN), Ordering::Relaxed);
        self.end.store(to, Ordering::Relaxed);
        self.generation.store(generation, Ordering::Relaxed);
    }

    /// Gives up the positions that were not handed out: a gap.
    pub fn clear(&self) {
        self.end.store(0, Ordering::Relaxed);
        self.until.store(0, Ordering::Relaxed);
    }

    /// Makes the next positions good if `allowed` says so of the last of them; whether there are any.
    pub fn renew(&self, generation: u64, allowed: impl FnOnce(Position) -> bool) -> bool {
        let (next, end) = (self.next.load(Ordering::Relaxed), self.end.load(Ordering::Relaxed));
        let until = end.min(next + Self::SPAN);
        let renewed = next < end && !self.is_stale(generation) && allowed(Position(until - 1));
        if renewed {
            self.until.store(until, Ordering::Relaxed);
            debug_assert!(self.is_within_end(), "{self:?}");
        }
        renewed
    }

    /// Returns whether all that may be handed out was taken, and no more than a span of it without a look at the clock.
    fn is_within_end(&self) -> bool {
        let [next, until, end] =
            [&self.next, &self.until, &self.end].map(|place| place.load(Ordering::Relaxed));
        next <= until && until <= end && until - next <= Self::SPAN
    }

    #[inline]
    fn is_stale(&self, generation: u64) -> bool {
        self.generation.load(Ordering::Relaxed) != generation
    }
}
