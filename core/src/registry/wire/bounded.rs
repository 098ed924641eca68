//! Limits of requests and responses.

use crate::error::excerpt;
use crate::tag::reservation::Outcome;
use serde::de::{Deserialize, Deserializer, Error, SeqAccess, Visitor};
use serde_json::value::RawValue;
use std::fmt;
use std::marker::PhantomData;
use std::time::Duration;

/// The longest request or response, in bytes.
pub const MAX_BYTES: usize = 16 << 20;
/// The longest text in a request, in characters. Some texts have their own limits.
pub const MAX_TEXT_CHARS: usize = 255;
/// The largest number of tags in a request for ids.
pub const MAX_WANTS: usize = 1_024;
/// The largest number of excluded worker ids in a request.
pub const MAX_EXCEPT: usize = 65_536;
/// The largest number of forks that a node remembers, and that a registry records because nodes named them.
pub const MAX_FORKS: usize = 64;
/// The largest number of rows in a request.
pub const MAX_ROWS: usize = 65_536;
/// The largest number of rows in a page of a response.
pub const PAGE_ROWS: usize = 8_192;
/// The largest size of a page, in bytes. A page of a single row may be larger.
pub const PAGE_BYTES: usize = MAX_BYTES / 4;
/// The largest number of registries that serve the same tags.
pub const MAX_REGISTRIES: u32 = 1_000;
/// The longest time limit for locked rows: a quarter of the largest `registry_timeout`.
pub const MAX_TIMEOUT: Duration = Duration::from_mins(15);
/// The longest lease of a worker id.
pub const MAX_LEASE: Duration = Duration::from_hours(31 * 24);
/// The longest text from a registry that is shown, in characters.
const MAX_SAID_CHARS: usize = 2_048;

/// Returns a text of another server for display: at most 2,048 characters, without control characters.
pub fn said(text: &str) -> String {
    cut(text, MAX_SAID_CHARS)
}

/// Returns at most `chars` characters of a text, with control characters replaced.
pub fn cut(text: &str, chars: usize) -> String {
    text.chars().take(chars).map(|letter| if letter.is_control() { '?' } else { letter }).collect()
}

/// Deserializes each outcome separately, so that an invalid outcome does not affect the other outcomes.
pub fn outcomes<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Outcome>, D::Error> {
    let read = |told: Box<RawValue>| {
        serde_json::from_str(told.get()).unwrap_or_else(|error| Outcome::Garbled(excerpt(&error.to_string())))
    };
    at_most::<Box<RawValue>, D, MAX_WANTS>(deserializer).map(|told| told.into_iter().map(read).collect())
}

/// Deserializes a list, and fails at the first element beyond the limit. A list needs many times more memory than its text.
pub fn at_most<'de, T: Deserialize<'de>, D: Deserializer<'de>, const MOST: usize>(
    deserializer: D,
) -> Result<Vec<T>, D::Error> {
    struct List<T, const MOST: usize>(PhantomData<T>);

    impl<'de, T: Deserialize<'de>, const MOST: usize> Visitor<'de> for List<T, MOST> {
        type Value = Vec<T>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            write!(f, "a list of {MOST} or less")
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Vec<T>, A::Error> {
            let mut found = Vec::new();
            while let Some(next) = list.next_element()? {
                if found.len() == MOST {
                    return Err(A::Error::invalid_length(MOST + 1, &self));
                }
                found.push(next);
            }
            Ok(found)
        }
    }

    deserializer.deserialize_seq(List::<T, MOST>(PhantomData))
}
