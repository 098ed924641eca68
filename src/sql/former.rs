//! Functions that the SQL of 0.2 calls and that of later versions does not, until it is updated.

use pgrx::pg_sys::panic::ErrorReport;
use pgrx::prelude::*;
use pgrx::{PgSqlErrorCode, function_name};

#[pg_extern(sql = false)]
fn audit_run() -> Result<(), ErrorReport> {
    Err(refused("snowflake_ids.audit"))
}

#[pg_extern(sql = false)]
fn status_page() -> Result<(), ErrorReport> {
    Err(refused("snowflake_ids.status_page"))
}

fn refused(function: &str) -> ErrorReport {
    ErrorReport::new(
        PgSqlErrorCode::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
        format!("extension \"snowflake_ids\" must be updated before {function} can be called"),
        function_name!(),
    )
    .set_detail("The library is of a later version than the extension.")
    .set_hint("ALTER EXTENSION snowflake_ids UPDATE;")
}
