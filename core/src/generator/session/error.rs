//! The errors of a session that gets no id.

use crate::error::{Explain, Kind, NotReadyError};
use crate::generator::drift::GeneratorError;
use crate::generator::named::NamedError;
use crate::ids::shard::{Shard, ShardError};
use crate::ids::uuid::UuidError;
use crate::registry::wire::LeaseError;
use crate::sequence::bound_sequence::BoundSequenceError;
use crate::server::issuer::IssuerError;

/// Reason why a session got no id.
#[expect(missing_docs, reason = "each names its cause")]
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    #[error(transparent)]
    NotReady(#[from] NotReadyError),
    /// The generator refused; with a way out that it does not know of.
    #[error("{0}")]
    Refused(GeneratorError, Option<String>),
    #[error(transparent)]
    Issuer(#[from] IssuerError),
    #[error("{0}")]
    LeaseError(LeaseError),
    #[error(transparent)]
    Uuid(#[from] UuidError),
    /// There is no generator of the name, or its row is not right.
    #[error(transparent)]
    Named(#[from] NamedError),
    /// The layout of a generator has no ids for the shard that is set.
    #[error(transparent)]
    Shard(#[from] ShardError),
    /// A sequence gives ids in a row, of which one in so many is the shard's.
    #[error("ids of shard {0} are not in a row")]
    InRow(Shard),
    /// A bound sequence counts in a way in which ids cannot be given.
    #[error(transparent)]
    Bound(#[from] BoundSequenceError),
}

impl SessionError {
    fn cause(&self) -> Option<&dyn Explain> {
        Some(match self {
            Self::NotReady(error) => error,
            Self::Refused(error, _) => error,
            Self::Issuer(error) => error,
            Self::LeaseError(error) => error,
            Self::Uuid(error) => error,
            Self::Named(error) => error,
            Self::Shard(error) => error,
            Self::InRow(_) => return None,
            Self::Bound(error) => error,
        })
    }
}

impl Explain for SessionError {
    fn kind(&self) -> Kind {
        self.cause().map_or(Kind::Unsupported, Explain::kind)
    }

    fn detail(&self) -> Option<String> {
        let in_row = || Some("A sequence whose increment is not 1 gives as many ids in a row.".into());
        self.cause().map_or_else(in_row, Explain::detail)
    }

    fn hint(&self) -> Option<String> {
        if let Self::Refused(_, Some(hint)) = self {
            return Some(hint.clone());
        }
        let in_row =
            || Some("ALTER SEQUENCE ... INCREMENT BY 1, or use a generator that gives every id.".into());
        self.cause().map_or_else(in_row, Explain::hint)
    }

    fn for_others(&self) -> Option<(String, String)> {
        self.cause()?.for_others()
    }
}

impl From<LeaseError> for SessionError {
    fn from(none: LeaseError) -> Self {
        Self::LeaseError(none)
    }
}
