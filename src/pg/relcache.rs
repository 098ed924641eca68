//! Relcache invalidations, passed from one server callback to all listeners. A process can register only a few server
//! callbacks, and a further registration ends the process. Other extensions also need callbacks: Citus uses half of them.

use super::process::PerProcess;
use pgrx::{pg_guard, pg_sys};
use std::cell::Cell;
use std::sync::Once;

/// A function that runs when a relation was changed or dropped. An invalid OID means every relation. The function must not
/// fail, and must not call server functions that may read a catalog.
type Listener = fn(pg_sys::Oid);

/// An upper bound for the number of listeners.
const MOST: usize = 8;

static LISTENERS: PerProcess<Cell<[Option<Listener>; MOST]>> = PerProcess::new(Cell::new([None; MOST]));

/// Adds a listener. Each listener must be added only once in a process.
pub fn listen(listener: Listener) {
    static ONCE: Once = Once::new();
    let mut listeners = LISTENERS.get();
    let place = listeners.iter_mut().find(|place| place.is_none());
    let Some(place) = place else { unreachable!("there is a place for each") };
    *place = Some(listener);
    LISTENERS.set(listeners);
    // SAFETY: the callback is registered once in the life of the process.
    ONCE.call_once(|| unsafe {
        pg_sys::CacheRegisterRelcacheCallback(Some(changed), pg_sys::Datum::from(0));
    });
}

#[pg_guard]
unsafe extern "C-unwind" fn changed(_argument: pg_sys::Datum, relation: pg_sys::Oid) {
    for listener in LISTENERS.get().into_iter().flatten() {
        listener(relation);
    }
}
