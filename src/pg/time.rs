//! Conversion of instants between Postgres, which counts from 2000, and the core, which counts from 1970.
#![allow(clippy::result_large_err, reason = "what pgrx takes")]

use crate::pg::error::ServerError;
use pgrx::pg_sys::panic::ErrorReport;
use pgrx::prelude::*;
use snowflake_ids_core::UnixMicros;
use snowflake_ids_core::clock::micros;
use std::time::Duration;

/// 2000-01-01 UTC in microseconds since 1970.
pub(super) const POSTGRES_EPOCH: i64 = 946_684_800_000_000;

/// Converts an instant for the core. Instants in the last 30 years of `timestamptz` become the core's last instant. Every
/// layout ends before these years.
pub fn from_sql(at: TimestampWithTimeZone) -> Result<UnixMicros, ErrorReport> {
    if at.is_infinity() || at.is_neg_infinity() {
        return Err(ServerError::Infinite.into());
    }
    Ok(UnixMicros(i64::from(at).saturating_add(POSTGRES_EPOCH)))
}

/// Converts an instant for SQL. Every layout ends before `timestamptz` does.
pub fn to_sql(at: UnixMicros) -> Result<TimestampWithTimeZone, ErrorReport> {
    TimestampWithTimeZone::try_from(at.0 - POSTGRES_EPOCH).map_err(|_| ServerError::Timestamp { at }.into())
}

/// Converts a duration to an interval of whole days and a remainder of less than a day.
pub fn interval(time: Duration) -> Result<Interval, ErrorReport> {
    const DAY: u64 = 86_400_000_000;
    let time = micros(time);
    let days = i32::try_from(time / DAY).unwrap_or(i32::MAX);
    Interval::new(0, days, (time % DAY).cast_signed()).map_err(|_| ServerError::Interval { time }.into())
}
