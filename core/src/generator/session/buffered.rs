//! Ids that a session took and has not handed out, and taking more of them.

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

/// A session's ids: those that it took and has not handed out, and the last one that it did.
#[derive(Debug)]
pub struct Session {
    block: Block,
    /// The last id; negative before the first.
    last: AtomicI64,
}

#[cfg(not(loom))]
impl Default for Session {
    fn default() -> Self {
        Self::new()
    }
}

impl Session {
    /// One that holds nothing.
    #[cfg(not(loom))]
    pub const fn new() -> Self {
        Self { block: Block::empty(), last: AtomicI64::new(-1) }
    }

    /// Forgets the last id.
    pub fn forget_last(&self) {
        self.last.store(-1, Relaxed);
    }

    /// Notes an id that another part of the session was handed as the last one.
    #[inline]
    pub fn record_last(&self, id: i64) {
        self.last.store(id, Relaxed);
    }

    /// The last id handed out to this session.
    pub fn last(&self) -> Option<i64> {
        Some(self.last.load(Relaxed)).filter(|id| *id >= 0)
    }

    /// The next position that the session holds, where it may be handed out without a look at the clock. What is held is of the
    /// source's layout.
    #[inline]
    pub fn pop(&self, source: &impl PositionSource) -> Option<Issued> {
        let position = self.block.pop(source.generator().generation())?;
        Some(Issued { position, node_bits: self.block.node_bits() })
    }

    /// The next position where [`Session::pop`] gave none: the block is due for a look at the clock, or has to be filled. It is
    /// filled by [`take`](super::take()), unless only some positions will do.
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
        // Before the clock is read: a step back seen by any session after this, this call included, makes the block
        // stale. That may waste a block, and never hands out one that should have been thrown away.
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

    /// The node's bits of what is in the block: those that it was taken with.
    #[inline]
    fn bits(&self, source: &impl PositionSource) -> NodeBits {
        if holds(Guard::BlockKeepsBits) {
            self.block.node_bits()
        } else {
            source.generator().snapshot().node_bits
        }
    }

    /// Looks at the clock for the sake of the block; whether it goes on.
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

    /// As [`Session::pop`], of ids of one shard. What the session holds may be of another one, or of all: each id is looked
    /// at as it is handed out.
    #[inline]
    pub fn pop_fitting(&self, source: &impl PositionSource, only: &Shard) -> Option<Issued> {
        let (layout, node_bits) = (source.layout(), self.block.node_bits());
        let fits = |position| only.fits_at(layout, node_bits, position);
        let position = self.block.pop_fitting(source.generator().generation(), fits)?;
        Some(Issued { position, node_bits })
    }

    /// As [`Session::refill`], of ids of one shard.
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
        // A look at the clock for each span; what is left is given up where a span is too far ahead.
        while self.renew(source, clock, rules, generation) {
            if let Some(issued) = self.pop_fitting(source, only) {
                return Ok(issued);
            }
        }
        let taken = take_fitting(source, rules, clock, want, only)?;
        count(taken.positions.count());
        Ok(self.keep(taken, generation))
    }

    /// Up to so many positions that the session holds already. They come first: the ids of a session must keep growing. What is
    /// held is of the source's layout.
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

    /// Drops what is held: it was refused, and is older than what was taken since.
    pub fn drop_held(&self) {
        self.block.clear();
    }

    /// Keeps all of what was taken but its first position, which is handed out.
    #[inline]
    pub fn keep(&self, mut taken: TakenPositions, generation: u64) -> Issued {
        let position = taken.positions.take_first();
        self.block.fill(taken, generation);
        Issued { position, node_bits: taken.node_bits }
    }

    /// Makes an id of what was issued in a layout, and hands it out.
    #[inline]
    pub fn hand_out(&self, layout: &Layout, Issued { position, node_bits }: Issued) -> i64 {
        let id = layout.id(position, node_bits).cast_signed();
        self.last.store(id, Relaxed);
        id
    }
}

/// Takes positions of a layout. One whose place has become another's in between gives nothing.
///
/// # Errors
/// [`GeneratorError`]; [`GeneratorError::Unreserved`] where the layout has to be given a place again.
#[inline(always)]
#[allow(clippy::inline_always, reason = "of the server's own layout it is but the generator's own take")]
pub fn take(
    source: &impl PositionSource,
    rules: &Rules,
    clock: &impl Clock,
    want: NonZeroU32,
) -> Result<TakenPositions, GeneratorError> {
    take_by(source, |generator| generator.take(source.layout(), rules, clock, want))
}

/// The same of ids of one shard: the first is its.
pub fn take_fitting(
    source: &impl PositionSource,
    rules: &Rules,
    clock: &impl Clock,
    want: NonZeroU32,
    only: &Shard,
) -> Result<TakenPositions, GeneratorError> {
    take_by(source, |generator| generator.take_fitting(source.layout(), rules, clock, want, only))
}

/// The same, however it is taken from the generator.
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
    // The generator may have become another layout's before it was taken from.
    if source.is_held() || !holds(Guard::SlotHeld) { Ok(taken) } else { Err(GeneratorError::Unreserved) }
}
