//! Sleeps that cancel, `statement_timeout` and shutdown can interrupt.

use pgrx::{check_for_interrupts, pg_sys};
use std::cell::UnsafeCell;
use std::ffi::{c_int, c_long};
use std::time::Duration;

/// The longest single sleep of a session that waits for the clock.
const SLICE: Duration = Duration::from_millis(100);

/// The wait event in `pg_stat_activity`. Postgres 17 and later show these names.
#[derive(Clone, Copy)]
pub enum Event {
    /// `SnowflakeIdsClock`: a call waits for the clock.
    Clock,
    /// `SnowflakeIdsState`: a call waits until another process has written the state file.
    State,
    /// `SnowflakeIdsLease`: a call waits for a worker id.
    Lease,
    /// `SnowflakeIdsRefill`: a call waits for ids of a tag.
    Refill,
    /// `SnowflakeIdsRefillWorkerMain`: a refill worker waits for work.
    RefillWorker,
    /// `SnowflakeIdsLeaseWorkerMain`: the lease worker waits for work.
    LeaseWorker,
    /// `SnowflakeIdsLauncherMain`: the launcher waits for requests.
    Launcher,
    /// `SnowflakeIdsTags`: a list of tags lets others change tags first.
    Tags,
    /// `SnowflakeIdsRegistry`: a process waits for another server.
    Registry,
}

impl Event {
    /// Returns the server's number for the event.
    #[cfg(not(any(feature = "pg14", feature = "pg15", feature = "pg16")))]
    pub fn number(self) -> u32 {
        use std::sync::atomic::{AtomicU32, Ordering};
        const EVENTS: usize = Event::Registry as usize + 1;
        static NUMBERS: [AtomicU32; EVENTS] = [const { AtomicU32::new(0) }; EVENTS];
        let name = match self {
            Self::Clock => c"SnowflakeIdsClock",
            Self::State => c"SnowflakeIdsState",
            Self::Lease => c"SnowflakeIdsLease",
            Self::Refill => c"SnowflakeIdsRefill",
            Self::RefillWorker => c"SnowflakeIdsRefillWorkerMain",
            Self::LeaseWorker => c"SnowflakeIdsLeaseWorkerMain",
            Self::Launcher => c"SnowflakeIdsLauncherMain",
            Self::Tags => c"SnowflakeIdsTags",
            Self::Registry => c"SnowflakeIdsRegistry",
        };
        let number = &NUMBERS[self as usize];
        if number.load(Ordering::Relaxed) == 0 {
            // SAFETY: the name is a constant. The server has one event of this name for all processes.
            number.store(unsafe { pg_sys::WaitEventExtensionNew(name.as_ptr()) }, Ordering::Relaxed);
        }
        number.load(Ordering::Relaxed)
    }

    /// Returns the server's number for the event. Before Postgres 17, all extensions share one number.
    #[cfg(any(feature = "pg14", feature = "pg15", feature = "pg16"))]
    #[allow(clippy::unused_self, reason = "other versions use it")]
    pub const fn number(self) -> u32 {
        pg_sys::PG_WAIT_EXTENSION
    }
}

/// Sleeps for `duration`, but not longer than [`SLICE`]. Ends early if the process is woken.
pub fn sleep(duration: Duration) {
    check_for_interrupts!();
    until_woken(Event::Clock, duration.min(SLICE));
    check_for_interrupts!();
}

/// Sleeps for the whole time, even if the process is woken. The wake-up stays pending, and ends the next sleep.
pub fn pause(event: Event, time: Duration) {
    wait(std::ptr::null_mut(), pg_sys::WL_TIMEOUT, event, time);
}

/// Sleeps until this process is woken, or until the time is over.
pub fn until_woken(event: Event, limit: Duration) {
    // SAFETY: MyLatch is this process's own latch, which every process with shared memory has.
    let latch = unsafe { pg_sys::MyLatch };
    wait(latch, pg_sys::WL_LATCH_SET | pg_sys::WL_TIMEOUT, event, limit);
    // SAFETY: this process's own latch.
    unsafe { pg_sys::ResetLatch(latch) };
}

/// Sleeps until this process is woken, the socket is ready or the time is over. Returns the events that occurred, as bits.
pub fn until_woken_or_ready(event: Event, socket: c_int, events: u32, limit: Duration) -> u32 {
    let events = events | pg_sys::WL_LATCH_SET | pg_sys::WL_TIMEOUT | pg_sys::WL_EXIT_ON_PM_DEATH;
    // SAFETY: the latch is this process's own, and the socket is the caller's. The server ignores an invalid socket.
    unsafe {
        let latch = pg_sys::MyLatch;
        let happened =
            pg_sys::WaitLatchOrSocket(latch, events.cast_signed(), socket, millis(limit), event.number())
                .cast_unsigned();
        if happened & pg_sys::WL_LATCH_SET != 0 {
            pg_sys::ResetLatch(latch);
        }
        happened
    }
}

/// Makes the next sleep of this process end immediately.
pub fn wake() {
    // SAFETY: this process's own latch.
    unsafe { pg_sys::SetLatch(pg_sys::MyLatch) };
}

fn wait(latch: *mut pg_sys::Latch, events: u32, event: Event, limit: Duration) {
    let events = events | pg_sys::WL_EXIT_ON_PM_DEATH;
    // SAFETY: the latch is this process's own, or null if `events` does not contain the latch.
    unsafe { pg_sys::WaitLatch(latch, events.cast_signed(), millis(limit), event.number()) };
}

/// Converts a duration to whole milliseconds, rounded up.
fn millis(limit: Duration) -> c_long {
    let millis = limit.as_micros().div_ceil(1_000);
    i32::try_from(millis).unwrap_or(i32::MAX).into()
}

/// The longest single sleep on a condition. The limit bounds the delay if a wake-up is lost.
const CONDITION_SLICE: Duration = Duration::from_millis(500);

/// A condition variable of the server, in shared memory.
#[repr(transparent)]
pub struct Condition(UnsafeCell<pg_sys::ConditionVariable>);

// SAFETY: a condition variable is made for many processes.
unsafe impl Send for Condition {}
// SAFETY: a condition variable is made for many processes.
unsafe impl Sync for Condition {}

/// Creates a condition variable. The variable must not be moved after its first use.
impl Default for Condition {
    fn default() -> Self {
        // SAFETY: all zeros is a valid value of the struct, which is initialised before it is used.
        let condition = Self(UnsafeCell::new(unsafe { std::mem::zeroed() }));
        // SAFETY: no other process sees the variable yet. The variable contains no pointer to itself.
        unsafe { pg_sys::ConditionVariableInit(condition.0.get()) };
        condition
    }
}

impl Condition {
    /// Wakes all waiting processes.
    pub fn broadcast(&self) {
        // SAFETY: the variable was initialised in `default`.
        unsafe { pg_sys::ConditionVariableBroadcast(self.0.get()) };
    }

    /// Sleeps until `ready` returns a value or the time is over. Cancel, `statement_timeout` and shutdown end the sleep.
    pub fn wait<T>(&self, event: Event, limit: Duration, mut ready: impl FnMut() -> Option<T>) -> Option<T> {
        let started = std::time::Instant::now();
        // The process joins the waiting list before it calls `ready`, so no wake-up is lost in between.
        // SAFETY: the variable was initialised in `default`.
        unsafe { pg_sys::ConditionVariablePrepareToSleep(self.0.get()) };
        let found = loop {
            if let Some(found) = ready() {
                break Some(found);
            }
            let left = limit.saturating_sub(started.elapsed());
            if left.is_zero() {
                break None;
            }
            let slice = millis(left.min(CONDITION_SLICE));
            // SAFETY: the variable was initialised in `default`; the function checks for interrupts.
            unsafe { pg_sys::ConditionVariableTimedSleep(self.0.get(), slice, event.number()) };
            check_for_interrupts!();
        };
        // SAFETY: leaves the waiting list; the server does the same after an error.
        unsafe { pg_sys::ConditionVariableCancelSleep() };
        found
    }
}
