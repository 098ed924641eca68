//! Variables of one process.

/// A variable of this process, which has one thread. A thread-local variable would cost a function call for each access.
pub struct PerProcess<T>(T);

// SAFETY: a process of the server has one thread.
unsafe impl<T> Sync for PerProcess<T> {}

impl<T> PerProcess<T> {
    /// Creates a variable with its first value.
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
