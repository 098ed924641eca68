//! Rules that a test may leave out, to see that a run of the simulation fails without them.
//!
//! Where a rule of a protocol is kept, the code that ships asks [`holds`]. Without the feature `guards`, which only
//! `make test-core` sets, that is the constant `true`.

/// A rule of a protocol, named after what it keeps up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Guard {}

#[cfg(feature = "guards")]
mod switch {
    use super::Guard;
    use std::cell::Cell;

    thread_local! {
        static LEFT_OUT: Cell<Option<Guard>> = const { Cell::new(None) };
    }

    /// Whether the rule holds on this thread.
    pub fn holds(guard: Guard) -> bool {
        LEFT_OUT.get() != Some(guard)
    }

    /// Leaves a rule out, for what this thread runs from now on; None: all hold.
    pub fn leave_out(guard: Option<Guard>) {
        LEFT_OUT.set(guard);
    }
}

#[cfg(feature = "guards")]
pub use switch::{holds, leave_out};

/// Whether the rule holds.
#[cfg(not(feature = "guards"))]
#[inline]
#[must_use]
pub const fn holds(_: Guard) -> bool {
    true
}
