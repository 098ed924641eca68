//! Errors of the wrappers of the server's functions.

use super::report::reported;
use snowflake_ids_core::{Explain, UnixMicros};

/// The reason why a value or an object of the server cannot be used.
#[derive(Debug, thiserror::Error, Explain)]
#[explain(BadArgument)]
pub enum ServerError {
    #[error("an argument must not be null")]
    #[explain(detail = "The function needs a text as this argument.")]
    NullText,
    #[error("an argument must not be null")]
    #[explain(detail = "The function is strict.")]
    NullArgument,
    /// Text of an `SQL_ASCII` database is not valid UTF-8.
    #[error("{name} is not in UTF-8")]
    #[explain(
        OtherEncoding,
        detail = "The encoding of this database is SQL_ASCII, so the text must already be in UTF-8.",
        hint = "Pass the text in UTF-8."
    )]
    NotUtf8 { name: &'static str },
    #[error("no id belongs to an infinite timestamp")]
    #[explain(detail = "Layouts have a first and a last tick.")]
    Infinite,
    #[error("timestamp out of range")]
    #[explain(detail = "It is {at}.")]
    Timestamp { at: UnixMicros },
    #[error("interval out of range")]
    #[explain(detail = "It is {time} microseconds.")]
    Interval { time: u64 },
    #[error("could not read the facts of a column: {error}")]
    #[explain(Internal)]
    Facts { error: String },
    #[error("libpq has no function {0}")]
    #[explain(NoFunction, detail = "The server's module libpqwalreceiver should have loaded libpq.")]
    NoFunction(String),
    #[error("extension \"snowflake_ids\" no longer exists")]
    #[explain(NotReady, detail = "It was dropped from this database during the call.")]
    #[explain(hint = "Run CREATE EXTENSION snowflake_ids.")]
    Dropped,
    #[error("cannot drop type snowflake_id because columns depend on it")]
    #[explain(InUse, detail = "{columns}")]
    #[explain(hint = "First change these columns to bigint: ALTER TABLE ... ALTER COLUMN ... TYPE bigint;")]
    TypeInUse { columns: String },
    #[error("table \"snowflake_ids.{table}\" differs from its definition in extension \"snowflake_ids\"")]
    #[explain(NotReady, detail = "{}", match column {
        Some(column) => format!("Column \"{column}\" is missing, or has another type."),
        None => "It is not an ordinary table.".to_owned(),
    })]
    #[explain(hint = "Undo the change of the table, or drop the extension and create it again.")]
    OtherTable { table: String, column: Option<String> },
}

reported!(ServerError);
