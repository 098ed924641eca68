//! The form of a file, and the release that wrote it: what every release can read of the files of all others.

use crate::error::excerpt;
use serde::{Deserialize, Serialize};
use std::fmt;

/// The version of this build, as in `Cargo.toml`.
pub const RELEASE: &str = env!("CARGO_PKG_VERSION");

/// The head of every file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Head {
    /// The form: it grows with every change of what the file says, so that no release leaves out what it does not know.
    pub version: u32,
    /// The release that wrote it.
    pub release: String,
}

impl Head {
    /// The head of a file that is written now.
    pub fn new(version: u32) -> Self {
        Self { version, release: RELEASE.to_owned() }
    }
}

/// A file in a newer form than this release knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Newer {
    /// The form that the file has.
    pub version: u32,
    /// The newest form that this release reads.
    pub known: u32,
    /// The release that wrote it, as a message can quote it.
    pub release: String,
}

/// Returns whether a file is in a newer form than `known`. Nothing but its head is understood.
pub fn newer(text: &[u8], known: u32) -> Option<Newer> {
    let Head { version, release } = serde_json::from_slice(text).ok()?;
    (version > known).then(|| Newer { version, known, release: excerpt(&release) })
}

impl Newer {
    /// The way out, as the sentence of a HINT.
    pub fn hint(&self) -> String {
        let release = &self.release;
        if release == RELEASE {
            return format!(
                "Install the build of version {release} of snowflake_ids that wrote it, or a later one, and restart the server."
            );
        }
        format!("Install at least version {release} of snowflake_ids, and restart the server.")
    }
}

/// As the sentence of a DETAIL.
impl fmt::Display for Newer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { version, known, release } = self;
        write!(
            f,
            "It has form {version}, as version {release} writes it; this is version {RELEASE}, which reads forms up to {known}."
        )
    }
}
