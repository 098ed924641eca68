//! Limits of a series' properties.

/// The longest name, in characters.
pub const MAX_NAME_CHARS: usize = 128;
/// The longest name, in bytes of any server encoding.
pub const MAX_NAME_BYTES: usize = 4 * MAX_NAME_CHARS;
/// The longest key, in bytes.
pub const MAX_KEY_BYTES: usize = 512;
/// The longest name of a time zone, in bytes.
pub const MAX_TIME_ZONE_BYTES: usize = 128;
/// The largest count of numbers in one reservation.
pub const MAX_STEP: i32 = 1_000_000_000;
/// The most sections of a series.
pub const MAX_SECTIONS: u16 = 1_024;
