//! How long a text from outside may be. It is asked before the text is read: what is longer is never copied.

use crate::error::{Explain, Kind};

/// The longest text that says a layout, a format, an id or a name, in bytes.
pub const MAX_TEXT_BYTES: usize = 1_024;

/// A text that is longer than any that could be right.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{name} is too long")]
pub struct TooLong {
    /// What the text is.
    pub name: &'static str,
    /// How long it is, in bytes.
    pub bytes: usize,
    /// How long it may be, in bytes.
    pub limit: usize,
}

/// Whether a text of this name may be so long.
pub fn check(name: &'static str, bytes: usize, limit: usize) -> Result<(), TooLong> {
    if bytes > limit { Err(TooLong { name, bytes, limit }) } else { Ok(()) }
}

impl Explain for TooLong {
    fn kind(&self) -> Kind {
        Kind::BadArgument
    }

    fn detail(&self) -> Option<String> {
        Some(format!("It has {} bytes; {} are the most that it may have.", self.bytes, self.limit))
    }
}
