//! Keys of a series. Each key has its own numbers.

use super::limits::MAX_KEY_BYTES;
use crate::error::{TooLong, check_length};
use crate::ids::uuid::IdOrUuid;
use crate::named_enum::named_enum;
use smallvec::SmallVec;

named_enum! {
    /// The type of a series' keys, with its name in SQL.
    #[derive(Hash)]
    pub enum KeyType {
        /// The SQL type bigint.
        Bigint = "bigint",
        /// The SQL type text.
        Text = "text",
        /// The SQL type uuid.
        Uuid = "uuid",
    }
}

/// The bytes of a text key. A text of up to 36 bytes, the length of a UUID, needs no allocation.
pub type KeyText = SmallVec<[u8; 36]>;

/// A key of a series.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Key {
    /// A bigint.
    Bigint(i64),
    /// A text, in the database's encoding.
    Text(KeyText),
    /// A UUID.
    Uuid(u128),
}

impl Key {
    /// Returns a text as a key.
    pub fn text(bytes: &[u8]) -> Result<Self, TooLong> {
        check_length("key", bytes.len(), MAX_KEY_BYTES)?;
        Ok(Self::Text(KeyText::from_slice(bytes)))
    }

    /// Parses a text as a key of a type; None if the text is not valid input of the type.
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

    /// Returns the type.
    pub const fn key_type(&self) -> KeyType {
        match self {
            Self::Bigint(_) => KeyType::Bigint,
            Self::Text(_) => KeyType::Text,
            Self::Uuid(_) => KeyType::Uuid,
        }
    }
}
