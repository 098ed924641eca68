//! The tables of series. Definitions are read without SQL. The counters of keys are read and written with SQL.
//!
//! All names and operators in the statements are schema-qualified, because the `search_path` is the caller's. The
//! statements run with the rights of the tables' owner.

use super::tables::{SERIES, SERIES_BIGINT, SERIES_TEXT, SERIES_UUID};
use crate::pg::catalog::{Source, Table, Unseen};
use crate::pg::read_lock::Wait;
use crate::pg::rows::{self, Sought};
use crate::pg::statement::Statement;
use crate::pg::tag_text::TagText;
use crate::pg::text::TextOut;
use pgrx::datum::DatumWithOid;
use pgrx::spi::{SpiError, SpiHeapTupleData};
use snowflake_ids_core::series::{Key, KeyType, Series, SeriesError, SeriesRow};
use snowflake_ids_core::tag::directory::Tag;
use snowflake_ids_core::tag::serial::Reset;
use std::time::Duration;

/// The RETURNING clause: the last value, and the first day of its period in days since 1970.
macro_rules! returning {
    () => {
        " RETURNING k.last_value, k.period OPERATOR(pg_catalog.-) '1970-01-01'::pg_catalog.date"
    };
}

/// The first day of the present period, from a parameter in days since 1970; null for a series without periods.
macro_rules! period {
    () => {
        "('1970-01-01'::pg_catalog.date OPERATOR(pg_catalog.+) $5)"
    };
}

/// The beginning of a statement that creates or updates a counter.
macro_rules! insert {
    ($table:literal, $value:literal) => {
        concat!(
            "INSERT INTO snowflake_ids.",
            $table,
            " AS k (series, key, last_value, period)
                VALUES ($1, $2, ",
            $value,
            ", ",
            period!(),
            ") ON CONFLICT (series, key) DO UPDATE"
        )
    };
}

/// Defines the statements on one table of counters. `next` is tried first, because it needs only one index lookup, one
/// row update and one WAL record.
macro_rules! counters {
    ($name:ident, $source:ident, $table:literal) => {
        static $name: Counters = Counters {
            table: &$source,
            // This statement has no period, because the server prepares each function of a statement for each run.
            next: Statement::new(concat!("UPDATE snowflake_ids.", $table, " AS k SET last_value = k.last_value OPERATOR(pg_catalog.+) 1
                WHERE k.series OPERATOR(pg_catalog.=) $1 AND k.key OPERATOR(pg_catalog.=) $2
                    AND k.last_value OPERATOR(pg_catalog.<) $3 RETURNING k.last_value")),
            next_dated: Statement::new(concat!("UPDATE snowflake_ids.", $table, " AS k
                SET last_value = CASE WHEN k.period OPERATOR(pg_catalog.<) ", period!(), " THEN $4 ELSE k.last_value OPERATOR(pg_catalog.+) 1 END,
                    period = GREATEST(k.period, ", period!(), ")
                WHERE k.series OPERATOR(pg_catalog.=) $1 AND k.key OPERATOR(pg_catalog.=) $2
                    AND (k.last_value OPERATOR(pg_catalog.<) $3 OR k.period OPERATOR(pg_catalog.<) ", period!(), ")", returning!())),
            first: Statement::new(concat!(insert!($table, "$4"), "
                SET last_value = CASE WHEN k.period OPERATOR(pg_catalog.<) EXCLUDED.period THEN $4
                        ELSE k.last_value OPERATOR(pg_catalog.+) 1 END,
                    period = GREATEST(k.period, EXCLUDED.period)
                WHERE k.last_value OPERATOR(pg_catalog.<) $3 OR k.period OPERATOR(pg_catalog.<) EXCLUDED.period", returning!())),
            set: Statement::new(concat!(insert!($table, "$3"), "
                SET last_value = EXCLUDED.last_value, period = GREATEST(k.period, EXCLUDED.period)
                WHERE $4 OR k.last_value OPERATOR(pg_catalog.<=) EXCLUDED.last_value
                    OR k.period OPERATOR(pg_catalog.<) EXCLUDED.period", returning!())),
            raise: Statement::new(concat!("UPDATE snowflake_ids.", $table, " AS k SET last_value = $3
                WHERE k.series OPERATOR(pg_catalog.=) $1 AND k.key OPERATOR(pg_catalog.=) $2
                    AND k.last_value OPERATOR(pg_catalog.<) $3")),
            read: Statement::new(concat!("SELECT k.last_value, k.period OPERATOR(pg_catalog.-) '1970-01-01'::pg_catalog.date
                FROM snowflake_ids.", $table, " AS k
                WHERE k.series OPERATOR(pg_catalog.=) $1 AND k.key OPERATOR(pg_catalog.=) $2")),
        };
    };
}

/// The statements on the counters of one key type.
struct Counters {
    table: &'static Table,
    /// Takes the next number of an existing counter; returns no row if the counter does not exist or has no number left.
    next: Statement,
    /// Does the same for a dated series, and restarts the counter in a new period.
    next_dated: Statement,
    /// Takes the next number of a counter that may not exist yet; returns no row if no number is left.
    first: Statement,
    set: Statement,
    raise: Statement,
    read: Statement,
}

counters!(OF_BIGINTS, SERIES_BIGINT, "series_bigint");
counters!(OF_TEXTS, SERIES_TEXT, "series_text");
counters!(OF_UUIDS, SERIES_UUID, "series_uuid");

/// A number, and the first day of its period in days since 1970. The day is 0 if the series is not dated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DatedNumber {
    pub number: i64,
    pub day: i32,
}

/// Returns the table with the counters of a key type. Call only within a transaction.
pub fn counters(of: KeyType) -> Option<Source> {
    counters_of(of).table.find()
}

/// Returns the table of series. If the table has a row of this name, also returns the series, and whether its use requires
/// privileges. Waits at most `limit` for a lock on the table. Call only within a transaction. The transaction's own
/// uncommitted changes are visible.
#[allow(clippy::type_complexity, reason = "a row that may be missing, or wrong")]
pub fn read(
    name: &Tag,
    limit: Duration,
) -> Result<(Source, Option<Result<(Series, bool), SeriesError>>), Unseen> {
    let mut found = None;
    let each = |row: &rows::Row<'_>| {
        let is_restricted = row.boolean(c"restricted").unwrap_or(true);
        found = Some(series_of(row).map(|series| (series, is_restricted)));
    };
    let table =
        rows::look(&SERIES, Wait::Yes(Some(limit)), &[(c"name", Sought::Text(&TagText(*name)))], each)?;
    Ok((table, found))
}

fn series_of(row: &rows::Row<'_>) -> Result<Series, SeriesError> {
    let text = |column| row.text(column);
    let (kind, key_type, time_zone) = (text(c"kind"), text(c"key_type"), text(c"time_zone"));
    let (reset, format, scope) = (text(c"reset"), text(c"format"), text(c"scope"));
    Series::new(&SeriesRow {
        id: row.number(c"id"),
        kind: kind.as_deref().unwrap_or_default(),
        key_type: key_type.as_deref().unwrap_or_default(),
        start: row.number(c"start"),
        max_value: row.number(c"max_value"),
        reset: reset.as_deref(),
        time_zone: time_zone.as_deref().unwrap_or_default(),
        format: format.as_deref(),
        step: row.int(c"step"),
        max_step: row.int(c"max_step"),
        sections: row.int(c"sections"),
        scope: scope.as_deref(),
    })
}

/// Takes the next number of a key that has a counter. `day` is the first day of a dated series' period. Returns None if the
/// key has no counter, or no number left.
pub fn next(series: &Series, key: &Key, day: Option<i32>) -> Result<Option<DatedNumber>, SpiError> {
    let (counters, terms) = (counters_of(key.key_type()), terms(series, key, day));
    match day {
        None => counters.next.first(&terms[..3], undated),
        Some(_) => counters.next_dated.first(&terms, number),
    }
}

/// Takes the next number of a key, and creates the key's counter if necessary. Returns None if no number is left.
pub fn first(series: &Series, key: &Key, day: Option<i32>) -> Result<Option<DatedNumber>, SpiError> {
    counters_of(key.key_type()).first.first(&terms(series, key, day), number)
}

fn terms<'a>(series: &Series, key: &Key, day: Option<i32>) -> [DatumWithOid<'a>; 5] {
    [series.id.into(), datum(key), series.max_value.into(), series.start.into(), day.into()]
}

/// Sets the counter of a key to a value. Without `force`, refuses a value below the key's last number of this period.
/// Returns whether the counter was set.
pub fn set(series: &Series, key: &Key, day: Option<i32>, value: i64, force: bool) -> Result<bool, SpiError> {
    let arguments = [series.id.into(), datum(key), value.into(), force.into(), day.into()];
    Ok(counters_of(key.key_type()).set.first(&arguments, number)?.is_some())
}

/// Raises the counter of a key, if the counter exists and is lower.
pub fn raise(series: &Series, key: &Key, number: i64) -> Result<(), SpiError> {
    counters_of(key.key_type()).raise.run(&[series.id.into(), datum(key), number.into()])
}

static LOCK: Statement = Statement::new(
    "SELECT true FROM snowflake_ids.series AS s WHERE s.id OPERATOR(pg_catalog.=) $1
         AND s.name OPERATOR(pg_catalog.=) $2 COLLATE pg_catalog.\"C\" FOR KEY SHARE",
);

/// Locks a series against deletion and renaming until the transaction ends. Returns whether the series exists under this
/// name.
pub fn lock(series: &Series, name: &Tag) -> Result<bool, SpiError> {
    Ok(LOCK.first(&[series.id.into(), TagText(*name).into()], |_| Ok(()))?.is_some())
}

/// The time for which a session uses a cached period. A period that ends within this time is not cached.
pub const PERIOD_BELIEVED_MICROS: i64 = 10_000_000;

static PERIOD: Statement = Statement::new(
    "SELECT snowflake_ids_internal.period_at($1, $2, c.now) OPERATOR(pg_catalog.-) '1970-01-01'::pg_catalog.date,
            snowflake_ids_internal.period_at($1, $2, c.now OPERATOR(pg_catalog.+) '10 seconds'::pg_catalog.interval)
                OPERATOR(pg_catalog.-) '1970-01-01'::pg_catalog.date
     FROM (SELECT pg_catalog.clock_timestamp() AS now OFFSET 0) AS c",
);

/// Returns the first days of two periods, in days since 1970-01-01: the current period, and the period that will be
/// current in [`PERIOD_BELIEVED_MICROS`].
pub fn period(reset: Reset, time_zone: &str) -> Result<(i32, i32), SpiError> {
    let days = PERIOD.first(&[reset.name().into(), time_zone.into()], |row| {
        Ok((row.get::<i32>(1)?.unwrap_or_default(), row.get::<i32>(2)?.unwrap_or_default()))
    })?;
    Ok(days.unwrap_or_default())
}

/// Returns the last number of a key; None if the key has no counter.
pub fn last(series: &Series, key: &Key) -> Result<Option<DatedNumber>, SpiError> {
    counters_of(key.key_type()).read.first(&[series.id.into(), datum(key)], number)
}

fn counters_of(keys: KeyType) -> &'static Counters {
    match keys {
        KeyType::Bigint => &OF_BIGINTS,
        KeyType::Text => &OF_TEXTS,
        KeyType::Uuid => &OF_UUIDS,
    }
}

/// Converts a key to an argument of a statement.
pub(super) fn datum<'a>(key: &Key) -> DatumWithOid<'a> {
    match key {
        Key::Bigint(number) => (*number).into(),
        Key::Text(bytes) => TextOut::of_bytes(bytes).into(),
        Key::Uuid(uuid) => pgrx::Uuid::from_bytes(uuid.to_be_bytes()).into(),
    }
}

fn undated(row: &SpiHeapTupleData<'_>) -> Result<DatedNumber, SpiError> {
    Ok(DatedNumber { number: row.get::<i64>(1)?.unwrap_or_default(), day: 0 })
}

pub(super) fn number(row: &SpiHeapTupleData<'_>) -> Result<DatedNumber, SpiError> {
    let number = row.get::<i64>(1)?.unwrap_or_default();
    Ok(DatedNumber { number, day: row.get::<i32>(2)?.unwrap_or_default() })
}
