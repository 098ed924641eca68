//! The views that tell of this server and this database, as their reader may see them.
//!
//! All names in the queries are qualified: they run under the caller's `search_path`.

use crate::pg::query::{self, Row};
use pgrx::spi::SpiError;
use snowflake_ids_core::UnixMicros;
use snowflake_ids_core::status_page::{
    Buffer, Generator, Listing, Registry, Sequence, Series, Server, Status, Tag, Tags,
};

/// How many rows of a view are read, but for those of tags.
macro_rules! limit {
    () => {
        " LIMIT 50"
    };
}

/// The first of the page's views that the present role may not read.
pub fn forbidden() -> Result<Option<String>, SpiError> {
    const SQL: &str = "SELECT v.name FROM (VALUES ('snowflake_ids.status'::pg_catalog.text), ('snowflake_ids.status_history'),
            ('snowflake_ids.segment_status'), ('snowflake_ids.generator_status'), ('snowflake_ids.series_status'),
            ('snowflake_ids.registry_status'), ('snowflake_ids.sequence_status')) AS v (name)
        WHERE NOT pg_catalog.has_table_privilege(v.name, 'SELECT') LIMIT 1";
    Ok(query::all(SQL, |row| row.text(1))?.into_iter().next().flatten())
}

/// Which server this is, but for what the process knows itself.
pub fn server() -> Result<Server, SpiError> {
    const SQL: &str = "SELECT pg_catalog.current_setting('cluster_name'), pg_catalog.current_database()::pg_catalog.text,
            CURRENT_USER::pg_catalog.text, pg_catalog.current_setting('server_version'),
            (SELECT e.extversion FROM pg_catalog.pg_extension AS e WHERE e.extname OPERATOR(pg_catalog.=) 'snowflake_ids')";
    let read = |row: &Row<'_>| {
        Ok(Server {
            cluster_name: text(row, 1)?,
            database: text(row, 2)?,
            role: text(row, 3)?,
            postgres: text(row, 4)?,
            extension: text(row, 5)?,
            ..Server::default()
        })
    };
    Ok(query::all(SQL, read)?.into_iter().next().unwrap_or_default())
}

/// The view `status`.
pub fn status() -> Result<Status, SpiError> {
    const SQL: &str = "SELECT s.datacenter_id, s.worker_id, s.rollback, s.last_id, s.last_timestamp, s.drift, s.ids_issued,
            s.full_ticks, s.steps_back, s.largest_step_back, s.steps_forward, s.clock_ahead, s.switches, s.high_water_mark,
            s.reservations, s.reserved_by_callers, s.scope, s.lease_expires_at, s.leased_from, s.years_left, s.state
        FROM snowflake_ids.status AS s";
    let read = |row: &Row<'_>| {
        Ok(Status {
            datacenter_id: row.get(1)?,
            worker_id: row.get(2)?,
            rollback: row.get(3)?,
            last_id: row.get(4)?,
            last_timestamp: row.instant(5)?,
            drift: row.length(6)?.unwrap_or_default(),
            ids_issued: count(row, 7)?,
            full_ticks: count(row, 8)?,
            steps_back: count(row, 9)?,
            largest_step_back: row.length(10)?.unwrap_or_default(),
            steps_forward: count(row, 11)?,
            clock_ahead: row.length(12)?.unwrap_or_default(),
            switches: count(row, 13)?,
            high_water_mark: row.instant(14)?,
            reservations: count(row, 15)?,
            reserved_by_callers: count(row, 16)?,
            scope: text(row, 17)?,
            lease_expires_at: row.instant(18)?,
            leased_from: row.text(19)?,
            years_left: row.get(20)?.unwrap_or_default(),
            state: text(row, 21)?,
        })
    };
    Ok(query::all(SQL, read)?.into_iter().next().unwrap_or_default())
}

/// The view `segment_status`, at this instant.
pub fn tags(now: UnixMicros) -> Result<Tags, SpiError> {
    const SQL: &str = "SELECT CASE WHEN s.database OPERATOR(pg_catalog.<>) pg_catalog.current_database()
                THEN s.database::pg_catalog.text END,
            s.tag, s.current_first, s.current_last, s.used, s.next_first, s.next_last, s.step, s.ids_issued, s.refills,
            s.last_refill, s.waits, s.longest_wait, s.exhausted_at, s.trouble
        FROM snowflake_ids.segment_status AS s";
    let mut tags = Tags::new(now);
    query::each(SQL, |row| {
        let buffer = |first: Option<i64>, last: Option<i64>, used| {
            first.zip(last).map(|(first, last)| Buffer { first, last, used })
        };
        tags.add(Tag {
            database: row.text(1)?,
            tag: text(row, 2)?,
            current: buffer(row.get(3)?, row.get(4)?, row.get(5)?.unwrap_or_default()),
            next: buffer(row.get(6)?, row.get(7)?, 0.0),
            step: row.count(8)?,
            ids_issued: count(row, 9)?,
            refills: count(row, 10)?,
            last_refill: row.length(11)?,
            waits: count(row, 12)?,
            longest_wait: row.length(13)?,
            exhausted_at: row.instant(14)?,
            trouble: row.text(15)?,
        });
        Ok(())
    })?;
    Ok(tags)
}

/// The view `generator_status`.
pub fn generators() -> Result<Listing<Generator>, SpiError> {
    const ROWS: &str = concat!(
        "SELECT g.name::pg_catalog.text, g.layout::pg_catalog.text, g.shard::pg_catalog.text, g.last_timestamp, g.drift,
             g.years_left, g.fits, g.state::pg_catalog.text
         FROM snowflake_ids.generator_status AS g ORDER BY g.name",
        limit!()
    );
    listing(ROWS, "SELECT pg_catalog.count(*) FROM snowflake_ids.generator_status", |row| {
        Ok(Generator {
            name: text(row, 1)?,
            layout: text(row, 2)?,
            shard: row.text(3)?,
            last_timestamp: row.instant(4)?,
            drift: row.length(5)?,
            years_left: row.get(6)?,
            fits: row.get(7)?,
            state: text(row, 8)?,
        })
    })
}

/// The view `series_status`. Keys, which take a look at up to 10,000 rows each, are counted of the first ones only.
pub fn series() -> Result<Listing<Series>, SpiError> {
    const ROWS: &str =
        "SELECT s.name::pg_catalog.text, s.kind::pg_catalog.text, s.key_type::pg_catalog.text, s.keys,
            s.all_keys_counted, s.reset::pg_catalog.text, s.restricted
        FROM snowflake_ids.series_status AS s
        WHERE s.name OPERATOR(pg_catalog.=) ANY (
            ARRAY(SELECT t.name FROM snowflake_ids.series_status AS t ORDER BY t.name LIMIT 20))
        ORDER BY s.name";
    listing(ROWS, "SELECT pg_catalog.count(*) FROM snowflake_ids.series_status", |row| {
        Ok(Series {
            name: text(row, 1)?,
            kind: text(row, 2)?,
            key_type: text(row, 3)?,
            keys: row.count(4)?,
            all_keys_counted: row.get(5)?,
            reset: row.text(6)?,
            restricted: row.get(7)?.unwrap_or_default(),
        })
    })
}

/// The view `registry_status`.
pub fn registries() -> Result<Listing<Registry>, SpiError> {
    const ROWS: &str = concat!(
        "SELECT r.server::pg_catalog.text, r.state::pg_catalog.text, r.calls, r.failures, r.failures_in_a_row, r.last_answer,
             r.last_duration, r.last_failure, r.error::pg_catalog.text, r.retry_at
         FROM snowflake_ids.registry_status AS r ORDER BY r.position",
        limit!()
    );
    listing(ROWS, "SELECT pg_catalog.count(*) FROM snowflake_ids.registry_status", |row| {
        Ok(Registry {
            server: text(row, 1)?,
            state: text(row, 2)?,
            calls: count(row, 3)?,
            failures: count(row, 4)?,
            failures_in_a_row: count(row, 5)?,
            last_answer: row.instant(6)?,
            last_duration: row.length(7)?,
            last_failure: row.instant(8)?,
            error: row.text(9)?,
            retry_at: row.instant(10)?,
        })
    })
}

/// The view `sequence_status`.
pub fn sequences() -> Result<Listing<Sequence>, SpiError> {
    const ROWS: &str = concat!(
        "SELECT s.sequence::pg_catalog.text, s.kind::pg_catalog.text, s.tag::pg_catalog.text, s.generator::pg_catalog.text,
             s.increment, s.owner::pg_catalog.text, s.bound_at
         FROM snowflake_ids.sequence_status AS s ORDER BY s.sequence",
        limit!()
    );
    listing(ROWS, "SELECT pg_catalog.count(*) FROM snowflake_ids.sequence_status", |row| {
        Ok(Sequence {
            sequence: text(row, 1)?,
            kind: text(row, 2)?,
            tag: row.text(3)?,
            generator: row.text(4)?,
            increment: row.get(5)?.unwrap_or_default(),
            owner: row.text(6)?,
            bound_at: row.instant(7)?,
        })
    })
}

fn listing<T>(
    rows: &str,
    total: &str,
    read: impl Fn(&Row<'_>) -> Result<T, SpiError>,
) -> Result<Listing<T>, SpiError> {
    let total = query::all(total, |row| row.count(1))?.into_iter().next().flatten();
    Ok(Listing { rows: query::all(rows, read)?, total: total.unwrap_or_default() })
}

fn text(row: &Row<'_>, column: usize) -> Result<String, SpiError> {
    Ok(row.text(column)?.unwrap_or_default())
}

fn count(row: &Row<'_>, column: usize) -> Result<u64, SpiError> {
    Ok(row.count(column)?.unwrap_or_default())
}
