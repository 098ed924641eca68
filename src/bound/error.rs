//! Errors of bound sequences.

use crate::pg::sequence;
use crate::tag::error::SegmentError;
use pgrx::pg_sys::Oid;
use pgrx::spi::SpiError;
use snowflake_ids_core::Explain;
use snowflake_ids_core::bound::BoundSequenceError;
use snowflake_ids_core::session::SessionError;

/// The reason why a bound sequence gave no number or was not moved. The fields name sequences as the server does.
#[derive(Debug, thiserror::Error, Explain)]
pub enum SequenceError {
    /// The generator that the sequence is bound to gave no id.
    #[error("{error}")]
    #[explain(transparent = error, detail_with = with_generator(error, sequence))]
    Snowflake { error: Box<SessionError>, sequence: String },
    /// The tag that the sequence is bound to gave no id.
    #[error("{error}")]
    #[explain(transparent = error, detail_with = with_tag(error, sequence))]
    Segment { error: SegmentError, sequence: String },
    /// The sequence's increment does not suit ids.
    #[error(transparent)]
    Bound(#[from] BoundSequenceError),
    #[error("currval of sequence \"{0}\" is not yet defined in this session")]
    #[explain(NotReady, hint = "Call nextval() of the sequence first.")]
    NoCurrent(String),
    #[error("lastval is not yet defined in this session")]
    #[explain(NotReady, hint = "Call nextval() of the sequence first.")]
    NoLast,
    #[error("permission denied for sequence {0}")]
    #[explain(Denied)]
    Denied(String),
    #[error("permission denied for function {0}")]
    #[explain(Denied)]
    NotExecutable(&'static str),
    /// The binding's row was not written by `bind_sequence`.
    #[error("the binding of sequence \"{0}\" is not valid")]
    #[explain(
        NotReady,
        detail = "The sequence's row in snowflake_ids.sequence_binding was written by hand: the row names both a tag and a generator, or a name that is too long.",
        hint = "Have a superuser delete the row, set the sequence with setval above all ids in use, and bind it again."
    )]
    Unreadable(String),
    #[error("too many bound sequences")]
    #[explain(
        LimitReached,
        detail = "This database has reached snowflake_ids.max_bound_sequences, which is {0}.",
        hint = "Unbind sequences with snowflake_ids.unbind_sequence, or raise snowflake_ids.max_bound_sequences."
    )]
    TooMany(i64),
    #[error("sequence \"{0}\" is not at its maximum")]
    #[explain(
        BadArgument,
        detail = "A bound sequence must be at its maximum, so that it gives no numbers of its own."
    )]
    #[explain(hint = "Bind the sequence with snowflake_ids.bind_sequence, which sets it to its maximum.")]
    NotAtEnd(String),
    #[error("bound sequence \"{0}\" cannot cycle")]
    #[explain(BadArgument, detail = "Ids are never issued twice.")]
    #[explain(hint = "Unbind the sequence first with snowflake_ids.unbind_sequence.")]
    Cycles(String),
    /// The server's setval is called by a statement that was not redirected.
    #[error("cannot call setval() here")]
    #[explain(
        Unsupported,
        detail = "In a database with bound sequences, the planner replaces calls of setval(). This call was not planned.",
        hint = "Call setval() in a separate SELECT, or in a PL/pgSQL function."
    )]
    Unreached,
    /// SPI failed without an SQL error.
    #[error("could not execute an internal query of snowflake_ids: {0}")]
    #[explain(Internal)]
    Spi(#[from] SpiError),
}

fn with_generator(error: &SessionError, sequence: &str) -> Option<String> {
    let detail = error.detail();
    if !matches!(error, SessionError::Named(_)) {
        return detail;
    }
    let bound = format!("Sequence \"{sequence}\" is bound to it.");
    Some(detail.map_or_else(|| bound.clone(), |detail| format!("{detail} {bound}")))
}

fn with_tag(error: &SegmentError, sequence: &str) -> Option<String> {
    error.detail().or_else(|| Some(format!("Sequence \"{sequence}\" is bound to the tag.")))
}

impl SequenceError {
    /// Returns the error for a generator that gave no id.
    pub fn of_generator(error: SessionError, sequence: Oid) -> Self {
        Self::Snowflake { error: Box::new(error), sequence: sequence::name(sequence) }
    }

    /// Returns the error for a tag that gave no id.
    pub fn of_tag(error: SegmentError, sequence: Oid) -> Self {
        Self::Segment { error, sequence: sequence::name(sequence) }
    }
}
