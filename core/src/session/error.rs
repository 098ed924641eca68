//! Errors of a session's calls for ids.

use crate::bound::BoundSequenceError;
use crate::error::{Explain, NotReadyError};
use crate::generator::drift::GeneratorError;
use crate::generator::named::NamedError;
use crate::ids::shard::{Shard, ShardError};
use crate::ids::uuid::UuidError;
use crate::server::issuer::IssuerError;
use crate::server::lease::LeaseError;

/// Reason why a session got no id.
#[expect(missing_docs, reason = "each names its cause")]
#[derive(Debug, thiserror::Error, Explain)]
pub enum SessionError {
    #[error(transparent)]
    NotReady(#[from] NotReadyError),
    /// The generator's error. The second field, if any, replaces the error's HINT.
    #[error("{0}")]
    #[explain(transparent = 0, hint_with = _1.clone().or_else(|| _0.hint()))]
    Refused(GeneratorError, Option<String>),
    #[error(transparent)]
    Issuer(#[from] IssuerError),
    #[error(transparent)]
    LeaseError(#[from] LeaseError),
    #[error(transparent)]
    Uuid(#[from] UuidError),
    /// No named generator has this name, or the generator's row is invalid.
    #[error(transparent)]
    Named(#[from] NamedError),
    /// The generator's layout has no ids for the configured shard.
    #[error(transparent)]
    Shard(#[from] ShardError),
    /// The sequence needs consecutive ids, but ids of one shard are not consecutive.
    #[error("ids of shard {0} are not consecutive")]
    #[explain(
        Unsupported,
        detail = "The increment of the sequence is not 1, so clients also use numbers beside the one that they get. Ids of one shard have gaps."
    )]
    #[explain(hint = "Run ALTER SEQUENCE ... INCREMENT BY 1, or use a generator without a shard.")]
    InRow(Shard),
    /// The properties of the bound sequence do not allow ids.
    #[error(transparent)]
    Bound(#[from] BoundSequenceError),
}
