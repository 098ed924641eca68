//! Functions behind the views for metrics exporters, and the reset of the views' counts.

use crate::pg::clock::SystemClock;
use crate::pg::server;
use crate::pg::tag_text::{self, TagArg};
use crate::pg::text::Text;
use crate::shared::registries;
use crate::shared::segments::SEGMENTS;
use crate::tag::error::SegmentError;
use pgrx::pg_sys::panic::ErrorReport;
use pgrx::prelude::*;
use snowflake_ids_core::clock::micros;
use snowflake_ids_core::{Clock, Layout};
use std::sync::atomic::Ordering::Relaxed;

/// Resets the counts of a tag of this database. Without a tag, resets the counts of all tags and registries of this
/// database.
#[pg_extern(sql = "
CREATE FUNCTION snowflake_ids.stats_reset(tag text DEFAULT NULL) RETURNS void
LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', '@FUNCTION_NAME@';
")]
fn stats_reset(tag: Option<TagArg<'_>>) -> Result<(), ErrorReport> {
    let tag = tag.map(|tag| tag_text::checked(tag.0)).transpose().map_err(SegmentError::BadTag)?;
    let segments = SEGMENTS.ready("snowflake_ids.stats_reset")?;
    let here = server::database();
    segments.reset_counts(|key| key.database == here && tag.is_none_or(|tag| key.tag == tag));
    if tag.is_none() {
        registries::reset_counts(here);
    }
    Ok(())
}

#[allow(clippy::cast_precision_loss, reason = "a count of microseconds, for people")]
pub fn seconds(micros: u64) -> f64 {
    micros as f64 / 1e6
}

/// Returns the sums over all tags since this server started, including tags that have lost their slot, and the hits, misses and
/// evictions of the slots.
#[pg_extern(schema = "snowflake_ids_internal", volatile, parallel_safe)]
fn segment_totals() -> Result<
    TableIterator<
        'static,
        (
            name!(ids_issued, i64),
            name!(refills, i64),
            name!(refill_seconds, f64),
            name!(waits, i64),
            name!(wait_seconds, f64),
            name!(slots, i64),
            name!(slots_in_use, i64),
            name!(hits, i64),
            name!(misses, i64),
            name!(evictions, i64),
        ),
    >,
    ErrorReport,
> {
    let segments = SEGMENTS.ready("snowflake_ids_internal.segment_totals")?;
    let counts = segments.counts_in_all();
    let in_use = segments.directory.read().len();
    let number = |number: usize| i64::try_from(number).unwrap_or(i64::MAX);
    let (misses, evictions) = (segments.misses.load(Relaxed), segments.evictions.load(Relaxed));
    Ok(TableIterator::once((
        counts.issued.cast_signed(),
        counts.refills.cast_signed(),
        seconds(counts.refill_time),
        counts.waits.cast_signed(),
        seconds(counts.wait_time),
        number(segments.slot_count),
        number(in_use),
        counts.issued.saturating_sub(misses).cast_signed(),
        misses.cast_signed(),
        evictions.cast_signed(),
    )))
}

/// Returns the version of the library. The extension's SQL objects may have an earlier version.
#[pg_extern(schema = "snowflake_ids_internal", stable, parallel_safe)]
fn library_version() -> &'static str {
    env!("CARGO_PKG_VERSION")
}

/// Returns the seconds until the last tick of a layout: 0 if that tick is over, null if the text is no layout.
#[pg_extern(schema = "snowflake_ids_internal", volatile, parallel_safe, strict)]
fn layout_seconds_left(layout: Text<'_>) -> Result<Option<f64>, ErrorReport> {
    let layout = layout.read("layout")?.parse::<Layout>().ok();
    Ok(layout.map(|layout| seconds(micros(layout.last_instant().since(SystemClock.now())))))
}

extension_sql_file!(
    "metrics.sql",
    name = "metrics",
    requires = [
        segment_totals,
        layout_seconds_left,
        library_version,
        "status_view",
        "segments",
        "series",
        "generators",
        "registries"
    ]
);
