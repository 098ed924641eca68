//! Callbacks for changes of relations: by one callback of the server's for all that want to know. A process has few places
//! for those, it ends where there is none, and other extensions take them, too: Citus half of them.

use super::process::PerProcess;
use pgrx::{pg_guard, pg_sys};
use std::cell::Cell;
use std::sync::Once;

/// Called with a relation that was changed or dropped; with no oid, any may have been. Must not fail, and calls nothing of the server that
/// may look at a catalog.
type Listener = fn(pg_sys::Oid);

/// More than there are in the code.
const MOST: usize = 8;

static LISTENERS: PerProcess<Cell<[Option<Listener>; MOST]>> = PerProcess::new(Cell::new([None; MOST]));

/// Has a listener called from now on. Each is to call this once in its generation.
pub fn listen(listener: Listener) {
    static ONCE: Once = Once::new();
    let mut listeners = LISTENERS.get();
    let place = listeners.iter_mut().find(|place| place.is_none());
    let Some(place) = place else { unreachable!("there is a place for each") };
    *place = Some(listener);
    LISTENERS.set(listeners);
    // SAFETY: registered once for the life of the process.
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
