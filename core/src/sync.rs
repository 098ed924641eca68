//! The atomics of the core: the standard library's, or loom's when built with `--cfg loom`, so that the
//! model checker runs the very code that ships.

#[cfg(loom)]
pub(crate) use loom::sync::atomic::{AtomicU64, Ordering};
#[cfg(not(loom))]
pub(crate) use std::sync::atomic::{AtomicU64, Ordering};
