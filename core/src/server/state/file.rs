//! The text of the state file, with a checksum.
//!
//! The envelope (`version`, `release`, `checksum`, `state`) is the same in all forms (versions of the file format). The
//! content of `state` depends on the form.

use super::error::StateError;
use super::stored::State;
use crate::error::excerpt;
use crate::server::form::{self, Head, RELEASE};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// The file's name in the data directory.
pub const FILE: &str = "snowflake_ids.state.json";

/// The file's length is a multiple of this number of bytes, so that the file rarely grows. A base backup of a running
/// server may copy a file only up to the length that the file has when its copy begins. If the file grew meanwhile, the
/// copy would lack the end of the file, and the copied server could not issue ids after a promotion.
const LENGTH: usize = 1024;

const VERSION: u32 = 1;

/// The envelope, which every release can read.
#[derive(Serialize, Deserialize)]
struct Sealed<'a> {
    version: u32,
    release: String,
    checksum: u32,
    #[serde(borrow)]
    state: &'a RawValue,
}

impl Sealed<'_> {
    /// Returns the checksum that the envelope's other fields require.
    fn sum(&self) -> u32 {
        crc32fast::hash(format!("{} {} {}", self.version, self.release, self.state.get()).as_bytes())
    }

    fn is_whole(&self) -> bool {
        self.checksum == self.sum()
    }
}

impl State {
    /// Returns the file's content in the current form: one line, padded with spaces.
    pub fn to_text(&self) -> serde_json::Result<String> {
        let state = serde_json::value::to_raw_value(self)?;
        let Head { version, release } = Head::new(VERSION);
        let mut sealed = Sealed { version, release, checksum: 0, state: &state };
        sealed.checksum = sealed.sum();
        let line = serde_json::to_string(&sealed)?;
        let spaces = (line.len() + 1).next_multiple_of(LENGTH) - 1 - line.len();
        Ok(line + &" ".repeat(spaces) + "\n")
    }

    /// Parses a file's content.
    pub fn from_text(text: &[u8]) -> Result<Self, StateError> {
        let sealed: serde_json::Result<Sealed<'_>> = serde_json::from_slice(text);
        if let Some(unknown) = form::unknown(text, VERSION) {
            // Another release may compute the checksum in another way. But if the file names this release, the checksum
            // must be right: a damaged `version` must not look like an unknown form.
            if unknown.release != RELEASE || sealed.as_ref().is_ok_and(Sealed::is_whole) {
                return Err(StateError::UnknownForm(unknown));
            }
        }
        let sealed = sealed.map_err(|error| unread("Its content could not be read as a state", &error))?;
        if !sealed.is_whole() {
            let (found, right) = (sealed.checksum, sealed.sum());
            return Err(StateError::Damaged {
                reason: format!("Its checksum is {found}, and should be {right}"),
            });
        }
        let state = serde_json::from_str(sealed.state.get());
        state.map_err(|error| unread("Its content does not match the format that it names", &error))
    }
}

fn unread(what: &str, error: &serde_json::Error) -> StateError {
    StateError::Damaged { reason: format!("{what}: {}", excerpt(&error.to_string())) }
}
