//! Sleeping so that cancel, `statement_timeout` and shutdown end it at once.

use pgrx::{check_for_interrupts, pg_sys};
use std::time::Duration;

/// The longest sleep at a stretch: whoever waits for the clock looks at it this often.
const SLICE: Duration = Duration::from_millis(100);

/// Sleeps for a while, at most a slice; less when the process is woken.
pub fn sleep(duration: Duration) {
    let millis = duration.min(SLICE).as_micros().div_ceil(1_000);
    let events = pg_sys::WL_LATCH_SET | pg_sys::WL_TIMEOUT | pg_sys::WL_EXIT_ON_PM_DEATH;
    check_for_interrupts!();
    // SAFETY: MyLatch is this process's own latch, and all processes that run SQL have one.
    unsafe {
        #[allow(clippy::cast_possible_truncation, clippy::cast_possible_wrap, reason = "at most a slice")]
        pg_sys::WaitLatch(pg_sys::MyLatch, events as i32, millis as _, wait_event());
        pg_sys::ResetLatch(pg_sys::MyLatch);
    }
    check_for_interrupts!();
}

/// What `pg_stat_activity` shows meanwhile: `SnowflakeClock` where the server lets an extension name it.
fn wait_event() -> u32 {
    #[cfg(any(feature = "pg17", feature = "pg18"))]
    {
        use std::sync::atomic::{AtomicU32, Ordering};
        static EVENT: AtomicU32 = AtomicU32::new(0);
        if EVENT.load(Ordering::Relaxed) == 0 {
            // SAFETY: the name is a constant; the server keeps one event of a name for all processes.
            let event = unsafe { pg_sys::WaitEventExtensionNew(c"SnowflakeClock".as_ptr()) };
            EVENT.store(event, Ordering::Relaxed);
        }
        EVENT.load(Ordering::Relaxed)
    }
    #[cfg(not(any(feature = "pg17", feature = "pg18")))]
    pg_sys::PG_WAIT_EXTENSION
}
