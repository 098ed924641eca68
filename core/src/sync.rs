//! The atomics of the core: those of the standard library, or loom's if built with `--cfg loom`.

#[cfg(loom)]
pub(crate) use loom::sync::atomic::{AtomicU64, Ordering, fence};
#[cfg(not(loom))]
pub(crate) use std::sync::atomic::{AtomicU64, Ordering, fence};

/// Waits a moment in a spin loop. Every 64th attempt yields the processor, in case the process that the loop waits for
/// is not running.
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
