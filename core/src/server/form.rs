//! The head of a file: its form (the version of the file format), and the release that wrote it. Every release can read
//! the heads of all other releases.

use crate::error::excerpt;
use serde::{Deserialize, Serialize};
use std::fmt;

/// This build's version, as in `Cargo.toml`.
pub const RELEASE: &str = env!("CARGO_PKG_VERSION");

/// The head of every file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Head {
    /// The form's number. Every change of the format raises the number, so that an older release refuses the file. An
    /// older release that accepted the file would drop the fields that it does not know.
    pub version: u32,
    /// The release that wrote the file.
    pub release: String,
}

impl Head {
    /// Returns the head of a file that this release writes.
    pub fn new(version: u32) -> Self {
        Self { version, release: RELEASE.to_owned() }
    }
}

/// The head of a file whose form this release cannot read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownForm {
    /// The file's form.
    pub version: u32,
    /// The form that this release reads.
    pub known: u32,
    /// The release that wrote the file, shortened for messages.
    pub release: String,
}

/// Returns the head of a file whose form is another one than `known`; else None.
pub fn unknown(text: &[u8], known: u32) -> Option<UnknownForm> {
    let Head { version, release } = serde_json::from_slice(text).ok()?;
    (version != known).then(|| UnknownForm { version, known, release: excerpt(&release) })
}

impl UnknownForm {
    /// Returns the text of a HINT that names the release to install.
    pub fn hint(&self) -> String {
        let release = &self.release;
        if release == RELEASE {
            return format!(
                "Install the build of version {release} of snowflake_ids that wrote the file, or a later one, and restart the server."
            );
        }
        format!("Install at least version {release} of snowflake_ids, and restart the server.")
    }
}

/// Writes the text of a DETAIL.
impl fmt::Display for UnknownForm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { version, known, release } = self;
        write!(
            f,
            "The file has format {version}, written by version {release}; this is version {RELEASE}, which reads format {known}."
        )
    }
}
