//! Errors of a lease worker's step.

use crate::registry::wire::LeaseError;
use crate::server::issuer::IssuerError;
use std::fmt;

/// Reason why a registry gave no answer.
pub trait LinkError: fmt::Display {
    /// Returns whether another attempt may succeed at once: rows were locked.
    fn is_conflict(&self) -> bool;

    /// For sessions that wait for a worker id.
    fn explain(self) -> LeaseError;
}

/// Reason why a step was in vain.
#[derive(Debug)]
pub enum LeaseStepError<L> {
    /// The registry gave no answer, or none that can be believed.
    Registry(L),
    /// The state cannot be read or written.
    State(IssuerError),
    /// There is no worker id to be had.
    None(LeaseError),
}

impl<L: LinkError> LeaseStepError<L> {
    /// Returns whether another attempt may succeed at once.
    pub fn is_conflict(&self) -> bool {
        matches!(self, Self::Registry(error) if error.is_conflict())
    }

    /// For sessions that wait for a worker id.
    pub fn explain(self) -> LeaseError {
        match self {
            Self::Registry(error) => error.explain(),
            Self::State(error) => {
                LeaseError::yet(format!("{error}."), "Look at snowflake_ids.status and at the server's log.")
            }
            Self::None(none) => none,
        }
    }
}

impl<L: LinkError> fmt::Display for LeaseStepError<L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Registry(error) => error.fmt(f),
            Self::State(error) => error.fmt(f),
            Self::None(none) => none.fmt(f),
        }
    }
}
