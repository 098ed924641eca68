//! The page about this server, and what its curves are drawn of.

use pgrx::prelude::*;

/// The schema of what administrators look at.
#[pg_schema]
mod snowflake_ids {
    use crate::pg::report::report;
    use crate::pg::text::TextOut;
    use crate::pg::time;
    use crate::shared::history::history;
    use crate::sql::layout;
    use crate::status_page;
    use pgrx::pg_sys::panic::ErrorReport;
    use pgrx::prelude::*;
    use snowflake_ids_core::error::NotReadyError;
    use snowflake_ids_core::history::samples;

    /// One page of HTML about this server and this database, as far as the caller may read the views.
    #[pg_extern(sql = r#"
/* What PostgREST and its like take for the type of a response. */
CREATE DOMAIN snowflake_ids."text/html" AS text;
COMMENT ON DOMAIN snowflake_ids."text/html" IS 'a page of HTML, as PostgREST names the type of what it answers';
CREATE FUNCTION snowflake_ids.status_page() RETURNS snowflake_ids."text/html"
VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'status_page_wrapper';
COMMENT ON FUNCTION snowflake_ids.status_page IS 'a page of HTML about this server, of what the caller may see in the views';
"#)]
    fn status_page() -> Result<TextOut, ErrorReport> {
        // The page is ASCII, which is a part of every encoding of databases.
        Ok(TextOut::of_bytes(status_page::page(layout::of_server()?)?.as_bytes()))
    }

    /// What the server did between each two samples of the last hour, the earliest first.
    #[pg_extern(volatile, parallel_safe)]
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
        let history =
            history().ok_or_else(|| report(&NotReadyError::NotPreloaded("snowflake_ids.status_history")))?;
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
}

extension_sql!(
    "
CREATE VIEW snowflake_ids.status_history AS SELECT * FROM snowflake_ids.status_history();
COMMENT ON VIEW snowflake_ids.status_history IS 'what this server did in the last hour, a row for each sample';
GRANT SELECT ON snowflake_ids.status_history TO PUBLIC;
",
    name = "status_history_view",
    requires = [snowflake_ids::status_history, "status_view"]
);
