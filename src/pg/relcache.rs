//! Entries of the relcache, and its invalidations, passed from one server callback to all listeners. A process can register
//! only a few server callbacks, and a further registration ends the process. Other extensions also need callbacks: Citus uses
//! half of them.

use super::per_process::PerProcess;
use pgrx::{pg_guard, pg_sys};
use std::cell::{Cell, RefCell};
use std::sync::Once;

/// A function that runs when a relation was changed or dropped. An invalid OID means every relation. The function must not
/// fail, and must not call server functions that may read a catalog.
type Listener = fn(pg_sys::Oid);

static LISTENERS: PerProcess<RefCell<Vec<Listener>>> = PerProcess::new(RefCell::new(Vec::new()));
static CHANGES: PerProcess<Cell<u64>> = PerProcess::new(Cell::new(0));

/// Adds a listener. Each listener must be added only once in a process. A listener must not add another listener.
pub fn listen(listener: Listener) {
    static ONCE: Once = Once::new();
    LISTENERS.borrow_mut().push(listener);
    // SAFETY: the callback is registered once in the life of the process.
    ONCE.call_once(|| unsafe {
        pg_sys::CacheRegisterRelcacheCallback(Some(changed), pg_sys::Datum::from(0));
    });
}

/// Returns how many invalidation messages this process has counted since the first call of [`listen`].
#[inline]
pub fn changes() -> u64 {
    CHANGES.get()
}

#[pg_guard]
unsafe extern "C-unwind" fn changed(_argument: pg_sys::Datum, relation: pg_sys::Oid) {
    tell(relation);
}

/// Tells all listeners that a relation has changed.
pub fn tell(relation: pg_sys::Oid) {
    CHANGES.set(CHANGES.get().wrapping_add(1));
    for listener in LISTENERS.borrow().iter() {
        listener(relation);
    }
}

/// Reads the entry of a relation, which needs no lock on it; None if the relation is gone. Call only within a transaction.
pub(super) fn with_entry<T>(
    relation: pg_sys::Oid,
    read: impl FnOnce(&pg_sys::RelationData) -> T,
) -> Option<T> {
    // SAFETY: the caller is within a transaction. A null result means that the relation is gone. The entry stays until it is
    // released.
    unsafe {
        let entry = pg_sys::RelationIdGetRelation(relation);
        let found = read(entry.as_ref()?);
        pg_sys::RelationClose(entry);
        Some(found)
    }
}
