//! Waiting for another process to say that something changed.

use super::wait::Event;
use pgrx::{check_for_interrupts, pg_sys};
use std::cell::UnsafeCell;
use std::time::Duration;

/// The longest sleep at a time: what a wake-up that got lost can cost.
const SLICE: Duration = Duration::from_millis(500);

/// A condition variable of Postgres's, in shared memory.
#[repr(transparent)]
pub struct Condition(UnsafeCell<pg_sys::ConditionVariable>);

// SAFETY: made to be used by many processes.
unsafe impl Send for Condition {}
// SAFETY: as above.
unsafe impl Sync for Condition {}

/// A new one, to be put where it stays.
impl Default for Condition {
    fn default() -> Self {
        // SAFETY: all zero is a valid value of the struct, which is initialised before it is used.
        let condition = Self(UnsafeCell::new(unsafe { std::mem::zeroed() }));
        // SAFETY: no other process sees it yet; it holds no pointer to itself.
        unsafe { pg_sys::ConditionVariableInit(condition.0.get()) };
        condition
    }
}

impl Condition {
    /// Wakes all that wait.
    pub fn broadcast(&self) {
        // SAFETY: initialised above.
        unsafe { pg_sys::ConditionVariableBroadcast(self.0.get()) };
    }

    /// Sleeps until `ready` gives something or the time is over. Cancel, `statement_timeout` and shutdown end it.
    pub fn wait<T>(&self, event: Event, limit: Duration, mut ready: impl FnMut() -> Option<T>) -> Option<T> {
        let started = std::time::Instant::now();
        // On the list of those to be woken before `ready` is asked, so that no wake-up falls in between.
        // SAFETY: initialised above.
        unsafe { pg_sys::ConditionVariablePrepareToSleep(self.0.get()) };
        let found = loop {
            if let Some(found) = ready() {
                break Some(found);
            }
            let left = limit.saturating_sub(started.elapsed());
            if left.is_zero() {
                break None;
            }
            let millis = left.min(SLICE).as_micros().div_ceil(1_000);
            #[allow(clippy::cast_possible_truncation, reason = "at most a slice")]
            // SAFETY: as above. It looks for interrupts itself.
            unsafe {
                pg_sys::ConditionVariableTimedSleep(self.0.get(), millis as _, event.number());
            }
            check_for_interrupts!();
        };
        // SAFETY: as above; an error's cleanup does the same.
        unsafe { pg_sys::ConditionVariableCancelSleep() };
        found
    }
}
