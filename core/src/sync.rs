//! The atomics of the core, and what keeps them apart in memory. The atomics are the standard library's atomics, or loom's if
//! built with `--cfg loom`.

#[cfg(loom)]
pub(crate) use loom::sync::atomic::{AtomicU64, Ordering, fence};
use std::ops::Deref;
#[cfg(not(loom))]
pub(crate) use std::sync::atomic::{AtomicU64, Ordering, fence};

/// A value that shares no cache line with other values. Some processors have lines of 128 bytes on arm64.
#[cfg_attr(target_arch = "aarch64", repr(C, align(128)))]
#[cfg_attr(not(target_arch = "aarch64"), repr(C, align(64)))]
#[derive(Debug, Default)]
pub struct CacheLine<T>(pub T);

impl<T> Deref for CacheLine<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.0
    }
}

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
