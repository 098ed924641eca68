//! The server's wall clock.

use snowflake_ids_core::{Clock, UnixMicros};
use std::time::{SystemTime, UNIX_EPOCH};

/// `CLOCK_REALTIME`, which Linux serves from the vDSO without a system call.
pub struct SystemClock;

impl Clock for SystemClock {
    #[inline]
    fn now(&self) -> UnixMicros {
        match SystemTime::now().duration_since(UNIX_EPOCH) {
            #[allow(clippy::cast_possible_wrap, reason = "seconds since 1970 fit for 290,000 years")]
            Ok(since) => UnixMicros(since.as_secs() as i64 * 1_000_000 + i64::from(since.subsec_micros())),
            // Before 1970: before every layout's epoch, which is all that matters here.
            Err(_) => UnixMicros(-1),
        }
    }
}
