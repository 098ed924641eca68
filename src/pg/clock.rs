//! Clocks of the operating system.

use snowflake_ids_core::{Clock, UnixMicros};
use std::time::Duration;

/// `CLOCK_REALTIME`, read from libc directly: the arithmetic of `SystemTime` would take a fifth of the time that
/// creating an id takes.
pub struct SystemClock;

impl Clock for SystemClock {
    #[inline]
    fn now(&self) -> UnixMicros {
        UnixMicros(micros(libc::CLOCK_REALTIME))
    }
}

/// Returns `CLOCK_MONOTONIC`. All processes of a machine see the same value, and the clock is never stepped. An `Instant`
/// cannot be shared between processes.
pub fn uptime() -> Duration {
    Duration::from_micros(micros(libc::CLOCK_MONOTONIC).cast_unsigned())
}

/// Returns the microseconds since the machine was started, including the time in suspend. The clock is never stepped.
pub fn since_boot() -> u64 {
    micros(libc::CLOCK_BOOTTIME).cast_unsigned()
}

#[inline]
fn micros(clock: libc::clockid_t) -> i64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the struct is a local variable; the call fails for unknown clocks only.
    unsafe { libc::clock_gettime(clock, &raw mut time) };
    time.tv_sec * 1_000_000 + time.tv_nsec / 1_000
}
