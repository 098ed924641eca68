//! Relcache invalidations, passed from one server callback to all listeners. A process can register only a few server
//! callbacks, and a further registration ends the process. Other extensions also need callbacks: Citus uses half of them.

use super::per_process::PerProcess;
use pgrx::{pg_guard, pg_sys};
use std::cell::RefCell;
use std::sync::Once;

/// A function that runs when a relation was changed or dropped. An invalid OID means every relation. The function must not
/// fail, and must not call server functions that may read a catalog.
type Listener = fn(pg_sys::Oid);

static LISTENERS: PerProcess<RefCell<Vec<Listener>>> = PerProcess::new(RefCell::new(Vec::new()));

/// Adds a listener. Each listener must be added only once in a process. A listener must not add another listener.
pub fn listen(listener: Listener) {
    static ONCE: Once = Once::new();
    LISTENERS.borrow_mut().push(listener);
    // SAFETY: the callback is registered once in the life of the process.
    ONCE.call_once(|| unsafe {
        pg_sys::CacheRegisterRelcacheCallback(Some(changed), pg_sys::Datum::from(0));
    });
}

#[pg_guard]
unsafe extern "C-unwind" fn changed(_argument: pg_sys::Datum, relation: pg_sys::Oid) {
    for listener in LISTENERS.borrow().iter() {
        listener(relation);
    }
}
