//! Errors of a tag's name and properties, and of tags without ids left.

use super::limits::{MAX_STEP, MAX_TAG_BYTES, MAX_TAG_CHARS};
use crate::error::Explain;
use serde::{Deserialize, Serialize};

/// Reason why properties are refused. Each variant names the invalid argument.
#[expect(missing_docs, reason = "each message names its figures")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error, Explain)]
#[explain(BadArgument)]
pub enum DefinitionError {
    #[error("step {step} is out of range")]
    #[explain(detail = "The step must be 1 to max_step, which is {max_step}.")]
    #[explain(hint = "{}", if step > max_step {
        "Lower step or raise max_step."
    } else {
        "Set step to the smallest number of ids that a segment may have."
    })]
    Step { step: i64, max_step: i64 },
    #[error("max_step {max_step} is out of range")]
    #[explain(detail = "The largest step must be 1 to {MAX_STEP} ids.")]
    #[explain(hint = "Set max_step to the largest number of ids that a segment may have.")]
    MaxStep { max_step: i64 },
    #[error("increment {increment} is out of range")]
    #[explain(detail = "The increment must be 1 to {MAX_STEP}.")]
    #[explain(hint = "Set increment to 1, or to the number of registries that share the tag.")]
    Increment { increment: i64 },
    #[error("remainder {remainder} is out of range")]
    #[explain(detail = "With increment {increment}, the remainder must be 0 to {}.", increment.saturating_sub(1))]
    #[explain(hint = "Set remainder to a number below increment, or raise increment.")]
    Remainder { remainder: i64, increment: i64 },
    #[error("start {start} is negative")]
    #[explain(detail = "Ids are 0 or more.", hint = "Set start to 0 or more.")]
    Start { start: i64 },
    #[error("max_id {max_id} is out of range")]
    #[explain(
        detail = "max_id, the highest reserved id, must be -1 or more; -1 means that no id is reserved."
    )]
    #[explain(hint = "To make start the first id, set max_id to start - 1.")]
    MaxId { max_id: i64 },
    #[error("max_value {max_value} is less than start {start}")]
    #[explain(detail = "The ids of a tag lie between start and max_value.")]
    #[explain(hint = "Raise max_value or lower start.")]
    MaxValue { max_value: i64, start: i64 },
    /// No number from `start` to `max_value` leaves `remainder` when divided by `increment`.
    #[error("no id lies between start {start} and max_value {max_value}")]
    #[explain(detail = "No number in this range leaves remainder {remainder} when divided by {increment}.")]
    #[explain(hint = "Raise max_value, lower start, or choose another remainder.")]
    NoId { start: i64, max_value: i64, increment: i64, remainder: i64 },
}

/// The tag has no ids left.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error, Explain)]
#[error("the ids of the tag are used up")]
#[explain(Exhausted, detail = "No id is left up to max_value {max_value}.")]
#[explain(hint = "{}", match *max_value {
    i64::MAX => "Create a new tag, because larger ids do not fit into a bigint.",
    max if max == i64::from(i32::MAX) || max == i64::from(i16::MAX) => {
        "Change columns that cannot hold larger ids to bigint; then raise max_value with snowflake_ids.segment_alter."
    }
    _ => "Raise max_value with snowflake_ids.segment_alter.",
})]
pub struct Exhausted {
    /// The highest number that may be an id.
    pub max_value: i64,
}

/// Reason why a tag's name is refused.
#[expect(missing_docs, reason = "each message names its figures")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error, Explain)]
#[explain(BadArgument, hint = "Name the tag after what it numbers, for example \"invoices\".")]
pub enum TagError {
    #[error("tag must not be empty")]
    #[explain(detail = "A tag has 1 to {MAX_TAG_CHARS} characters.")]
    Empty,
    #[error("tag is too long")]
    #[explain(detail = "It has {chars} characters; a tag has at most {MAX_TAG_CHARS}.")]
    TooLong { chars: usize },
    /// The tag has so many bytes that its characters need not be counted.
    #[error("tag is too long")]
    #[explain(
        detail = "It has {bytes} bytes; a tag has at most {MAX_TAG_CHARS} characters and {MAX_TAG_BYTES} bytes."
    )]
    TooManyBytes { bytes: usize },
}
