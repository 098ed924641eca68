//! The atomics of the core: the standard library's, or loom's when built with `--cfg loom`, so that the
//! model checker runs the very code that ships.

#[cfg(loom)]
pub(crate) use loom::sync::atomic::{AtomicU64, Ordering, fence};
#[cfg(not(loom))]
pub(crate) use std::sync::atomic::{AtomicU64, Ordering, fence};

/// Lets others run, who hold what this waits for: for a moment only, unless they were put aside.
pub(crate) fn pause(attempt: u32) {
    #[cfg(loom)]
    let _ = (attempt, loom::thread::yield_now());
    #[cfg(not(loom))]
    if attempt % 64 == 63 {
        std::thread::yield_now();
    } else {
        std::hint::spin_loop();
    }
}
