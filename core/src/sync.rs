//! The atomics of the core. They are the standard library's atomics, or loom's if built with `--cfg loom`.

#[cfg(loom)]
pub(crate) use loom::sync::atomic::{AtomicU64, Ordering, fence};
#[cfg(not(loom))]
pub(crate) use std::sync::atomic::{AtomicU64, Ordering, fence};

/// Waits a moment in a spin loop. Every 64th attempt yields the processor, because the awaited process may be waiting
/// for it.
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
