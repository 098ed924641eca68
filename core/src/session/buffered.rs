//! The positions that a session has taken and not yet handed out, and the functions that take more positions.

use crate::clock::Clock;
use crate::generator::block::Block;
use crate::generator::drift::GeneratorError;
use crate::generator::rules::Rules;
use crate::generator::snowflake::TakenPositions;
use crate::guard::{Guard, holds};
use crate::ids::position::{Issued, NodeBits};
use crate::ids::shard::Shard;
use crate::server::issuer::PositionSource;
use std::num::NonZeroU32;

/// A session's block of positions.
#[derive(Debug)]
pub struct Session {
    block: Block,
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
        Self { block: Block::empty() }
    }

    /// Takes the next position from the block, if no clock check is due. The block must hold positions of the source's
    /// layout. If `only` names a shard, discards the positions before the first one whose id belongs to the shard.
    #[inline(always)]
    #[allow(clippy::inline_always, reason = "callers know whether there is a shard")]
    pub fn pop(&self, source: &impl PositionSource, only: Option<&Shard>) -> Option<Issued> {
        self.pop_as_of(source.generator().generation(), source, only)
    }

    #[inline(always)]
    #[allow(clippy::inline_always, reason = "as above")]
    fn pop_as_of(
        &self,
        generation: u64,
        source: &impl PositionSource,
        only: Option<&Shard>,
    ) -> Option<Issued> {
        let position = match only {
            None => self.block.pop(generation),
            Some(only) => {
                let (layout, node_bits) = (source.layout(), self.block.node_bits());
                self.block.pop_fitting(generation, |position| only.fits_at(layout, node_bits, position))
            }
        }?;
        Some(Issued { position, node_bits: self.block.node_bits() })
    }

    /// Returns the next position after [`Session::pop`] returned None. Checks the block against the clock. If the
    /// block's positions may not be handed out, fills the block with up to `want` new positions, and gives their number to
    /// `count`.
    #[inline(always)]
    #[allow(clippy::inline_always, reason = "a twentieth of the cost of an id, measured")]
    pub fn refill(
        &self,
        source: &impl PositionSource,
        clock: &impl Clock,
        rules: &Rules,
        want: NonZeroU32,
        only: Option<&Shard>,
        count: impl FnOnce(u64),
    ) -> Result<Issued, GeneratorError> {
        // The generation is read before the clock. If any session sees the clock step back after this line, the
        // positions taken below are stale. A block may be wasted, but no stale position is handed out.
        let generation = source.generator().generation();
        // Each pass of the loop checks the clock for one span of the block. A span may have no position of the shard.
        while self.renew(source, clock, rules, generation) {
            if let Some(Issued { position, .. }) = self.pop_as_of(generation, source, only) {
                return Ok(Issued { position, node_bits: self.bits(source) });
            }
        }
        let taken = take(source, rules, clock, want, only)?;
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
}

/// Takes positions of a layout from the source. If `only` names a shard, the first position's id belongs to the shard.
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
    only: Option<&Shard>,
) -> Result<TakenPositions, GeneratorError> {
    if !source.is_held() {
        return Err(GeneratorError::Unreserved);
    }
    let (generator, layout) = (source.generator(), source.layout());
    let taken = match only {
        None => generator.take(layout, rules, clock, want),
        Some(only) => generator.take_fitting(layout, rules, clock, want, only),
    }?;
    // Another session may have given the slot to another layout meanwhile.
    if source.is_held() || !holds(Guard::SlotHeld) { Ok(taken) } else { Err(GeneratorError::Unreserved) }
}
