//! The trait of the core's errors: kind, detail and hint.
//!
//! The core sorts its errors into a few [`Kind`]s. The shell maps each kind to one SQLSTATE.

pub use snowflake_ids_explain::Explain;
use std::fmt::Display;
use std::io::ErrorKind;

/// The kind of an error. Errors of one kind have the same remedy and the same SQLSTATE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// An argument or a setting has a value that is never valid.
    BadArgument,
    /// An argument is null, but must have a value.
    Null,
    /// An argument has the wrong type.
    OtherType,
    /// A text cannot be parsed as a value of its type.
    InvalidText,
    /// A number is too large for the target type or column.
    OutOfRange,
    /// A text is too long for the target column.
    LongText,
    /// No value is left: a maximum, or the end of the layout's time range, has been reached.
    Exhausted,
    /// The wall clock is behind the ids already issued, or before the layout's epoch.
    ClockBehind,
    /// The time limit of the call has passed.
    WaitedTooLong,
    /// The time limit for a lock has passed.
    Locked,
    /// An administrator has to set something up or decide something before ids can be issued.
    NotReady,
    /// A stored state or row cannot be trusted.
    Damaged,
    /// A file cannot be written because the disk is full.
    DiskFull,
    /// A file cannot be read or written.
    Io,
    /// The role lacks a privilege.
    Denied,
    /// The object does not exist.
    Undefined,
    /// The column does not exist.
    UndefinedColumn,
    /// The object is of another kind.
    WrongObject,
    /// The object exists already.
    Duplicate,
    /// The operation is not supported.
    Unsupported,
    /// The number of objects has reached the limit of a setting.
    LimitReached,
    /// The relation does not exist.
    NoTable,
    /// The function does not exist.
    NoFunction,
    /// Other objects depend on the object.
    InUse,
    /// Another session has changed the object during the call.
    Changed,
    /// The call is not possible in a transaction block.
    InTransaction,
    /// The column takes no value but its default.
    GeneratedAlways,
    /// The statement is none for such a column.
    Syntax,
    /// A trigger calls its function at the wrong event, or with the wrong arguments.
    BadTrigger,
    /// A text is not in the expected encoding.
    OtherEncoding,
    /// The encoding of the database lacks a character.
    LacksCharacter,
    /// No memory is left.
    NoMemory,
    /// The server is a standby; only a primary generates ids.
    ReadOnly,
    /// Another server cannot be reached.
    Unreachable,
    /// A bug in this extension.
    Internal,
    /// No error, but a warning.
    Warning,
    /// No error, but a notice.
    Notice,
}

impl Kind {
    /// The kinds that [`of_io`](Self::of_io) can choose.
    pub const OF_IO: &[Self] = &[Self::DiskFull, Self::Io];
    /// The kinds that [`of_sqlstate`](Self::of_sqlstate) can choose.
    pub const OF_SQLSTATE: &[Self] = &[Self::Denied, Self::ReadOnly, Self::NotReady];

    /// Returns the kind of an error of the operating system.
    pub fn of_io(error: &std::io::Error) -> Self {
        match error.kind() {
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded => Self::DiskFull,
            _ => Self::Io,
        }
    }

    /// Returns the kind of an SQL error of a registry.
    pub fn of_sqlstate(code: [u8; 5]) -> Self {
        match &code {
            b"42501" => Self::Denied,
            b"25006" => Self::ReadOnly,
            _ => Self::NotReady,
        }
    }
}

/// The texts of an error for the [list of errors](../../../docs/reference/errors.md), with values in italics or as dots. A part
/// has several texts if the error chooses one.
#[derive(Clone, Debug)]
pub struct Listed {
    /// The message. If there are several, parts with as many texts belong to the messages in their order.
    pub messages: Vec<String>,
    /// The kind.
    pub kinds: Vec<Kind>,
    /// The DETAIL.
    pub details: Vec<String>,
    /// The HINT.
    pub hints: Vec<String>,
}

/// An error with the three parts of a Postgres message. [`Display`] writes the message, and this trait returns detail and
/// hint. `derive(Explain)` implements the trait from attributes.
pub trait Explain: Display {
    /// Returns the kind of the error.
    fn kind(&self) -> Kind;
    /// Returns the DETAIL, in whole sentences.
    fn detail(&self) -> Option<String> {
        None
    }
    /// Returns the HINT, in whole sentences.
    fn hint(&self) -> Option<String> {
        None
    }
    /// Returns a message and a detail without addresses of other servers, for users that must not see addresses.
    /// Returns None if every user may see the whole error.
    fn for_others(&self) -> Option<(String, String)> {
        None
    }
    /// Returns the texts of the type's errors.
    fn listed() -> Vec<Listed>
    where
        Self: Sized;
}

/// A reason why this server generates no ids at all. The field is the name of the SQL function that was called.
#[expect(missing_docs, reason = "each message names its figures")]
#[derive(Clone, Copy, Debug, thiserror::Error, Explain)]
pub enum NotReadyError {
    #[error("snowflake_ids must be loaded via shared_preload_libraries")]
    #[explain(NotReady, detail = "{0}() needs shared memory, which is set up at server start.")]
    #[explain(hint = "Add snowflake_ids to shared_preload_libraries and restart the server.")]
    NotPreloaded(&'static str),
    #[error("cannot execute {0}() during recovery")]
    #[explain(ReadOnly, detail = "Ids are generated on the primary only; they can be decoded here.")]
    #[explain(hint = "Connect to the primary.")]
    InRecovery(&'static str),
}

/// The HINT if a transaction cannot be prepared.
pub const END_IT_WITH_COMMIT: &str = "Run the transaction again, and end it with COMMIT.";

/// Returns the text with a full stop at its end.
pub fn ended(mut text: String) -> String {
    if !text.ends_with(['.', '?', '!']) {
        text.push('.');
    }
    text
}

/// Turns a message into a sentence for DETAIL: its first letter becomes a capital.
pub fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// The largest number of characters that a message quotes from a user's text, a file or another server.
pub const EXCERPT_CHARS: usize = 128;

/// Returns the beginning of a text for a message: at most [`EXCERPT_CHARS`] characters. Control characters become `?`.
pub fn excerpt(text: &str) -> String {
    let mut letters = text.chars().map(|letter| if letter.is_control() { '?' } else { letter });
    let mut cut: String = letters.by_ref().take(EXCERPT_CHARS).collect();
    if letters.next().is_some() {
        cut.push_str("...");
    }
    cut
}

/// The length limit for the text of a layout, a format, an id or a name, in bytes.
pub const MAX_TEXT_BYTES: usize = 1_024;

/// The error for a text that exceeds its length limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error, Explain)]
#[error("{name} is too long")]
#[explain(BadArgument, detail = "It has {bytes} bytes; the limit is {limit}.")]
pub struct TooLong {
    /// The name of the argument or setting, for the message.
    pub name: &'static str,
    /// The length of the text, in bytes.
    pub bytes: usize,
    /// The length limit, in bytes.
    pub limit: usize,
}

/// Returns an error if a text is longer than the limit. Callers check the length before they copy the text.
pub fn check_length(name: &'static str, bytes: usize, limit: usize) -> Result<(), TooLong> {
    if bytes > limit { Err(TooLong { name, bytes, limit }) } else { Ok(()) }
}
