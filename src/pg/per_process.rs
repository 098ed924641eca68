//! Variables of one process.

/// A variable of this process, for use by the process's main thread only. A thread-local variable would cost a function call
/// for each access.
pub struct PerProcess<T>(T);

// SAFETY: only the main thread of a process uses these variables. The other thread of this extension (`libpq::names`) uses none.
unsafe impl<T> Sync for PerProcess<T> {}

impl<T> PerProcess<T> {
    pub const fn new(value: T) -> Self {
        Self(value)
    }
}

impl<T> std::ops::Deref for PerProcess<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.0
    }
}
