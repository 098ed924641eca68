//! What counters had left when the server stopped, as the text of a file.
//!
//! The first line says of which stop it is, and has a checksum of the rest; then a line for each counter. It is believed at the start
//! that follows that stop, by what the cluster says of its last checkpoint, and at no other: what the server does afterwards the
//! file knows nothing of.

use super::counter::{CounterKey, Left, ShortKey, ShortText};
use crate::error::excerpt;
use crate::form::{self, Head, Newer};
use serde::{Deserialize, Serialize};
use std::fmt;

/// The form of the file that this version writes.
const VERSION: u32 = 1;

/// A stop of a cluster in good order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stop {
    /// The cluster's number.
    pub system_identifier: u64,
    /// Where its last checkpoint is in the log.
    pub checkpoint: u64,
}

/// The first line.
#[derive(Serialize, Deserialize)]
struct First {
    #[serde(flatten)]
    head: Head,
    stop: Stop,
    /// What the keys were hashed with: so each partition has what it had, and room for it.
    secret: u64,
    /// Of the secret and of what follows.
    checksum: u32,
}

/// What a file says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftOver {
    /// What keys were hashed with.
    pub secret: u64,
    /// What counters had left, known by keys that are hashed with it.
    pub counters: Vec<Left>,
}

/// A key in the file.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Key {
    Bigint(i64),
    /// Its digits.
    Uuid(String),
    /// Its bytes, each as the letter of its number.
    Text(String),
}

/// A line.
#[derive(Serialize, Deserialize)]
struct Line {
    database: u32,
    source: u32,
    series: i64,
    key: Key,
    #[serde(default, skip_serializing_if = "is_none")]
    day: i32,
    given: i64,
    limit: i64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's")]
const fn is_none(day: &i32) -> bool {
    *day == 0
}

/// Why a file is not believed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unbelievable {
    /// A newer release wrote it.
    Newer(Newer),
    /// It is not what was written; why.
    Damaged(String),
    /// It is of another stop than the last one.
    Stale,
}

/// As the rest of a line of the log.
impl fmt::Display for Unbelievable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Newer(newer) => newer.fmt(f),
            Self::Damaged(reason) => write!(f, "it is damaged: {reason}"),
            Self::Stale => f.write_str("it is of another stop than the last one"),
        }
    }
}

/// The content of the file.
///
/// # Errors
/// Those of `serde_json`.
pub fn to_text(stop: Stop, secret: u64, counters: impl Iterator<Item = Left>) -> serde_json::Result<Vec<u8>> {
    let mut lines = Vec::new();
    for counter in counters {
        serde_json::to_writer(&mut lines, &line(&counter))?;
        lines.push(b'\n');
    }
    let first = First { head: Head::new(VERSION), stop, secret, checksum: checksum(secret, &lines) };
    let mut text = serde_json::to_vec(&first)?;
    text.push(b'\n');
    text.append(&mut lines);
    Ok(text)
}

/// What counters had left at this stop.
///
/// # Errors
/// [`Unbelievable`].
pub fn from_text(text: &[u8], stop: Stop) -> Result<LeftOver, Unbelievable> {
    let end = text.iter().position(|byte| *byte == b'\n').unwrap_or(text.len());
    let (head, lines) = text.split_at(end);
    if let Some(newer) = form::newer(head, VERSION) {
        return Err(Unbelievable::Newer(newer));
    }
    let first: First = serde_json::from_slice(head).map_err(|error| damaged(&error))?;
    let lines = lines.get(1..).unwrap_or_default();
    let secret = first.secret;
    if first.checksum != checksum(secret, lines) {
        return Err(Unbelievable::Damaged("its checksum is wrong".to_owned()));
    }
    if first.stop != stop {
        return Err(Unbelievable::Stale);
    }
    let lines = lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    let each = |line| {
        serde_json::from_slice::<Line>(line).map_err(|error| damaged(&error)).map(|line| left(line, secret))
    };
    let counters = lines.filter_map(|line| each(line).transpose()).collect::<Result<_, _>>()?;
    Ok(LeftOver { secret, counters })
}

fn checksum(secret: u64, lines: &[u8]) -> u32 {
    let mut sum = crc32fast::Hasher::new();
    sum.update(&secret.to_le_bytes());
    sum.update(lines);
    sum.finalize()
}

fn damaged(error: &serde_json::Error) -> Unbelievable {
    Unbelievable::Damaged(excerpt(&error.to_string()))
}

fn line(left: &Left) -> Line {
    let CounterKey { database, source, series, key, .. } = left.key;
    let key = match key {
        ShortKey::Bigint(number) => Key::Bigint(number),
        ShortKey::Uuid(uuid) => Key::Uuid(format!("{:032x}", u128::from_be_bytes(uuid))),
        ShortKey::Text(text) => Key::Text(text.as_bytes().iter().map(|byte| char::from(*byte)).collect()),
    };
    Line { database, source, series, key, day: left.day, given: left.given, limit: left.limit }
}

/// What a line says; None where no counter can be so.
fn left(line: Line, secret: u64) -> Option<Left> {
    let key = match line.key {
        Key::Bigint(number) => ShortKey::Bigint(number),
        Key::Uuid(digits) => ShortKey::Uuid(u128::from_str_radix(&digits, 16).ok()?.to_be_bytes()),
        Key::Text(letters) => {
            let bytes: Option<Vec<u8>> = letters.chars().map(|letter| u8::try_from(letter).ok()).collect();
            ShortKey::Text(ShortText::new(&bytes?)?)
        }
    };
    let key = CounterKey::new(secret, line.database, line.source, line.series, key);
    Some(Left { key, day: line.day, given: line.given, limit: line.limit })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::series::key;

    const SECRET: u64 = 7;
    const STOP: Stop = Stop { system_identifier: 1, checkpoint: 2 };

    fn some() -> Vec<Left> {
        let keys = [
            key::Key::Bigint(-5),
            key::Key::Uuid(1 << 100),
            key::Key::Text([0xff, b'"', b'\n'].as_slice().into()),
            key::Key::Text(key::KeyText::new()),
        ];
        let each = keys.iter().filter_map(ShortKey::of).zip(0..).map(|(key, day)| Left {
            key: CounterKey::new(SECRET, 1, 2, i64::MIN, key),
            day,
            given: -1,
            limit: i64::MAX,
        });
        each.collect()
    }

    fn text() -> Vec<u8> {
        to_text(STOP, SECRET, some().into_iter()).unwrap_or_default()
    }

    #[test]
    fn it_comes_back_as_it_was() {
        assert_eq!(from_text(&text(), STOP), Ok(LeftOver { secret: SECRET, counters: some() }));
        let none = to_text(STOP, SECRET, std::iter::empty()).unwrap_or_default();
        assert_eq!(from_text(&none, STOP), Ok(LeftOver { secret: SECRET, counters: Vec::new() }));
    }

    #[test]
    fn only_after_the_stop_that_it_is_of() {
        let (later, other) = (Stop { checkpoint: 3, ..STOP }, Stop { system_identifier: 3, ..STOP });
        for stop in [later, other] {
            assert_eq!(from_text(&text(), stop), Err(Unbelievable::Stale));
        }
    }

    /// Whatever is cut off or changed.
    #[test]
    fn damage_is_noticed() {
        let text = text();
        for at in 0..text.len() {
            let cut = from_text(&text[..at], STOP);
            assert!(matches!(cut, Err(Unbelievable::Damaged(_))), "cut at {at}: {cut:?}");
            let mut changed = text.clone();
            changed[at] ^= 1;
            let changed = from_text(&changed, STOP);
            // The release's name says nothing.
            assert!(changed.is_err() || at < 40, "changed at {at}: {changed:?}");
        }
    }

    #[test]
    fn a_newer_form_is_left_alone() {
        let text = String::from_utf8_lossy(&text()).replacen("\"version\":1", "\"version\":2", 1);
        let read = from_text(text.as_bytes(), STOP);
        assert!(matches!(read, Err(Unbelievable::Newer(_))), "{read:?}");
    }
}
