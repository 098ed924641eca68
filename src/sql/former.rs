//! Functions that the SQL objects of version 0.2 need until ALTER EXTENSION UPDATE is run. Later versions do not call these
//! functions.

use crate::pg::report::not_ready;
use pgrx::pg_sys::panic::ErrorReport;
use pgrx::prelude::*;

#[pg_extern(sql = false)]
fn audit_run() -> Result<(), ErrorReport> {
    Err(refused("snowflake_ids.audit"))
}

#[pg_extern(sql = false)]
fn status_page() -> Result<(), ErrorReport> {
    Err(refused("snowflake_ids.status_page"))
}

fn refused(function: &str) -> ErrorReport {
    not_ready(
        format!("extension \"snowflake_ids\" must be updated before {function} can be called"),
        "The library is of a later version than the extension.",
        "Run ALTER EXTENSION snowflake_ids UPDATE.",
    )
}
