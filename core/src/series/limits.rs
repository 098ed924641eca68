//! Limits of a series' properties.

/// The largest number of characters in a series' name.
pub const MAX_NAME_CHARS: usize = 128;
/// The largest number of bytes in a series' name, in any server encoding.
pub const MAX_NAME_BYTES: usize = 4 * MAX_NAME_CHARS;
/// The largest number of bytes in a key.
pub const MAX_KEY_BYTES: usize = 512;
/// The largest number of bytes in a time zone's name.
pub const MAX_TIME_ZONE_BYTES: usize = 128;
/// The largest count of numbers in one reservation.
pub const MAX_STEP: i32 = 1_000_000_000;
/// The largest number of sections of a series.
pub const MAX_SECTIONS: u16 = 1_024;
