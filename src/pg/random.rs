//! Random numbers that cannot be guessed or repeated.

use pgrx::pg_sys;

/// A number that no other server draws, and not 0.
pub fn token() -> i64 {
    loop {
        let mut bytes = [0; size_of::<i64>()];
        // SAFETY: writes so many bytes.
        let drawn = unsafe { pg_sys::pg_strong_random(bytes.as_mut_ptr().cast(), bytes.len()) };
        assert!(drawn, "the system gives no random numbers");
        match i64::from_ne_bytes(bytes) {
            0 => {}
            token => return token,
        }
    }
}

/// Any number.
pub fn number() -> u32 {
    let [a, b, c, d, ..] = token().to_ne_bytes();
    u32::from_ne_bytes([a, b, c, d])
}
