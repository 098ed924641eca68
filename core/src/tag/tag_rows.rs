//! The rows of the table of tags, after the end of a period, a promotion or a restore.

use crate::clock::UnixMicros;
use crate::guard::{Guard, holds};
use crate::tag::reservation::TagRow;
use std::cmp::Ordering;
use std::time::Duration;

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
