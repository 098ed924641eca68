//! What is done with rows of keys, as statements: each for many keys of one type at a time.
//!
//! They look for each row by its key, whatever the planner thinks of the table: their transactions call [`plan_by_key`].

use crate::pg::guc;
use crate::pg::statement::Statement;
use pgrx::pg_sys::BuiltinOid::{
    INT4ARRAYOID, INT8ARRAYOID, INT8OID, TEXTARRAYOID, TEXTOID, UUIDARRAYOID, UUIDOID,
};
use snowflake_ids_core::series::KeyType;
use std::ffi::CStr;

/// Settings by which plans look for rows one by one, by the index. A plan is kept, and one that was best while the table was empty looks
/// at all of it. Nor is one made anew for each list of keys: for a few it seems cheaper, by what the planner takes an array of unknown
/// length for, and never is.
const PLANS: [(&CStr, &CStr); 5] = [
    (c"plan_cache_mode", c"force_generic_plan"),
    (c"enable_seqscan", c"off"),
    (c"enable_bitmapscan", c"off"),
    (c"enable_hashjoin", c"off"),
    (c"enable_mergejoin", c"off"),
];

/// Has the rest of this transaction look for rows of keys by their index. Other statements of the process are planned as usual: one
/// that can only scan would cost so much that it is compiled just in time.
pub fn plan_by_key() {
    for (setting, value) in PLANS {
        guc::set_for_transaction(setting, value);
    }
}

/// The day of a row; 0 where it has none.
macro_rules! day {
    ($row:literal) => {
        concat!("COALESCE(", $row, ".period OPERATOR(pg_catalog.-) '1970-01-01'::pg_catalog.date, 0)")
    };
}

/// The period of a row that is written; null where it has none.
macro_rules! period {
    () => {
        "CASE WHEN w.day OPERATOR(pg_catalog.<>) 0
             THEN '1970-01-01'::pg_catalog.date OPERATOR(pg_catalog.+) w.day END"
    };
}

/// The rows that are to be written, as `said` in [`super::rows`] gives them.
macro_rules! said {
    () => {
        concat!(
            " AS k (series, key, last_value, period, version)
             SELECT w.series, w.key, w.last_value, ",
            period!(),
            ", w.version
             FROM ROWS FROM (pg_catalog.unnest($1), pg_catalog.unnest($2), pg_catalog.unnest($3),
                 pg_catalog.unnest($4), pg_catalog.unnest($5)) AS w (series, key, day, last_value, version)"
        )
    };
}

/// The rows of the keys that are looked for, each with its place among them.
macro_rules! found {
    ($table:literal) => {
        concat!(
            " FROM ROWS FROM (pg_catalog.unnest($1), pg_catalog.unnest($2)) WITH ORDINALITY AS w (series, key, place)
             JOIN snowflake_ids.",
            $table,
            " AS k ON k.series OPERATOR(pg_catalog.=) w.series AND k.key OPERATOR(pg_catalog.=) w.key"
        )
    };
}

macro_rules! counters {
    ($name:ident, $table:literal, $one:ident, $many:ident) => {
        static $name: Counters = Counters {
            extend: Statement::new(
                concat!(
                    "WITH w AS MATERIALIZED (
                         SELECT * FROM ROWS FROM (pg_catalog.unnest($1), pg_catalog.unnest($2), pg_catalog.unnest($3),
                             pg_catalog.unnest($4), pg_catalog.unnest($5), pg_catalog.unnest($6)) WITH ORDINALITY
                             AS w (series, key, day, wanted, start, max_value, place)
                     ), f AS MATERIALIZED (
                         SELECT w.place, w.series, w.key, w.day, w.wanted, w.max_value,
                             CASE WHEN ",
                    day!("k"),
                    " OPERATOR(pg_catalog.<) w.day THEN w.start OPERATOR(pg_catalog.-) 1 ELSE k.last_value END AS base
                         FROM w JOIN snowflake_ids.",
                    $table,
                    " AS k ON k.series OPERATOR(pg_catalog.=) w.series AND k.key OPERATOR(pg_catalog.=) w.key
                         FOR NO KEY UPDATE OF k SKIP LOCKED
                     )
                     UPDATE snowflake_ids.",
                    $table,
                    " AS k
                     SET last_value = CASE WHEN f.base OPERATOR(pg_catalog.>) (f.max_value OPERATOR(pg_catalog.-) f.wanted)
                             THEN f.max_value ELSE f.base OPERATOR(pg_catalog.+) f.wanted END,
                         period = CASE WHEN f.day OPERATOR(pg_catalog.>) ",
                    day!("k"),
                    " THEN '1970-01-01'::pg_catalog.date OPERATOR(pg_catalog.+) f.day ELSE k.period END
                     FROM f
                     WHERE k.series OPERATOR(pg_catalog.=) f.series AND k.key OPERATOR(pg_catalog.=) f.key
                         AND f.base OPERATOR(pg_catalog.<) f.max_value
                     RETURNING f.place, f.base, k.last_value, ",
                    day!("k")
                ),
                &[INT8ARRAYOID, $many, INT4ARRAYOID, INT8ARRAYOID, INT8ARRAYOID, INT8ARRAYOID],
            ),
            begin: Statement::new(
                concat!(
                    "INSERT INTO snowflake_ids.",
                    $table,
                    " AS k (series, key, last_value, period)
                     SELECT w.series, w.key, w.last_value, ",
                    period!(),
                    "
                     FROM ROWS FROM (pg_catalog.unnest($1), pg_catalog.unnest($2), pg_catalog.unnest($3),
                         pg_catalog.unnest($4)) AS w (series, key, day, last_value)
                     ON CONFLICT (series, key) DO NOTHING
                     RETURNING k.series, k.key"
                ),
                &[INT8ARRAYOID, $many, INT4ARRAYOID, INT8ARRAYOID],
            ),
            look: Statement::new(
                concat!(
                    "SELECT w.place, k.last_value, ",
                    day!("k"),
                    found!($table)
                ),
                &[INT8ARRAYOID, $many],
            ),
            write_back: Statement::new(
                concat!(
                    "UPDATE snowflake_ids.",
                    $table,
                    " AS k SET last_value = w.given
                     FROM ROWS FROM (pg_catalog.unnest($1), pg_catalog.unnest($2), pg_catalog.unnest($3), pg_catalog.unnest($4),
                         pg_catalog.unnest($5)) AS w (series, key, day, given, reserved)
                     WHERE k.series OPERATOR(pg_catalog.=) w.series AND k.key OPERATOR(pg_catalog.=) w.key
                         AND k.last_value OPERATOR(pg_catalog.=) w.reserved AND ",
                    day!("k"),
                    " OPERATOR(pg_catalog.=) w.day"
                ),
                &[INT8ARRAYOID, $many, INT4ARRAYOID, INT8ARRAYOID, INT8ARRAYOID],
            ),
            lock_free: Statement::new(
                concat!(
                    "SELECT w.place",
                    found!($table),
                    " FOR NO KEY UPDATE OF k SKIP LOCKED"
                ),
                &[INT8ARRAYOID, $many],
            ),
            lock: Statement::new(
                concat!(
                    "SELECT k.last_value, ",
                    day!("k"),
                    " FROM snowflake_ids.",
                    $table,
                    " AS k WHERE k.series OPERATOR(pg_catalog.=) $1 AND k.key OPERATOR(pg_catalog.=) $2 FOR NO KEY UPDATE"
                ),
                &[INT8OID, $one],
            ),
            lower: Statement::new(
                concat!(
                    "UPDATE snowflake_ids.",
                    $table,
                    " AS k SET last_value = $3 WHERE k.series OPERATOR(pg_catalog.=) $1 AND k.key OPERATOR(pg_catalog.=) $2"
                ),
                &[INT8OID, $one, INT8OID],
            ),
            received: Statement::new(
                concat!(
                    "SELECT w.place, k.last_value, ",
                    day!("k"),
                    ", k.version",
                    found!($table)
                ),
                &[INT8ARRAYOID, $many],
            ),
            read_free: Statement::new(
                concat!(
                    "SELECT w.place, k.last_value, ",
                    day!("k"),
                    ", k.version",
                    found!($table),
                    " FOR NO KEY UPDATE OF k SKIP LOCKED"
                ),
                &[INT8ARRAYOID, $many],
            ),
            read: Statement::new(
                concat!(
                    "SELECT 1::pg_catalog.int8, k.last_value, ",
                    day!("k"),
                    ", k.version FROM snowflake_ids.",
                    $table,
                    " AS k WHERE k.series OPERATOR(pg_catalog.=) $1 AND k.key OPERATOR(pg_catalog.=) $2 FOR NO KEY UPDATE"
                ),
                &[INT8OID, $one],
            ),
            make: Statement::new(
                concat!(
                    "INSERT INTO snowflake_ids.",
                    $table,
                    said!(),
                    " ON CONFLICT (series, key) DO NOTHING
                     RETURNING k.series, k.key"
                ),
                &[INT8ARRAYOID, $many, INT4ARRAYOID, INT8ARRAYOID, INT8ARRAYOID],
            ),
            put: Statement::new(
                concat!(
                    "INSERT INTO snowflake_ids.",
                    $table,
                    said!(),
                    " ON CONFLICT (series, key) DO UPDATE
                     SET last_value = EXCLUDED.last_value, period = EXCLUDED.period, version = EXCLUDED.version"
                ),
                &[INT8ARRAYOID, $many, INT4ARRAYOID, INT8ARRAYOID, INT8ARRAYOID],
            ),
        };
    };
}

/// What is done with the counters of one type of keys.
pub struct Counters {
    /// Reserves numbers of those that have rows that are not locked.
    pub extend: Statement,
    /// Makes rows of those that have none.
    pub begin: Statement,
    /// What rows say, locked or not.
    pub look: Statement,
    /// Sets rows to what was given out.
    pub write_back: Statement,
    /// Locks those rows that no other transaction has locked.
    pub lock_free: Statement,
    /// Locks a row.
    pub lock: Statement,
    /// Sets a row that is locked.
    pub lower: Statement,
    /// What rows say, and their versions, where several servers count: of all,
    pub received: Statement,
    /// of those that no other transaction has locked, which this one locks,
    pub read_free: Statement,
    /// and of one, which is waited for and locked.
    pub read: Statement,
    /// Makes rows that say this, where there are none,
    pub make: Statement,
    /// and has rows say it in any case.
    pub put: Statement,
}

counters!(OF_BIGINTS, "series_bigint", INT8OID, INT8ARRAYOID);
counters!(OF_TEXTS, "series_text", TEXTOID, TEXTARRAYOID);
counters!(OF_UUIDS, "series_uuid", UUIDOID, UUIDARRAYOID);

/// The statements for keys of a type.
pub fn counters_of(of: KeyType) -> &'static Counters {
    match of {
        KeyType::Bigint => &OF_BIGINTS,
        KeyType::Text => &OF_TEXTS,
        KeyType::Uuid => &OF_UUIDS,
    }
}
