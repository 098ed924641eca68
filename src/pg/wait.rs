//! Sleeping so that cancel, `statement_timeout` and shutdown end it at once.

use pgrx::{check_for_interrupts, pg_sys};
use std::time::Duration;

/// The longest sleep at a stretch: whoever waits for the clock looks at it this often.
const SLICE: Duration = Duration::from_millis(100);

/// What is waited for, as `pg_stat_activity` shows it where the server lets an extension name it.
#[derive(Clone, Copy)]
pub enum Event {
    /// `SnowflakeClock`: a call waits for the clock.
    Clock,
    /// `SnowflakeState`: a call waits until another has written the state.
    State,
    /// `SnowflakeLease`: a call waits for a worker id.
    Lease,
    /// `SegmentRefill`: a call waits for ids of a tag.
    Refill,
    /// `SegmentWorkerMain`: a worker waits for work.
    Worker,
    /// `SegmentSupervisorMain`: the supervisor waits for requests.
    Supervisor,
}

impl Event {
    /// The number by which the server knows it.
    #[cfg(any(feature = "pg17", feature = "pg18"))]
    pub fn number(self) -> u32 {
        use std::sync::atomic::{AtomicU32, Ordering};
        const EVENTS: usize = Event::Supervisor as usize + 1;
        static NUMBERS: [AtomicU32; EVENTS] = [const { AtomicU32::new(0) }; EVENTS];
        let name = match self {
            Self::Clock => c"SnowflakeClock",
            Self::State => c"SnowflakeState",
            Self::Lease => c"SnowflakeLease",
            Self::Refill => c"SegmentRefill",
            Self::Worker => c"SegmentWorkerMain",
            Self::Supervisor => c"SegmentSupervisorMain",
        };
        let number = &NUMBERS[self as usize];
        if number.load(Ordering::Relaxed) == 0 {
            // SAFETY: the name is a constant; the server keeps one event of a name for all processes.
            number.store(unsafe { pg_sys::WaitEventExtensionNew(name.as_ptr()) }, Ordering::Relaxed);
        }
        number.load(Ordering::Relaxed)
    }

    /// The number by which the server knows it: one for all extensions.
    #[cfg(not(any(feature = "pg17", feature = "pg18")))]
    #[allow(clippy::unused_self, reason = "other versions use it")]
    pub const fn number(self) -> u32 {
        pg_sys::PG_WAIT_EXTENSION
    }
}

/// Sleeps for a while, at most a slice; less when the process is woken.
pub fn sleep(duration: Duration) {
    check_for_interrupts!();
    until_woken(Event::Clock, duration.min(SLICE));
    check_for_interrupts!();
}

/// Sleeps for a while, however often the process is woken: wake-ups are kept for whoever waits for them.
pub fn pause(event: Event, time: Duration) {
    wait(std::ptr::null_mut(), pg_sys::WL_TIMEOUT, event, time);
}

/// Sleeps until this process is woken, at most for the time given.
pub fn until_woken(event: Event, limit: Duration) {
    // SAFETY: MyLatch is this process's own latch, and all processes that are attached to shared memory have one.
    let latch = unsafe { pg_sys::MyLatch };
    wait(latch, pg_sys::WL_LATCH_SET | pg_sys::WL_TIMEOUT, event, limit);
    // SAFETY: as above.
    unsafe { pg_sys::ResetLatch(latch) };
}

fn wait(latch: *mut pg_sys::Latch, events: u32, event: Event, limit: Duration) {
    let events = events | pg_sys::WL_EXIT_ON_PM_DEATH;
    let millis = limit.as_micros().div_ceil(1_000).min(i32::MAX as u128);
    // SAFETY: the latch is this process's own, or null where it is not waited for.
    unsafe {
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_possible_wrap,
            reason = "within i32, see above"
        )]
        pg_sys::WaitLatch(latch, events as i32, millis as _, event.number());
    }
}
