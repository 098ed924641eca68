//! The table of worker ids, through SQL. A row is changed by one statement that compares what the row says with what was
//! seen: two who want the same id never both get it.

use crate::pg::encoding::legible;
use crate::pg::report::raise;
use crate::pg::statement::Statement;
use crate::pg::time::{from_sql, to_sql};
use pgrx::datum::{DatumWithOid, TimestampWithTimeZone};
use pgrx::pg_sys::BuiltinOid::{BOOLOID, INT4OID, INT8OID, TEXTOID, TIMESTAMPTZOID};
use pgrx::spi::{SpiError, SpiHeapTupleData};
use snowflake_ids_core::UnixMicros;
use snowflake_ids_core::clock::micros;
use snowflake_ids_core::error::excerpt;
use snowflake_ids_core::lease::{Choice, Holder, Row};
use snowflake_ids_core::wire::Entry;

/// Writes a row where there is none; what to do about one that there is follows.
macro_rules! put_sql {
    ($($otherwise:tt)+) => {
        concat!(
            "INSERT INTO snowflake_ids.worker_lease AS w
                 (datacenter_id, worker_id, token, expires_at, clock, leased_at, renewed_at, last_time,
                  system_identifier, timeline, host, port, data_directory, layout)
             VALUES ($1, $2, $3, $4, $5, $5, $5, $6, $7, $8, $9, $10, $11, $12)
             ON CONFLICT (datacenter_id, worker_id) DO ",
            $($otherwise)+,
            " RETURNING expires_at"
        )
    };
}

/// Writes a row where there is none, or over one that is still as it was seen.
macro_rules! put_over_sql {
    ($more:literal, $condition:literal) => {
        put_sql!(concat!(
            "UPDATE SET token = EXCLUDED.token, expires_at = greatest(w.expires_at, EXCLUDED.expires_at),
                 clock = EXCLUDED.clock, renewed_at = EXCLUDED.renewed_at, released_at = NULL,
                 last_time = EXCLUDED.last_time, system_identifier = EXCLUDED.system_identifier,
                 timeline = EXCLUDED.timeline, host = EXCLUDED.host, port = EXCLUDED.port,
                 data_directory = EXCLUDED.data_directory, layout = EXCLUDED.layout",
            $more,
            " WHERE ",
            $condition
        ))
    };
}

/// The types of what [`arguments`] gives, and of those that follow.
macro_rules! entry_types {
    ($($more:expr),*) => {
        &[
            INT4OID, INT4OID, INT8OID, TIMESTAMPTZOID, TIMESTAMPTZOID, TIMESTAMPTZOID, INT8OID, INT4OID, TEXTOID,
            INT4OID, TEXTOID, TEXTOID, $($more),*
        ]
    };
}

static ADD: Statement = Statement::new(put_sql!("NOTHING"), entry_types!());

static RENEW: Statement = Statement::new(put_over_sql!("", "w.token IN ($3, $13)"), entry_types!(INT8OID));

static TAKE_OVER: Statement = Statement::new(
    put_over_sql!(
        ", leased_at = greatest(EXCLUDED.leased_at, w.expires_at)",
        "w.token IS NOT DISTINCT FROM $13 AND w.expires_at = $14"
    ),
    entry_types!(INT8OID, TIMESTAMPTZOID),
);

/// What there is to know before one is chosen: the highest id, and the latest time that another server told of whose
/// lease still holds.
static OVERVIEW: Statement = Statement::new(
    "SELECT max(worker_id), max(last_time) FILTER (WHERE expires_at > $2 AND system_identifier <> $3)
     FROM snowflake_ids.worker_lease WHERE datacenter_id = $1",
    &[INT4OID, TIMESTAMPTZOID, INT8OID],
);

/// The rows of a datacenter; of very many that are not looked at, only those that are ours.
static ROWS: Statement = Statement::new(
    "SELECT worker_id, token, expires_at, leased_at FROM snowflake_ids.worker_lease
     WHERE datacenter_id = $1 AND worker_id >= 0 AND ($2 OR token IN ($3, $4))
     ORDER BY worker_id",
    &[INT4OID, BOOLOID, INT8OID, INT8OID],
);

static RELEASE: Statement = Statement::new(
    "UPDATE snowflake_ids.worker_lease
     SET token = NULL, expires_at = least(expires_at, $4), released_at = clock_timestamp()
     WHERE datacenter_id = $1 AND worker_id = $2 AND token = $3",
    &[INT4OID, INT4OID, INT8OID, TIMESTAMPTZOID],
);

static HOLDERS: Statement = Statement::new(
    "SELECT worker_id, convert_to(coalesce(left(host, 255), '?'), 'UTF8'), port, expires_at
     FROM snowflake_ids.worker_lease WHERE datacenter_id = $1 AND worker_id BETWEEN 0 AND $2 AND expires_at > $4
     ORDER BY worker_id LIMIT $3",
    &[INT4OID, INT4OID, INT4OID, TIMESTAMPTZOID],
);

static HELD: Statement = Statement::new(
    "SELECT count(*) FROM snowflake_ids.worker_lease
     WHERE datacenter_id = $1 AND expires_at > $2 AND released_at IS NULL AND system_identifier = $3 AND timeline = $4
         AND host = $5 AND port IS NOT DISTINCT FROM $6 AND data_directory = $7
         AND NOT coalesce(token IN ($8, $9), false)",
    &[INT4OID, TIMESTAMPTZOID, INT8OID, INT4OID, TEXTOID, INT4OID, TEXTOID, INT8OID, INT8OID],
);

/// Whether the row of a worker id is written as this entry says, and what its expiry is then; None where it is not as it
/// was seen any more.
///
/// # Errors
/// Those of SPI; SQL errors are thrown.
pub fn take(choice: &Choice, entry: &Entry, now: UnixMicros) -> Result<Option<UnixMicros>, SpiError> {
    let mut arguments = arguments(entry, choice.worker(), now);
    match choice {
        Choice::New { .. } => ADD.first(&arguments, expiry),
        Choice::Own(row) => {
            arguments.push(row.token.into());
            RENEW.first(&arguments, expiry)
        }
        Choice::Free(row) => {
            arguments.extend([row.token.into(), stamp(row.expiry).into()]);
            TAKE_OVER.first(&arguments, expiry)
        }
    }
}

/// Renews the lease of a worker id whose row has this token or already the entry's; None where it has another, and belongs
/// to somebody else. A row that is gone is written again: the id is ours until the expiry all the same.
///
/// # Errors
/// Those of SPI; SQL errors are thrown.
pub fn renew(
    worker: u32,
    token: i64,
    entry: &Entry,
    now: UnixMicros,
) -> Result<Option<UnixMicros>, SpiError> {
    let mut arguments = arguments(entry, worker, now);
    arguments.push(token.into());
    RENEW.first(&arguments, expiry)
}

/// Gives a worker id back that has this token: another may have it from an instant on.
///
/// # Errors
/// Those of SPI; SQL errors are thrown.
pub fn release(datacenter: u32, worker: u32, token: i64, from: UnixMicros) -> Result<(), SpiError> {
    RELEASE.run(&[number(datacenter), number(worker), token.into(), stamp(from).into()])
}

/// The highest worker id that has a row, and the latest time that another server told of whose lease still holds.
///
/// # Errors
/// Those of SPI; SQL errors are thrown.
pub fn overview(entry: &Entry, now: UnixMicros) -> Result<(Option<u32>, Option<UnixMicros>), SpiError> {
    let arguments = [number(entry.datacenter), stamp(now).into(), entry.holder.system_identifier.into()];
    let read = |row: &SpiHeapTupleData<'_>| Ok((worker_of(row)?, instant(row, 2)?));
    Ok(OVERVIEW.first(&arguments, read)?.unwrap_or_default())
}

/// How many worker ids of its datacenter this server has that are not free yet, but for those with these tokens.
///
/// # Errors
/// Those of SPI; SQL errors are thrown.
pub fn held(entry: &Entry, but: [Option<i64>; 2], now: UnixMicros) -> Result<i64, SpiError> {
    let Holder { system_identifier, timeline, host, port, directory, .. } = &entry.holder;
    let arguments = [
        number(entry.datacenter),
        stamp(now).into(),
        (*system_identifier).into(),
        number(*timeline),
        legible(host).into(),
        (*port).into(),
        legible(directory).into(),
        but[0].into(),
        but[1].into(),
    ];
    Ok(HELD.first(&arguments, |row| row.get::<i64>(1))?.flatten().unwrap_or_default())
}

/// The rows of a datacenter in the order of their worker ids: all of them, or only those with these tokens.
///
/// # Errors
/// Those of SPI; SQL errors are thrown.
pub fn rows(datacenter: u32, all: bool, own: [Option<i64>; 2]) -> Result<Vec<Row>, SpiError> {
    ROWS.all(&[number(datacenter), all.into(), own[0].into(), own[1].into()], |row| {
        Ok(Row {
            worker: worker_of(row)?.unwrap_or(u32::MAX),
            token: row.get(2)?,
            expiry: instant(row, 3)?.unwrap_or(NEVER),
            leased: instant(row, 4)?.unwrap_or(NEVER),
        })
    })
}

/// The first `limit` of those who have a worker id from 0 to `last`, each as a text.
///
/// # Errors
/// Those of SPI; SQL errors are thrown.
pub fn holders(datacenter: u32, last: u32, limit: i32, now: UnixMicros) -> Result<Vec<String>, SpiError> {
    HOLDERS.all(&[number(datacenter), number(last), limit.into(), stamp(now).into()], |row| {
        let host = row.get::<Vec<u8>>(2)?.unwrap_or_default();
        let port = row.get::<i32>(3)?.map(|port| format!(" port {port}")).unwrap_or_default();
        Ok(format!(
            "{} by {}{port} until {}",
            worker_of(row)?.unwrap_or_default(),
            excerpt(&String::from_utf8_lossy(&host)),
            instant(row, 4)?.unwrap_or(NEVER)
        ))
    })
}

/// An instant that does not come.
const NEVER: UnixMicros = UnixMicros(i64::MAX);

/// What a row is to say; `now` is the registry's clock.
fn arguments(entry: &Entry, worker: u32, now: UnixMicros) -> Vec<DatumWithOid<'static>> {
    let Holder { system_identifier, timeline, host, port, directory, layout } = &entry.holder;
    vec![
        number(entry.datacenter),
        number(worker),
        entry.token.into(),
        stamp(now.plus(micros(entry.duration))).into(),
        stamp(entry.now).into(),
        entry.last.map(stamp).into(),
        (*system_identifier).into(),
        number(*timeline),
        legible(host).into(),
        (*port).into(),
        legible(directory).into(),
        legible(layout).into(),
    ]
}

fn number(number: u32) -> DatumWithOid<'static> {
    number.cast_signed().into()
}

fn stamp(at: UnixMicros) -> TimestampWithTimeZone {
    to_sql(at).unwrap_or_else(|report| raise(report))
}

fn worker_of(row: &SpiHeapTupleData<'_>) -> Result<Option<u32>, SpiError> {
    Ok(row.get::<i32>(1)?.map(i32::cast_unsigned))
}

fn expiry(row: &SpiHeapTupleData<'_>) -> Result<UnixMicros, SpiError> {
    Ok(instant(row, 1)?.unwrap_or(NEVER))
}

fn instant(row: &SpiHeapTupleData<'_>, column: usize) -> Result<Option<UnixMicros>, SpiError> {
    let at = row.get::<TimestampWithTimeZone>(column)?;
    Ok(at.map(|at| from_sql(at).unwrap_or(NEVER)))
}
