//! Limits of a tag's properties.

/// The largest step and the largest increment. The step must fit into the 32-bit offset of a segment's cursor.
pub const MAX_STEP: i64 = 1_000_000_000;
/// The largest number of characters in a tag's name.
pub const MAX_TAG_CHARS: usize = 128;
/// The largest number of bytes in a tag's name, in any server encoding.
pub const MAX_TAG_BYTES: usize = 4 * MAX_TAG_CHARS;
/// The largest number of bytes in a tag's description.
pub const MAX_DESCRIPTION_BYTES: usize = 4_000;
/// The largest number of bytes in the name of a period or of a time zone.
pub const MAX_NAME_BYTES: usize = 128;
