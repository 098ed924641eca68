//! The state as text, with a checksum.

use super::{Distrust, State};
use crate::error::excerpt;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// The form of the state that this version writes and reads.
const VERSION: u32 = 1;

#[derive(Serialize, Deserialize)]
struct Sealed<'a> {
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
        let sealed = Sealed { checksum: crc32fast::hash(state.get().as_bytes()), state: &state };
        serde_json::to_string(&sealed).map(|line| line + "\n")
    }

    /// What a file holds.
    ///
    /// # Errors
    /// [`Distrust::Damaged`].
    pub fn from_text(text: &[u8]) -> Result<Self, Distrust> {
        let damaged = |reason: String| Distrust::Damaged { reason };
        let sealed: Sealed<'_> = serde_json::from_slice(text).map_err(|error| {
            damaged(format!("It is no state that could be read: {}", excerpt(&error.to_string())))
        })?;
        let state = sealed.state.get();
        let checksum = crc32fast::hash(state.as_bytes());
        if checksum != sealed.checksum {
            return Err(damaged(format!("Its checksum is {}, and should be {checksum}", sealed.checksum)));
        }
        let state: Self = serde_json::from_str(state).map_err(|error| {
            damaged(format!("It is no state of this version: {}", excerpt(&error.to_string())))
        })?;
        if state.version != VERSION {
            return Err(damaged(format!(
                "Its form is version {}, and this release reads {VERSION}",
                state.version
            )));
        }
        Ok(state)
    }
}
