//! Bound sequences: SQL sequences that return ids of a tag or generator. This module chooses the number that a call of
//! such a sequence returns.
//!
//! A sequence that counts by 1 returns single ids. An application with a block allocator uses a sequence with
//! `INCREMENT BY n`. There are two kinds of block allocators. For a returned number v, a "pooled" allocator uses
//! v - n + 1 to v, or v - n to v - 1. A "pooled-lo" allocator uses v to v + n - 1. A call of a bound sequence therefore
//! takes 2 n consecutive ids with v in the middle, so that allocators of both kinds only use ids that this call took.

use crate::error::Explain;
use crate::generator::snowflake::TakenPositions;
use crate::ids::layout::Layout;
use crate::ids::position::NodeBits;
use crate::tag::definition::Range;
use std::num::NonZeroU32;

/// The largest increment of a bound sequence. A call takes twice as many ids.
pub const MAX_INCREMENT: u32 = 10_000;

/// Reason why a bound sequence returns no number.
#[expect(missing_docs, reason = "each message names its figures")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error, Explain)]
pub enum BoundSequenceError {
    #[error("a bound sequence cannot have increment {0}")]
    #[explain(BadArgument, detail = "Increments from 1 to {MAX_INCREMENT} are supported.")]
    #[explain(hint = "Unbind the sequence with snowflake_ids.unbind_sequence, or alter its increment.")]
    Increment(i64),
    /// The tag's ids have gaps. The values are the increments of the sequence and of the tag.
    #[error("ids of the segment tag are not consecutive")]
    #[explain(
        NotReady,
        detail = "The sequence has increment {increment}, so clients may also use the ids just below or above each returned \
                  number. The tag has increment {step}; the ids in between belong to other servers.",
        hint = "Bind the sequence to a tag with increment 1."
    )]
    Apart { increment: u32, step: i64 },
    #[error("the layout cannot give {} consecutive ids", ids_of(*.0))]
    #[explain(
        NotReady,
        detail = "The sequence has increment {0}, so clients may also use the ids just below or above each returned number.",
        hint = "Alter the sequence to INCREMENT BY 1, or bind it to a segment tag."
    )]
    Layout(u32),
    /// In every attempt, other sessions took ids between the ids of this call.
    #[error("could not reserve {} consecutive ids", ids_of(.0.by))]
    #[explain(WaitedTooLong, hint = "Raise the tag's step with snowflake_ids.segment_alter.")]
    #[explain(detail = "The sequence has increment {}, so clients may also use the ids just below or above each returned number.",
              _0.by)]
    Interrupted(Increment),
}

const fn ids_of(increment: u32) -> u32 {
    if increment == 1 { 1 } else { 2 * increment }
}

/// Returns true if a `setval` moves a bound sequence to its end. A bound sequence always stands at its end, so `pg_dump`
/// writes such a `setval`. This `setval` must not move the tag or generator.
pub const fn is_sentinel(value: i64, is_called: bool, max: i64) -> bool {
    is_called && value == max
}

/// The increment of a bound sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Increment {
    by: u32,
    /// True if the tag has the same increment. The ids between two ids of the tag belong to nobody, so that a number stands for
    /// one id, as a number of the server's sequence does.
    is_of_tag: bool,
}

impl Increment {
    /// Returns the increment with this value.
    ///
    /// # Errors
    /// [`BoundSequenceError::Increment`] if the number is not 1 to [`MAX_INCREMENT`].
    pub fn new(increment: i64) -> Result<Self, BoundSequenceError> {
        let fits = u32::try_from(increment).ok().filter(|n| (1..=MAX_INCREMENT).contains(n));
        fits.map(|by| Self { by, is_of_tag: false }).ok_or(BoundSequenceError::Increment(increment))
    }

    /// Returns the same increment, of a sequence whose tag has it too if `is_of_tag` is true.
    #[must_use]
    pub const fn of_tag(self, is_of_tag: bool) -> Self {
        Self { is_of_tag, ..self }
    }

    /// Returns true if the sequence counts by 1.
    #[inline]
    pub const fn is_one(self) -> bool {
        self.by == 1
    }

    /// Returns true if a number stands for a single id, and not for a block of ids.
    const fn is_single(self) -> bool {
        self.is_one() || self.is_of_tag
    }

    /// Returns the number of consecutive ids that a call takes.
    pub fn ids(self) -> NonZeroU32 {
        NonZeroU32::MIN.saturating_add(if self.is_single() { 0 } else { ids_of(self.by) - 1 })
    }

    /// Returns the number that a call returns for consecutive ids that begin with `first`.
    pub const fn number(self, first: i64) -> i64 {
        if self.is_single() { first } else { first.wrapping_add(self.by as i64) }
    }

    /// Returns the highest id that an application may use for `number`, which the sequence returned before it was
    /// bound.
    pub const fn reach(self, number: i64) -> i64 {
        if self.is_single() { number } else { number.saturating_add(self.by as i64 - 1) }
    }

    /// Returns the number above which an unbound sequence must continue, so that the application uses only ids above
    /// `highest`. An application's block of ids may begin below the number that the sequence returned.
    pub const fn resume_above(self, highest: i64) -> i64 {
        if self.is_single() { highest } else { highest.saturating_add(self.by as i64) }
    }

    /// Checks that a layout has enough consecutive ids. A call may need at most half of a tick's ids. Even a call in
    /// the middle of a tick then finds room in this tick or in the next tick.
    ///
    /// # Errors
    /// [`BoundSequenceError::Layout`].
    pub fn check_layout(self, layout: &Layout) -> Result<(), BoundSequenceError> {
        let room = 1_u64 << layout.sequence_bits();
        let in_a_row = layout.sequence_shift() == 0 && u64::from(self.ids().get()) * 2 <= room;
        if self.is_one() || in_a_row { Ok(()) } else { Err(BoundSequenceError::Layout(self.by)) }
    }

    /// Returns the number that a call returns for a generator's positions; None if their ids are too few or not
    /// consecutive.
    pub fn number_of(self, layout: &Layout, taken: &TakenPositions) -> Option<i64> {
        let count = taken.positions.count();
        if count != u64::from(self.ids().get()) {
            return None;
        }
        let mut last = taken.positions.from;
        last.0 += count - 1;
        let id = |position, bits: NodeBits| layout.id(position, bits);
        let (first, last) = (id(taken.positions.from, taken.node_bits), id(last, taken.node_bits));
        (last - first == count - 1).then(|| self.number(first.cast_signed()))
    }
}

/// Consecutive ids of a tag, collected from its buffers.
#[derive(Debug)]
pub struct BoundRun {
    increment: Increment,
    /// The consecutive ids so far, fewer than needed.
    ids: Option<Range>,
    broken: u32,
}

/// The largest number of times that one call discards ids that are not consecutive.
const MAX_BROKEN: u32 = 1_000;

impl BoundRun {
    /// Returns an empty run.
    pub const fn new(increment: Increment) -> Self {
        Self { increment, ids: None, broken: 0 }
    }

    /// Returns the number of missing ids.
    pub fn missing(&self) -> NonZeroU32 {
        let there = self.ids.map_or(0, |ids| ids.count);
        NonZeroU32::new(self.increment.ids().get() - there).unwrap_or(NonZeroU32::MIN)
    }

    /// Adds ids, at most [`BoundRun::missing`]. Returns the number for the call once no id is missing. If other
    /// sessions took ids in between, discards all ids, so that all ids are missing again.
    ///
    /// # Errors
    /// [`BoundSequenceError`] if the tag's ids are never consecutive, or if too many attempts found ids that are not
    /// consecutive.
    pub fn add(&mut self, taken: Range) -> Result<Option<i64>, BoundSequenceError> {
        if self.increment.is_one() {
            return Ok(Some(taken.first));
        }
        let Increment { by, is_of_tag } = self.increment;
        if is_of_tag && taken.increment == i64::from(by) {
            return Ok(Some(taken.first));
        } else if is_of_tag || taken.increment != 1 {
            return Err(BoundSequenceError::Apart { increment: by, step: taken.increment });
        }
        self.ids = match self.ids {
            None => Some(taken),
            Some(ids) if ids.is_followed_by(&taken) => Some(Range { count: ids.count + taken.count, ..ids }),
            Some(_) => {
                self.broken += 1;
                if self.broken > MAX_BROKEN {
                    return Err(BoundSequenceError::Interrupted(self.increment));
                }
                None
            }
        };
        let whole = self.ids.filter(|ids| ids.count >= self.increment.ids().get());
        Ok(whole.map(|ids| self.increment.number(ids.first)))
    }
}
