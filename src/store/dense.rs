//! The counters of dense series in their tables, many at a time: reserving numbers, and writing back what is left over.
//!
//! A row says up to which number all are reserved. The statements look for each row by its key, whatever the planner thinks of the
//! table: a worker has [`PLANS`] set.

use super::series::{self as store, datum};
use crate::pg::statement::Statement;
use crate::pg::text::{RowBytes, TextOut};
use pgrx::Uuid;
use pgrx::datum::DatumWithOid;
use pgrx::pg_sys::BuiltinOid::{INT4ARRAYOID, INT8ARRAYOID, INT8OID, TEXTARRAYOID, TEXTOID, UUIDARRAYOID, UUIDOID};
use pgrx::spi::{SpiError, SpiHeapTupleData};
use rustc_hash::{FxHashMap, FxHashSet};
use snowflake_ids_core::series::{Key, KeyType};
use std::ffi::CStr;

/// How a worker's plans look for rows: one by one, by the index. A plan is kept, and one that was best while the table was empty looks
/// at all of it.
pub const PLANS: [(&CStr, &CStr); 4] = [
    (c"enable_seqscan", c"off"),
    (c"enable_bitmapscan", c"off"),
    (c"enable_hashjoin", c"off"),
    (c"enable_mergejoin", c"off"),
];

/// The day of a row; 0 where it has none.
macro_rules! day {
    ($row:literal) => {
        concat!(
            "COALESCE(",
            $row,
            ".period OPERATOR(pg_catalog.-) '1970-01-01'::pg_catalog.date, 0)"
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
                     SELECT w.series, w.key, w.last_value,
                         CASE WHEN w.day OPERATOR(pg_catalog.<>) 0
                             THEN '1970-01-01'::pg_catalog.date OPERATOR(pg_catalog.+) w.day END
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
                    " FROM ROWS FROM (pg_catalog.unnest($1), pg_catalog.unnest($2)) WITH ORDINALITY AS w (series, key, place)
                     JOIN snowflake_ids.",
                    $table,
                    " AS k ON k.series OPERATOR(pg_catalog.=) w.series AND k.key OPERATOR(pg_catalog.=) w.key"
                ),
                &[INT8ARRAYOID, $many],
            ),
            write_back: Statement::new(
                concat!(
                    "WITH w AS MATERIALIZED (
                         SELECT * FROM ROWS FROM (pg_catalog.unnest($1), pg_catalog.unnest($2), pg_catalog.unnest($3),
                             pg_catalog.unnest($4), pg_catalog.unnest($5)) WITH ORDINALITY
                             AS w (series, key, day, value, reserved, place)
                     ), f AS MATERIALIZED (
                         SELECT w.place, w.series, w.key, w.value
                         FROM w JOIN snowflake_ids.",
                    $table,
                    " AS k ON k.series OPERATOR(pg_catalog.=) w.series AND k.key OPERATOR(pg_catalog.=) w.key
                             AND k.last_value OPERATOR(pg_catalog.=) w.reserved AND ",
                    day!("k"),
                    " OPERATOR(pg_catalog.=) w.day
                         FOR NO KEY UPDATE OF k SKIP LOCKED
                     )
                     UPDATE snowflake_ids.",
                    $table,
                    " AS k SET last_value = f.value FROM f
                     WHERE k.series OPERATOR(pg_catalog.=) f.series AND k.key OPERATOR(pg_catalog.=) f.key
                     RETURNING f.place"
                ),
                &[INT8ARRAYOID, $many, INT4ARRAYOID, INT8ARRAYOID, INT8ARRAYOID],
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
        };
    };
}

/// What is done with the counters of one type of keys.
struct Counters {
    /// Reserves numbers of those that have rows that are not locked.
    extend: Statement,
    /// Makes rows of those that have none.
    begin: Statement,
    /// What rows say, locked or not.
    look: Statement,
    /// Sets rows to what was given out.
    write_back: Statement,
    /// Locks a row.
    lock: Statement,
    /// Sets a row that is locked.
    lower: Statement,
}

counters!(OF_BIGINTS, "series_bigint", INT8OID, INT8ARRAYOID);
counters!(OF_TEXTS, "series_text", TEXTOID, TEXTARRAYOID);
counters!(OF_UUIDS, "series_uuid", UUIDOID, UUIDARRAYOID);

fn counters_of(of: KeyType) -> &'static Counters {
    match of {
        KeyType::Bigint => &OF_BIGINTS,
        KeyType::Text => &OF_TEXTS,
        KeyType::Uuid => &OF_UUIDS,
    }
}

/// What the row of a series says of its numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terms {
    /// The first number.
    pub start: i64,
    /// The last one.
    pub max_value: i64,
    /// How many are reserved at once, at first,
    pub step: i64,
    /// and at most.
    pub max_step: i64,
}

/// A series, as a worker finds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// There, and so it stays until the transaction ends.
    Here(Terms),
    /// Another transaction changes or drops it.
    Locked,
}

/// Numbers that are wanted of a key.
#[derive(Clone, Debug)]
pub struct Wanted<'a> {
    /// Which series,
    pub series: i64,
    /// what it says,
    pub terms: Terms,
    /// and which key.
    pub key: &'a Key,
    /// The first day of the present period; 0 where the series is not dated.
    pub day: i32,
    /// For how many calls.
    pub waiting: i64,
    /// How many more, of a key that has a row.
    pub extra: i64,
}

/// What came of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reserved {
    /// Numbers in a row, and the first day of the period that they are of.
    Range { first: i64, last: i64, day: i32 },
    /// Another transaction has the row locked.
    Locked,
    /// None is left.
    Exhausted,
}

/// What is left over of a key, and goes back into its row.
#[derive(Clone, Debug)]
pub struct LeftOver<'a> {
    /// Which series,
    pub series: i64,
    /// and which key.
    pub key: &'a Key,
    /// The first day of the period; 0 where the series is not dated.
    pub day: i32,
    /// The last number that was given out.
    pub value: i64,
    /// The last one that is reserved: where the row says something else, it stays.
    pub reserved: i64,
}

static SERIES: Statement = Statement::new(
    "SELECT s.id, s.start, s.max_value, s.step, s.max_step FROM snowflake_ids.series AS s
     WHERE s.id OPERATOR(pg_catalog.=) ANY ($1) AND s.kind OPERATOR(pg_catalog.=) 'dense' FOR KEY SHARE SKIP LOCKED",
    &[INT8ARRAYOID],
);
static SERIES_UNLOCKED: Statement = Statement::new(
    "SELECT s.id FROM snowflake_ids.series AS s WHERE s.id OPERATOR(pg_catalog.=) ANY ($1)",
    &[INT8ARRAYOID],
);

/// The series of these numbers that are there. They are neither dropped nor renamed until the transaction ends.
pub fn series(ids: &[i64]) -> Result<FxHashMap<i64, Found>, SpiError> {
    let one = |row: &SpiHeapTupleData<'_>| {
        let number = |place: usize| row.get::<i64>(place).map(Option::unwrap_or_default);
        let step = |place: usize| row.get::<i32>(place).map(|step| step.unwrap_or(1).into());
        let terms = Terms { start: number(2)?, max_value: number(3)?, step: step(4)?, max_step: step(5)? };
        Ok((number(1)?, Found::Here(terms)))
    };
    let mut found: FxHashMap<i64, Found> = SERIES.all(&[ids.to_vec().into()], one)?.into_iter().collect();
    if found.len() < ids.len() {
        let rest: Vec<i64> = ids.iter().filter(|id| !found.contains_key(*id)).copied().collect();
        let locked = SERIES_UNLOCKED.all(&[rest.into()], |row| row.get::<i64>(1))?;
        found.extend(locked.into_iter().flatten().map(|id| (id, Found::Locked)));
    }
    Ok(found)
}

/// Reserves numbers of keys of one type, each once, in the present transaction, as the tables' owner. What came of each, in their order.
pub fn reserve(of: KeyType, all: &[Wanted<'_>]) -> Result<Vec<Reserved>, SpiError> {
    let Some(table) = store::counters(of) else { return Ok(vec![Reserved::Locked; all.len()]) };
    table.as_owner_qualified(|| reserve_in(counters_of(of), of, all))
}

fn reserve_in(counters: &Counters, of: KeyType, all: &[Wanted<'_>]) -> Result<Vec<Reserved>, SpiError> {
    let mut done: Vec<Option<Reserved>> = vec![None; all.len()];
    let arguments = [
        series_of(all.iter().map(|one| one.series)),
        keys(of, all.iter().map(|one| one.key)),
        days(all.iter().map(|one| one.day)),
        numbers(all.iter().map(|one| one.waiting + one.extra)),
        numbers(all.iter().map(|one| one.terms.start)),
        numbers(all.iter().map(|one| one.terms.max_value)),
    ];
    let extended = counters.extend.all(&arguments, |row| {
        let number = |place: usize| row.get::<i64>(place).map(Option::unwrap_or_default);
        let day = row.get::<i32>(4)?.unwrap_or_default();
        Ok((place(row)?, Reserved::Range { first: number(2)? + 1, last: number(3)?, day }))
    })?;
    for (place, range) in extended {
        if let Some(done) = done.get_mut(place) {
            *done = Some(range);
        }
    }
    let rest: Vec<usize> = open(&done);
    if rest.is_empty() {
        return Ok(done.into_iter().flatten().collect());
    }
    begin(counters, of, all, &rest, &mut done)?;
    let rest = open(&done);
    if !rest.is_empty() {
        look(counters, of, all, &rest, &mut done)?;
    }
    Ok(done.into_iter().map(|done| done.unwrap_or(Reserved::Locked)).collect())
}

fn open(done: &[Option<Reserved>]) -> Vec<usize> {
    done.iter().enumerate().filter(|(_, done)| done.is_none()).map(|(place, _)| place).collect()
}

/// Makes rows of those that have none. They get as many numbers as calls wait: of a key that is used once there is nothing left over.
fn begin(
    counters: &Counters,
    of: KeyType,
    all: &[Wanted<'_>],
    rest: &[usize],
    done: &mut [Option<Reserved>],
) -> Result<(), SpiError> {
    let last = |one: &Wanted<'_>| one.terms.max_value.min(one.terms.start - 1 + one.waiting);
    let new: Vec<(usize, &Wanted<'_>)> =
        rest.iter().filter_map(|place| Some((*place, all.get(*place)?))).collect();
    let arguments = [
        series_of(new.iter().map(|(_, one)| one.series)),
        keys(of, new.iter().map(|(_, one)| one.key)),
        days(new.iter().map(|(_, one)| one.day)),
        numbers(new.iter().map(|(_, one)| last(one))),
    ];
    let made: FxHashSet<(i64, Key)> = counters
        .begin
        .all(&arguments, |row| Ok((row.get::<i64>(1)?.unwrap_or_default(), key_of(of, row)?)))?
        .into_iter()
        .collect();
    for (place, one) in new {
        if made.contains(&(one.series, one.key.clone()))
            && let Some(done) = done.get_mut(place)
        {
            *done = Some(Reserved::Range { first: one.terms.start, last: last(one), day: one.day });
        }
    }
    Ok(())
}

/// Tells those that have no numbers left from those that are locked.
fn look(
    counters: &Counters,
    of: KeyType,
    all: &[Wanted<'_>],
    rest: &[usize],
    done: &mut [Option<Reserved>],
) -> Result<(), SpiError> {
    let old: Vec<(usize, &Wanted<'_>)> =
        rest.iter().filter_map(|place| Some((*place, all.get(*place)?))).collect();
    let arguments = [
        series_of(old.iter().map(|(_, one)| one.series)),
        keys(of, old.iter().map(|(_, one)| one.key)),
    ];
    let says = counters.look.all(&arguments, |row| {
        Ok((place(row)?, row.get::<i64>(2)?.unwrap_or_default(), row.get::<i32>(3)?.unwrap_or_default()))
    })?;
    for (found, last, day) in says {
        if let Some((place, one)) = old.get(found)
            && last >= one.terms.max_value
            && day >= one.day
            && let Some(done) = done.get_mut(*place)
        {
            *done = Some(Reserved::Exhausted);
        }
    }
    Ok(())
}

/// Writes what is left over of keys of one type back into their rows, in the present transaction, as the tables' owner. Whether each
/// was written: else the row is locked, or has changed.
pub fn write_back(of: KeyType, all: &[LeftOver<'_>]) -> Result<Vec<bool>, SpiError> {
    let mut done = vec![false; all.len()];
    let Some(table) = store::counters(of) else { return Ok(done) };
    let arguments = [
        series_of(all.iter().map(|one| one.series)),
        keys(of, all.iter().map(|one| one.key)),
        days(all.iter().map(|one| one.day)),
        numbers(all.iter().map(|one| one.value)),
        numbers(all.iter().map(|one| one.reserved)),
    ];
    let written = table.as_owner_qualified(|| counters_of(of).write_back.all(&arguments, place))?;
    for place in written {
        if let Some(done) = done.get_mut(place) {
            *done = true;
        }
    }
    Ok(done)
}

/// Locks the row of a key until the transaction ends: up to which number all are reserved, and the day; None where it has none.
pub fn lock(series: i64, key: &Key) -> Result<Option<(i64, i32)>, SpiError> {
    counters_of(key.key_type()).lock.first(&[series.into(), datum(key)], |row| {
        Ok((row.get::<i64>(1)?.unwrap_or_default(), row.get::<i32>(2)?.unwrap_or_default()))
    })
}

/// Sets the row of a key, which is locked, to the last number that was given out.
pub fn lower(series: i64, key: &Key, value: i64) -> Result<(), SpiError> {
    counters_of(key.key_type()).lower.run(&[series.into(), datum(key), value.into()])
}

/// The place of a row's argument among all.
fn place(row: &SpiHeapTupleData<'_>) -> Result<usize, SpiError> {
    let place = row.get::<i64>(1)?.unwrap_or_default();
    Ok(usize::try_from(place).unwrap_or_default().wrapping_sub(1))
}

fn series_of<'a>(all: impl Iterator<Item = i64>) -> DatumWithOid<'a> {
    numbers(all)
}

fn numbers<'a>(all: impl Iterator<Item = i64>) -> DatumWithOid<'a> {
    all.collect::<Vec<_>>().into()
}

fn days<'a>(all: impl Iterator<Item = i32>) -> DatumWithOid<'a> {
    all.collect::<Vec<_>>().into()
}

/// Keys, which are all of this type.
fn keys<'a, 'k>(of: KeyType, all: impl Iterator<Item = &'k Key>) -> DatumWithOid<'a> {
    match of {
        KeyType::Bigint => {
            let all = all.map(|key| if let Key::Bigint(number) = key { *number } else { 0 });
            all.collect::<Vec<_>>().into()
        }
        KeyType::Text => {
            let all = all.map(|key| if let Key::Text(bytes) = key { &**bytes } else { &[] });
            all.map(TextOut::of_bytes).collect::<Vec<_>>().into()
        }
        KeyType::Uuid => {
            let all = all.map(|key| if let Key::Uuid(uuid) = key { *uuid } else { 0 });
            all.map(|uuid| Uuid::from_bytes(uuid.to_be_bytes())).collect::<Vec<_>>().into()
        }
    }
}

/// The key in the second column of a row.
fn key_of(of: KeyType, row: &SpiHeapTupleData<'_>) -> Result<Key, SpiError> {
    Ok(match of {
        KeyType::Bigint => Key::Bigint(row.get::<i64>(2)?.unwrap_or_default()),
        KeyType::Text => Key::Text(row.get::<RowBytes>(2)?.map(|bytes| bytes.0).unwrap_or_default()),
        KeyType::Uuid => Key::Uuid(row.get::<Uuid>(2)?.map_or(0, |uuid| u128::from_be_bytes(*uuid))),
    })
}
