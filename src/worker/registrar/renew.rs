//! Renewing the lease.

use super::{Registry, Step, Trouble, transaction};
use crate::pg::server;
use crate::store::worker::{self as store, Entry};
use crate::tenure;
use pgrx::pg_sys::panic::ErrorReport;
use pgrx::{PgLogLevel, PgSqlErrorCode, function_name};
use snowflake_ids_core::lease::Lease;
use std::sync::atomic::Ordering::Release;

impl Registry<'_> {
    /// Moves the horizon of the lease on, or notices that the lease is lost.
    pub fn renew(&self, lease: &Lease, entry: &Entry) -> Result<Step, Trouble> {
        let horizon = transaction(|| store::renew(lease.worker, lease.token, entry))?;
        let lost = tenure::change(self.shared, |state, _| {
            let Some(held) = state.lease.as_mut().filter(|held| held.token == lease.token) else {
                return false;
            };
            if let Some(horizon) = horizon {
                held.token = entry.token;
                held.horizon = horizon;
                state.claim = None;
                state.registry = Some(server::database());
            } else {
                state.give_up();
            }
            horizon.is_none()
        })?;
        self.leases.renew.store(false, Release);
        if lost {
            warn_of_loss(lease);
            return Ok(Step::Again);
        }
        Ok(Step::Done)
    }
}

fn warn_of_loss(lease: &Lease) {
    ErrorReport::new(
        PgSqlErrorCode::ERRCODE_WARNING,
        format!("the lease of worker id {} is lost, and nothing is issued under it any more", lease.worker),
        function_name!(),
    )
    .set_detail(format!(
        "It was leased until {}; the row of datacenter {}, worker {} in snowflake_ids.worker has another token now.",
        lease.horizon, lease.datacenter, lease.worker
    ))
    .set_hint("Another worker id is leased. See whether a copy of this server is running.")
    .report(PgLogLevel::WARNING);
}
