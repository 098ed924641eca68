//! What an operator decides about the server's state.

use pgrx::prelude::*;

/// The schema of administration.
#[pg_schema]
mod snowflake_ids {
    use crate::issuer::issuer;
    use crate::pg::report::report;
    use crate::pg::server;
    use crate::pg::time;
    use crate::shared::generator::{self, Shared};
    use pgrx::pg_sys::panic::ErrorReport;
    use pgrx::prelude::*;
    use pgrx::{PgSqlErrorCode as Code, function_name};
    use snowflake_ids_core::error::NotReadyError;
    use snowflake_ids_core::issuer::Renewed;

    /// Begins a new state where the stored one can't be trusted. Ids start above an instant, by default above all that
    /// may have been issued up to now.
    #[pg_extern(volatile, parallel_unsafe)]
    fn state_reset(above: default!(Option<TimestampWithTimeZone>, "NULL")) -> Result<(), ErrorReport> {
        let shared = ready("snowflake_ids.state_reset")?;
        let above = above.map(time::from_sql).transpose()?;
        let Renewed { may_repeat, begins } = issuer(shared).reset(above).map_err(|error| report(&error))?;
        if let Some(known) = may_repeat {
            pgrx::warning!("ids up to {known} may have been issued, and may come again");
        }
        if let Some(begins) = begins {
            ErrorReport::new(Code::ERRCODE_WARNING, format!("no snowflake id comes before {begins}"), function_name!())
                .set_detail("Ids begin there, and the clock that they follow has not reached it.")
                .set_hint("If that is wrong, call snowflake_ids.state_reset with the instant above which ids are to begin.")
                .report(PgLogLevel::WARNING);
        }
        Ok(())
    }

    /// Goes on with the worker id of the server that this data directory was copied from, and that is gone for good.
    #[pg_extern(volatile, parallel_unsafe)]
    fn state_adopt() -> Result<(), ErrorReport> {
        issuer(ready("snowflake_ids.state_adopt")?).adopt().map_err(|error| report(&error))
    }

    /// Follows the clock although it has jumped.
    #[pg_extern(volatile, parallel_unsafe)]
    fn clock_accept() -> Result<(), ErrorReport> {
        issuer(ready("snowflake_ids.clock_accept")?).accept_clock().map_err(|error| report(&error))
    }

    fn ready(function: &'static str) -> Result<&'static Shared, ErrorReport> {
        let shared = generator::shared().ok_or_else(|| report(&NotReadyError::NotPreloaded(function)))?;
        if server::in_recovery() { Err(report(&NotReadyError::InRecovery(function))) } else { Ok(shared) }
    }
}
