//! Renewing the lease.

use super::error::LeaseStepError;
use super::host::{LeaseEvent, LeaseHost, LeaseLink};
use super::worker::{LeaseStep, LeaseWorker, StepError};
use crate::registry::lease::Lease;
use crate::registry::wire::{Entry, RequestBody, ResponseBody};
use crate::server::issuer::Host;
use std::sync::atomic::Ordering::Release;

impl<S: Host, L: LeaseLink, H: LeaseHost> LeaseWorker<'_, S, L, H> {
    /// Moves the end of the lease on, or notices that the lease is lost.
    pub(super) fn renew(&mut self, lease: &Lease, entry: &Entry) -> Result<LeaseStep, StepError<L>> {
        let ask = RequestBody::Renew { worker: lease.worker, token: lease.token, entry: entry.clone() };
        let ResponseBody::Renewed(expiry) = self.ask(ask)? else { return Ok(LeaseStep::Again) };
        if let Some(expiry) = expiry {
            self.check_expiry(lease.worker, expiry)?;
        }
        let origin = self.origin();
        let lost = self.state.change(|state, _| {
            let Some(held) = state.lease.as_mut().filter(|held| held.token == lease.token) else {
                return false;
            };
            if let Some(expiry) = expiry {
                held.token = entry.token;
                held.expiry = expiry;
                held.origin = origin;
                state.claim = None;
            } else {
                state.give_up();
            }
            expiry.is_none()
        });
        let lost = lost.map_err(LeaseStepError::State)?;
        match expiry {
            Some(expiry) => self.note_granted(expiry),
            None => self.requests.renew.store(false, Release),
        }
        if lost {
            self.host.note(LeaseEvent::Lost(lease));
            return Ok(LeaseStep::Again);
        }
        Ok(LeaseStep::Done)
    }
}
