//! The period that a dated series counts in. SQL says which one it is; it is believed for some seconds.

use super::Known;
use super::error::NoNumberError;
use crate::pg::clock::SystemClock;
use crate::store::series as store;
use snowflake_ids_core::{Clock, UnixMicros};

/// A period that has been looked up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Period {
    /// Its first day, in days since 1970-01-01.
    day: i32,
    /// When that was looked up.
    since: UnixMicros,
}

impl Known {
    /// The first day of the present period, in days since 1970-01-01; 0 where the series is not dated. Only within a transaction.
    pub fn day(&self) -> Result<i32, NoNumberError> {
        let Some(reset) = self.series.reset else { return Ok(0) };
        if let Some(day) = self.day_at_once() {
            return Ok(day);
        }
        // Before SQL looks at the clock: so the period is no older than this says.
        let since = SystemClock.now();
        let (day, then) = store::period(reset, &self.series.time_zone)?;
        // Where another one begins meanwhile, each call looks: in some zones the clock goes back over midnight.
        self.period.set((day == then).then_some(Period { day, since }));
        Ok(day)
    }

    /// The same, if it is known.
    #[inline]
    pub fn day_at_once(&self) -> Option<i32> {
        if self.series.reset.is_none() {
            return Some(0);
        }
        let Period { day, since } = self.period.get()?;
        let now = SystemClock.now();
        let is_believed = since <= now && now.0 - since.0 < store::PERIOD_BELIEVED_MICROS;
        is_believed.then_some(day)
    }
}
