//! The lease worker's memory from one step to the next.

use super::error::LeaseStepError;
use super::host::{LeaseLink, Other};
use super::requests::LeaseRequests;
use crate::clock::UnixMicros;
use crate::server::issuer::Issuer;

/// The lease worker.
pub struct LeaseWorker<'a, S, L, H> {
    /// The server's state.
    pub state: Issuer<'a, S>,
    /// The way to the registry.
    pub link: L,
    /// The server.
    pub host: H,
    /// What is asked.
    pub requests: &'a LeaseRequests,
    /// Where the registry was found; None: in this database.
    pub(super) other: Option<Other>,
    /// What the clock of a registry on another server showed when it answered last.
    pub(super) registry_clock: Option<UnixMicros>,
}

/// Reason why a step was in vain.
pub(super) type StepError<L> = LeaseStepError<<L as LeaseLink>::Error>;

/// What a step came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LeaseStep {
    /// There is nothing left to do.
    Done,
    /// There is more to do, or what was seen has changed.
    Again,
}

impl<'a, S, L, H> LeaseWorker<'a, S, L, H> {
    /// A worker that has found nothing out yet.
    pub fn new(state: Issuer<'a, S>, link: L, host: H, requests: &'a LeaseRequests) -> Self {
        Self { state, link, host, requests, other: None, registry_clock: None }
    }
}
