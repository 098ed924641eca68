//! Sequences whose numbers are ids of ours: which numbers a call gives, and what the application may make of one.
//!
//! A sequence that counts in ones gives single ids. One with `INCREMENT BY n` is an application's block allocator, of which
//! there are two kinds: from a number v, one uses v - n + 1 to v or v - n to v - 1 ("pooled"), the other v to v + n - 1
//! ("pooled-lo"). A call takes 2 n ids in a row, v in their middle, so that both are free of all others' ids.

use crate::error::Explain;
use crate::generator::snowflake::TakenPositions;
use crate::ids::layout::Layout;
use crate::ids::position::NodeBits;
use crate::sequence::definition::Range;
use std::num::NonZeroU32;

/// The largest increment of a bound sequence: a call takes twice as many ids.
pub const MAX_INCREMENT: u32 = 10_000;

/// Reason why a sequence gives no number.
#[expect(missing_docs, reason = "each message names its figures")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error, Explain)]
pub enum BoundSequenceError {
    #[error("a bound sequence cannot have increment {0}")]
    #[explain(BadArgument, detail = "Increments from 1 to {MAX_INCREMENT} are supported.")]
    #[explain(hint = "Unbind the sequence, or alter its increment.")]
    Increment(i64),
    /// The increments of the sequence and of the tag.
    #[error("ids of the segment tag are not consecutive")]
    #[explain(
        NotReady,
        detail = "The sequence has increment {increment}, so that a number stands for the ids around it. The tag counts in \
                  steps of {step}; the ids between are other servers'.",
        hint = "Bind the sequence to a tag with increment 1."
    )]
    Apart { increment: u32, step: i64 },
    #[error("the layout cannot give {} consecutive ids", ids_of(*.0))]
    #[explain(
        NotReady,
        detail = "The sequence has increment {0}, so that a number stands for the ids around it.",
        hint = "Alter the sequence to INCREMENT BY 1, or bind it to a segment tag."
    )]
    Layout(u32),
    /// Others were faster, again and again.
    #[error("could not reserve {} consecutive ids", ids_of(.0.0))]
    #[explain(WaitedTooLong, hint = "Raise the tag's step with snowflake_ids.segment_alter.")]
    #[explain(detail = "The sequence has increment {}, so that a number stands for the ids around it.", .0.0)]
    Interrupted(Increment),
}

const fn ids_of(increment: u32) -> u32 {
    if increment == 1 { 1 } else { 2 * increment }
}

/// Returns whether setval puts a bound sequence itself at its end, where it stands while it is bound: as `pg_dump`
/// writes it down. The tag or generator is not meant.
pub const fn is_sentinel(value: i64, is_called: bool, max: i64) -> bool {
    is_called && value == max
}

/// INCREMENT BY of a bound sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Increment(u32);

impl Increment {
    /// # Errors
    /// [`BoundSequenceError::Increment`] where it is not from 1 to [`MAX_INCREMENT`].
    pub fn new(increment: i64) -> Result<Self, BoundSequenceError> {
        let fits = u32::try_from(increment).ok().filter(|n| (1..=MAX_INCREMENT).contains(n));
        fits.map(Self).ok_or(BoundSequenceError::Increment(increment))
    }

    /// Returns whether a number is one id, and not a block of them.
    #[inline]
    pub const fn is_one(self) -> bool {
        self.0 == 1
    }

    /// Returns the number of ids in a row a call takes.
    pub fn ids(self) -> NonZeroU32 {
        NonZeroU32::MIN.saturating_add(ids_of(self.0) - 1)
    }

    /// The number that is given for ids in a row that begin with this one.
    pub const fn number(self, first: i64) -> i64 {
        if self.0 == 1 { first } else { first.wrapping_add(self.0 as i64) }
    }

    /// The highest id that an application may use that got this number of the sequence itself.
    pub const fn reach(self, number: i64) -> i64 {
        number.saturating_add(self.0 as i64 - 1)
    }

    /// Above which number a sequence has to go on whose application may use none of the ids up to `highest`: a block may
    /// begin before its number.
    pub const fn resume_above(self, highest: i64) -> i64 {
        if self.0 == 1 { highest } else { highest.saturating_add(self.0 as i64) }
    }

    /// Fails where a layout never has so many ids in a row. At most half of a tick's ids are allowed: then a call that comes within
    /// a tick finds room in it or in the next.
    ///
    /// # Errors
    /// [`BoundSequenceError::Layout`].
    pub fn check_layout(self, layout: &Layout) -> Result<(), BoundSequenceError> {
        let room = 1_u64 << layout.sequence_bits();
        let in_a_row = layout.sequence_shift() == 0 && u64::from(self.ids().get()) * 2 <= room;
        if self.is_one() || in_a_row { Ok(()) } else { Err(BoundSequenceError::Layout(self.0)) }
    }

    /// The number for what was taken from the generator; None where the ids are not all there, and in a row.
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

/// Ids of a tag in a row, as they come out of its buffers.
#[derive(Debug)]
pub struct BoundRun {
    increment: Increment,
    /// The ids in a row so far, fewer than are wanted.
    ids: Option<Range>,
    /// Number of times that ids were thrown away that were not in a row.
    broken: u32,
}

/// Number of times that a call throws ids away that were not in a row.
const MAX_BROKEN: u32 = 1_000;

impl BoundRun {
    /// None yet.
    pub const fn new(increment: Increment) -> Self {
        Self { increment, ids: None, broken: 0 }
    }

    /// Returns the number of those that are missing.
    pub fn missing(&self) -> NonZeroU32 {
        let there = self.ids.map_or(0, |ids| ids.count);
        NonZeroU32::new(self.increment.ids().get() - there).unwrap_or(NonZeroU32::MIN)
    }

    /// Adds what was taken, at most as many as were missing; gives the number when none is missing any more. Where others
    /// were in between, all of it is thrown away: what comes next is then taken at once.
    ///
    /// # Errors
    /// [`BoundSequenceError`] where there will never be so many in a row, or again and again were not.
    pub fn add(&mut self, taken: Range) -> Result<Option<i64>, BoundSequenceError> {
        if self.increment.is_one() {
            return Ok(Some(taken.first));
        }
        if taken.increment != 1 {
            return Err(BoundSequenceError::Apart { increment: self.increment.0, step: taken.increment });
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
