//! Functions for ids of tags, except for `segment_nextval`, which is in [`crate::entry`]. More functions are SQL, in
//! `segment.sql`.

use crate::issuer;
use crate::pg::catalog::Source;
use crate::pg::clock::{SystemClock, uptime};
use crate::pg::encoding::to_utf8;
use crate::pg::error::ServerError;
use crate::pg::report::{raise, report, spi};
use crate::pg::tag_text::{self, TagArg, TagText};
use crate::pg::text::{Text, TextOut};
use crate::pg::{cluster, random, server, time};
use crate::settings;
use crate::shared::segments::{self, SEGMENTS};
use crate::shared::slot::Slot;
use crate::sql::error::CallError;
use crate::sql::generate::checked_count;
use crate::sql::metrics::seconds;
use crate::store::tables::SEGMENT;
use crate::store::{fork, tag as store};
use crate::tag::error::{SegmentError, no_refill};
use crate::tag::transaction_tags::{self, TagChange};
use crate::tag::{self, privilege, slot};
use pgrx::heap_tuple::PgHeapTuple;
use pgrx::pg_sys::panic::ErrorReport;
use pgrx::prelude::*;
use pgrx::{AllocatedByPostgres, WhoAllocated};
use snowflake_ids_core::report::standing::Standing;
use snowflake_ids_core::tag::definition::{Definition, Exhausted, MAX_DESCRIPTION_BYTES, MAX_NAME_BYTES};
use snowflake_ids_core::tag::directory::Tag;
use snowflake_ids_core::tag::reservation::{copies_since, promotions_since};
use snowflake_ids_core::tag::segment::{BufferState, BufferStates};
use snowflake_ids_core::tag::serial::{NumberFormat, Reset};
use snowflake_ids_core::tag::slot::Trouble;
use snowflake_ids_core::tag::tag_rows::present;
use snowflake_ids_core::{Clock, Explain};
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

/// Returns several ids of a tag, in ascending order. Each id is taken when the executor fetches it.
#[pg_extern(volatile, parallel_safe)]
fn segment_nextvals(
    tag: Option<TagArg<'_>>,
    count: Option<i32>,
) -> Result<SetOfIterator<'static, i64>, ErrorReport> {
    let tag = tag.ok_or(SegmentError::NoTag)?.0.to_vec();
    let count = count.ok_or(CallError::NoCount)?;
    let count = checked_count(count)?;
    let mut cached = None;
    let next = move |_| {
        cached = cached.or_else(|| tag::cache::find(&tag));
        let at_once = cached.and_then(tag::next_at_once);
        at_once
            .unwrap_or_else(|| tag::next("segment_nextvals", &tag).unwrap_or_else(|failure| raise(failure)))
    };
    Ok(SetOfIterator::new((0..count).map(next)))
}

/// Returns the last id that the session got for this tag. RESTRICTED, because parallel workers have sessions of their own.
#[pg_extern(volatile, parallel_restricted)]
fn segment_currval(tag: Option<TagArg<'_>>) -> Result<i64, ErrorReport> {
    Ok(tag::last(tag.ok_or(SegmentError::NoTag)?.0)?)
}

/// Returns the next number of a tag in the tag's format, such as `20261120-000001`.
#[pg_extern(volatile, parallel_safe)]
fn segment_nextval_text(tag: Option<TagArg<'_>>) -> Result<TextOut, ErrorReport> {
    let tag = tag.ok_or(SegmentError::NoTag)?.0;
    let text = tag::next_text("segment_nextval_text", tag)?;
    let tag = || Tag::new(tag).map(|tag| TagText(tag).shown()).unwrap_or_default();
    // The format came from a registry in another encoding.
    TextOut::of(text).ok_or_else(|| CallError::FormatLacksCharacter { tag: tag() }.into())
}

type Tuple<'a> = PgHeapTuple<'a, AllocatedByPostgres>;

/// Rejects rows with invalid properties, whoever writes them.
#[allow(clippy::unnecessary_wraps, reason = "the form of a trigger")]
#[pg_trigger(sql = "CREATE FUNCTION snowflake_ids_internal.segment_check() RETURNS trigger
LANGUAGE c AS 'MODULE_PATHNAME', 'segment_check_trigger';")]
fn segment_check<'a>(
    trigger: &'a PgTrigger<'a>,
) -> Result<Option<PgHeapTuple<'a, impl WhoAllocated>>, PgTriggerError> {
    let row = trigger.new();
    if let Some(row) = &row {
        check(row).unwrap_or_else(|report| raise(*report));
    }
    Ok(row)
}

fn check(row: &Tuple<'_>) -> Result<(), Box<ErrorReport>> {
    check_lengths(row)?;
    let tag = tag_of(row).ok_or_else(|| Box::new(SegmentError::NoTag.into()))?;
    tag_text::checked(tag.0.as_bytes()).map_err(report)?;
    let number = |name: &'static str| number(row, name);
    let definition = Definition {
        max_id: number("max_id")?,
        start: number("start")?,
        step: number("step")?,
        max_step: number("max_step")?,
        increment: number("increment")?,
        remainder: number("remainder")?,
        max_value: number("max_value")?,
    };
    definition.check().map_err(report)?;
    let reset = text(row, "reset").map(|reset| reset.parse::<Reset>()).transpose();
    let reset = reset.map_err(report)?;
    if let Some(format) = short(row, "format") {
        let format = utf8_of_format(format.0.as_bytes())?;
        NumberFormat::parse(&format, reset).map_err(report)?;
    }
    Ok(())
}

/// Rejects texts that are too long, before any text is read.
fn check_lengths(row: &Tuple<'_>) -> Result<(), Box<ErrorReport>> {
    const LIMITS: [(&str, usize); 4] = [
        ("description", MAX_DESCRIPTION_BYTES),
        ("reset", MAX_NAME_BYTES),
        ("time_zone", MAX_NAME_BYTES),
        ("format", MAX_NAME_BYTES),
    ];
    if let Some(error) = unread(row, "tag").and_then(|tag| tag.tag_bytes().err()) {
        return Err(Box::new(report(error)));
    }
    LIMITS
        .into_iter()
        .try_for_each(|(name, limit)| unread(row, name).map_or(Ok(()), |text| text.check_length(limit, name)))
        .map_err(|error| Box::new(error.into()))
}

fn unread<'a>(row: &'a Tuple<'_>, name: &str) -> Option<Text<'a>> {
    row.get_by_name(name).ok().flatten()
}

fn utf8_of_format(bytes: &[u8]) -> Result<String, Box<ErrorReport>> {
    to_utf8(bytes).ok_or_else(|| Box::new(ServerError::NotUtf8 { name: "format" }.into()))
}

/// Returns a text column of a row; None if the text is null, or longer than a tag may be.
fn short(row: &Tuple<'_>, name: &str) -> Option<TagText> {
    unread(row, name)?.tag_bytes().ok().and_then(Tag::new).map(TagText)
}

fn tag_of(row: &Tuple<'_>) -> Option<TagText> {
    short(row, "tag")
}

fn tag_generation_of(row: &Tuple<'_>) -> Option<i64> {
    row.get_by_name("generation").ok().flatten()
}

fn number(row: &Tuple<'_>, name: &str) -> Result<i64, Box<ErrorReport>> {
    let missing = || Box::new(CallError::NoProperty { name: name.to_owned() }.into());
    row.get_by_name(name).ok().flatten().ok_or_else(missing)
}

/// Returns a short text column as UTF-8. Bytes that are not UTF-8 become replacement characters, which no valid value contains.
fn text(row: &Tuple<'_>, name: &str) -> Option<String> {
    short(row, name).map(|text| String::from_utf8_lossy(text.0.as_bytes()).into_owned())
}

/// Makes a change of a row take effect in all sessions after its commit. The trigger's argument is the kind of change.
#[pg_trigger(sql = "CREATE FUNCTION snowflake_ids_internal.segment_changed() RETURNS trigger
LANGUAGE c AS 'MODULE_PATHNAME', 'segment_changed_trigger';")]
fn segment_changed<'a>(
    trigger: &'a PgTrigger<'a>,
) -> Result<Option<PgHeapTuple<'a, impl WhoAllocated>>, PgTriggerError> {
    let table = trigger.relid()?;
    let source = SEGMENT.find().filter(|source| source.oid() == table);
    let source = source.unwrap_or_else(|| raise(ServerError::Dropped));
    // This extension's triggers have ASCII arguments. An argument that pgrx cannot read is from another trigger.
    let kind = trigger.extra_args().unwrap_or_default().into_iter().next();
    let change = match kind.as_deref() {
        Some("tuned") => TagChange::Tuned,
        Some("altered") => TagChange::Altered,
        _ => TagChange::Moved,
    };
    let (before, after) = (trigger.old(), trigger.new());
    let tags = (before.as_ref().and_then(tag_of), after.as_ref().and_then(tag_of));
    let tag_generation = |row: &Option<Tuple<'_>>| row.as_ref().and_then(tag_generation_of);
    let (former, present) = (tag_generation(&before), tag_generation(&after));
    match tags {
        (Some(old), Some(new)) if old == new => {
            // A new generation means that an administrator moved the tag back, below ids that were handed out.
            let change = if former == present { change } else { TagChange::Forced };
            transaction_tags::record(source, &new.0, change, former);
        }
        (Some(old), Some(new)) => transaction_tags::record_renamed(source, &old.0, &new.0, former),
        (old, new) => {
            if let Some(old) = old {
                transaction_tags::record(source, &old.0, TagChange::Gone, former);
            }
            if let Some(new) = new {
                transaction_tags::record(source, &new.0, TagChange::Created, None);
            }
        }
    }
    Ok(before.or(after))
}

/// Fails for an invalid tag name, before a session looks it up.
#[pg_extern(schema = "snowflake_ids_internal", immutable, parallel_safe)]
fn segment_check_tag(tag: Option<TagArg<'_>>) -> Result<(), ErrorReport> {
    let tag = tag.ok_or(SegmentError::NoTag)?;
    Ok(tag_text::checked(tag.0).map(drop).map_err(SegmentError::BadTag)?)
}

/// Empties a tag's buffers, so that no session gets more ids from them. Returns the highest id that was handed out.
/// `segment_set` locks the row, reads `reserved` from the row, and calls this function.
#[pg_extern(schema = "snowflake_ids_internal", volatile, parallel_unsafe)]
fn segment_close(tag: Option<TagArg<'_>>, reserved: Option<i64>) -> Result<i64, ErrorReport> {
    highest(tag, reserved, slot::close)
}

/// Returns the highest id that was handed out, and leaves the buffers as they are.
#[pg_extern(schema = "snowflake_ids_internal", volatile, parallel_unsafe)]
fn segment_issued(tag: Option<TagArg<'_>>, reserved: Option<i64>) -> Result<i64, ErrorReport> {
    highest(tag, reserved, slot::issued)
}

fn highest(
    tag: Option<TagArg<'_>>,
    reserved: Option<i64>,
    issued: fn(Source, &Tag, i64, i64) -> i64,
) -> Result<i64, ErrorReport> {
    let tag = tag_text::checked(tag.ok_or(SegmentError::NoTag)?.0).map_err(SegmentError::BadTag)?;
    let source = SEGMENT.find().ok_or(SegmentError::NoTable)?;
    let reserved = reserved.ok_or(CallError::NoReserved)?;
    let tag_generation = source.as_owner(|| store::tag_generation(&tag)).map_err(spi)?;
    let tag_generation = tag_generation.ok_or_else(|| SegmentError::unknown(&tag))?;
    // Only this session knows the ids that this transaction took after it changed the row.
    let own = transaction_tags::issued(&tag).unwrap_or(i64::MIN);
    Ok(issued(source, &tag, reserved, tag_generation).max(own))
}

/// Returns a random number that does not repeat in practice.
#[pg_extern(schema = "snowflake_ids_internal", volatile, parallel_safe)]
fn random_number() -> i64 {
    random::token()
}

/// Returns the number of promotions since a row was written; a copy counts as one. The arguments are columns of the row.
#[pg_extern(schema = "snowflake_ids_internal", volatile, parallel_safe)]
fn segment_promotions(system_identifier: Option<i64>, timeline: Option<i32>, copied: Option<i64>) -> i32 {
    let promotions =
        promotions_since(system_identifier, timeline, (self::system_identifier(), segment_timeline()));
    i32::try_from(promotions + copies_since(copied, segment_copied())).unwrap_or(i32::MAX)
}

/// Returns the number to write to a changed row: of the last time that this server's directory was copied or put back.
#[pg_extern(schema = "snowflake_ids_internal", volatile, parallel_safe)]
fn segment_copied() -> Option<i64> {
    issuer::copied().map(|copied| copied.number)
}

/// Returns the time that determines the period of a dated tag. The arguments are those of `segment_promotions`.
#[pg_extern(schema = "snowflake_ids_internal", volatile, parallel_safe)]
fn segment_present(
    system_identifier: Option<i64>,
    timeline: Option<i32>,
    copied: Option<i64>,
) -> Result<TimestampWithTimeZone, ErrorReport> {
    let promotions = segment_promotions(system_identifier, timeline, copied).cast_unsigned();
    let replayed = cluster::last_replayed();
    time::to_sql(present(SystemClock.now(), promotions, replayed, settings::max_clock_skew()))
}

/// Returns the timeline to write to a changed row: the cluster's timeline, plus the number of forks that nodes named.
#[pg_extern(schema = "snowflake_ids_internal", volatile, parallel_safe)]
fn segment_timeline() -> i32 {
    fork::all().promotions(cluster::timeline()).cast_signed()
}

/// Returns the highest id and the period to write at the first change of a tag's row after a promotion, in place of those
/// that the change writes.
#[pg_extern(schema = "snowflake_ids_internal", volatile, parallel_unsafe)]
fn segment_kept(
    tag: Option<TagArg<'_>>,
    new_max_id: Option<i64>,
    new_day: Option<i32>,
) -> Result<TableIterator<'static, (name!(max_id, i64), name!(day, Option<i32>))>, ErrorReport> {
    let tag = tag_text::checked(tag.ok_or(SegmentError::NoTag)?.0).map_err(SegmentError::BadTag)?;
    let row = store::read(&tag).map_err(spi)?.ok_or_else(|| SegmentError::unknown(&tag))?;
    Ok(TableIterator::once(row.kept_above(new_max_id.unwrap_or_default(), new_day)))
}

/// Returns the highest id and the period to write to a tag's row when a restore brings another row of this tag; no row if the tag
/// is new. Discards the buffered ids, because the restored tables may have them.
#[pg_extern(schema = "snowflake_ids_internal", volatile, parallel_unsafe)]
fn segment_restored(
    tag: Option<TagArg<'_>>,
    new_max_id: Option<i64>,
    new_day: Option<i32>,
) -> Result<TableIterator<'static, (name!(max_id, i64), name!(day, Option<i32>))>, ErrorReport> {
    let tag = tag_text::checked(tag.ok_or(SegmentError::NoTag)?.0).map_err(SegmentError::BadTag)?;
    let Some(row) = store::read(&tag).map_err(spi)? else { return Ok(TableIterator::empty()) };
    let source = SEGMENT.find().ok_or(SegmentError::NoTable)?;
    slot::discard(source, &tag);
    Ok(TableIterator::once(row.restored_over(new_max_id.unwrap_or_default(), new_day)))
}

#[pg_extern(schema = "snowflake_ids_internal", volatile, parallel_safe)]
fn system_identifier() -> i64 {
    cluster::system_identifier().cast_signed()
}

#[pg_extern(schema = "snowflake_ids_internal", volatile, parallel_safe)]
fn timeline() -> i32 {
    cluster::timeline().cast_signed()
}

/// Returns the tags in use, and the contents of their slots in shared memory. With `needs_attention`, returns only the tags
/// that need attention.
#[pg_extern(schema = "snowflake_ids_internal", volatile, parallel_safe)]
fn segment_slots(
    needs_attention: bool,
) -> Result<
    TableIterator<
        'static,
        (
            name!(database, pg_sys::Oid),
            name!(source, pg_sys::Oid),
            name!(tag, TagText),
            name!(current_first, Option<i64>),
            name!(current_last, Option<i64>),
            name!(current_next, Option<i64>),
            name!(next_first, Option<i64>),
            name!(next_last, Option<i64>),
            name!(used, Option<f64>),
            name!(step, Option<i64>),
            name!(ids_issued, i64),
            name!(refills, i64),
            name!(last_refill, Option<Interval>),
            name!(waits, i64),
            name!(longest_wait, Option<Interval>),
            name!(exhausted_at, Option<TimestampWithTimeZone>),
            name!(trouble, Option<String>),
            name!(failing_since, Option<TimestampWithTimeZone>),
            name!(remedy, Option<String>),
            name!(refill_seconds, f64),
            name!(wait_seconds, f64),
            name!(buffered_ids, i64),
            name!(buffer_ids, i64),
            name!(remaining_ids, Option<i64>),
            name!(stats_reset, TimestampWithTimeZone),
            name!(standing, &'static str),
        ),
    >,
    ErrorReport,
> {
    let segments = SEGMENTS.ready("snowflake_ids_internal.segment_slots")?;
    let mut rows = Vec::new();
    let wanted = |slot: &Slot| {
        let buffer_states = slot.segment.buffer_states();
        // At the rate of the last hour.
        let lasts = remaining(slot, &buffer_states).and_then(|left| slot.lasts(left));
        let fails = slot.is_used_up() || trouble_of(slot).is_some();
        let standing = Standing::of(&buffer_states, fails, lasts);
        (!needs_attention || standing.needs_attention()).then_some((buffer_states, lasts, standing))
    };
    for (key, slot, (buffer_states, lasts, standing)) in privilege::visible(segments, wanted) {
        let (current, next) = (buffer_states.current, buffer_states.next);
        let (counts, since) = slot.counts();
        let ids = [current, next].into_iter().flatten().map(|buffer| i64::from(buffer.range.count)).sum();
        rows.push((
            pg_sys::Oid::from(key.database),
            pg_sys::Oid::from(key.source),
            TagText(key.tag).legible(),
            current.map(|buffer| buffer.range.first),
            current.map(|buffer| buffer.range.last()),
            current.filter(|buffer| buffer.left() > 0).map(|buffer| buffer.range.at(buffer.used)),
            next.map(|buffer| buffer.range.first),
            next.map(|buffer| buffer.range.last()),
            current.map(used),
            Some(i64::from(slot.pace().step)).filter(|step| *step > 0),
            counts.issued.cast_signed(),
            counts.refills.cast_signed(),
            interval(slot.last_refill.load(Relaxed))?,
            counts.waits.cast_signed(),
            interval(slot.longest_wait.load(Relaxed))?,
            lasts.map(|lasts| time::to_sql(SystemClock.now().plus(lasts))).transpose()?,
            trouble(slot),
            slot.failed_for(uptime()).map(|time| time::to_sql(SystemClock.now().minus(time))).transpose()?,
            (key.database == server::database()).then(|| remedy(slot, &key.tag)).flatten(),
            seconds(counts.refill_time),
            seconds(counts.wait_time),
            buffer_states.left().cast_signed(),
            ids,
            remaining(slot, &buffer_states).map(|ids| i64::try_from(ids).unwrap_or(i64::MAX)),
            time::to_sql(since)?,
            standing.name(),
        ));
    }
    Ok(TableIterator::new(rows))
}

/// Returns the used share of a buffer, rounded down to a thousandth.
fn used(buffer: BufferState) -> f64 {
    (f64::from(buffer.used) / f64::from(buffer.range.count) * 1e3).floor() / 1e3
}

fn interval(micros: u64) -> Result<Option<Interval>, ErrorReport> {
    Some(micros).filter(|micros| *micros > 0).map(Duration::from_micros).map(time::interval).transpose()
}

/// Returns the number of ids that a tag has left; None before the first refill, when the tag's row is not known, and for a dated
/// tag, whose ids never run out.
fn remaining(slot: &Slot, buffer_states: &BufferStates) -> Option<u64> {
    let is_known = !slot.is_unused() && !buffer_states.is_dated();
    is_known.then(|| slot.row_left.load(Relaxed).saturating_add(buffer_states.left()))
}

/// Returns the reason why refills fail. Only the launcher records a reason for a tag without ids, so a
/// missing launcher is itself the reason.
fn trouble_of(slot: &Slot) -> Option<Trouble> {
    slot.trouble()
        .or_else(|| if slot.segment.buffer_states().left() == 0 { segments::trouble() } else { None })
}

/// Returns the reason why a tag gets no ids; None if the last refill succeeded.
fn trouble(slot: &Slot) -> Option<String> {
    if slot.is_used_up() { Some("used up".into()) } else { trouble_of(slot).map(shown) }
}

/// Returns the HINT of a call that gets no id of a tag of this database.
fn remedy(slot: &Slot, tag: &Tag) -> Option<String> {
    if slot.is_used_up() {
        return Exhausted { max_value: slot.max_value.load(Relaxed) }.hint();
    }
    trouble_of(slot).map(|trouble| no_refill(&TagText(*tag).shown(), Some(trouble)).1)
}

fn shown(trouble: Trouble) -> String {
    match trouble {
        Trouble::RowLocked => "row locked".into(),
        Trouble::NoWorker => "no worker".into(),
        Trouble::Registry => "registry: see registry_status".into(),
        Trouble::Failed(code) => format!("failed: {}", crate::pg::report::sqlstate(code)),
        Trouble::OutOfReach(0) => "out of reach".into(),
        Trouble::OutOfReach(code) => format!("out of reach: {}", crate::pg::report::sqlstate(code)),
    }
}

extension_sql_file!(
    "segment.sql",
    name = "segments",
    requires = [
        segment_check,
        segment_check_tag,
        segment_changed,
        segment_close,
        segment_issued,
        segment_promotions,
        segment_copied,
        segment_present,
        segment_timeline,
        segment_kept,
        segment_restored,
        random_number,
        system_identifier,
        segment_slots,
        timeline,
        tag::segment_privileges,
        tag::segment_privileges_changed,
        tag::has_segment_privilege,
        "status_view"
    ]
);
