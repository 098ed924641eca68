//! The counters of dense series in their tables, many at a time: reserving numbers, and writing back what is left over.
//!
//! A row says up to which number all are reserved. The statements look for each row by its key, whatever the planner thinks of the
//! table: a worker has [`PLANS`] set.

use super::series::{self as definitions, datum};
use super::{citus, registry};
use crate::pg::catalog::Source;
use crate::pg::encoding::to_utf8;
use crate::pg::process::PerProcess;
use crate::pg::statement::Statement;
use crate::pg::text::{RowBytes, TextOut};
use pgrx::Uuid;
use pgrx::datum::DatumWithOid;
use pgrx::pg_sys::BuiltinOid::{
    INT4ARRAYOID, INT8ARRAYOID, INT8OID, TEXTARRAYOID, TEXTOID, UUIDARRAYOID, UUIDOID,
};
use pgrx::spi::{SpiError, SpiHeapTupleData};
use rustc_hash::{FxHashMap, FxHashSet};
use snowflake_ids_core::number_registry::KeyRow;
use snowflake_ids_core::series::dense::{
    Definition, Found, Origin, Reserve, Reserved, RowKey, Rows, WriteBack,
};
use snowflake_ids_core::series::{Key, KeyType};
use snowflake_ids_core::wire::{KeyReached, Registry, SharedKey, SharedTerms};
use std::cell::Cell;
use std::ffi::CStr;

/// How a worker's plans look for rows: one by one, by the index. A plan is kept, and one that was best while the table was empty looks
/// at all of it. Nor is one made anew for each list of keys: for a few it seems cheaper, by what the planner takes an array of unknown
/// length for, and never is.
pub const PLANS: [(&CStr, &CStr); 5] = [
    (c"plan_cache_mode", c"force_generic_plan"),
    (c"enable_seqscan", c"off"),
    (c"enable_bitmapscan", c"off"),
    (c"enable_hashjoin", c"off"),
    (c"enable_mergejoin", c"off"),
];

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

/// The rows that are to be written, as [`said`] gives them.
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
                    " FROM ROWS FROM (pg_catalog.unnest($1), pg_catalog.unnest($2)) WITH ORDINALITY AS w (series, key, place)
                     JOIN snowflake_ids.",
                    $table,
                    " AS k ON k.series OPERATOR(pg_catalog.=) w.series AND k.key OPERATOR(pg_catalog.=) w.key"
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
                    "SELECT w.place
                     FROM ROWS FROM (pg_catalog.unnest($1), pg_catalog.unnest($2)) WITH ORDINALITY AS w (series, key, place)
                     JOIN snowflake_ids.",
                    $table,
                    " AS k ON k.series OPERATOR(pg_catalog.=) w.series AND k.key OPERATOR(pg_catalog.=) w.key
                     FOR NO KEY UPDATE OF k SKIP LOCKED"
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
                    ", k.version FROM ROWS FROM (pg_catalog.unnest($1), pg_catalog.unnest($2)) WITH ORDINALITY AS w (series, key, place)
                     JOIN snowflake_ids.",
                    $table,
                    " AS k ON k.series OPERATOR(pg_catalog.=) w.series AND k.key OPERATOR(pg_catalog.=) w.key"
                ),
                &[INT8ARRAYOID, $many],
            ),
            read_free: Statement::new(
                concat!(
                    "SELECT w.place, k.last_value, ",
                    day!("k"),
                    ", k.version
                     FROM ROWS FROM (pg_catalog.unnest($1), pg_catalog.unnest($2)) WITH ORDINALITY AS w (series, key, place)
                     JOIN snowflake_ids.",
                    $table,
                    " AS k ON k.series OPERATOR(pg_catalog.=) w.series AND k.key OPERATOR(pg_catalog.=) w.key
                     FOR NO KEY UPDATE OF k SKIP LOCKED"
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
pub(super) struct Counters {
    /// Reserves numbers of those that have rows that are not locked.
    extend: Statement,
    /// Makes rows of those that have none.
    begin: Statement,
    /// What rows say, locked or not.
    pub(super) look: Statement,
    /// Sets rows to what was given out.
    write_back: Statement,
    /// Locks those rows that no other transaction has locked.
    lock_free: Statement,
    /// Locks a row.
    lock: Statement,
    /// Sets a row that is locked.
    lower: Statement,
    /// What rows say, and their versions, where several servers count: of all,
    received: Statement,
    /// of those that no other transaction has locked, which this one locks,
    pub(super) read_free: Statement,
    /// and of one, which is waited for and locked.
    pub(super) read: Statement,
    /// Makes rows that say this, where there are none,
    pub(super) make: Statement,
    /// and has rows say it in any case.
    pub(super) put: Statement,
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

static SERIES: Statement = Statement::new(
    "SELECT s.id, s.start, s.max_value, s.step, s.max_step FROM snowflake_ids.series AS s
     WHERE s.id OPERATOR(pg_catalog.=) ANY ($1) AND s.kind OPERATOR(pg_catalog.=) 'dense' FOR KEY SHARE SKIP LOCKED",
    &[INT8ARRAYOID],
);
static SERIES_UNLOCKED: Statement = Statement::new(
    "SELECT s.id FROM snowflake_ids.series AS s WHERE s.id OPERATOR(pg_catalog.=) ANY ($1)",
    &[INT8ARRAYOID],
);

static TERMS: Statement = Statement::new(
    "SELECT s.id, pg_catalog.convert_to(s.name, 'UTF8'), s.key_type, s.start, s.reset, pg_catalog.convert_to(s.time_zone, 'UTF8')
     FROM snowflake_ids.series AS s WHERE s.id OPERATOR(pg_catalog.=) ANY ($1)",
    &[INT8ARRAYOID],
);

/// The table of series, and those of counters in the order of the types of keys.
type Beside = (Source, [Option<Source>; KeyType::ALL.len()]);

/// The table of series that was found last, and those of counters beside it: they go together.
static FOUND: PerProcess<Cell<Option<Beside>>> = PerProcess::new(Cell::new(None));

/// The table of series of this database; None where the extension is not. Only within a transaction. To look whether a table is the
/// extension's costs more than a row, and is done once for each.
pub fn table() -> Option<Source> {
    let named = definitions::named()?;
    if FOUND.get().is_none_or(|(found, _)| found != named) {
        let table = definitions::table()?;
        FOUND.set(Some((table, KeyType::ALL.map(definitions::counters))));
    }
    Some(named)
}

/// The table of counters of a type of keys, once that of series was found.
fn table_of(of: KeyType) -> Option<Source> {
    let (_, counters) = FOUND.get()?;
    KeyType::ALL.iter().zip(counters).find(|(one, _)| **one == of)?.1
}

/// The tables in a worker's transaction, as the owner of the table of series; None where the extension was dropped.
pub struct Tables(pub Option<Source>);

impl Rows for Tables {
    type Error = SpiError;

    fn source(&mut self) -> Option<u32> {
        self.0.map(Source::number)
    }

    fn series(&mut self, ids: &[i64]) -> Result<Vec<Found>, SpiError> {
        let one = |row: &SpiHeapTupleData<'_>| {
            let number = |place: usize| row.get::<i64>(place).map(Option::unwrap_or_default);
            let step = |place: usize| {
                row.get::<i32>(place).map(|step| step.and_then(|step| u32::try_from(step).ok()).unwrap_or(1))
            };
            let (start, max_value) = (number(2)?, number(3)?);
            let found = Found::There(Definition { start, max_value, step: step(4)?, max_step: step(5)? });
            Ok((number(1)?, found))
        };
        let mut found: FxHashMap<i64, Found> = SERIES.all(&[ids.to_vec().into()], one)?.into_iter().collect();
        let rest: Vec<i64> = ids.iter().filter(|id| !found.contains_key(*id)).copied().collect();
        if !rest.is_empty() {
            let locked = SERIES_UNLOCKED.all(&[rest.into()], |row| row.get::<i64>(1))?;
            found.extend(locked.into_iter().flatten().map(|id| (id, Found::Locked)));
        }
        Ok(ids.iter().map(|id| found.get(id).copied().unwrap_or(Found::Unknown)).collect())
    }

    fn lock(&mut self, rows: &[RowKey]) -> Result<Vec<bool>, SpiError> {
        by_type(rows, true, |counters, of, rows| {
            let mut free = vec![false; rows.len()];
            let locked = counters.lock_free.all(&[series_of(rows), keys(of, rows)], place)?;
            mark(&mut free, locked.into_iter().map(|place| (place, true)));
            let rest: Vec<usize> = (0..rows.len()).filter(|place| free.get(*place) == Some(&false)).collect();
            if rest.is_empty() {
                return Ok(free);
            }
            // Those that are there are locked.
            let others: Vec<&RowKey> = rest.iter().filter_map(|place| rows.get(*place).copied()).collect();
            let there = counters.look.all(&[series_of(&others), keys(of, &others)], place)?;
            mark(&mut free, rest.iter().map(|place| (*place, true)));
            mark(&mut free, there.into_iter().filter_map(|other| Some((*rest.get(other)?, false))));
            Ok(free)
        })
    }

    fn write_back(&mut self, rows: &[WriteBack]) -> Result<(), SpiError> {
        by_type(rows, (), |counters, of, rows| {
            let arguments = [
                series_of(rows),
                keys(of, rows),
                days(rows.iter().map(|row| row.day)),
                numbers(rows.iter().map(|row| row.given)),
                numbers(rows.iter().map(|row| row.limit)),
            ];
            counters.write_back.run(&arguments)?;
            Ok(vec![(); rows.len()])
        })
        .map(drop)
    }

    fn reserve(&mut self, reserves: &[Reserve]) -> Result<Vec<Reserved>, SpiError> {
        by_type(reserves, Reserved::Locked, reserve)
    }

    fn origin(&mut self) -> Result<Origin, SpiError> {
        let Some(table) = self.0 else { return Ok(Origin::Nowhere) };
        table.as_owner(|| {
            registry::keep_sites()?;
            let mut sites = registry::sites()?.into_iter();
            Ok(match (sites.next(), sites.next()) {
                (None, _) if citus::is_worker()? => Origin::Nowhere,
                (None, _) => Origin::Here,
                (Some(site), None) => Origin::There(site),
                (Some(_), Some(_)) => Origin::Nowhere,
            })
        })
    }

    fn shared(&mut self, ids: &[i64]) -> Result<Vec<Option<(String, SharedTerms)>>, SpiError> {
        terms(ids)
    }

    fn shared_key(&mut self, key: &Key) -> Option<SharedKey> {
        SharedKey::of(key, to_utf8)
    }

    fn received(&mut self, rows: &[RowKey]) -> Result<Vec<Option<KeyRow>>, SpiError> {
        by_type(rows, None, |counters, of, rows| {
            let mut found = vec![None; rows.len()];
            let there = counters
                .received
                .all(&[series_of(rows), keys(of, rows)], |row| Ok((place(row)?, Some(key_row(row)?))))?;
            mark(&mut found, there.into_iter());
            Ok(found)
        })
    }

    fn receive(&mut self, of: &Registry, rows: &[(RowKey, KeyRow)]) -> Result<(), SpiError> {
        if let Some(table) = self.0 {
            table.as_owner(|| registry::note_seen(of))?;
        }
        by_type(rows, (), |counters, of, rows| {
            counters.put.run(&said(of, rows))?;
            Ok(vec![(); rows.len()])
        })
        .map(drop)
    }
}

impl OfRow for (RowKey, KeyRow) {
    fn row(&self) -> &RowKey {
        &self.0
    }
}

/// What rows are to say, as arguments.
pub(super) fn said<'a>(of: KeyType, rows: &[&(RowKey, KeyRow)]) -> [DatumWithOid<'a>; 5] {
    [
        series_of(rows),
        keys(of, rows),
        days(rows.iter().map(|(_, row)| row.reached.day)),
        numbers(rows.iter().map(|(_, row)| row.reached.last)),
        rows.iter().map(|(_, row)| row.version).collect::<Vec<Option<i64>>>().into(),
    ]
}

/// What a row says, in its second to fourth columns.
pub(super) fn key_row(row: &SpiHeapTupleData<'_>) -> Result<KeyRow, SpiError> {
    let (last, day) = (row.get::<i64>(2)?.unwrap_or_default(), row.get::<i32>(3)?.unwrap_or_default());
    Ok(KeyRow { reached: KeyReached { last, day }, version: row.get::<i64>(4)? })
}

/// What series are to registries, in this order; None for one that is not there, or whose name other servers could not know.
fn terms(ids: &[i64]) -> Result<Vec<Option<(String, SharedTerms)>>, SpiError> {
    let found = TERMS.all(&[ids.to_vec().into()], |row| Ok((row.get::<i64>(1)?, terms_of(row)?)))?;
    let found: FxHashMap<Option<i64>, _> = found.into_iter().collect();
    Ok(ids.iter().map(|id| found.get(&Some(*id)).cloned().flatten()).collect())
}

/// The name of a row, and its terms.
pub(super) fn terms_of(row: &SpiHeapTupleData<'_>) -> Result<Option<(String, SharedTerms)>, SpiError> {
    let text = |place: usize| {
        row.get::<Vec<u8>>(place).map(|bytes| String::from_utf8(bytes.unwrap_or_default()).ok())
    };
    let (name, time_zone) = (text(2)?, text(6)?.unwrap_or_default());
    let reset = row.get::<String>(5)?;
    let terms = SharedTerms {
        key_type: row.get::<String>(3)?.unwrap_or_default(),
        start: row.get::<i64>(4)?.unwrap_or_default(),
        time_zone: if reset.is_some() { time_zone } else { String::new() },
        reset,
    };
    Ok(name.map(|name| (name, terms)))
}

/// Something that is about a row.
pub(super) trait OfRow {
    fn row(&self) -> &RowKey;
}

impl OfRow for RowKey {
    fn row(&self) -> &RowKey {
        self
    }
}

impl OfRow for WriteBack {
    fn row(&self) -> &RowKey {
        &self.row
    }
}

impl OfRow for Reserve {
    fn row(&self) -> &RowKey {
        &self.row
    }
}

/// Does something with the keys of each type, as the owner of their table; what came of each, in the order of all.
pub(super) fn by_type<T: OfRow, R: Clone>(
    all: &[T],
    otherwise: R,
    mut work: impl FnMut(&Counters, KeyType, &[&T]) -> Result<Vec<R>, SpiError>,
) -> Result<Vec<R>, SpiError> {
    let mut done = vec![otherwise; all.len()];
    for of in KeyType::ALL {
        let (places, some): (Vec<usize>, Vec<&T>) =
            all.iter().enumerate().filter(|(_, one)| one.row().key.key_type() == of).unzip();
        let Some(table) = (if some.is_empty() { None } else { table_of(of) }) else { continue };
        let results = table.as_owner_qualified(|| work(counters_of(of), of, &some))?;
        mark(&mut done, places.into_iter().zip(results));
    }
    Ok(done)
}

pub(super) fn mark<R>(all: &mut [R], some: impl Iterator<Item = (usize, R)>) {
    for (place, value) in some {
        if let Some(one) = all.get_mut(place) {
            *one = value;
        }
    }
}

/// Reserves numbers of keys of one type, in the present transaction.
fn reserve(counters: &Counters, of: KeyType, all: &[&Reserve]) -> Result<Vec<Reserved>, SpiError> {
    let mut done: Vec<Option<Reserved>> = vec![None; all.len()];
    let arguments = [
        series_of(all),
        keys(of, all),
        days(all.iter().map(|one| one.day)),
        numbers(all.iter().map(|one| (i64::from(one.waiting) + i64::from(one.extra)).max(1))),
        numbers(all.iter().map(|one| one.start)),
        numbers(all.iter().map(|one| one.max_value)),
    ];
    let extended = counters.extend.all(&arguments, |row| {
        let number = |place: usize| row.get::<i64>(place).map(Option::unwrap_or_default);
        let day = row.get::<i32>(4)?.unwrap_or_default();
        Ok((place(row)?, Some(Reserved::Numbers { first: number(2)? + 1, last: number(3)?, day })))
    })?;
    mark(&mut done, extended.into_iter());
    begin(counters, of, all, &mut done)?;
    look(counters, of, all, &mut done)?;
    Ok(done.into_iter().map(|done| done.unwrap_or(Reserved::Locked)).collect())
}

/// Those of which nothing came yet, and what they are among all.
fn open<'a>(all: &[&'a Reserve], done: &[Option<Reserved>]) -> (Vec<usize>, Vec<&'a Reserve>) {
    let each = all.iter().zip(done).enumerate().filter(|(_, (_, done))| done.is_none());
    each.map(|(place, (one, _))| (place, *one)).unzip()
}

/// Makes rows of those that have none. They get as many numbers as calls wait: of a key that is used once nothing is left over.
fn begin(
    counters: &Counters,
    of: KeyType,
    all: &[&Reserve],
    done: &mut [Option<Reserved>],
) -> Result<(), SpiError> {
    let last = |one: &Reserve| one.max_value.min((one.start - 1).saturating_add(one.waiting.into()));
    let (places, open) = open(all, done);
    let (places, new): (Vec<usize>, Vec<&Reserve>) =
        places.into_iter().zip(open).filter(|(_, one)| one.waiting > 0).unzip();
    if new.is_empty() {
        return Ok(());
    }
    let arguments = [
        series_of(&new),
        keys(of, &new),
        days(new.iter().map(|one| one.day)),
        numbers(new.iter().map(|one| last(one))),
    ];
    let made = counters.begin.all(&arguments, |row| {
        Ok(RowKey { series: row.get::<i64>(1)?.unwrap_or_default(), key: key_of(of, row)? })
    })?;
    let made: FxHashSet<(i64, Key)> = made.into_iter().map(|row| (row.series, row.key)).collect();
    let is_made = |one: &&Reserve| made.contains(&(one.row.series, one.row.key.clone()));
    let made = places.into_iter().zip(new).filter(|(_, one)| is_made(one));
    let numbers = |one: &Reserve| Reserved::Numbers { first: one.start, last: last(one), day: one.day };
    mark(done, made.map(|(place, one)| (place, Some(numbers(one)))));
    Ok(())
}

/// Tells those that have no row, or no numbers left, from those that are locked.
fn look(
    counters: &Counters,
    of: KeyType,
    all: &[&Reserve],
    done: &mut [Option<Reserved>],
) -> Result<(), SpiError> {
    let (places, open) = open(all, done);
    if open.is_empty() {
        return Ok(());
    }
    let says = counters.look.all(&[series_of(&open), keys(of, &open)], |row| {
        Ok((place(row)?, (row.get::<i64>(2)?.unwrap_or_default(), row.get::<i32>(3)?.unwrap_or_default())))
    })?;
    let says: FxHashMap<usize, (i64, i32)> = says.into_iter().collect();
    let each = places.into_iter().zip(open).enumerate().map(|(at, (place, one))| {
        let came = match says.get(&at) {
            None if one.waiting == 0 => Reserved::Nothing,
            Some((last, day)) if *last >= one.max_value && *day >= one.day => Reserved::Exhausted,
            _ => Reserved::Locked,
        };
        (place, Some(came))
    });
    mark(done, each);
    Ok(())
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
pub(super) fn place(row: &SpiHeapTupleData<'_>) -> Result<usize, SpiError> {
    let place = row.get::<i64>(1)?.unwrap_or_default();
    Ok(usize::try_from(place).unwrap_or_default().wrapping_sub(1))
}

pub(super) fn series_of<'a, T: OfRow>(all: &[&T]) -> DatumWithOid<'a> {
    numbers(all.iter().map(|one| one.row().series))
}

fn numbers<'a>(all: impl Iterator<Item = i64>) -> DatumWithOid<'a> {
    all.collect::<Vec<_>>().into()
}

fn days<'a>(all: impl Iterator<Item = i32>) -> DatumWithOid<'a> {
    all.collect::<Vec<_>>().into()
}

/// Keys, which are all of this type.
pub(super) fn keys<'a, T: OfRow>(of: KeyType, all: &[&T]) -> DatumWithOid<'a> {
    let all = all.iter().map(|one| &one.row().key);
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
pub(super) fn key_of(of: KeyType, row: &SpiHeapTupleData<'_>) -> Result<Key, SpiError> {
    Ok(match of {
        KeyType::Bigint => Key::Bigint(row.get::<i64>(2)?.unwrap_or_default()),
        KeyType::Text => {
            Key::Text(row.get::<RowBytes>(2)?.map(|bytes| bytes.0.into_vec()).unwrap_or_default().into())
        }
        KeyType::Uuid => Key::Uuid(row.get::<Uuid>(2)?.map_or(0, |uuid| u128::from_be_bytes(*uuid))),
    })
}
