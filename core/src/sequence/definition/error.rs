//! Errors of a tag's name and terms, and of ids that are used up.

use super::limits::{MAX_STEP, MAX_TAG_BYTES, MAX_TAG_CHARS};
use crate::error::{Explain, Kind};
use serde::{Deserialize, Serialize};

/// Reason why terms are refused. Every variant names the argument at fault.
#[expect(missing_docs, reason = "each message names its figures")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DefinitionError {
    /// A smallest segment that is not 1 to `max_step`.
    #[error("step {step} is out of range")]
    Step { step: i64, max_step: i64 },
    /// A largest segment that is not 1 to [`MAX_STEP`].
    #[error("max_step {max_step} is out of range")]
    MaxStep { max_step: i64 },
    /// A distance of ids that is not 1 to [`MAX_STEP`].
    #[error("increment {increment} is out of range")]
    Increment { increment: i64 },
    /// A remainder that division by the increment cannot leave.
    #[error("remainder {remainder} is out of range")]
    Remainder { remainder: i64, increment: i64 },
    /// A negative first id.
    #[error("start {start} is negative")]
    Start { start: i64 },
    /// A highest reserved id that none could be.
    #[error("max_id {max_id} is out of range")]
    MaxId { max_id: i64 },
    /// An end before the start.
    #[error("max_value {max_value} is less than start {start}")]
    MaxValue { max_value: i64, start: i64 },
    /// Between start and end no number has the remainder.
    #[error("no id lies between start {start} and max_value {max_value}")]
    NoId { start: i64, max_value: i64, increment: i64, remainder: i64 },
}

impl Explain for DefinitionError {
    fn kind(&self) -> Kind {
        Kind::BadArgument
    }

    fn detail(&self) -> Option<String> {
        Some(match self {
            Self::Step { max_step, .. } => format!("The step must be 1 to max_step, which is {max_step}."),
            Self::MaxStep { .. } => format!("The largest step must be 1 to {MAX_STEP} ids."),
            Self::Increment { .. } => format!("The increment must be 1 to {MAX_STEP}."),
            Self::Remainder { increment, .. } => {
                format!("Division by the increment {increment} leaves 0 to {}.", increment.saturating_sub(1))
            }
            Self::Start { .. } => "Ids are 0 or more.".into(),
            Self::MaxId { .. } => {
                "The highest id reserved is 0 or more, or -1 when no id is reserved and start is 0.".into()
            }
            Self::MaxValue { .. } => "The ids of a tag lie between start and max_value.".into(),
            Self::NoId { increment, remainder, .. } => {
                format!("None of these numbers leaves {remainder} when divided by {increment}.")
            }
        })
    }

    fn hint(&self) -> Option<String> {
        let hint = match self {
            Self::Step { step, max_step } if step > max_step => "Lower step or raise max_step.",
            Self::Step { .. } => "Raise step: it counts the ids of the smallest segment.",
            Self::MaxStep { .. } => "Set max_step to the number of ids that one segment may have at most.",
            Self::Increment { .. } => {
                "Set increment to 1, or to the number of registries that share the tag."
            }
            Self::Remainder { .. } => "Set remainder to a number below increment, or raise increment.",
            Self::Start { .. } => "Set start to 0 or more.",
            Self::MaxId { .. } => "Set max_id to start - 1 to begin with start.",
            Self::MaxValue { .. } => "Raise max_value or lower start.",
            Self::NoId { .. } => "Raise max_value, lower start, or choose another remainder.",
        };
        Some(hint.to_owned())
    }
}

/// A tag has given out all its ids.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("the ids of the tag are used up")]
pub struct Exhausted {
    /// The highest number that may be an id.
    pub max_value: i64,
}

impl Explain for Exhausted {
    fn kind(&self) -> Kind {
        Kind::Exhausted
    }

    fn detail(&self) -> Option<String> {
        Some(format!("No id is left up to max_value {}.", self.max_value))
    }

    fn hint(&self) -> Option<String> {
        let hint = match self.max_value {
            i64::MAX => "No bigint is larger: go on with a new tag.",
            max if max == i64::from(i32::MAX) || max == i64::from(i16::MAX) => {
                "Columns that hold no larger ids have to become bigint; then raise max_value with snowflake_ids.segment_alter."
            }
            _ => "Raise max_value with snowflake_ids.segment_alter.",
        };
        Some(hint.to_owned())
    }
}

/// Reason why a tag is refused.
#[expect(missing_docs, reason = "each message names its figures")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TagError {
    /// A tag without a character.
    #[error("tag must not be empty")]
    Empty,
    /// A tag with too many.
    #[error("tag is too long")]
    TooLong { chars: usize },
    /// A tag with so many bytes that its characters need not be counted.
    #[error("tag is too long")]
    TooManyBytes { bytes: usize },
}

impl Explain for TagError {
    fn kind(&self) -> Kind {
        Kind::BadArgument
    }

    fn detail(&self) -> Option<String> {
        Some(match self {
            Self::Empty => format!("A tag has 1 to {MAX_TAG_CHARS} characters."),
            Self::TooLong { chars } => {
                format!("It has {chars} characters; a tag has at most {MAX_TAG_CHARS}.")
            }
            Self::TooManyBytes { bytes } => format!(
                "It has {bytes} bytes; a tag has at most {MAX_TAG_CHARS} characters, in {MAX_TAG_BYTES} bytes."
            ),
        })
    }

    fn hint(&self) -> Option<String> {
        Some("Name the tag after what it numbers, for example \"invoices\".".into())
    }
}
