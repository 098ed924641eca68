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
mod safe_position;
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

// Rights and comments, once all is there.
pgrx::extension_sql_file!("sql/last.sql", name = "last", finalize);
