//! The state as text, with a checksum.

use super::{State, StateError};
use crate::error::excerpt;
use crate::form::{self, Head};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// The form of the state that this version writes and reads.
const VERSION: u32 = 1;

#[derive(Serialize)]
struct Sealed<'a> {
    #[serde(flatten)]
    head: Head,
    checksum: u32,
    state: &'a RawValue,
}

#[derive(Deserialize)]
struct Seal<'a> {
    version: u32,
    checksum: u32,
    #[serde(borrow)]
    state: &'a RawValue,
}

impl State {
    /// The content of the file.
    ///
    /// # Errors
    /// None that could happen: a state is plain data.
    pub fn to_text(&self) -> serde_json::Result<String> {
        let state = serde_json::value::to_raw_value(self)?;
        let checksum = crc32fast::hash(state.get().as_bytes());
        let sealed = Sealed { head: Head::new(VERSION), checksum, state: &state };
        serde_json::to_string(&sealed).map(|line| line + "\n")
    }

    /// What a file holds.
    ///
    /// # Errors
    /// [`StateError::Newer`] or [`StateError::Damaged`].
    pub fn from_text(text: &[u8]) -> Result<Self, StateError> {
        if let Some(newer) = form::newer(text, VERSION) {
            return Err(StateError::Newer(newer));
        }
        let damaged = |reason: String| StateError::Damaged { reason };
        let wrong = |what: &str, error: serde_json::Error| {
            damaged(format!("{what}: {}", excerpt(&error.to_string())))
        };
        let seal: Seal<'_> = serde_json::from_slice(text)
            .map_err(|error| wrong("It is no state that could be read", error))?;
        let state = seal.state.get();
        let checksum = crc32fast::hash(state.as_bytes());
        if checksum != seal.checksum {
            return Err(damaged(format!("Its checksum is {}, and should be {checksum}", seal.checksum)));
        } else if seal.version != VERSION {
            return Err(damaged(format!(
                "It says that it has form {}, and has form {VERSION}",
                seal.version
            )));
        }
        serde_json::from_str(state).map_err(|error| wrong("It is no state of this version", error))
    }
}
