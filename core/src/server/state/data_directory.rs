//! The identity of a data directory, which tells it from its copies.

use crate::error::excerpt;
use crate::guard::{Guard, holds};
use serde::{Deserialize, Serialize};

/// Where a server lives: the identity of its data directory, and of the state file in it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DataDirectory {
    /// What a copy of the directory does not share with it, and what it keeps when it is moved.
    pub identity: String,
    /// The same of the state file: in a state, of the file that it was written to; here and now, of the one that it was
    /// read from. They differ where an operator put a copy of the file there. None where that is not known.
    #[serde(default)]
    pub file: Option<Birth>,
    /// The machine, for people.
    pub host: String,
    /// The directory, for people.
    pub directory: String,
}

/// What tells a file from its copies, and what it keeps when it is moved within its file system.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Birth {
    /// Its number in the file system; other files may have had it before.
    pub inode: u64,
    /// Time at which it was made; None where the file system does not keep that.
    pub at: Option<String>,
}

impl Birth {
    /// Returns whether both may be of one file. A part that one of them does not tell is not compared.
    fn is_of(&self, other: &Self) -> bool {
        self.inode == other.inode && (self.at.is_none() || other.at.is_none() || self.at == other.at)
    }
}

impl DataDirectory {
    /// Returns whether it is this one, and not that of a copy.
    pub(super) fn is(&self, other: &Self) -> bool {
        if !self.is_in(other) {
            return !holds(Guard::CopyKnown);
        }
        match (&self.file, &other.file) {
            (Some(one), Some(other)) if holds(Guard::FileKnown) => one.is_of(other),
            _ => true,
        }
    }

    /// Returns whether it is in the same directory.
    pub(super) fn is_in(&self, other: &Self) -> bool {
        self.identity == other.identity
    }

    /// Returns what tells it from other copies of the same home, those included that were put into one directory one
    /// after the other.
    pub fn told_apart(&self) -> String {
        match &self.file {
            Some(Birth { inode, at }) => {
                format!("{} {inode} {}", self.identity, at.as_deref().unwrap_or_default())
            }
            None => self.identity.clone(),
        }
    }

    /// For people.
    pub(super) fn shown(&self) -> String {
        format!("\"{}\" on host \"{}\"", excerpt(&self.directory), excerpt(&self.host))
    }
}
