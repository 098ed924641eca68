//! The extension's SQL functions. Each function reads its arguments, calls other modules or the core, and converts errors
//! into error reports.
#![allow(clippy::needless_pass_by_value, reason = "pgrx passes arguments by value")]
#![allow(clippy::result_large_err, reason = "pgrx takes the SQLSTATE from a report by value")]
#![allow(
    clippy::type_complexity,
    reason = "pgrx reads a table's columns from the written type, not from an alias"
)]

mod attach;
mod audit;
mod bound;
mod change;
mod citus;
mod column;
mod decode;
pub mod error;
mod generate;
mod generator;
mod layout;
mod metrics;
mod progress;
mod registry;
mod report;
pub mod rights;
mod safe_position;
mod segment;
mod series;
mod state;
mod status;
mod tag;
mod text;
mod uuid;
mod worker_id;

/// The schema of the functions that users call by a qualified name.
#[pgrx::pg_schema]
mod snowflake_ids {}

/// The schema of the functions that only the extension calls.
#[pgrx::pg_schema]
mod snowflake_ids_internal {}

pgrx::extension_sql!(
    "
/* Objects in users' schemas are not found from here on. The control file names the schema pg_catalog, so that the server
   sets the same search_path for every other script. */
SET LOCAL search_path = pg_catalog, pg_temp;

/* pgrx does not know that functions of triggers need their schema, so the schemas are created before everything else. */
CREATE SCHEMA IF NOT EXISTS snowflake_ids;
CREATE SCHEMA IF NOT EXISTS snowflake_ids_internal;
",
    name = "search_path",
    bootstrap
);

// Privileges and comments come last, after all objects exist.
pgrx::extension_sql_file!("sql/last.sql", name = "last", finalize);
