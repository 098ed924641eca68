//! The table of tags: reading a row, and reserving the row's next ids.

use crate::clock::UnixMicros;
use crate::guard::{Guard, holds};
use crate::tag::directory::Tag;
use crate::tag::reservation::{Demand, Outcome, Share, TagRow, Unfit};
use crate::tag::segment::Period;
use std::cmp::Ordering;
use std::time::Duration;

/// The treatment of a row that another transaction has locked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockWait {
    /// The row is skipped.
    Skip,
    /// The call waits until the transaction's lock timeout, and then fails.
    Wait,
}

impl TagRow {
    /// Returns the row for the current period. `is_over` is true if the period that the table stores has ended. At each
    /// of the `promotions` since the row was written, the table may have lost ids that the previous primary reserved.
    #[must_use]
    pub fn now(self, is_over: bool, promotions: u32) -> Self {
        let definition = if is_over { self.definition.restarted() } else { self.definition };
        let promotions = if holds(Guard::SkipEach) { promotions } else { promotions.min(1) };
        let promotions = if holds(Guard::SkipAhead) { promotions } else { 0 };
        Self { definition: definition.skipped_ahead(promotions), ..self }
    }

    /// Returns the highest id and the period to write in place of those that the first change after a promotion writes.
    /// This row is the row before the change, with the skipped ids; the change may lower the number of ids to skip.
    pub fn kept_above(&self, max_id: i64, day: Option<i32>) -> (i64, Option<i32>) {
        if holds(Guard::SkipFirst) { self.later_of(max_id, day) } else { (max_id, day) }
    }

    /// Returns the highest id and the period to write when a restore brings another row of this tag. The restored tables
    /// have ids up to the other row's highest id. A tag without periods never counts from its start again.
    pub fn restored_over(&self, max_id: i64, day: Option<i32>) -> (i64, Option<i32>) {
        let day = day.filter(|_| self.period.dated().is_some());
        if holds(Guard::RestoreRaises) { self.later_of(max_id, day) } else { (self.definition.max_id, day) }
    }

    fn later_of(&self, max_id: i64, day: Option<i32>) -> (i64, Option<i32>) {
        let (reached, current) = (self.definition.max_id, self.period.dated());
        match day.cmp(&current) {
            Ordering::Less => (reached, current),
            Ordering::Equal => (max_id.max(reached), day),
            Ordering::Greater => (max_id, day),
        }
    }
}

/// Returns the time that determines the period of a dated tag. At the first change of a row after promotions, the previous
/// primary may have begun the next period, in a change that was lost: its clock may have been ahead by `max_clock_skew`. The
/// commit that was replayed last shows its clock, unless that clock was wrong by more than an hour.
pub fn present(
    now: UnixMicros,
    promotions: u32,
    replayed: Option<UnixMicros>,
    max_clock_skew: Duration,
) -> UnixMicros {
    const WRONG: Duration = Duration::from_hours(1);
    if promotions == 0 || !holds(Guard::PeriodAhead) {
        return now;
    }
    let of_primary = replayed.filter(|replayed| *replayed <= now.plus(WRONG));
    now.max(of_primary.unwrap_or(now)).plus(max_clock_skew)
}

/// The table of tags, within a transaction. Each call is one statement.
pub trait TagRows {
    /// Reason why a statement failed.
    type Error;

    /// Reads a row, and locks it until the end of the transaction. Returns None if the row does not exist, or is locked
    /// and `wait` is [`LockWait::Skip`]. The period of the row is the period of [`present`] in the row's time zone, and
    /// never earlier than the stored period: see [`TagRow::now`].
    fn read(&mut self, tag: &Tag, wait: LockWait) -> Result<Option<TagRow>, Self::Error>;
    /// Returns true if the tag exists, or an open transaction may create it. Does not wait.
    fn is_taken(&mut self, tag: &Tag) -> Result<bool, Self::Error>;
    /// Creates a tag if it does not exist. The tag's ids are this registry's share.
    fn create(&mut self, tag: &Tag, share: Share) -> Result<(), Self::Error>;
    /// Writes that ids up to `max_id` are handed out or reserved in this period. Also writes the cluster's system
    /// identifier and its timeline.
    fn write(&mut self, tag: &Tag, max_id: i64, period: Period, version: i64) -> Result<(), Self::Error>;
    /// Moves a row's highest id back to `before`, if the row's highest id is `last`, its version is `version`, and it
    /// has no periods.
    fn set_back(&mut self, tag: &Tag, before: i64, last: i64, version: i64) -> Result<(), Self::Error>;
    /// Returns a random number that no row ever had as its version.
    fn new_version(&mut self) -> i64;
}

/// Reserves the next ids of a tag. `demand` is called while the row is locked, so it sees all changes that other
/// transactions committed. If `create` is a share, an unknown tag is created with the ids of this share.
pub fn reserve<R: TagRows>(
    rows: &mut R,
    tag: &Tag,
    create: Option<Share>,
    wait: LockWait,
    demand: impl FnOnce(&mut R, &TagRow) -> Result<Demand, Unfit>,
) -> Result<Outcome, R::Error> {
    let mut row = rows.read(tag, wait)?;
    if row.is_none() {
        let is_taken = rows.is_taken(tag)?;
        row = match create {
            // If another transaction is creating the tag, a creation here would wait for that transaction.
            // `LockWait::Skip` therefore does not create the tag.
            Some(share) if !is_taken || wait == LockWait::Wait => {
                rows.create(tag, share)?;
                rows.read(tag, wait)?
            }
            _ if !is_taken => return Ok(Outcome::Unknown),
            _ => None,
        };
    }
    let Some(row) = row else { return Ok(Outcome::Locked) };
    let outcome = match demand(rows, &row) {
        Ok(demand) => row.reserve(&demand, rows.new_version()),
        Err(unfit) => Outcome::Unfit(unfit),
    };
    if let Outcome::Reserved(reserved) = &outcome {
        rows.write(tag, reserved.supply.range.last(), row.period, reserved.version)?;
    }
    Ok(outcome)
}
