//! The view `snowflake_ids.status`: what this server's generator does.

use pgrx::prelude::*;

/// The schema of what administrators look at.
#[pg_schema]
mod snowflake_ids {
    use crate::error::{Need, Unready};
    use crate::pg::clock::SystemClock;
    use crate::pg::shmem::generator;
    use crate::sql::time;
    use pgrx::pg_sys::panic::ErrorReport;
    use pgrx::prelude::*;
    use snowflake_ids_core::clock::YEAR_MICROS;
    use snowflake_ids_core::{Clock, Layout, UnixMicros};

    /// One row: the state of this server's generator since the server started.
    #[pg_extern(volatile, parallel_safe)]
    fn status() -> Result<
        TableIterator<
            'static,
            (
                name!(datacenter_id, Option<i32>),
                name!(worker_id, Option<i32>),
                name!(layout, String),
                name!(epoch, TimestampWithTimeZone),
                name!(last_id, Option<i64>),
                name!(last_timestamp, Option<TimestampWithTimeZone>),
                name!(drift, Interval),
                name!(ids_issued, i64),
                name!(full_ticks, i64),
                name!(steps_back, i64),
                name!(largest_step_back, Interval),
                name!(years_left, f64),
            ),
        >,
        ErrorReport,
    > {
        let shared = generator::shared()
            .ok_or_else(|| Unready::NotPreloaded(Need::Generator).report("snowflake_ids.status"))?;
        let layout = &shared.layout;
        let now = SystemClock.now();
        let snapshot = shared.generator.snapshot();
        let last = snapshot.last.map(|position| layout.id(position, shared.placed).cast_signed());
        let made = snapshot.last.map(|position| layout.instant(position >> layout.widths().sequence));
        let drift = made.map_or(0, |made| made.0.saturating_sub(now.0).max(0).cast_unsigned());
        Ok(TableIterator::once((
            shared.node.map(|node| node.datacenter.cast_signed()),
            shared.node.map(|node| node.worker.cast_signed()),
            layout.to_string(),
            time::to_sql(layout.epoch())?,
            last,
            made.map(time::to_sql).transpose()?,
            time::interval(drift)?,
            shared.counted().cast_signed(),
            snapshot.full_ticks.cast_signed(),
            snapshot.steps_back.cast_signed(),
            time::interval(snapshot.largest_step_back.saturating_mul(layout.unit()))?,
            years_left(layout, now),
        )))
    }

    /// To one digit; 0 when the layout's time is over.
    #[allow(clippy::cast_precision_loss, reason = "one digit is shown")]
    fn years_left(layout: &Layout, now: UnixMicros) -> f64 {
        let left = layout.last_instant().0.saturating_sub(now.0).max(0);
        (left as f64 / YEAR_MICROS as f64 * 10.0).floor() / 10.0
    }
}

extension_sql!(
    "
CREATE VIEW snowflake_ids.status AS SELECT * FROM snowflake_ids.status();
COMMENT ON VIEW snowflake_ids.status IS 'the state of this server''s snowflake generator since the server started';
GRANT USAGE ON SCHEMA snowflake_ids TO PUBLIC;
GRANT SELECT ON snowflake_ids.status TO PUBLIC;
",
    name = "status_view",
    requires = [snowflake_ids::status]
);
