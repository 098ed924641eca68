//! Limits of a tag's properties.

/// The largest step and the largest increment. The step must fit into the 32-bit offset of a segment's cursor.
pub const MAX_STEP: i64 = 1_000_000_000;
/// The longest tag, in characters.
pub const MAX_TAG_CHARS: usize = 128;
/// The longest tag, in bytes of any server encoding.
pub const MAX_TAG_BYTES: usize = 4 * MAX_TAG_CHARS;
/// The longest description of a tag, in bytes.
pub const MAX_DESCRIPTION_BYTES: usize = 4_000;
/// The longest name of a period or of a time zone, in bytes.
pub const MAX_NAME_BYTES: usize = 128;
