//! What a node and a registry say to each other of the numbers of a dense series.

use super::bounded;
use crate::series::key::{Key, KeyType};
use serde::{Deserialize, Serialize};

/// A key, as servers know it whatever the encoding of their databases is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum SharedKey {
    /// A number.
    Bigint(i64),
    /// A text.
    Text(String),
    /// The high and the low half of a UUID.
    Uuid(u64, u64),
}

impl SharedKey {
    /// A key, whose text `to_utf8` gives in letters that all servers know; None where it has others.
    pub fn of(key: &Key, to_utf8: impl Fn(&[u8]) -> Option<String>) -> Option<Self> {
        Some(match key {
            Key::Bigint(number) => Self::Bigint(*number),
            Key::Text(text) => Self::Text(to_utf8(text)?),
            Key::Uuid(uuid) => {
                let half = |bits: u128| u64::try_from(bits & u128::from(u64::MAX)).unwrap_or_default();
                Self::Uuid(half(uuid >> 64), half(*uuid))
            }
        })
    }

    /// The key as a database has it, where `from_utf8` gives a text in its encoding; None where that has not all of its letters, or
    /// it is longer there than a key may be.
    pub fn to_key(&self, from_utf8: impl Fn(&str) -> Option<Vec<u8>>) -> Option<Key> {
        match self {
            Self::Bigint(number) => Some(Key::Bigint(*number)),
            Self::Text(text) => Key::text(&from_utf8(text)?).ok(),
            Self::Uuid(high, low) => Some(Key::Uuid(u128::from(*high) << 64 | u128::from(*low))),
        }
    }

    /// Its type.
    pub const fn key_type(&self) -> KeyType {
        match self {
            Self::Bigint(_) => KeyType::Bigint,
            Self::Text(_) => KeyType::Text,
            Self::Uuid(..) => KeyType::Uuid,
        }
    }
}

/// What of a series must be the same at the node and at its registry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SharedTerms {
    /// The name of the type of its keys.
    pub key_type: String,
    /// The first number of a key.
    pub start: i64,
    /// After which period keys start over: its name.
    pub reset: Option<String>,
    /// Where periods begin; empty where there are none.
    pub time_zone: String,
}

/// How far a key has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyReached {
    /// The highest number.
    pub last: i64,
    /// The first day of its period, in days since 1970-01-01; 0 without periods.
    pub day: i32,
}

/// What is asked of one series.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NumbersRequest {
    /// Its name.
    pub series: String,
    /// What it is here.
    pub terms: SharedTerms,
    /// What keys have left that leave this node's memory.
    #[serde(deserialize_with = "bounded::wants")]
    pub returns: Vec<NumbersReturn>,
    /// What keys want.
    #[serde(deserialize_with = "bounded::wants")]
    pub wants: Vec<NumbersWant>,
}

/// Numbers of a key that no session was given, returned by the node that they were reserved for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NumbersReturn {
    /// The key.
    pub key: SharedKey,
    /// The last number that was reserved, and its day: what the row has to say still.
    pub reserved: KeyReached,
    /// By what the reservation is known: only the node that it was made for knows it.
    pub version: i64,
    /// The highest number that is in use.
    pub given: i64,
}

/// What is wanted of a key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NumbersWant {
    /// The key.
    pub key: SharedKey,
    /// For which period; 0: for none.
    pub day: i32,
    /// How many calls wait.
    pub waiting: u32,
    /// How many are to be reserved at least where no other server has reserved any of the key since this node did.
    pub ahead: u32,
    /// The highest number that is of use.
    pub max_value: i64,
    /// How far the key was received by this node.
    pub received: Option<KeyReached>,
    /// By what that reservation is known, where it is as it was received.
    pub version: Option<i64>,
}

/// What a registry says of one series.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Numbers {
    /// It has no dense series of this name.
    Unknown,
    /// A transaction has the series locked.
    Locked,
    /// Its series is another one.
    Differs,
    /// What came of what.
    Done {
        /// For each return, whether its row was free to change. One that another transaction has locked stays as it was.
        #[serde(deserialize_with = "bounded::wants")]
        returned: Vec<bool>,
        /// Of each want.
        #[serde(deserialize_with = "bounded::wants")]
        outcomes: Vec<NumbersOutcome>,
    },
}

/// What came of what a key wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum NumbersOutcome {
    /// These numbers are the node's.
    Given {
        /// The first.
        first: i64,
        /// The last,
        last: i64,
        /// and the first day of their period.
        day: i32,
        /// By what this reservation is known.
        version: i64,
    },
    /// No number is left.
    Exhausted,
    /// A transaction has the key's row locked.
    Locked,
    /// No call waits, and another server has reserved numbers of the key since.
    Nothing,
    /// Its row is further behind what the node received than a failover explains: it was restored from a backup.
    Behind,
    /// The period begins later than any that there is by the registry's clock.
    Ahead,
    /// Its database cannot have such a key.
    NoKey,
}
