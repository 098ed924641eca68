//! Functions by which an administrator decides about the server's state.

use crate::issuer::issuer;
use crate::lease;
use crate::pg::report::{new_report, report};
use crate::pg::time;
use crate::shared::generator::{self, Shared};
use crate::sql::error::CallError;
use pgrx::PgSqlErrorCode;
use pgrx::pg_sys::panic::ErrorReport;
use pgrx::prelude::*;
use snowflake_ids_core::error::sentence;
use snowflake_ids_core::server::issuer::{Accepted, Renewed};
use snowflake_ids_core::server::lease::LeaseError;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

/// Replaces a state file that cannot be trusted. Ids begin above the given time; by default, above all ids that may have
/// been issued.
#[pg_extern(schema = "snowflake_ids", volatile, parallel_unsafe)]
fn state_reset(above: default!(Option<TimestampWithTimeZone>, "NULL")) -> Result<(), ErrorReport> {
    let shared = ready("snowflake_ids.state_reset")?;
    let above = above.map(time::from_sql).transpose()?;
    let issuer = issuer(shared);
    // The reset drops the lease, and a new lease needs the registry. A server that issues ids must not stop issuing because
    // the registry is down. So the server first renews its lease, to see whether the registry answers.
    if issuer.obstacle().is_none() && lease::origin().is_some() {
        let silent = |error| silent_registry("cannot reset the state", &error);
        lease::renew(shared).map_err(silent)?;
    }
    let Renewed { may_repeat, begins } = issuer.reset(above).map_err(report)?;
    if let Some(known) = may_repeat {
        pgrx::warning!("ids up to {known} may have been issued, and may be issued again");
    }
    if let Some(begins) = begins {
        new_report(
            PgSqlErrorCode::ERRCODE_WARNING,
            format!("no snowflake ids are issued before {begins}"),
        )
        .set_detail("Ids begin at that time, which the clock has not reached yet.")
        .set_hint(
            "If that is wrong, call snowflake_ids.state_reset with the instant above which ids are to begin.",
        )
        .report(PgLogLevel::WARNING);
    }
    Ok(())
}

/// Continues with the worker id of the server that this data directory was copied from. That server must be gone for
/// good.
#[pg_extern(schema = "snowflake_ids", volatile, parallel_unsafe)]
fn state_adopt() -> Result<(), ErrorReport> {
    issuer(ready("snowflake_ids.state_adopt")?).adopt().map_err(report)
}

/// Accepts a clock that has jumped, so that ids follow it.
#[pg_extern(schema = "snowflake_ids", volatile, parallel_unsafe)]
fn clock_accept() -> Result<(), ErrorReport> {
    let shared = ready("snowflake_ids.clock_accept")?;
    let issuer = issuer(shared);
    let accept = || issuer.accept_clock().map_err(report);
    match accept()? {
        Accepted::Followed => Ok(()),
        Accepted::LeaseEnded { worker_id } => {
            renewed_after(worker_id, lease::ask(shared, false));
            Ok(())
        }
        Accepted::AskRegistry => {
            let silent = |error| silent_registry("cannot follow the clock", &error);
            lease::renew(shared).map_err(silent)?;
            match accept()? {
                Accepted::AskRegistry => {
                    let by = shared.status.registry_behind.load(Relaxed).unsigned_abs();
                    Err(CallError::ClocksDiffer { by: Duration::from_micros(by) }.into())
                }
                Accepted::Followed | Accepted::LeaseEnded { .. } => Ok(()),
            }
        }
    }
}

fn renewed_after(worker_id: u32, asked: Result<(), LeaseError>) {
    let Err(error) = asked else {
        pgrx::notice!(
            "the lease of worker id {worker_id} had ended by this clock, and this server has leased a worker id again"
        );
        return;
    };
    let message = format!("the lease of worker id {worker_id} has ended by this clock");
    new_report(PgSqlErrorCode::ERRCODE_WARNING, message)
        .set_detail(sentence(&format!("{error}. {}", error.detail)))
        .set_hint(error.hint)
        .report(PgLogLevel::WARNING);
}

fn silent_registry(failure: &'static str, error: &LeaseError) -> ErrorReport {
    let registry = lease::origin().unwrap_or_default();
    CallError::SilentRegistry { failure, registry, detail: error.detail.clone() }.into()
}

fn ready(function: &'static str) -> Result<&'static Shared, ErrorReport> {
    generator::on_primary(function).map_err(report)
}
