//! The report on this server and this database: problems, the report itself, and the page that shows it.

use crate::pg::clock::SystemClock;
use crate::pg::encoding::to_utf8;
use crate::pg::text::{Text, TextOut};
use crate::pg::time;
use crate::settings;
use crate::shared::generator::SHARED;
use crate::shared::history::HISTORY;
use crate::shared::segments::SEGMENTS;
use crate::sql::layout;
use pgrx::pg_sys::panic::ErrorReport;
use pgrx::prelude::*;
use snowflake_ids_core::Clock;
use snowflake_ids_core::ids::layout::{Field, PRESETS, TickError};
use snowflake_ids_core::report::history::samples;
use snowflake_ids_core::report::page::page;
use std::sync::atomic::Ordering::Relaxed;

/// Returns the server's activity between consecutive samples of the last hour, in ascending order of time.
#[pg_extern(schema = "snowflake_ids", volatile, parallel_safe)]
fn status_history() -> Result<
    TableIterator<
        'static,
        (
            name!(sampled_at, TimestampWithTimeZone),
            name!(elapsed, Interval),
            name!(ids_per_second, f64),
            name!(segment_ids_per_second, f64),
            name!(drift, Interval),
            name!(waits, i64),
            name!(refills, i64),
            name!(steps_back, i64),
            name!(steps_forward, i64),
            name!(clock_ahead, Interval),
        ),
    >,
    ErrorReport,
> {
    let history = HISTORY.ready("snowflake_ids.status_history")?;
    let rows = samples(&history.readings()).into_iter().map(|sample| {
        Ok((
            time::to_sql(sample.at)?,
            time::interval(sample.elapsed)?,
            sample.ids,
            sample.tag_ids,
            time::interval(sample.drift)?,
            sample.waits.cast_signed(),
            sample.refills.cast_signed(),
            sample.steps_back.cast_signed(),
            sample.steps_forward.cast_signed(),
            time::interval(sample.clock_ahead)?,
        ))
    });
    Ok(TableIterator::new(rows.collect::<Result<Vec<_>, ErrorReport>>()?))
}

/// A generous limit in bytes: the report of a thousand tags has a few megabytes.
const LONGEST_REPORT: usize = 64 << 20;

/// Returns whether the launcher, which starts the refill workers, is running.
#[pg_extern(schema = "snowflake_ids_internal", volatile, parallel_safe)]
fn launcher_runs() -> bool {
    SEGMENTS.get().is_some_and(|segments| segments.launcher.is_occupied())
}

/// Returns the number of calls for ids that failed since the server's start.
#[pg_extern(schema = "snowflake_ids_internal", volatile, parallel_safe)]
fn failed_calls() -> i64 {
    SHARED.get().map_or(0, |shared| shared.counts.failed_calls.load(Relaxed).cast_signed())
}

/// Returns the names of the preset layouts. Each preset is the layout of another id system, such as Twitter's.
#[pg_extern(schema = "snowflake_ids_internal", immutable, parallel_safe)]
fn presets() -> SetOfIterator<'static, &'static str> {
    SetOfIterator::new(PRESETS.iter().map(|(name, _)| *name))
}

/// Describes a layout: the layout that the text describes, the layout of the generator that the text names, or the
/// server's layout if the text is null. Returns the layout's largest id, the highest id that can exist by now, and the
/// width and shift of each field in bits. Durations are in microseconds; points in time are in microseconds since 1970.
#[pg_extern(schema = "snowflake_ids_internal", volatile, parallel_safe)]
fn layout_parts(
    generator: Option<Text<'_>>,
) -> Result<
    TableIterator<
        'static,
        (
            name!(layout, String),
            name!(largest, i64),
            name!(highest, i64),
            name!(now, i64),
            name!(epoch, i64),
            name!(unit, i64),
            name!(ticks, i32),
            name!(datacenter, i32),
            name!(worker, i32),
            name!(rollback, i32),
            name!(sequence, i32),
            name!(ticks_shift, i32),
            name!(datacenter_shift, i32),
            name!(worker_shift, i32),
            name!(rollback_shift, i32),
            name!(sequence_shift, i32),
        ),
    >,
    ErrorReport,
> {
    let layout = generator.map_or_else(layout::of_server, |generator| layout::of_generator(&generator))?;
    let now = SystemClock.now();
    let largest = layout.largest_id().cast_signed();
    let highest = match layout.max_id(now.plus_micros(settings::rules().max_drift)) {
        Ok(highest) => highest.cast_signed(),
        Err(TickError::AfterLast { .. }) => largest,
        Err(TickError::BeforeEpoch { .. }) => -1,
    };
    let width = |field| i32::from(layout.widths().of(field));
    let shift = |field| i32::from(layout.shift(field));
    Ok(TableIterator::once((
        layout.to_string(),
        largest,
        highest,
        now.0,
        layout.epoch().0,
        layout.unit().cast_signed(),
        width(Field::Ticks),
        width(Field::Datacenter),
        width(Field::Worker),
        width(Field::Rollback),
        width(Field::Sequence),
        shift(Field::Ticks),
        shift(Field::Datacenter),
        shift(Field::Worker),
        shift(Field::Rollback),
        shift(Field::Sequence),
    )))
}

#[pg_extern(schema = "snowflake_ids_internal", stable, parallel_safe, strict)]
fn page_of(report: Text<'_>) -> Result<TextOut, ErrorReport> {
    let report = report.bytes(LONGEST_REPORT, "report")?;
    // In a database with encoding SQL_ASCII, a name may contain any bytes.
    let report = to_utf8(report).unwrap_or_else(|| String::from_utf8_lossy(report).into_owned());
    Ok(TextOut::of_bytes(page(&report).as_bytes()))
}

extension_sql!(
    "
CREATE VIEW snowflake_ids.status_history AS SELECT * FROM snowflake_ids.status_history();
COMMENT ON VIEW snowflake_ids.status_history IS 'the activity of this server in the last hour, one row for each sample';
",
    name = "status_history_view",
    requires = [status_history, "status_view"]
);
extension_sql_file!(
    "report.sql",
    name = "report",
    requires = ["status_history_view", "metrics", "attach_attach"]
);
