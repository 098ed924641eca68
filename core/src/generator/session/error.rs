//! The errors of a session that gets no id.

use crate::error::{Explain, NotReadyError};
use crate::generator::drift::GeneratorError;
use crate::generator::named::NamedError;
use crate::ids::shard::{Shard, ShardError};
use crate::ids::uuid::UuidError;
use crate::registry::wire::LeaseError;
use crate::sequence::bound_sequence::BoundSequenceError;
use crate::server::issuer::IssuerError;

/// Reason why a session got no id.
#[expect(missing_docs, reason = "each names its cause")]
#[derive(Debug, thiserror::Error, Explain)]
pub enum SessionError {
    #[error(transparent)]
    #[explain(transparent)]
    NotReady(#[from] NotReadyError),
    /// The generator refused; with a way out that it does not know of.
    #[error("{0}")]
    #[explain(transparent = 0, hint_with = .1.clone().or_else(|| .0.hint()))]
    Refused(GeneratorError, Option<String>),
    #[error(transparent)]
    #[explain(transparent)]
    Issuer(#[from] IssuerError),
    #[error("{0}")]
    #[explain(transparent)]
    LeaseError(LeaseError),
    #[error(transparent)]
    #[explain(transparent)]
    Uuid(#[from] UuidError),
    /// There is no generator of the name, or its row is not right.
    #[error(transparent)]
    #[explain(transparent)]
    Named(#[from] NamedError),
    /// The layout of a generator has no ids for the shard that is set.
    #[error(transparent)]
    #[explain(transparent)]
    Shard(#[from] ShardError),
    /// A sequence gives ids in a row, of which one in so many is the shard's.
    #[error("ids of shard {0} are not consecutive")]
    #[explain(Unsupported, detail = "A sequence whose increment is not 1 needs consecutive ids.")]
    #[explain(hint = "Run ALTER SEQUENCE ... INCREMENT BY 1, or use a generator without a shard.")]
    InRow(Shard),
    /// A bound sequence counts in a way in which ids cannot be given.
    #[error(transparent)]
    #[explain(transparent)]
    Bound(#[from] BoundSequenceError),
}

impl From<LeaseError> for SessionError {
    fn from(none: LeaseError) -> Self {
        Self::LeaseError(none)
    }
}
