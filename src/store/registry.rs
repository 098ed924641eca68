//! SQL for registries, the databases from which other databases get ids. Each of these other databases records its
//! registries, and the ids that it received from each registry. Segment tags can be handed over to another registry, as
//! table rows in JSON. SPI errors are returned; SQL errors are thrown.

use super::citus;
use super::tables::{REGISTRY_SERVER, SEGMENT};
use super::tag::{self, CREATE, SET_BACK, definition_of, write_version};
use crate::pg::catalog::{Source, Unseen};
use crate::pg::encoding::{from_utf8, to_utf8};
use crate::pg::random;
use crate::pg::read_lock::Wait;
use crate::pg::rows::{self, Sought, View};
use crate::pg::server;
use crate::pg::statement::Statement;
use crate::pg::tag_text::{self, TagText};
use crate::shared::segments::SEGMENTS;
use pgrx::spi::{SpiError, SpiHeapTupleData};
use serde_json::value::{RawValue, to_raw_value};
use snowflake_ids_core::registry::handover::{HandoverTables, TagStanding};
use snowflake_ids_core::registry::link::Endpoint;
use snowflake_ids_core::registry::tables::{LockWait, Received, Tables};
use snowflake_ids_core::registry::wire::{self, ReceivedTag};
use snowflake_ids_core::tag::directory::{Tag, TagKey};
use snowflake_ids_core::tag::reservation::{HighWaterMark, Reserved, Share, TagRow};
use snowflake_ids_core::tag::segment::{Period, Supply};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

static ENDPOINTS: Statement = Statement::new(
    "SELECT position, convert_to(server::text, 'UTF8'), identity, timeline, fork, left_forks
     FROM snowflake_ids.registry_server ORDER BY position",
);

static LOCK: Statement = Statement::new("SELECT snowflake_ids_internal.registry_lock()");

/// Keeps the registries in use unchanged until the transaction ends: takes a lock that conflicts with the lock that [`LOCK`]
/// takes on this table.
static KEEP_ENDPOINTS: Statement =
    Statement::new("LOCK TABLE snowflake_ids.registry_server IN ROW EXCLUSIVE MODE");

static NO_ENDPOINTS: Statement = Statement::new("DELETE FROM snowflake_ids.registry_server");

static ADD_ENDPOINT: Statement = Statement::new(
    "INSERT INTO snowflake_ids.registry_server (position, server, identity, timeline, fork, left_forks)
     VALUES ($1, convert_from($2, 'UTF8')::name, $3, $4, $5, $6)",
);

static SEEN_BEFORE: Statement = Statement::new(
    "SELECT timeline, fork, left_forks FROM snowflake_ids.registry_server WHERE identity = $1 FOR NO KEY UPDATE",
);

static RECORD_ALL: Statement = Statement::new(
    "INSERT INTO snowflake_ids.received AS r (identity, tag, period, max_id)
     SELECT s.identity, k.tag, k.period, k.max_id
     FROM snowflake_ids.registry_server AS s CROSS JOIN snowflake_ids_internal.registry_reached AS k
     ON CONFLICT (identity, tag) DO UPDATE SET period = EXCLUDED.period, max_id = EXCLUDED.max_id, version = NULL
     WHERE (coalesce(EXCLUDED.period, '-infinity'), EXCLUDED.max_id) > (coalesce(r.period, '-infinity'), r.max_id)",
);

static SEEN: Statement = Statement::new(
    "UPDATE snowflake_ids.registry_server SET timeline = $2, fork = $3, left_forks = $4 WHERE identity = $1",
);

static RECEIVED: Statement = Statement::new(
    "SELECT coalesce(period - date '1970-01-01', 0), max_id, version
     FROM snowflake_ids.received WHERE identity = $1 AND tag = $2",
);

static RECEIVE: Statement = Statement::new(
    "INSERT INTO snowflake_ids.received AS r (identity, tag, period, max_id, version)
     VALUES ($1, $2, date '1970-01-01' + $3, $4, $5)
     ON CONFLICT (identity, tag) DO UPDATE
     SET period = EXCLUDED.period, max_id = EXCLUDED.max_id, version = EXCLUDED.version,
         received_at = clock_timestamp()
     WHERE (coalesce(EXCLUDED.period, '-infinity'), EXCLUDED.max_id) >= (coalesce(r.period, '-infinity'), r.max_id)",
);

/// Rows of the table of tags in JSON. If the previous primary may have reserved further ids, the other columns serve to
/// compute how many ids to skip.
static TAGS: Statement = Statement::of_many(
    "SELECT convert_to(to_jsonb(s)::text, 'UTF8'), s.max_id, s.start, s.step, s.max_step, s.increment, s.remainder,
            s.max_value, snowflake_ids_internal.segment_promotions(s.system_identifier, s.timeline, s.copied)
     FROM snowflake_ids.segment AS s WHERE s.tag > $1 ORDER BY s.tag LIMIT $2",
);

static RECEIVED_TAGS: Statement = Statement::of_many(
    "SELECT identity, convert_to(tag, 'UTF8'), coalesce(period - date '1970-01-01', 0), max_id
     FROM snowflake_ids.received WHERE $1 IN ('', tag) ORDER BY tag, identity",
);

/// Creates the given tags. If a tag exists and its highest id is lower than the given highest id, raises the highest id of
/// the existing tag. Each tag must occur only once.
///
/// If the existing highest id is higher by less than one segment, the id stays, and the row gets a new version. The new
/// version keeps a worker from giving back its last reservation, which would lower the highest id again.
///
/// In a database that uses a registry, a trigger refuses tags that users insert. The trigger admits rows restored from a
/// dump, which have an `update_time` before the transaction. The rows inserted here have such an `update_time` too, so the
/// trigger admits them.
static HAND_OVER: Statement = Statement::of_many(
    "INSERT INTO snowflake_ids.segment AS s
         (tag, max_id, step, max_step, increment, remainder, description, start, max_value, reset, time_zone, format, period,
          update_time)
     SELECT n.tag, n.max_id, coalesce(n.step, 1000), coalesce(n.max_step, 1000000),
            CASE WHEN f.fits THEN n.increment ELSE $3 END, CASE WHEN f.fits THEN n.remainder ELSE $2 END,
            n.description, coalesce(n.start, 1), coalesce(n.max_value, 9223372036854775807), n.reset,
            coalesce(n.time_zone, 'UTC'), n.format, n.period, transaction_timestamp() - interval '1 microsecond'
     FROM jsonb_populate_recordset(NULL::snowflake_ids.segment, convert_from($1, 'UTF8')::jsonb) AS n,
          LATERAL (SELECT coalesce(n.increment % $3 = 0 AND n.remainder % $3 = $2, false) AS fits) AS f
     ON CONFLICT (tag) DO UPDATE
     SET max_id = CASE WHEN s.reset IS NULL OR EXCLUDED.period = s.period THEN greatest(s.max_id, EXCLUDED.max_id)
                       ELSE EXCLUDED.max_id END,
         period = CASE WHEN s.reset IS NOT NULL THEN EXCLUDED.period END,
         version = snowflake_ids_internal.random_number(), update_time = clock_timestamp()
     WHERE CASE WHEN s.reset IS NULL THEN EXCLUDED.max_id > s.max_id - s.max_step::numeric * s.increment
                ELSE EXCLUDED.period <= snowflake_ids_internal.period_at(s.reset, s.time_zone)
                     AND (EXCLUDED.period, EXCLUDED.max_id) > (coalesce(s.period, '-infinity'), s.max_id) END",
);

static RECORD_REACHED: Statement = Statement::new("SELECT snowflake_ids_internal.registry_note($1, $2)");

/// Copies all columns that determine the ids of a tag. Copies the highest id only if `reset` changes.
static TAKE_DEFINITIONS: Statement = Statement::of_many(
    "UPDATE snowflake_ids.segment AS s
     SET step = n.step, max_step = n.max_step, increment = n.increment, remainder = n.remainder, start = n.start,
         max_value = n.max_value, reset = n.reset, time_zone = n.time_zone, format = n.format,
         max_id = CASE WHEN s.reset IS NOT DISTINCT FROM n.reset THEN s.max_id ELSE n.max_id END,
         period = CASE WHEN s.reset IS NOT DISTINCT FROM n.reset THEN s.period ELSE n.period END,
         version = snowflake_ids_internal.random_number(), update_time = clock_timestamp()
     FROM jsonb_populate_recordset(NULL::snowflake_ids.segment, convert_from($1, 'UTF8')::jsonb) AS n
     WHERE s.tag = n.tag",
);

static DEFINITION: Statement = Statement::of_many(
    "SELECT convert_to(s.tag, 'UTF8'), s.increment, s.remainder, s.reset IS NOT NULL,
            n.row ? 'reset' AND (n.row ->> 'reset') IS DISTINCT FROM s.reset
     FROM jsonb_array_elements(convert_from($1, 'UTF8')::jsonb) WITH ORDINALITY AS n (row, place)
          JOIN snowflake_ids.segment AS s ON s.tag = n.row ->> 'tag'
     ORDER BY n.place",
);

/// Takes a lock that conflicts with the lock of a session that changes the registries in use.
static LOCK_RECEIVED: Statement = Statement::new("LOCK TABLE snowflake_ids.received IN ROW EXCLUSIVE MODE");

/// In a default, 17 characters stand before the tag, `segment_nextval('`, and 8 behind it, `'::text)`.
static TAG_OF_DEFAULT: Statement = Statement::new(
    "SELECT r.tag
     FROM snowflake_ids_internal.registry_reached AS r, (SELECT convert_from($1, getdatabaseencoding()) AS written) AS d
     WHERE r.tag = replace(substr(d.written, 18, greatest(length(d.written) - 25, 0)), $$''$$, $$'$$) COLLATE \"C\"
         AND snowflake_ids_internal.id_default('segment', r.tag) COLLATE \"C\" = d.written",
);

/// Returns the tag that a column default names. The tag may belong to this database, or may have been received.
pub fn tag_of_default(expression: Vec<u8>) -> Result<Option<TagText>, SpiError> {
    TAG_OF_DEFAULT.value::<TagText>(&[expression.into()])
}

/// Returns whether this database gets its ids from registries on other servers.
pub fn in_use() -> Result<bool, SpiError> {
    Ok(!endpoints()?.is_empty())
}

/// Returns the registries that this database uses, in their order; empty if the database is its own registry.
pub fn endpoints() -> Result<Vec<Endpoint>, SpiError> {
    ENDPOINTS.all(&[], |row| {
        let server = row.get::<Vec<u8>>(2)?.unwrap_or_default();
        Ok(Endpoint {
            position: row.get::<i32>(1)?.unwrap_or_default().cast_unsigned(),
            server: String::from_utf8_lossy(&server).into_owned(),
            seen: seen_of(row, row.get::<String>(3)?.unwrap_or_default(), 4)?,
        })
    })
}

/// Returns the foreign servers of the registries that this database uses, in their order; empty if the database is its own
/// registry. Uses no SQL, so that the function works on a standby and in a parallel query. Waits at most `limit` for a lock
/// on the table. Call only within a transaction.
///
/// # Errors
/// Returns [`Unseen`] if the table is missing or stays locked.
pub fn servers(limit: Duration) -> Result<Vec<String>, Unseen> {
    let mut servers = BTreeMap::new();
    rows::look(&REGISTRY_SERVER, Wait::Yes(Some(limit)), &[], |row| {
        servers.extend(row.int(c"position").zip(row.name(c"server")));
    })?;
    Ok(servers.into_values().collect())
}

/// Reads the name of a registry as last seen. The columns `timeline`, `fork` and `left_forks` begin at column `first`.
fn seen_of(
    row: &SpiHeapTupleData<'_>,
    identity: String,
    first: usize,
) -> Result<wire::RegistryName, SpiError> {
    let timeline = row.get::<i32>(first)?.unwrap_or_default().cast_unsigned();
    let left = row.get::<Vec<i64>>(first + 2)?.unwrap_or_default();
    Ok(wire::RegistryName { identity, timeline, fork: row.get(first + 1)?, left })
}

/// Records the timeline and the fork of a registry if they are news.
pub fn record_seen(registry: &wire::RegistryName) -> Result<(), SpiError> {
    let identity = &registry.identity;
    let seen = SEEN_BEFORE.first(&[identity.clone().into()], |row| seen_of(row, identity.clone(), 1))?;
    let Some(wire::RegistryName { timeline, fork, left, .. }) = seen.and_then(|seen| seen.after(registry))
    else {
        return Ok(());
    };
    SEEN.run(&[identity.clone().into(), timeline.cast_signed().into(), fork.into(), left.into()])
}

/// The tables of this database, as registry or as node. None if the extension was dropped.
pub struct TagTables(pub Option<Source>);

impl Tables for TagTables {
    type Error = SpiError;

    fn source(&mut self) -> Option<u32> {
        self.0.map(Source::number)
    }

    fn to_utf8(&mut self, tag: &Tag) -> Option<String> {
        to_utf8(tag.as_bytes())
    }

    fn tag(&mut self, text: &str) -> Option<Tag> {
        from_utf8(text).and_then(|bytes| tag_text::checked(&bytes).ok())
    }

    fn high_water_mark(&mut self, tag: &Tag) -> Option<HighWaterMark> {
        let (segments, source) = SEGMENTS.get().zip(self.source())?;
        segments.high_water_marks.read().get(&TagKey { database: server::database(), source, tag: *tag })
    }

    fn read(&mut self, tag: &Tag, wait: LockWait) -> Result<Option<TagRow>, SpiError> {
        tag::lock(tag, wait)
    }

    fn is_taken(&mut self, tag: &Tag) -> Result<bool, SpiError> {
        // A locked table cannot be read without a wait. The tag may then exist, so it counts as taken.
        Ok(rows::has(&SEGMENT, Wait::No, View::Dirty, &[(c"tag", Sought::Text(&TagText(*tag)))])
            .unwrap_or(true))
    }

    fn create(&mut self, tag: &Tag, share: Share) -> Result<(), SpiError> {
        CREATE.run(&[TagText(*tag).into(), i64::from(share.of).into(), i64::from(share.index).into()])
    }

    fn write(&mut self, tag: &Tag, max_id: i64, period: Period, version: i64) -> Result<(), SpiError> {
        write_version(tag, max_id, period, version)
    }

    fn set_back(&mut self, tag: &Tag, before: i64, last: i64, version: i64) -> Result<(), SpiError> {
        SET_BACK.run(&[TagText(*tag).into(), before.into(), last.into(), version.into()])
    }

    fn new_version(&mut self) -> i64 {
        random::token()
    }

    fn is_clustered(&mut self) -> Result<bool, SpiError> {
        citus::is_worker()
    }

    fn endpoints(&mut self) -> Result<Vec<Endpoint>, SpiError> {
        endpoints()
    }

    fn record_seen(&mut self, registry: &wire::RegistryName) -> Result<(), SpiError> {
        record_seen(registry)
    }

    fn lock_received(&mut self) -> Result<(), SpiError> {
        LOCK_RECEIVED.run(&[])
    }

    fn received(&mut self, identity: &str, tag: &Tag) -> Result<Option<Received>, SpiError> {
        RECEIVED.first(&[identity.to_owned().into(), TagText(*tag).into()], |row| {
            let day = row.get::<i32>(1)?.unwrap_or_default();
            let number = |column| Ok::<_, SpiError>(row.get::<i64>(column)?.unwrap_or_default());
            Ok(Received { reached: (day, number(2)?), version: number(3)? })
        })
    }

    fn receive(&mut self, identity: &str, tag: &Tag, reserved: &Reserved) -> Result<(), SpiError> {
        let Supply { range, period, .. } = reserved.supply;
        let (identity, tag) = (identity.to_owned(), TagText(*tag));
        let (day, version) = (period.dated(), reserved.version);
        RECEIVE.run(&[identity.into(), tag.into(), day.into(), range.last().into(), version.into()])
    }
}

/// The tables of this database that take part in a hand-over, with the caller's rights.
pub struct OwnTables;

impl HandoverTables for OwnTables {
    type Error = SpiError;

    fn read_all(&mut self, tags: &BTreeSet<String>) -> Result<Vec<(String, TagRow)>, SpiError> {
        tag::read_all(tags)
    }

    fn put(&mut self, rows: &[&RawValue], Share { index, of }: Share) -> Result<(), SpiError> {
        HAND_OVER.run(&[array_of(rows).into(), index.cast_signed().into(), of.cast_signed().into()])
    }

    fn standings(&mut self, rows: &[&RawValue]) -> Result<Vec<TagStanding>, SpiError> {
        DEFINITION.all(&[array_of(rows).into()], |row| {
            let tag = row.get::<Vec<u8>>(1)?.unwrap_or_default();
            Ok(TagStanding {
                tag: String::from_utf8_lossy(&tag).into_owned(),
                increment: row.get(2)?.unwrap_or(1),
                remainder: row.get(3)?.unwrap_or(0),
                dated: row.get(4)?.unwrap_or(false),
                dated_otherwise: row.get(5)?.unwrap_or(false),
            })
        })
    }

    fn lock(&mut self) -> Result<(), SpiError> {
        LOCK.run(&[])
    }

    fn keep_endpoints(&mut self) -> Result<(), SpiError> {
        KEEP_ENDPOINTS.run(&[])
    }

    fn endpoints(&mut self) -> Result<Vec<Endpoint>, SpiError> {
        endpoints()
    }

    fn set_endpoints(&mut self, endpoints: &[Endpoint]) -> Result<(), SpiError> {
        NO_ENDPOINTS.run(&[])?;
        endpoints.iter().try_for_each(|Endpoint { position, server, seen }| {
            let wire::RegistryName { identity, timeline, fork, left } = seen.clone();
            let (position, timeline) = (position.cast_signed(), timeline.cast_signed());
            let server = server.clone().into_bytes();
            ADD_ENDPOINT.run(&[
                position.into(),
                server.into(),
                identity.into(),
                timeline.into(),
                fork.into(),
                left.into(),
            ])
        })
    }

    /// Returns as many rows as fit into a response. After a promotion, increases highest ids that may lag behind the ids that
    /// the previous primary reserved.
    fn tags(&mut self, after: Option<&str>) -> Result<Vec<Box<RawValue>>, SpiError> {
        let Some(after) = from_utf8(after.unwrap_or_default()) else { return Ok(Vec::new()) };
        let after = TagText(Tag::new(&after).unwrap_or_default());
        let limit = i32::try_from(wire::PAGE_ROWS).unwrap_or(i32::MAX);
        let rows = TAGS.all(&[after.into(), limit.into()], |row| {
            let json = String::from_utf8(row.get::<Vec<u8>>(1)?.unwrap_or_default()).unwrap_or_default();
            let promotions = row.get::<i32>(9)?.unwrap_or_default().unsigned_abs();
            let definition = definition_of(row, 2)?;
            Ok(if promotions > 0 {
                with_max_id(&json, definition.skipped_ahead(promotions).max_id)
            } else {
                RawValue::from_string(json).ok()
            })
        })?;
        let mut bytes = 0;
        let mut fits = |length: usize| {
            let first = bytes == 0;
            bytes += length;
            first || bytes <= wire::PAGE_BYTES
        };
        Ok(rows.into_iter().flatten().take_while(|row| fits(row.get().len())).collect())
    }

    fn received(&mut self, only: Option<&str>) -> Result<Vec<(String, ReceivedTag)>, SpiError> {
        let Some(only) = from_utf8(only.unwrap_or_default()) else { return Ok(Vec::new()) };
        RECEIVED_TAGS.all(&[TagText(Tag::new(&only).unwrap_or_default()).into()], |row| {
            let identity = row.get::<String>(1)?.unwrap_or_default();
            let tag = String::from_utf8(row.get::<Vec<u8>>(2)?.unwrap_or_default()).unwrap_or_default();
            let reached = (row.get::<i32>(3)?.unwrap_or_default(), row.get::<i64>(4)?.unwrap_or_default());
            Ok((identity, ReceivedTag { tag, reached }))
        })
    }

    fn record_all(&mut self) -> Result<(), SpiError> {
        RECORD_ALL.run(&[])
    }

    fn define(&mut self, rows: &[&RawValue]) -> Result<(), SpiError> {
        TAKE_DEFINITIONS.run(&[array_of(rows).into()])
    }
}

/// Returns the row with `max_id` as its highest id.
fn with_max_id(json: &str, max_id: i64) -> Option<Box<RawValue>> {
    let mut row: BTreeMap<&str, Box<RawValue>> = serde_json::from_str(json).ok()?;
    row.insert("max_id", to_raw_value(&max_id).ok()?);
    to_raw_value(&row).ok()
}

/// For each registry in use, records `highest` as the highest id that was received for a tag. Earlier saved ranges of the tag
/// (ids kept over a restart) become invalid.
pub fn record_reached(tag: &Tag, highest: i64) -> Result<(), SpiError> {
    RECORD_REACHED.run(&[TagText(*tag).into(), highest.into()])
}

/// Joins rows into a JSON array.
fn array_of(rows: &[&RawValue]) -> Vec<u8> {
    let rows = rows.iter().map(|row| row.get()).collect::<Vec<_>>().join(",");
    format!("[{rows}]").into_bytes()
}
