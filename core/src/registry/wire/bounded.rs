//! Limits of requests and responses that every server keeps.

use crate::error::excerpt;
use crate::sequence::reservation::Outcome;
use serde::de::{Deserialize, Deserializer, Error, SeqAccess, Visitor};
use serde_json::value::RawValue;
use std::fmt;
use std::marker::PhantomData;
use std::time::Duration;

/// The longest question and the longest answer, in bytes.
pub const MAX_BYTES: usize = 16 << 20;
/// The longest text in a question, but for those that have limits of their own, in characters.
pub const MAX_TEXT_CHARS: usize = 255;
/// Of how many tags ids are asked for at most.
pub const MAX_WANTS: usize = 1_024;
/// Number of worker ids that are excepted at most.
pub const MAX_EXCEPT: usize = 65_536;
/// Number of rows that are handed over at most.
pub const MAX_ROWS: usize = 65_536;
/// Number of rows an answer has at most: the rest is asked for again.
pub const PAGE_ROWS: usize = 8_192;
/// And how many bytes, unless its only row has more.
pub const PAGE_BYTES: usize = MAX_BYTES / 4;
/// Number of registries that serve the same tags at most.
pub const MAX_REGISTRIES: u32 = 1_000;
/// Time that rows that are locked are waited for at most: a quarter of the longest `registry_timeout`.
pub const MAX_TIMEOUT: Duration = Duration::from_mins(15);
/// For how long a worker id is leased at most.
pub const MAX_LEASE: Duration = Duration::from_hours(31 * 24);
/// The longest text of a registry that is shown, in characters.
const MAX_SAID_CHARS: usize = 2_048;

/// A text of another server, fit to be shown: without control characters, and of no more than 2,048 characters.
pub fn said(text: &str) -> String {
    cut(text, MAX_SAID_CHARS)
}

/// At most so many characters of a text, none of them a control character.
pub fn cut(text: &str, chars: usize) -> String {
    text.chars().take(chars).map(|letter| if letter.is_control() { '?' } else { letter }).collect()
}

/// Each by itself: one that makes no sense takes no other with it.
pub fn outcomes<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Outcome>, D::Error> {
    let read = |told: Box<RawValue>| {
        serde_json::from_str(told.get()).unwrap_or_else(|error| Outcome::Garbled(excerpt(&error.to_string())))
    };
    at_most::<Box<RawValue>, D, MAX_WANTS>(deserializer).map(|told| told.into_iter().map(read).collect())
}

/// A list of no more than [`MAX_WANTS`].
pub fn wants<'de, T: Deserialize<'de>, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<T>, D::Error> {
    at_most::<T, D, MAX_WANTS>(deserializer)
}

/// A list of no more than [`MAX_EXCEPT`].
pub fn exceptions<'de, T: Deserialize<'de>, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Vec<T>, D::Error> {
    at_most::<T, D, MAX_EXCEPT>(deserializer)
}

/// A list of no more than [`MAX_ROWS`].
pub fn rows<'de, T: Deserialize<'de>, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<T>, D::Error> {
    at_most::<T, D, MAX_ROWS>(deserializer)
}

/// A list that is given up when it is longer: what it would take to keep is many times what it takes to write.
fn at_most<'de, T: Deserialize<'de>, D: Deserializer<'de>, const MOST: usize>(
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
