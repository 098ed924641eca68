//! The state as text, with a checksum, and how the text of an older release is read.
//!
//! The envelope (`version`, `release`, `checksum`, `state`) is the same in all forms. What is in `state` is the form's:
//! with each change of it a function is added to [`UPGRADES`], and a sample of the former form to the tests.

use super::error::StateError;
use super::stored::State;
use crate::error::excerpt;
use crate::server::form::{self, Head, RELEASE};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

/// The file's name, in the data directory.
pub const FILE: &str = "snowflake_ids.state.json";

/// The file's length is a multiple of this. What copies a data directory in use may copy a file up to the length that it had when
/// it looked. Of one that has grown by a digit since the end would be missing, and the copy would issue nothing once it is
/// promoted.
const LENGTH: usize = 1024;

/// The form of the state that this version writes.
const VERSION: u32 = 3;

/// The first makes form 2 of form 1, and so on. None of them can fail: what is still missing then, or of another kind, is
/// damage, and is found when the present form is read.
const UPGRADES: [fn(&mut Value); VERSION as usize - 1] = [from_1, from_2];

/// Form 2 has the name `expiry`, and the head is under the checksum as well.
fn from_1(state: &mut Value) {
    if let Some(lease) = state.get_mut("lease").and_then(Value::as_object_mut)
        && let Some(expiry) = lease.remove("horizon")
    {
        lease.insert("expiry".to_owned(), expiry);
    }
}

/// Form 3 has marks of other layouts than the server's own.
fn from_2(state: &mut Value) {
    if let Some(state) = state.as_object_mut() {
        state.insert("others".into(), Value::Array(Vec::new()));
        state.insert("others_floor".into(), "1970-01-01T00:00:00Z".into());
    }
}

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
    /// The checksum that it should have. In form 1 its head does not count.
    fn sum(&self) -> u32 {
        let mut sum = crc32fast::Hasher::new();
        if self.version > 1 {
            sum.update(format!("{} {} ", self.version, self.release).as_bytes());
        }
        sum.update(self.state.get().as_bytes());
        sum.finalize()
    }

    fn is_whole(&self) -> bool {
        self.checksum == self.sum()
    }
}

impl State {
    /// The content of the file, in the present form: a line, with spaces at its end.
    pub fn to_text(&self) -> serde_json::Result<String> {
        let state = serde_json::value::to_raw_value(self)?;
        let Head { version, release } = Head::new(VERSION);
        let mut sealed = Sealed { version, release, checksum: 0, state: &state };
        sealed.checksum = sealed.sum();
        let line = serde_json::to_string(&sealed)?;
        let spaces = (line.len() + 1).next_multiple_of(LENGTH) - 1 - line.len();
        Ok(line + &" ".repeat(spaces) + "\n")
    }

    /// Returns what a file of this release or an older one holds.
    pub fn from_text(text: &[u8]) -> Result<Self, StateError> {
        let sealed: serde_json::Result<Sealed<'_>> = serde_json::from_slice(text);
        if let Some(newer) = form::newer(text, VERSION) {
            // Another release may seal it by another rule. Where it is this one by name, a damaged number must not pass for
            // a form that a later build has.
            if newer.release != RELEASE || sealed.as_ref().is_ok_and(Sealed::is_whole) {
                return Err(StateError::Newer(newer));
            }
        }
        let sealed = sealed.map_err(|error| unread("It is no state that could be read", &error))?;
        if !sealed.is_whole() {
            let (found, right) = (sealed.checksum, sealed.sum());
            return Err(StateError::Damaged {
                reason: format!("Its checksum is {found}, and should be {right}"),
            });
        }
        upgraded(&sealed).map_err(|error| unread("It is no state of the form that it names", &error))
    }
}

/// The state, by way of each form between its own and the present one.
fn upgraded(sealed: &Sealed<'_>) -> serde_json::Result<State> {
    let known = sealed.version.checked_sub(1).and_then(|form| UPGRADES.get(form as usize..));
    let upgrades =
        known.ok_or_else(|| serde::de::Error::custom(format!("there is no form {}", sealed.version)))?;
    let mut state = serde_json::from_str(sealed.state.get())?;
    for upgrade in upgrades {
        upgrade(&mut state);
    }
    serde_json::from_value(state)
}

fn unread(what: &str, error: &serde_json::Error) -> StateError {
    StateError::Damaged { reason: format!("{what}: {}", excerpt(&error.to_string())) }
}
