//! The period that a dated series counts in. SQL says which one it is; it is believed for some seconds.

use crate::pg::clock::SystemClock;
use crate::store::series as store;
use pgrx::spi::SpiError;
use snowflake_ids_core::series::serial::Reset;
use snowflake_ids_core::{Clock, UnixMicros};

/// A period that has been looked up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SeriesPeriod {
    /// Its first day, in days since 1970-01-01.
    day: i32,
    /// Time at which that was looked up.
    since: UnixMicros,
}

/// The first day of the present period of a time zone, in days since 1970-01-01; and the period, if it can be believed for a while.
/// Only within a transaction.
pub fn look_up(reset: Reset, time_zone: &str) -> Result<(i32, Option<SeriesPeriod>), SpiError> {
    // Before SQL looks at the clock: so the period is no older than this says.
    let since = SystemClock.now();
    let (day, then) = store::period(reset, time_zone)?;
    // Where another one begins meanwhile, each call looks: in some zones the clock goes back over midnight.
    Ok((day, (day == then).then_some(SeriesPeriod { day, since })))
}

impl SeriesPeriod {
    /// Its first day, while it is believed to be the present one.
    #[inline]
    pub fn day(self) -> Option<i32> {
        let now = SystemClock.now();
        let is_believed = self.since <= now && now.0 - self.since.0 < store::PERIOD_BELIEVED_MICROS;
        is_believed.then_some(self.day)
    }
}
