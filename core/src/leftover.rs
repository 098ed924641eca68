//! Ids that were reserved and are in nobody's buffers, as the text of a file.

use crate::error::excerpt;
use crate::form::{self, Head, Newer};
use crate::reservation;
use serde::{Deserialize, Serialize};
use std::fmt;

/// The form of the file that this version writes and reads.
const VERSION: u32 = 1;

/// Ids of one tag.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Leftover {
    /// The tag's database,
    pub database: u32,
    /// the table of tags that it is in,
    pub source: u32,
    /// and what it is called.
    pub tag: Vec<u8>,
    /// What is left of it.
    #[serde(flatten)]
    pub left: reservation::Leftover,
}

impl Leftover {
    /// Whether others are of the same tag.
    pub fn is_of_the_tag_of(&self, other: &Self) -> bool {
        (self.database, self.source, &self.tag) == (other.database, other.source, &other.tag)
    }
}

/// Why a file says nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unreadable {
    /// A newer release wrote it: it is still good there.
    Newer(Newer),
    /// It is no such file; with the reason.
    Damaged(String),
}

/// As the sentence of a DETAIL.
impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Newer(newer) => newer.fmt(f),
            Self::Damaged(reason) => write!(f, "It is damaged: {reason}."),
        }
    }
}

#[derive(Serialize, Deserialize)]
struct File {
    #[serde(flatten)]
    head: Head,
    leftovers: Vec<Leftover>,
}

/// What the file says of these.
///
/// # Errors
/// None that could happen: they are plain data.
pub fn to_text(leftovers: Vec<Leftover>) -> serde_json::Result<String> {
    serde_json::to_string(&File { head: Head::new(VERSION), leftovers })
}

/// What a file holds.
///
/// # Errors
/// [`Unreadable`].
pub fn from_text(text: &[u8]) -> Result<Vec<Leftover>, Unreadable> {
    if let Some(newer) = form::newer(text, VERSION) {
        return Err(Unreadable::Newer(newer));
    }
    let damaged = |reason: String| Unreadable::Damaged(reason);
    let file: File = serde_json::from_slice(text).map_err(|error| damaged(excerpt(&error.to_string())))?;
    match file.head.version {
        VERSION => Ok(file.leftovers),
        version => Err(damaged(format!("form {version} was never written"))),
    }
}
