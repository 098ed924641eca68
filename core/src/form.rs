//! Which form a file has, and which release wrote it: what every release can read of the files of all others.

use crate::error::excerpt;
use serde::{Deserialize, Serialize};
use std::fmt;

/// This release.
pub const RELEASE: &str = env!("CARGO_PKG_VERSION");

/// What stands in every file, whatever else is in it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Head {
    /// The form: it grows with every change of what the file says, so that no release leaves out what it does not know.
    pub version: u32,
    /// The release that wrote it.
    pub release: String,
}

impl Head {
    /// That of a file that is written now.
    pub fn new(version: u32) -> Self {
        Self { version, release: RELEASE.to_owned() }
    }
}

/// A file of a newer release, in a form that this one does not know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Newer {
    /// Its form,
    pub version: u32,
    /// the one that is known here,
    pub known: u32,
    /// and the release that wrote it, as a message can quote it.
    pub release: String,
}

/// Whether a file is in a newer form than this. Nothing but its head is understood. A file that says that this release
/// wrote a form that it does not know is damaged rather than newer.
pub fn newer(text: &[u8], known: u32) -> Option<Newer> {
    let Head { version, release } = serde_json::from_slice(text).ok()?;
    (version > known && release != RELEASE).then(|| Newer { version, known, release: excerpt(&release) })
}

/// As the sentence of a DETAIL.
impl fmt::Display for Newer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { version, known, release } = self;
        write!(
            f,
            "It has form {version}, as version {release} writes it; version {RELEASE} reads form {known}."
        )
    }
}
