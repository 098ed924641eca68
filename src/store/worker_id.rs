//! SQL on the table of worker ids: the core's `WorkerIdRows`, with one statement for each method.

use crate::pg::encoding::legible;
use crate::pg::random;
use crate::pg::report::raise;
use crate::pg::statement::Statement;
use crate::pg::time::{from_sql, to_sql};
use crate::store::fork;
use pgrx::datum::{DatumWithOid, TimestampWithTimeZone};
use pgrx::spi::{SpiError, SpiHeapTupleData};
use snowflake_ids_core::UnixMicros;
use snowflake_ids_core::registry::wire::Entry;
use snowflake_ids_core::registry::worker_ids::{HeldWorkerId, WorkerIdRows};
use snowflake_ids_core::server::lease::{Holder, Lease, LeaseRow};
use snowflake_ids_core::server::state::{Chosen, First};

static INSERT: Statement = Statement::new(
    "INSERT INTO snowflake_ids.worker_lease
         (datacenter_id, worker_id, token, expires_at, leased_at, clock, renewed_at, last_time, system_identifier, timeline,
          host, port, data_directory, layout)
     VALUES ($1, $2, $3, $4, $5, $6, $6, $7, $8, $9, $10, $11, $12, $13)
     ON CONFLICT (datacenter_id, worker_id) DO NOTHING RETURNING worker_id",
);

static UPDATE: Statement = Statement::new(
    "UPDATE snowflake_ids.worker_lease
     SET token = $3, expires_at = $4, leased_at = $5, clock = $6, renewed_at = $6, released_at = NULL, last_time = $7,
         system_identifier = $8, timeline = $9, host = $10, port = $11, data_directory = $12, layout = $13
     WHERE datacenter_id = $1 AND worker_id = $2",
);

static LOCK: Statement = Statement::new(
    "SELECT worker_id, token, expires_at, leased_at FROM snowflake_ids.worker_lease
     WHERE datacenter_id = $1 AND worker_id = $2 FOR UPDATE",
);

/// The highest worker id of a datacenter, and the latest time in ids of other clusters that hold leases in this datacenter.
static OVERVIEW: Statement = Statement::new(
    "SELECT max(worker_id), max(last_time) FILTER (WHERE expires_at > $2 AND system_identifier <> $3)
     FROM snowflake_ids.worker_lease WHERE datacenter_id = $1",
);

/// The rows of a datacenter. If `$2` is false, only the rows with one of the two lease tokens `$3` and `$4`.
static ROWS: Statement = Statement::new(
    "SELECT worker_id, token, expires_at, leased_at FROM snowflake_ids.worker_lease
     WHERE datacenter_id = $1 AND worker_id >= 0 AND ($2 OR token IN ($3, $4))
     ORDER BY worker_id",
);

static GIVE_BACK: Statement = Statement::new(
    "UPDATE snowflake_ids.worker_lease
     SET token = NULL, expires_at = $3, released_at = clock_timestamp()
     WHERE datacenter_id = $1 AND worker_id = $2",
);

static FORMER_LEASES_UNTIL: Statement =
    Statement::new("SELECT max(former_until) FROM snowflake_ids.worker_lease");

static RECORD_FORMER_LEASES: Statement = Statement::new(
    "UPDATE snowflake_ids.worker_lease SET former_until = $3 WHERE datacenter_id = $1 AND worker_id = $2",
);

static HOLDERS: Statement = Statement::new(
    "SELECT worker_id, convert_to(coalesce(left(host, 255), '?'), 'UTF8'), port, expires_at
     FROM snowflake_ids.worker_lease WHERE datacenter_id = $1 AND worker_id BETWEEN 0 AND $2 AND expires_at > $4
     ORDER BY worker_id LIMIT $3",
);

static CACHE: Statement = Statement::new(
    "SELECT count(*) FROM snowflake_ids.worker_lease
     WHERE datacenter_id = $1 AND expires_at > $2 AND released_at IS NULL AND system_identifier = $3 AND timeline = $4
         AND host = $5 AND port IS NOT DISTINCT FROM $6 AND data_directory = $7
         AND NOT coalesce(token IN ($8, $9), false)",
);

static OTHERS: Statement = Statement::new(
    "SELECT FROM snowflake_ids.worker_lease
     WHERE expires_at > $1 AND (token IS NULL OR token IS DISTINCT FROM $2 AND token IS DISTINCT FROM $3) LIMIT 1",
);

/// Returns whether another server holds a lease of a worker id. `own` are this server's lease tokens. A lease that was given
/// back counts until it expires.
pub fn has_others(own: [Option<i64>; 2], now: UnixMicros) -> Result<bool, SpiError> {
    Ok(OTHERS.first(&[stamp(now).into(), own[0].into(), own[1].into()], |_| Ok(()))?.is_some())
}

static CHOSEN: Statement = Statement::new(
    "SELECT worker_id, datacenter_id, timeline, home, system_identifier FROM snowflake_ids.worker_chosen ORDER BY timeline, chosen_at",
);

static RECORD_CHOSEN: Statement = Statement::new(
    "INSERT INTO snowflake_ids.worker_chosen (datacenter_id, worker_id, system_identifier, timeline, home) VALUES ($1, $2, $3, $4, $5)
     ON CONFLICT DO NOTHING",
);

/// Returns the worker ids that servers had chosen themselves before the extension was created. The servers belong to this
/// cluster, or to a cluster from which this cluster was upgraded.
pub fn chosen() -> Result<Vec<Chosen>, SpiError> {
    CHOSEN.all(&[], |row| {
        let [datacenter, timeline] =
            [row.get::<i32>(2)?, row.get::<i32>(3)?].map(|value| value.unwrap_or(1).cast_unsigned());
        let first = First { datacenter, worker_id: worker_id_of(row)?.unwrap_or_default(), timeline };
        let home = row.get::<String>(4)?.unwrap_or_default();
        let system_identifier = row.get::<i64>(5)?.unwrap_or_default().cast_unsigned();
        Ok(Chosen { first, home, system_identifier })
    })
}

/// Records the worker id that this server chose itself. A promoted standby learns this worker id only from this row.
pub fn record_chosen(chosen: &Chosen) -> Result<(), SpiError> {
    let Chosen { first, home, system_identifier } = chosen;
    RECORD_CHOSEN.run(&[
        number(first.datacenter),
        number(first.worker_id),
        system_identifier.cast_signed().into(),
        number(first.timeline),
        home.clone().into(),
    ])
}

/// The table of worker ids in this database, used with the rights of its owner in the current transaction. SQL errors
/// are thrown.
pub struct Rows;

impl WorkerIdRows for Rows {
    type Error = SpiError;

    fn overview(
        &mut self,
        entry: &Entry,
        now: UnixMicros,
    ) -> Result<(Option<u32>, Option<UnixMicros>), SpiError> {
        let arguments = [number(entry.datacenter), stamp(now).into(), entry.holder.system_identifier.into()];
        let read = |row: &SpiHeapTupleData<'_>| Ok((worker_id_of(row)?, instant(row, 2)?));
        Ok(OVERVIEW.first(&arguments, read)?.unwrap_or_default())
    }

    fn held(&mut self, entry: &Entry, but: [Option<i64>; 2], now: UnixMicros) -> Result<u64, SpiError> {
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
        let count = CACHE.value::<i64>(&arguments)?.unwrap_or_default();
        Ok(count.cast_unsigned())
    }

    fn rows(&mut self, datacenter: u32, all: bool, own: [Option<i64>; 2]) -> Result<Vec<LeaseRow>, SpiError> {
        ROWS.all(&[number(datacenter), all.into(), own[0].into(), own[1].into()], row)
    }

    fn lock(&mut self, datacenter: u32, worker_id: u32) -> Result<Option<LeaseRow>, SpiError> {
        LOCK.first(&[number(datacenter), number(worker_id)], row)
    }

    fn insert(&mut self, row: &LeaseRow, entry: &Entry) -> Result<bool, SpiError> {
        Ok(INSERT.first(&arguments(row, entry), |_| Ok(()))?.is_some())
    }

    fn update(&mut self, row: &LeaseRow, entry: &Entry) -> Result<(), SpiError> {
        UPDATE.run(&arguments(row, entry))
    }

    fn give_back(&mut self, datacenter: u32, row: &LeaseRow) -> Result<(), SpiError> {
        GIVE_BACK.run(&[number(datacenter), number(row.worker_id), stamp(row.expiry).into()])
    }

    fn former_leases_until(&mut self) -> Result<Option<UnixMicros>, SpiError> {
        Ok(FORMER_LEASES_UNTIL.first(&[], |row| instant(row, 1))?.flatten())
    }

    fn record_former_leases(
        &mut self,
        datacenter: u32,
        worker_id: u32,
        until: UnixMicros,
    ) -> Result<(), SpiError> {
        RECORD_FORMER_LEASES.run(&[number(datacenter), number(worker_id), stamp(until).into()])
    }

    fn random(&mut self) -> u32 {
        random::number()
    }

    fn holders(
        &mut self,
        datacenter: u32,
        last: u32,
        limit: usize,
        now: UnixMicros,
    ) -> Result<Vec<HeldWorkerId>, SpiError> {
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        HOLDERS.all(&[number(datacenter), number(last), limit.into(), stamp(now).into()], |row| {
            let host = row.get::<Vec<u8>>(2)?.unwrap_or_default();
            Ok(HeldWorkerId {
                worker_id: worker_id_of(row)?.unwrap_or_default(),
                host: String::from_utf8_lossy(&host).into_owned(),
                port: row.get::<i32>(3)?,
                expiry: instant(row, 4)?.unwrap_or(LAST),
            })
        })
    }

    fn fork(&mut self) -> Result<Option<i64>, SpiError> {
        Ok(fork::own_or_any())
    }
}

/// The end of the year 9998. The table accepts no later expiry, so this value also represents later instants.
const LAST: UnixMicros = Lease::NO_END;

fn row(row: &SpiHeapTupleData<'_>) -> Result<LeaseRow, SpiError> {
    Ok(LeaseRow {
        worker_id: worker_id_of(row)?.unwrap_or(u32::MAX),
        token: row.get(2)?,
        expiry: instant(row, 3)?.unwrap_or(LAST),
        leased: instant(row, 4)?.unwrap_or(LAST),
    })
}

/// Returns the values of a row, in the order of the parameters of [`INSERT`] and [`UPDATE`].
fn arguments(row: &LeaseRow, entry: &Entry) -> Vec<DatumWithOid<'static>> {
    let Holder { system_identifier, timeline, host, port, directory, layout } = &entry.holder;
    vec![
        number(entry.datacenter),
        number(row.worker_id),
        row.token.into(),
        stamp(row.expiry).into(),
        stamp(row.leased).into(),
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

fn worker_id_of(row: &SpiHeapTupleData<'_>) -> Result<Option<u32>, SpiError> {
    Ok(row.get::<i32>(1)?.map(i32::cast_unsigned))
}

fn instant(row: &SpiHeapTupleData<'_>, column: usize) -> Result<Option<UnixMicros>, SpiError> {
    let at = row.get::<TimestampWithTimeZone>(column)?;
    Ok(at.map(|at| from_sql(at).unwrap_or(LAST)))
}
