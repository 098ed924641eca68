//! SQL on the table of segment tags, the names of ranges of ids. Used by workers, and by transactions that have changed
//! a tag. A call that finds ids in the buffers in shared memory runs none of this SQL.

use crate::pg::encoding::to_utf8;
use crate::pg::error::ServerError;
use crate::pg::random;
use crate::pg::report::raise;
use crate::pg::statement::Statement;
use crate::pg::tag_text::TagText;
use pgrx::spi::{SpiError, SpiHeapTupleData};
use snowflake_ids_core::UnixMicros;
use snowflake_ids_core::registry::tables::LockWait;
use snowflake_ids_core::tag::definition::Definition;
use snowflake_ids_core::tag::directory::Tag;
use snowflake_ids_core::tag::reservation::TagRow;
use snowflake_ids_core::tag::segment::Period;
use snowflake_ids_core::tag::serial::{NumberFormat, Reset};
use std::collections::BTreeSet;

/// Reads and locks rows of the table of tags. The rows are locked first, in a subquery: whatever is computed beside a
/// locked row in one FROM list is not computed again if another transaction has changed the row during the wait for the
/// lock.
///
/// Column 14 counts the promotions since the row was written; a copy of the data directory counts as one. At each of them, the
/// previous primary may have reserved further ids in a transaction that was not replicated.
///
/// The numbers of a dated tag start again with each period, such as a day. The period never goes back, even if the clock is
/// moved back; after a promotion it may begin early. The period ends when the clocks of the time zone first show the next
/// period. If these clocks are put back over midnight, they show midnight twice, and AT TIME ZONE would choose the second
/// midnight.
macro_rules! read_sql {
    ($place:literal, $locked:literal) => {
        concat!(
            "SELECT s.max_id, s.start, s.step, s.max_step, s.increment, s.remainder, s.max_value, s.format, s.reset,
                    p.label - date '1970-01-01',
                    coalesce(s.period < p.label, false),
                    (extract(epoch FROM CASE WHEN early.first AT TIME ZONE s.time_zone = following.label THEN early.first ELSE late.last END)
                        * 1000000)::bigint,
                    s.version, snowflake_ids_internal.segment_promotions(s.system_identifier, s.timeline, s.copied), s.generation",
            $place,
            " FROM (",
            $locked,
            ") s,
             LATERAL (SELECT greatest(s.period, CASE WHEN s.reset IS NOT NULL THEN
                               snowflake_ids_internal.period_at(s.reset, s.time_zone,
                                   snowflake_ids_internal.segment_present(s.system_identifier, s.timeline, s.copied)) END) AS label) p,
             LATERAL (SELECT p.label + ('1 ' || s.reset)::interval AS label) following,
             LATERAL (SELECT following.label AT TIME ZONE s.time_zone AS last) late,
             LATERAL (SELECT late.last - interval '24 hours' AS instant) before,
             LATERAL (SELECT (following.label - (before.instant AT TIME ZONE s.time_zone - before.instant AT TIME ZONE 'UTC')) AT TIME ZONE 'UTC'
                          AS first) early"
        )
    };
}

static COLUMN_WITH_IDS: Statement = Statement::new(
    "SELECT c.relation, c.attribute FROM snowflake_ids_internal.column_with_ids($1) AS c WHERE c.relation IS NOT NULL",
);

static READ_UNLOCKED: Statement = Statement::new(read_sql!(
    "",
    "SELECT * FROM snowflake_ids.segment WHERE tag = $1 FOR NO KEY UPDATE SKIP LOCKED"
));
static READ: Statement =
    Statement::new(read_sql!("", "SELECT * FROM snowflake_ids.segment WHERE tag = $1 FOR NO KEY UPDATE"));
/// Reads and locks the rows of several tags, in the order of the tags in the argument.
static READ_ALL: Statement = Statement::of_many(read_sql!(
    ", s.place",
    "SELECT s.*, n.place
     FROM jsonb_array_elements_text(convert_from($1, 'UTF8')::jsonb) WITH ORDINALITY AS n (tag, place),
          snowflake_ids.segment s
     WHERE s.tag = n.tag ORDER BY n.place FOR NO KEY UPDATE OF s"
));

static WRITE: Statement = Statement::new(
    "UPDATE snowflake_ids.segment
     SET max_id = $2, period = coalesce(date '1970-01-01' + $3, period), version = $4,
         system_identifier = snowflake_ids_internal.system_identifier(), timeline = snowflake_ids_internal.segment_timeline(),
         update_time = clock_timestamp()
     WHERE tag = $1",
);

pub(super) static SET_BACK: Statement = Statement::new(
    "UPDATE snowflake_ids.segment
     SET max_id = $2, version = snowflake_ids_internal.random_number(), update_time = clock_timestamp()
     WHERE tag = $1 AND max_id = $3 AND version = $4 AND reset IS NULL",
);

static RAISE: Statement = Statement::new("SELECT snowflake_ids_internal.segment_raise($1, $2)");

static TAG_GENERATION: Statement =
    Statement::new("SELECT generation FROM snowflake_ids.segment WHERE tag = $1");

pub(super) static CREATE: Statement = Statement::new(
    "INSERT INTO snowflake_ids.segment (tag, increment, remainder) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING",
);

/// Reads and locks a row. Returns None if the row does not exist, or is locked and is to be skipped.
pub(super) fn lock(tag: &Tag, wait: LockWait) -> Result<Option<TagRow>, SpiError> {
    let statement = if wait == LockWait::Skip { &READ_UNLOCKED } else { &READ };
    statement.first(&[TagText(*tag).into()], row_of)
}

pub fn read(tag: &Tag) -> Result<Option<TagRow>, SpiError> {
    READ.first(&[TagText(*tag).into()], row_of)
}

/// Reads and locks the existing rows of these tags, in the order of the tags. The tags are in UTF-8.
pub fn read_all(tags: &BTreeSet<String>) -> Result<Vec<(String, TagRow)>, SpiError> {
    let names: Vec<&String> = tags.iter().collect();
    let json = serde_json::json!(names).to_string().into_bytes();
    let rows = READ_ALL.all(&[json.into()], |row| {
        let place = row.get::<i64>(16)?.and_then(|place| usize::try_from(place - 1).ok());
        Ok(place.and_then(|place| names.get(place)).map(|tag| row_of(row).map(|row| ((*tag).clone(), row))))
    })?;
    rows.into_iter().flatten().collect()
}

/// Returns the generation of a tag; None if the tag does not exist.
pub fn tag_generation(tag: &Tag) -> Result<Option<i64>, SpiError> {
    TAG_GENERATION.value::<i64>(&[TagText(*tag).into()])
}

/// Finds a column whose default creates ids of this tag, in a table that has rows. Returns the names of the table and the
/// column, quoted for SQL.
pub fn column_with_ids(tag: &Tag) -> Result<Option<(String, String)>, SpiError> {
    let name = |of: Option<TagText>| of.map(|name| name.shown()).unwrap_or_default();
    COLUMN_WITH_IDS.first(&[TagText(*tag).into()], |row| Ok((name(row.get(1)?), name(row.get(2)?))))
}

/// Records that ids up to `max_id` are handed out or reserved.
pub fn write(tag: &Tag, max_id: i64, period: Period) -> Result<(), SpiError> {
    write_version(tag, max_id, period, random::token())
}

/// Ensures that all ids that are reserved later are above a value.
pub fn raise_above(tag: &Tag, value: i64) -> Result<(), SpiError> {
    RAISE.run(&[TagText(*tag).into(), value.into()])
}

pub(super) fn write_version(tag: &Tag, max_id: i64, period: Period, version: i64) -> Result<(), SpiError> {
    WRITE.run(&[TagText(*tag).into(), max_id.into(), period.dated().into(), version.into()])
}

/// Reads a tag's definition from a row. The definition's columns begin at column `first`.
pub fn definition_of(row: &SpiHeapTupleData<'_>, first: usize) -> Result<Definition, SpiError> {
    let number = |column| Ok::<_, SpiError>(row.get::<i64>(first + column)?.unwrap_or_default());
    Ok(Definition {
        max_id: number(0)?,
        start: number(1)?,
        step: number(2)?,
        max_step: number(3)?,
        increment: number(4)?,
        remainder: number(5)?,
        max_value: number(6)?,
    })
}

fn row_of(row: &SpiHeapTupleData<'_>) -> Result<TagRow, SpiError> {
    let definition = definition_of(row, 1)?;
    let text = |column| Ok::<_, SpiError>(row.get::<TagText>(column)?.map(TagText::to_text));
    let reset = text(9)?.and_then(|reset| reset.parse::<Reset>().ok());
    // Invalid UTF-8 is an error, because a replacement character would silently change the formatted numbers.
    let utf8 = |format: TagText| {
        to_utf8(format.0.as_bytes()).unwrap_or_else(|| raise(ServerError::NotUtf8 { name: "format" }))
    };
    let format = row.get::<TagText>(8)?.map_or_else(|| NumberFormat::default_for(reset).to_string(), utf8);
    let period = match (row.get::<i32>(10)?, row.get::<i64>(12)?) {
        (Some(day), Some(until)) => Period { day, until: UnixMicros(until) },
        _ => Period::FOREVER,
    };
    let is_over = row.get::<bool>(11)?.unwrap_or(false);
    let version = row.get::<i64>(13)?.unwrap_or_default();
    let promotions = row.get::<i32>(14)?.unwrap_or_default().unsigned_abs();
    let tag_generation = row.get::<i64>(15)?.unwrap_or_default();
    Ok(TagRow { definition, period, format, version, tag_generation }.now(is_over, promotions))
}
