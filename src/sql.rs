//! The SQL surface. Functions are thin: they read arguments, call the session or the core, and turn the
//! core's errors into reports.
#![allow(clippy::needless_pass_by_value, reason = "pgrx passes arguments by value")]
#![allow(clippy::result_large_err, reason = "pgrx takes the SQLSTATE from a report by value")]
#![allow(
    clippy::type_complexity,
    reason = "pgrx reads a table's columns from the written type, not from an alias"
)]

mod attach;
mod audit;
mod change;
mod citus;
mod decode;
mod former;
mod generate;
mod generator;
mod layout;
mod metrics;
mod progress;
mod registry;
mod report;
mod segment;
mod sequence;
mod series;
mod state;
mod status;
mod tag;
mod text;
mod uuid;
mod worker;

pgrx::extension_sql!(
    "
/* Nothing that others could have put into a schema of theirs is found from here on. The control file names the schema
   pg_catalog, so that the server does the same for every script. */
SET LOCAL search_path = pg_catalog, pg_temp;
",
    name = "search_path",
    bootstrap
);

// What pgrx makes of functions here names no comment.
pgrx::extension_sql_file!(
    "sql/comments.sql",
    name = "comments",
    requires = [
        "layout_change",
        "metrics",
        "progress",
        "report",
        "registries",
        "segment_nextval",
        "series",
        "snowflake_nextval",
        "snowflake_uuid",
        "status_history_view",
        "status_view",
        clock_accept,
        compose_of_layout,
        datacenter_id_of,
        datacenter_id_of_layout,
        datacenter_id_of_text,
        datacenter_id_of_text_and_layout,
        datacenter_id_of_uuid,
        datacenter_id_of_uuid_and_layout,
        decode_json_of,
        decode_json_of_layout,
        decode_of_layout,
        extension_keep,
        interval_of,
        interval_of_layout,
        max_id_of,
        max_id_of_layout,
        min_id_of,
        min_id_of_layout,
        segment_currval,
        segment_nextval_text,
        segment_nextvals,
        sequence_of,
        sequence_of_layout,
        snowflake_compose,
        snowflake_decode,
        snowflake_decode_text,
        snowflake_encode,
        snowflake_lastval,
        snowflake_min_uuid,
        snowflake_nextvals,
        snowflake_nextvals_of_generator,
        snowflake_try_decode_text,
        state_adopt,
        state_reset,
        timestamp_of,
        timestamp_of_layout,
        timestamp_of_text,
        timestamp_of_uuid,
        worker_id_of,
        worker_id_of_layout,
        worker_id_of_text,
        worker_id_of_text_and_layout,
        worker_id_of_uuid,
        worker_id_of_uuid_and_layout
    ]
);
