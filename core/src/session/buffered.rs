//! The positions that a session has taken and not yet handed out, and the functions that take more positions.

use crate::clock::Clock;
use crate::generator::block::Block;
use crate::generator::drift::GeneratorError;
use crate::generator::rules::Rules;
use crate::generator::snowflake::{Generator, TakenPositions};
use crate::guard::{Guard, holds};
use crate::ids::layout::Layout;
use crate::ids::position::{Issued, NodeBits};
use crate::ids::shard::Shard;
use crate::server::issuer::PositionSource;
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicI64, Ordering::Relaxed};

/// A session's block of positions, and the last id that the session handed out.
#[derive(Debug)]
pub struct Session {
    block: Block,
    /// The last id; negative before the first id.
    last: AtomicI64,
}

#[cfg(not(loom))]
impl Default for Session {
    fn default() -> Self {
        Self::new()
    }
}

impl Session {
    /// Returns a session with an empty block.
    #[cfg(not(loom))]
    pub const fn new() -> Self {
        Self { block: Block::empty(), last: AtomicI64::new(-1) }
    }

    /// Forgets the last id.
    pub fn forget_last(&self) {
        self.last.store(-1, Relaxed);
    }

    /// Sets the session's last id to an id from another block, such as the block of a named generator.
    #[inline]
    pub fn record_last(&self, id: i64) {
        self.last.store(id, Relaxed);
    }

    /// Returns the last id of this session.
    pub fn last(&self) -> Option<i64> {
        Some(self.last.load(Relaxed)).filter(|id| *id >= 0)
    }

    /// Takes the next position from the block, if no clock check is due. The block must hold positions of the source's
    /// layout.
    #[inline]
    pub fn pop(&self, source: &impl PositionSource) -> Option<Issued> {
        let position = self.block.pop(source.generator().generation())?;
        Some(Issued { position, node_bits: self.block.node_bits() })
    }

    /// Returns the next position after [`Session::pop`] returned None. Checks the block against the clock. If the
    /// block's positions may not be handed out, fills the block with the positions that `take` returns, and gives their
    /// number to `count`.
    #[inline(always)]
    #[allow(clippy::inline_always, reason = "a twentieth of the cost of an id, measured")]
    pub fn refill<S: PositionSource>(
        &self,
        source: &S,
        clock: &impl Clock,
        rules: &Rules,
        take: impl FnOnce(&S) -> Result<TakenPositions, GeneratorError>,
        count: impl FnOnce(u64),
    ) -> Result<Issued, GeneratorError> {
        // The generation is read before the clock. If any session sees the clock step back after this line, the
        // positions taken below are stale. A block may be wasted, but no stale position is handed out.
        let generation = source.generator().generation();
        if self.renew(source, clock, rules, generation)
            && let Some(position) = self.block.pop(generation)
        {
            return Ok(Issued { position, node_bits: self.bits(source) });
        }
        let taken = take(source)?;
        count(taken.positions.count());
        Ok(self.keep(taken, generation))
    }

    /// Returns the node bits with which the block's positions were taken.
    #[inline]
    fn bits(&self, source: &impl PositionSource) -> NodeBits {
        if holds(Guard::BlockKeepsBits) {
            self.block.node_bits()
        } else {
            source.generator().snapshot().node_bits
        }
    }

    /// Checks the block against the clock. Returns true if the block's next positions may be handed out.
    #[inline]
    fn renew(
        &self,
        source: &impl PositionSource,
        clock: &impl Clock,
        rules: &Rules,
        generation: u64,
    ) -> bool {
        self.block
            .renew(generation, |position| source.generator().allows(source.layout(), rules, clock, position))
    }

    /// Takes the next position whose id belongs to the shard. Positions in the block may belong to other shards, so each
    /// position is checked first.
    #[inline]
    pub fn pop_fitting(&self, source: &impl PositionSource, only: &Shard) -> Option<Issued> {
        let (layout, node_bits) = (source.layout(), self.block.node_bits());
        let fits = |position| only.fits_at(layout, node_bits, position);
        let position = self.block.pop_fitting(source.generator().generation(), fits)?;
        Some(Issued { position, node_bits })
    }

    /// Returns the next position of the shard after [`Session::pop_fitting`] returned None.
    pub fn refill_fitting(
        &self,
        source: &impl PositionSource,
        clock: &impl Clock,
        rules: &Rules,
        want: NonZeroU32,
        only: &Shard,
        count: impl FnOnce(u64),
    ) -> Result<Issued, GeneratorError> {
        let generation = source.generator().generation();
        // Each pass of the loop checks the clock for one span of the block. The rest of the block is replaced if a span
        // is too far ahead of the clock.
        while self.renew(source, clock, rules, generation) {
            if let Some(issued) = self.pop_fitting(source, only) {
                return Ok(issued);
            }
        }
        let taken = take_fitting(source, rules, clock, want, only)?;
        count(taken.positions.count());
        Ok(self.keep(taken, generation))
    }

    /// Takes up to `want` positions from the block. A session uses its block first, because the session's ids must keep
    /// growing. The block must hold positions of the source's layout.
    pub fn held(
        &self,
        source: &impl PositionSource,
        clock: &impl Clock,
        rules: &Rules,
        want: u64,
    ) -> Option<TakenPositions> {
        let generation = source.generator().generation();
        let held = self.block.pop_many(want, generation).or_else(|| {
            self.renew(source, clock, rules, generation).then(|| self.block.pop_many(want, generation))?
        });
        Some(TakenPositions { positions: held?, node_bits: self.bits(source) })
    }

    /// Discards the block. The block's positions may be lower than positions that the session has used since, or belong
    /// to a previous definition of a named generator.
    pub fn drop_held(&self) {
        self.block.clear();
    }

    /// Hands out the first position, and keeps the other positions in the block.
    #[inline]
    pub fn keep(&self, mut taken: TakenPositions, generation: u64) -> Issued {
        let position = taken.positions.take_first();
        self.block.fill(taken, generation);
        Issued { position, node_bits: taken.node_bits }
    }

    /// Builds the id of a position in a layout, and records it as the session's last id.
    #[inline]
    pub fn hand_out(&self, layout: &Layout, Issued { position, node_bits }: Issued) -> i64 {
        let id = layout.id(position, node_bits).cast_signed();
        self.last.store(id, Relaxed);
        id
    }
}

/// Takes positions of a layout from the source.
///
/// # Errors
/// [`GeneratorError`]. [`GeneratorError::Unreserved`] can also mean that the layout has lost its slot, so the caller must
/// assign a slot again.
#[inline(always)]
#[allow(
    clippy::inline_always,
    reason = "for the server's own layout, this is only the call of Generator::take"
)]
pub fn take(
    source: &impl PositionSource,
    rules: &Rules,
    clock: &impl Clock,
    want: NonZeroU32,
) -> Result<TakenPositions, GeneratorError> {
    take_by(source, |generator| generator.take(source.layout(), rules, clock, want))
}

/// Takes positions of a layout. The first position's id belongs to the shard.
pub fn take_fitting(
    source: &impl PositionSource,
    rules: &Rules,
    clock: &impl Clock,
    want: NonZeroU32,
    only: &Shard,
) -> Result<TakenPositions, GeneratorError> {
    take_by(source, |generator| generator.take_fitting(source.layout(), rules, clock, want, only))
}

/// Takes positions with `take`. Fails if the layout does not own its slot before the call, or no longer owns it after the
/// call.
#[inline(always)]
#[allow(clippy::inline_always, reason = "as above")]
fn take_by<S: PositionSource>(
    source: &S,
    take: impl FnOnce(&Generator) -> Result<TakenPositions, GeneratorError>,
) -> Result<TakenPositions, GeneratorError> {
    if !source.is_held() {
        return Err(GeneratorError::Unreserved);
    }
    let taken = take(source.generator())?;
    // Another session may have given the slot to another layout during `take`.
    if source.is_held() || !holds(Guard::SlotHeld) { Ok(taken) } else { Err(GeneratorError::Unreserved) }
}
