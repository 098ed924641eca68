//! The errors of a session that gets no id.

use crate::error::{Explain, Kind, NotReadyError};
use crate::generator::drift::GeneratorError;
use crate::ids::uuid::UuidError;
use crate::registry::wire::LeaseError;
use crate::server::issuer::IssuerError;

/// Reason why a session got no id.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    /// The server can't generate ids now.
    #[error(transparent)]
    NotReady(#[from] NotReadyError),
    /// The generator refused; with a way out that it does not know of.
    #[error("{0}")]
    Refused(GeneratorError, Option<String>),
    /// Nothing could be reserved.
    #[error(transparent)]
    Issuer(#[from] IssuerError),
    /// No worker id could be leased.
    #[error("{0}")]
    LeaseError(LeaseError),
    /// No UUID can be made of a position.
    #[error(transparent)]
    Uuid(#[from] UuidError),
}

impl SessionError {
    fn cause(&self) -> &dyn Explain {
        match self {
            Self::NotReady(error) => error,
            Self::Refused(error, _) => error,
            Self::Issuer(error) => error,
            Self::LeaseError(error) => error,
            Self::Uuid(error) => error,
        }
    }
}

impl Explain for SessionError {
    fn kind(&self) -> Kind {
        self.cause().kind()
    }

    fn detail(&self) -> Option<String> {
        self.cause().detail()
    }

    fn hint(&self) -> Option<String> {
        match self {
            Self::Refused(_, Some(hint)) => Some(hint.clone()),
            _ => self.cause().hint(),
        }
    }

    fn for_others(&self) -> Option<(String, String)> {
        self.cause().for_others()
    }
}

impl From<LeaseError> for SessionError {
    fn from(none: LeaseError) -> Self {
        Self::LeaseError(none)
    }
}
