//! A tag's name in memory of fixed size.

use crate::tag::definition::MAX_TAG_BYTES;
use std::fmt;
use std::hash::{Hash, Hasher};

/// The bytes of a tag's name in the database's encoding, at most [`MAX_TAG_BYTES`].
#[derive(Clone, Copy)]
pub struct Tag {
    len: u16,
    bytes: [u8; MAX_TAG_BYTES],
}

const _: () = assert!(MAX_TAG_BYTES <= u16::MAX as usize);

impl Tag {
    /// Returns a tag with these bytes; None if the bytes are too many.
    pub fn new(tag: &[u8]) -> Option<Self> {
        let mut bytes = [0; MAX_TAG_BYTES];
        bytes.get_mut(..tag.len())?.copy_from_slice(tag);
        Some(Self { len: u16::try_from(tag.len()).ok()?, bytes })
    }

    /// Returns the bytes.
    pub fn as_bytes(&self) -> &[u8] {
        self.bytes.get(..self.len.into()).unwrap_or_default()
    }
}

/// The empty name, which no row has.
impl Default for Tag {
    fn default() -> Self {
        Self { len: 0, bytes: [0; MAX_TAG_BYTES] }
    }
}

impl PartialEq for Tag {
    fn eq(&self, other: &Self) -> bool {
        self.as_bytes() == other.as_bytes()
    }
}

impl Eq for Tag {}

impl Hash for Tag {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.as_bytes().hash(state);
    }
}

/// The name as text, even if the bytes are not valid UTF-8.
impl fmt::Debug for Tag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Tag({:?})", String::from_utf8_lossy(self.as_bytes()))
    }
}
