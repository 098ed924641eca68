//! The server's clocks.

use snowflake_ids_core::{Clock, UnixMicros};
use std::time::Duration;

/// `CLOCK_REALTIME`, asked of libc directly: the arithmetic of `SystemTime` costs a fifth of an id.
pub struct SystemClock;

impl Clock for SystemClock {
    #[inline]
    fn now(&self) -> UnixMicros {
        UnixMicros(micros(libc::CLOCK_REALTIME))
    }
}

/// `CLOCK_MONOTONIC`: the same for all processes of a machine, and never stepped. (An `Instant` can't be shared between processes.)
pub fn uptime() -> Duration {
    Duration::from_micros(micros(libc::CLOCK_MONOTONIC).cast_unsigned())
}

/// Microseconds since the machine was started, of a clock that cannot be stepped and that goes on while it sleeps.
pub fn since_boot() -> u64 {
    micros(libc::CLOCK_BOOTTIME).cast_unsigned()
}

#[inline]
fn micros(clock: libc::clockid_t) -> i64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the struct is ours; the call fails for unknown clocks only.
    unsafe { libc::clock_gettime(clock, &raw mut time) };
    time.tv_sec * 1_000_000 + time.tv_nsec / 1_000
}
