//! Variables of one process.

use rustc_hash::FxHashMap;
use std::cell::RefCell;
use std::hash::Hash;

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

/// Values that this process has read, by key. They are valid while the number of changes is as it was before they were read.
pub struct Cached<K, V, N = u64>(PerProcess<RefCell<Option<(N, FxHashMap<K, V>)>>>);

impl<K: Eq + Hash, V: Clone, N: Copy + PartialEq> Cached<K, V, N> {
    /// The most values. A full cache is emptied before another value is added.
    const MOST_KEPT: usize = 4_096;

    pub const fn new() -> Self {
        Self(PerProcess::new(RefCell::new(None)))
    }

    /// Returns the value of a key, if it is valid.
    pub fn get(&self, key: &K, changes: Option<N>) -> Option<V> {
        let all = self.0.borrow();
        let (then, values) = all.as_ref()?;
        values.get(key).filter(|_| Some(*then) == changes).cloned()
    }

    /// Keeps and returns a value. `changes` is the number before the read, so that a change during the read causes another one.
    /// If changes cannot be counted (None), the value is not kept.
    pub fn keep(&self, key: K, changes: Option<N>, value: V) -> V {
        let Some(changes) = changes else { return value };
        match &mut *self.0.borrow_mut() {
            Some((then, values)) if *then == changes && values.len() < Self::MOST_KEPT => {
                values.insert(key, value.clone());
            }
            all => *all = Some((changes, FxHashMap::from_iter([(key, value.clone())]))),
        }
        value
    }
}
