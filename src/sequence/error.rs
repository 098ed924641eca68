//! Errors of bound sequences.

use crate::pg::sequence;
use crate::segment::error::SegmentError;
use pgrx::pg_sys::Oid;
use pgrx::spi::SpiError;
use snowflake_ids_core::generator::session::SessionError;
use snowflake_ids_core::sequence::bound_sequence::BoundSequenceError;
use snowflake_ids_core::{Explain, Kind};

/// Reason why a bound sequence gave no number, or was not moved. Sequences are named as the server names them.
#[derive(Debug, thiserror::Error)]
pub enum SequenceError {
    /// There is no snowflake id, of the generator that a sequence is bound to.
    #[error("{error}")]
    Snowflake { error: Box<SessionError>, sequence: String },
    /// There is no id of the tag that a sequence is bound to.
    #[error("{error}")]
    Segment { error: SegmentError, sequence: String },
    /// It counts in a way in which ids cannot be given.
    #[error(transparent)]
    Bound(#[from] BoundSequenceError),
    /// The session got no number of it yet.
    #[error("currval of sequence \"{0}\" is not yet defined in this session")]
    NoCurrent(String),
    /// The session got no number yet.
    #[error("lastval is not yet defined in this session")]
    NoLast,
    /// The role has not the right to.
    #[error("permission denied for sequence {0}")]
    Denied(String),
    /// The role may not call the server's function.
    #[error("permission denied for function {0}")]
    NotExecutable(&'static str),
    /// Its row is not one that `bind_sequence` has written.
    #[error("the binding of sequence \"{0}\" cannot be read")]
    Unreadable(String),
    /// As many are bound as may be.
    #[error("too many bound sequences")]
    TooMany(i64),
    /// It is to be noted as bound, and was not put where a bound one stands.
    #[error("sequence \"{0}\" does not stand at its end")]
    NotAtEnd(String),
    /// It would begin again at its end.
    #[error("bound sequence \"{0}\" cannot cycle")]
    Cycles(String),
    /// The server's setval is called where the call was not redirected.
    #[error("cannot call setval() here")]
    Unreached,
    /// SPI failed without an SQL error.
    #[error("snowflake_ids could not run its SQL: {0}")]
    Spi(#[from] SpiError),
}

impl SequenceError {
    /// Returns the reason why there is no snowflake id.
    pub fn of_generator(error: SessionError, sequence: Oid) -> Self {
        Self::Snowflake { error: Box::new(error), sequence: sequence::name(sequence) }
    }

    /// Returns the reason why there is no id of the tag that a sequence is bound to.
    pub fn of_tag(error: SegmentError, sequence: Oid) -> Self {
        Self::Segment { error, sequence: sequence::name(sequence) }
    }
}

impl Explain for SequenceError {
    fn kind(&self) -> Kind {
        match self {
            Self::Snowflake { error, .. } => error.kind(),
            Self::Segment { error, .. } => error.kind(),
            Self::Bound(error) => error.kind(),
            Self::NoCurrent(_) | Self::NoLast | Self::Unreadable(_) => Kind::NotReady,
            Self::Denied(_) | Self::NotExecutable(_) => Kind::Denied,
            Self::Cycles(_) | Self::NotAtEnd(_) => Kind::BadArgument,
            Self::TooMany(_) => Kind::LimitReached,
            Self::Unreached => Kind::Unsupported,
            Self::Spi(_) => Kind::Internal,
        }
    }

    fn detail(&self) -> Option<String> {
        match self {
            Self::Snowflake { error, sequence } if matches!(**error, SessionError::Named(_)) => {
                let bound = format!("Sequence \"{sequence}\" is bound to it.");
                Some(error.detail().map_or_else(|| bound.clone(), |detail| format!("{detail} {bound}")))
            }
            Self::Snowflake { error, .. } => error.detail(),
            Self::Segment { error, sequence } => {
                error.detail().or_else(|| Some(format!("Sequence \"{sequence}\" is bound to the tag.")))
            }
            Self::Bound(error) => error.detail(),
            Self::Cycles(_) => Some("Ids do not come again.".to_owned()),
            Self::Unreadable(_) => Some(
                "Its row in snowflake_ids.sequence_binding was written by hand: the names in it are too long, or are two.".to_owned(),
            ),
            Self::NotAtEnd(_) => Some("A bound sequence gives no numbers of its own.".to_owned()),
            Self::TooMany(most) => Some(format!(
                "This database has as many as snowflake_ids.max_bound_sequences allows, which is {most}."
            )),
            Self::Unreached => Some(
                "This database has bound sequences, and this call does not go through the planner, which redirects it."
                    .to_owned(),
            ),
            Self::NoCurrent(_) | Self::NoLast | Self::Denied(_) | Self::NotExecutable(_) | Self::Spi(_) => None,
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            Self::Snowflake { error, .. } => error.hint(),
            Self::Segment { error, .. } => error.hint(),
            Self::Bound(error) => error.hint(),
            Self::NoCurrent(_) | Self::NoLast => Some("Call nextval() of the sequence first.".to_owned()),
            Self::Cycles(_) => Some("Unbind it first, with snowflake_ids.unbind_sequence.".to_owned()),
            Self::Unreadable(_) => Some(
                "Have a superuser delete the row, set the sequence with setval above all ids in use, and bind it again."
                    .to_owned(),
            ),
            Self::NotAtEnd(_) => Some("Call snowflake_ids.bind_sequence, which puts it there.".to_owned()),
            Self::TooMany(_) => {
                Some("Unbind some, or raise snowflake_ids.max_bound_sequences.".to_owned())
            }
            Self::Unreached => {
                Some("Call it in a SELECT of its own, or in a function in PL/pgSQL.".to_owned())
            }
            Self::Denied(_) | Self::NotExecutable(_) | Self::Spi(_) => None,
        }
    }

    fn for_others(&self) -> Option<(String, String)> {
        match self {
            Self::Snowflake { error, .. } => error.for_others(),
            _ => None,
        }
    }
}
