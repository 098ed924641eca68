//! The text of the state file, with a checksum, and the upgrade of texts from older releases.
//!
//! The envelope (`version`, `release`, `checksum`, `state`) is the same in all forms (versions of the file format). The
//! content of `state` depends on the form. A change of the form adds a function to [`UPGRADES`], and a sample of the
//! previous form to the tests.

use super::error::StateError;
use super::stored::State;
use crate::error::excerpt;
use crate::server::form::{self, Head, RELEASE};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

/// The file's name in the data directory.
pub const FILE: &str = "snowflake_ids.state.json";

/// The file's length is a multiple of this number, so that the file rarely grows. A base backup of a running server may
/// copy a file only up to its length at the beginning of the copy. If the file grew meanwhile, its copy would lack the end,
/// and the copied server could not issue ids after a promotion.
const LENGTH: usize = 1024;

const VERSION: u32 = 3;

/// The upgrades: the first converts form 1 to form 2, and so on. An upgrade never fails. Missing or wrong fields count as
/// damage, which is found when the converted state is read.
const UPGRADES: [fn(&mut Value); VERSION as usize - 1] = [from_1, from_2];

/// Form 2 renames a field to `expiry`, and the checksum of form 2 also covers the head.
fn from_1(state: &mut Value) {
    if let Some(lease) = state.get_mut("lease").and_then(Value::as_object_mut)
        && let Some(expiry) = lease.remove("horizon")
    {
        lease.insert("expiry".to_owned(), expiry);
    }
}

/// Form 3 has high-water marks of other layouts than the server's own.
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
    /// Returns the correct checksum. In form 1 the checksum does not cover the head.
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

    /// Parses a file's content, which this release or an older release wrote.
    pub fn from_text(text: &[u8]) -> Result<Self, StateError> {
        let sealed: serde_json::Result<Sealed<'_>> = serde_json::from_slice(text);
        if let Some(newer) = form::newer(text, VERSION) {
            // Another release may compute the checksum in another way. But if the file names this release, the checksum
            // must be right: a damaged `version` must not look like a newer form.
            if newer.release != RELEASE || sealed.as_ref().is_ok_and(Sealed::is_whole) {
                return Err(StateError::Newer(newer));
            }
        }
        let sealed = sealed.map_err(|error| unread("Its content could not be read as a state", &error))?;
        if !sealed.is_whole() {
            let (found, right) = (sealed.checksum, sealed.sum());
            return Err(StateError::Damaged {
                reason: format!("Its checksum is {found}, and should be {right}"),
            });
        }
        upgraded(&sealed)
            .map_err(|error| unread("Its content does not match the format that it names", &error))
    }
}

/// Upgrades the state through each form between its own and the current one.
fn upgraded(sealed: &Sealed<'_>) -> serde_json::Result<State> {
    let known = sealed.version.checked_sub(1).and_then(|form| UPGRADES.get(form as usize..));
    let upgrades =
        known.ok_or_else(|| serde::de::Error::custom(format!("format {} does not exist", sealed.version)))?;
    let mut state = serde_json::from_str(sealed.state.get())?;
    for upgrade in upgrades {
        upgrade(&mut state);
    }
    serde_json::from_value(state)
}

fn unread(what: &str, error: &serde_json::Error) -> StateError {
    StateError::Damaged { reason: format!("{what}: {}", excerpt(&error.to_string())) }
}
