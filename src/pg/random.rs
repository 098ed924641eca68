//! Random numbers that nobody can guess.

use pgrx::pg_sys;

/// Returns a random number other than 0.
pub fn token() -> i64 {
    loop {
        let mut bytes = [0; size_of::<i64>()];
        // SAFETY: the function writes `bytes.len()` bytes.
        let drawn = unsafe { pg_sys::pg_strong_random(bytes.as_mut_ptr().cast(), bytes.len()) };
        assert!(drawn, "the system gives no random numbers");
        match i64::from_ne_bytes(bytes) {
            0 => {}
            token => return token,
        }
    }
}

/// Returns a random number, which may be 0.
pub fn number() -> u32 {
    let [a, b, c, d, ..] = token().to_ne_bytes();
    u32::from_ne_bytes([a, b, c, d])
}
