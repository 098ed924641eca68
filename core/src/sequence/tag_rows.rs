//! The table of tags: reading a row, and reserving its next ids.

use crate::guard::{Guard, holds};
use crate::sequence::definition::Definition;
use crate::sequence::directory::Tag;
use crate::sequence::reservation::{Demand, Outcome, Reserved, Share, TagRow, Unfit};
use crate::sequence::segment::Period;

/// The treatment of a row that another transaction has locked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockWait {
    /// Leave it.
    Skip,
    /// Wait as long as the transaction's limit says, and fail then.
    Wait,
}

/// The treatment of an unknown tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Create {
    /// Nothing.
    No,
    /// To make it: for one of several registries, if it is one.
    Yes(Option<Share>),
}

/// A row as the table has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredRow {
    /// The terms of its ids.
    pub definition: Definition,
    /// The period that is now, by the server's clock and the row's time zone; never one before the row's own.
    pub period: Period,
    /// True if the row's own is over.
    pub is_over: bool,
    /// True if it may lag behind what a former primary has reserved.
    pub may_lag: bool,
    /// See [`TagRow`].
    pub format: String,
    /// See [`TagRow`].
    pub version: i64,
    /// See [`TagRow`].
    pub tag_generation: i64,
}

impl StoredRow {
    /// The row as it is now.
    pub fn now(self) -> TagRow {
        let Self { definition, period, is_over, may_lag, format, version, tag_generation } = self;
        let definition = if is_over { definition.restarted() } else { definition };
        let definition =
            if may_lag && holds(Guard::SkipAhead) { definition.skipped_ahead() } else { definition };
        TagRow { definition, period, format, version, tag_generation }
    }
}

/// The table of tags, within a transaction. Each call is a statement.
pub trait TagRows {
    /// Reason why a statement failed.
    type Error;

    /// Reads a row and locks it to the end of the transaction; None where there is none, and where another transaction has it
    /// locked that is not waited for.
    fn read(&mut self, tag: &Tag, wait: LockWait) -> Result<Option<StoredRow>, Self::Error>;
    /// Returns whether there is such a tag, or a transaction makes one now that may commit. Waits for none.
    fn is_taken(&mut self, tag: &Tag) -> Result<bool, Self::Error>;
    /// Makes a tag whose ids are of this share, unless there is one by now.
    fn create(&mut self, tag: &Tag, share: Share) -> Result<(), Self::Error>;
    /// Notes that ids up to this one are handed out or reserved, in this period, by this cluster on its timeline.
    fn write(&mut self, tag: &Tag, max_id: i64, period: Period, version: i64) -> Result<(), Self::Error>;
    /// Sets a row back to `before`, if it is at `last` and has this version still, and never starts over.
    fn set_back(&mut self, tag: &Tag, before: i64, last: i64, version: i64) -> Result<(), Self::Error>;
    /// A random number that no row ever had.
    fn new_version(&mut self) -> i64;
}

/// Reserves the next ids of a tag. The wish is asked for when the row is locked: changes by others under that lock are known then.
pub fn reserve<R: TagRows>(
    rows: &mut R,
    tag: &Tag,
    create: Create,
    wait: LockWait,
    demand: impl FnOnce(&mut R, &TagRow) -> Result<Demand, Unfit>,
) -> Result<Outcome, R::Error> {
    let mut row = rows.read(tag, wait)?;
    if row.is_none() {
        let is_taken = rows.is_taken(tag)?;
        row = match create {
            // It waits for a transaction that makes the tag.
            Create::Yes(share) if !is_taken || wait == LockWait::Wait => {
                rows.create(tag, share.unwrap_or(Share { index: 0, of: 1 }))?;
                rows.read(tag, wait)?
            }
            _ if !is_taken => return Ok(Outcome::Unknown),
            _ => None,
        };
    }
    let Some(row) = row.map(StoredRow::now) else { return Ok(Outcome::Locked) };
    let outcome = match demand(rows, &row) {
        Ok(demand) => row.reserve(&demand, rows.new_version()),
        Err(unfit) => Outcome::Unfit(unfit),
    };
    if let Outcome::Reserved(reserved) = &outcome {
        rows.write(tag, reserved.supply.range.last(), row.period, reserved.version)?;
    }
    Ok(outcome)
}

/// Takes a reservation back of which no id was published, unless the row was changed since.
pub fn give_back<R: TagRows>(rows: &mut R, tag: &Tag, reserved: &Reserved) -> Result<(), R::Error> {
    let range = reserved.supply.range;
    rows.set_back(tag, range.first.saturating_sub(1), range.last(), reserved.version)
}
