//! The trait of the core's errors: the kind, the figures, and the way out.
//!
//! The core knows no SQLSTATE; it sorts its errors into a few [`Kind`]s, which the shell maps one to one.

pub use snowflake_ids_explain::Explain;
use std::fmt::Display;
use std::io::ErrorKind;

/// The kind of an error, by the remedy of its caller. The shell gives each kind its SQLSTATE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// An argument or a setting that can never be right.
    BadArgument,
    /// An argument that must not be null.
    Null,
    /// An argument of another type than it has to be.
    OtherType,
    /// A text that says no value of a type.
    InvalidText,
    /// A number that is too large for where it is to go.
    OutOfRange,
    /// A text that is too long for where it is to go.
    LongText,
    /// The time of the layout is used up.
    Exhausted,
    /// The wall clock is behind the ids already issued, or before the layout's epoch.
    ClockBehind,
    /// The call waited as long as it may.
    WaitedTooLong,
    /// The call waited as long as it may for a lock.
    Locked,
    /// Something has to be set up or decided before there can be ids.
    NotReady,
    /// A stored state or row cannot be trusted.
    Damaged,
    /// A file cannot be written because the disk is full.
    DiskFull,
    /// A file cannot be read or written.
    Io,
    /// The role lacks a right.
    Denied,
    /// There is no such object.
    Undefined,
    /// It cannot be done in this way.
    Unsupported,
    /// As many as a setting allows are there.
    LimitReached,
    /// Ids are generated on the primary only.
    ReadOnly,
    /// Another server cannot be reached.
    Unreachable,
    /// A fault of ours.
    Internal,
}

impl Kind {
    /// The kind of an error of the system's.
    pub fn of_io(error: &std::io::Error) -> Self {
        match error.kind() {
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded => Self::DiskFull,
            _ => Self::Io,
        }
    }
}

/// An error with Postgres's three parts: the message is its [`Display`], the rest is here. The derive of the same name
/// writes it from attributes.
pub trait Explain: Display {
    /// The kind of the error.
    fn kind(&self) -> Kind;
    /// The figures, as one or more full sentences.
    fn detail(&self) -> Option<String> {
        None
    }
    /// The way out, as one or more full sentences.
    fn hint(&self) -> Option<String> {
        None
    }
    /// The message and the figures for users that are not to know where other servers are; None: all users may know all.
    fn for_others(&self) -> Option<(String, String)> {
        None
    }
}

/// The reasons that keep this server from generating any id; with the name of the function that was called.
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

/// A text as a whole sentence.
pub fn ended(mut text: String) -> String {
    if !text.ends_with(['.', '?', '!']) {
        text.push('.');
    }
    text
}

/// Number of characters of a foreign text a message quotes.
pub const EXCERPT_CHARS: usize = 128;

/// A piece of a foreign text, fit to stand in a message: at most [`EXCERPT_CHARS`] characters, without control characters.
pub fn excerpt(text: &str) -> String {
    let mut letters = text.chars().map(|letter| if letter.is_control() { '?' } else { letter });
    let mut cut: String = letters.by_ref().take(EXCERPT_CHARS).collect();
    if letters.next().is_some() {
        cut.push_str("...");
    }
    cut
}

/// The longest text that says a layout, a format, an id or a name, in bytes.
pub const MAX_TEXT_BYTES: usize = 1_024;

/// A text that is longer than any that could be right.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error, Explain)]
#[error("{name} is too long")]
#[explain(BadArgument, detail = "It has {bytes} bytes; {limit} are the most that it may have.")]
pub struct TooLong {
    /// The subject of the text, for the message.
    pub name: &'static str,
    /// Its length, in bytes.
    pub bytes: usize,
    /// The greatest length, in bytes.
    pub limit: usize,
}

/// Returns whether a text of this name may be so long. It is asked before the text is read: what is longer is never copied.
pub fn check_length(name: &'static str, bytes: usize, limit: usize) -> Result<(), TooLong> {
    if bytes > limit { Err(TooLong { name, bytes, limit }) } else { Ok(()) }
}
