//! The positions that one session has taken and not yet handed out, like the CACHE of a sequence.

use crate::generator::snowflake::TakenPositions;
use crate::ids::position::{NodeBits, Position, PositionRange};
use crate::sync::{AtomicU64, Ordering};

/// A partly used range of positions. One session owns a block. The fields are atomics so that a block can be a plain
/// static without unsafe code; relaxed atomics cost nothing.
///
/// While the clock is wrongly far ahead, sessions take positions that are too far ahead. A session must not hand out
/// these positions once the clock is corrected. The block's owner therefore checks the clock after every
/// [`Block::SPAN`] positions. The owner [renews](Block::renew) the block if the clock allows the next span, and fills
/// the block with new positions if not.
///
/// A block becomes stale when any session sees the clock step back, when the node changes, or when the frontier of safe
/// positions moves. Each of these events changes the generator's `generation`. An id gets the node bits with which its
/// position was taken, even if the node has changed since.
#[derive(Debug, Default)]
pub struct Block {
    next: AtomicU64,
    /// The owner may hand out positions below `until` without a clock check.
    until: AtomicU64,
    end: AtomicU64,
    generation: AtomicU64,
    node_bits: AtomicU64,
}

impl Block {
    /// The number of positions that the owner hands out between two clock checks.
    pub const SPAN: u64 = 64;

    /// Returns an empty block, also in a constant expression.
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

    /// Takes the next position. Returns None if the block is used up, due for a clock check, or stale.
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

    /// Takes the next position that `fits` accepts, and discards the positions before it. Returns None in the cases of
    /// [`Block::pop`], and if `fits` accepts no position before the next clock check.
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

    /// Takes up to `want` positions. Returns None in the cases of [`Block::pop`].
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

    /// Returns the bits of the node that owns the block's positions.
    #[inline]
    pub fn node_bits(&self) -> NodeBits {
        NodeBits(self.node_bits.load(Ordering::Relaxed))
    }

    /// Replaces the block's content with positions that were taken while the generator had the generation `generation`.
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

    /// Discards the positions that were not handed out. No session uses these positions again.
    pub fn clear(&self) {
        self.end.store(0, Ordering::Relaxed);
        self.until.store(0, Ordering::Relaxed);
    }

    /// Lets the owner hand out the next span of positions, if `allowed` accepts the last position of the span. Returns
    /// true if the span may be handed out.
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

    /// Returns true if `next`, `until` and `end` are in ascending order, and at most one span may be handed out without
    /// a clock check.
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
