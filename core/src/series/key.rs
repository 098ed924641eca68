//! The key of a series: each has numbers of its own.

use super::limits::MAX_KEY_BYTES;
use crate::error::{TooLong, check_length};
use crate::ids::uuid::IdOrUuid;
use smallvec::SmallVec;
use std::fmt;

/// The type of a series' keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum KeyType {
    /// Numbers.
    Bigint,
    /// Texts.
    Text,
    /// UUIDs.
    Uuid,
}

impl KeyType {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Bigint, Self::Text, Self::Uuid];

    /// The name of the type in SQL.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Bigint => "bigint",
            Self::Text => "text",
            Self::Uuid => "uuid",
        }
    }
}

impl fmt::Display for KeyType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The bytes of a text that is a key. Up to 36 of them, as a UUID has, are in the value itself.
pub type KeyText = SmallVec<[u8; 36]>;

/// A value that has numbers of its own.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Key {
    /// A number.
    Bigint(i64),
    /// A text, in the encoding of the database.
    Text(KeyText),
    /// A UUID.
    Uuid(u128),
}

impl Key {
    /// A text as a key.
    pub fn text(bytes: &[u8]) -> Result<Self, TooLong> {
        check_length("key", bytes.len(), MAX_KEY_BYTES)?;
        Ok(Self::Text(KeyText::from_slice(bytes)))
    }

    /// The key of a type that a text says; None where it says none.
    pub(super) fn read(bytes: &[u8], as_type: KeyType) -> Option<Self> {
        let text = str::from_utf8(bytes).ok()?.trim_ascii();
        match as_type {
            KeyType::Bigint => text.parse().ok().map(Self::Bigint),
            KeyType::Text => Self::text(bytes).ok(),
            KeyType::Uuid => match text.parse().ok()? {
                IdOrUuid::Uuid(uuid) => Some(Self::Uuid(uuid.0)),
                IdOrUuid::Id(_) => None,
            },
        }
    }

    /// Its type.
    pub const fn key_type(&self) -> KeyType {
        match self {
            Self::Bigint(_) => KeyType::Bigint,
            Self::Text(_) => KeyType::Text,
            Self::Uuid(_) => KeyType::Uuid,
        }
    }
}
