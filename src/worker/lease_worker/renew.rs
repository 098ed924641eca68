//! Renewing the lease.

use super::{Registry, Step, Trouble};
use crate::issuer;
use crate::lease;
use crate::pg::server;
use pgrx::pg_sys::panic::ErrorReport;
use pgrx::{PgLogLevel, PgSqlErrorCode, function_name};
use snowflake_ids_core::lease::Lease;
use snowflake_ids_core::wire::{Entry, RequestBody, ResponseBody};
use std::sync::atomic::Ordering::Release;

impl Registry<'_> {
    /// Moves the expiry of the lease on, or notices that the lease is lost.
    pub fn renew(&mut self, lease: &Lease, entry: &Entry) -> Result<Step, Trouble> {
        let ask = RequestBody::Renew { worker: lease.worker, token: lease.token, entry: entry.clone() };
        let ResponseBody::Renewed(expiry) = self.ask(ask)? else { return Ok(Step::Again) };
        if let Some(expiry) = expiry {
            self.check_expiry(lease.worker, expiry)?;
        }
        let origin = self.origin();
        let lost = issuer::change(self.shared, |state, _| {
            let Some(held) = state.lease.as_mut().filter(|held| held.token == lease.token) else {
                return false;
            };
            if let Some(expiry) = expiry {
                held.token = entry.token;
                held.expiry = expiry;
                held.origin.clone_from(&origin);
                state.claim = None;
                state.registry = Some(server::database());
                state.moving_to = None;
            } else {
                state.give_up();
            }
            expiry.is_none()
        })?;
        if let Some(expiry) = expiry {
            lease::granted(self.leases, expiry, issuer::believed_now(self.shared));
        }
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
        "It was leased until {}; the row of datacenter {}, worker {} in snowflake_ids.worker_lease has another token now.",
        lease.expiry, lease.datacenter, lease.worker
    ))
    .set_hint("Another worker id is leased. See whether a copy of this server is running.")
    .report(PgLogLevel::WARNING);
}
