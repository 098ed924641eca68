//! Keys of dense series that the session's transaction counts itself: of a series that it has created or changed, or whose rows it has
//! locked as it has set them. No worker can reserve numbers of those before it ends, or none that are right.

use super::lost::{self, Name};
use crate::pg::process::PerProcess;
use crate::pg::transaction::{self, Hooks, Subtransaction};
use rustc_hash::FxHashMap;
use snowflake_ids_core::series::Key;
use std::cell::{Cell, RefCell};
use std::sync::Once;

/// More keys of one transaction are not told apart: then all of the series count.
const MOST: usize = 10_000;

/// Since which subtransaction.
type Map = FxHashMap<Name, Subtransaction>;

static OWN: PerProcess<RefCell<Option<Map>>> = PerProcess::new(RefCell::new(None));
static IS_EMPTY: PerProcess<Cell<bool>> = PerProcess::new(Cell::new(true));

/// The transaction counts this key itself from now on.
pub fn note(series: i64, key: &Key) {
    let is_full = OWN.borrow().as_ref().is_some_and(|own| own.len() >= MOST);
    add((series, if is_full { None } else { Some(key.clone()) }));
}

/// The same for all keys of a series.
pub fn note_all(series: i64) {
    add((series, None));
}

fn add(name: Name) {
    static HOOKS: Hooks = Hooks {
        watched: Once::new(),
        before_commit: || {},
        before_prepare: || {},
        committed: forget,
        ended: forget,
        subtransaction_aborted: undo,
        subtransaction_committed: hand_up,
    };
    transaction::watch(&HOOKS);
    OWN.borrow_mut().get_or_insert_default().entry(name).or_insert_with(Subtransaction::current);
    IS_EMPTY.set(false);
}

/// Whether it does.
#[inline]
pub fn has(series: i64, key: &Key) -> bool {
    !IS_EMPTY.get() && is_noted(series, key)
}

/// Whether the transaction has the row of this key locked, and memory has no number of it.
pub fn is_locked(series: i64, key: &Key) -> bool {
    OWN.borrow().as_ref().is_some_and(|own| own.contains_key(&(series, Some(key.clone()))))
}

#[cold]
fn is_noted(series: i64, key: &Key) -> bool {
    let own = OWN.borrow();
    let has = |name: &Name| own.as_ref().is_some_and(|own| own.contains_key(name));
    has(&(series, None)) || has(&(series, Some(key.clone())))
}

fn forget() {
    lost::forget();
    if !IS_EMPTY.get()
        && let Ok(mut own) = OWN.try_borrow_mut()
    {
        own.take();
        IS_EMPTY.set(true);
    }
}

fn undo(aborted: Subtransaction) {
    lost::undo(aborted);
    if let Ok(mut own) = OWN.try_borrow_mut()
        && let Some(own) = &mut *own
    {
        own.retain(|_, since| *since != aborted);
    }
}

fn hand_up(committed: Subtransaction, parent: Subtransaction) {
    lost::hand_up(committed, parent);
    if let Ok(mut own) = OWN.try_borrow_mut()
        && let Some(own) = &mut *own
    {
        own.values_mut().filter(|since| **since == committed).for_each(|since| *since = parent);
    }
}
