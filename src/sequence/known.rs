//! Which sequences of this database are bound, as far as this process knows.

use crate::pg::catalog::Source;
use crate::pg::process::PerProcess;
use crate::pg::redirect::Targets;
use crate::pg::sequence;
use crate::store::sequence::{self as store, Binding};
use pgrx::pg_sys::Oid;
use rustc_hash::FxHashMap;
use std::cell::{Cell, RefCell};

/// What was found when it was looked up.
enum Known {
    /// It has to be looked up.
    Unknown,
    /// No sequence of this database is bound.
    Nothing,
    Bound(Bound),
}

struct Bound {
    targets: Targets,
    bindings: FxHashMap<u32, Binding>,
    /// The sequence of each column that has one.
    columns: FxHashMap<(u32, i16), Oid>,
}

static KNOWN: PerProcess<RefCell<Known>> = PerProcess::new(RefCell::new(Known::Unknown));
/// How often it was forgotten.
static CHANGES: PerProcess<Cell<u64>> = PerProcess::new(Cell::new(0));
/// Whether it was to be looked up while the table was locked: what was planned then is to be planned anew.
static LOCKED_OUT: PerProcess<Cell<bool>> = PerProcess::new(Cell::new(false));

/// Where calls go at the moment: None where no sequence of this database is bound. Only within a transaction.
///
/// Each statement that is planned asks, so this waits for no lock: while another transaction has the table of bindings locked, as
/// one that drops the extension, calls go where they went. A bound sequence gives no number then.
#[inline]
pub fn targets_at_once() -> Option<Targets> {
    loop {
        match &*KNOWN.borrow() {
            Known::Nothing => return None,
            Known::Bound(bound) => return Some(bound.targets),
            Known::Unknown => {}
        }
        if !learn(false) {
            return None;
        }
    }
}

/// Whether a sequence may be bound, as far as this process knows at the moment. Calls nothing of the server's.
pub fn may_be_any() -> bool {
    !matches!(&*KNOWN.borrow(), Known::Nothing)
}

/// Whether sequences are bound, as far as this process knows at the moment. Calls nothing of the server's.
pub fn are_any() -> bool {
    KNOWN.try_borrow().is_ok_and(|known| matches!(&*known, Known::Bound(_)))
}

/// Whether sequences are bound. Only within a transaction.
pub fn is_any() -> bool {
    with_bound(|_| ()).is_some()
}

/// The sequences that are bound. Only within a transaction.
pub fn bound() -> Vec<Oid> {
    with_bound(|bound| bound.bindings.keys().map(|sequence| Oid::from(*sequence)).collect())
        .unwrap_or_default()
}

/// The bound sequence that a column owns, or is an identity by. Only within a transaction.
pub fn of_column(table: Oid, column: i16) -> Option<Oid> {
    with_bound(|bound| bound.columns.get(&(table.to_u32(), column)).copied()).flatten()
}

/// What a sequence is bound to; None where it is not. Only within a transaction.
pub fn binding_of(sequence: Oid) -> Option<Binding> {
    with_bound(|bound| bound.bindings.get(&sequence.to_u32()).cloned()).flatten()
}

/// The same, with a lock by which it stays so until the transaction ends.
pub fn locked_binding_of(sequence: Oid) -> Option<Binding> {
    binding_of(sequence)?;
    sequence::lock(sequence);
    binding_of(sequence)
}

#[inline]
fn with_bound<T>(read: impl FnOnce(&Bound) -> T) -> Option<T> {
    loop {
        match &*KNOWN.borrow() {
            Known::Nothing => return None,
            Known::Bound(bound) => return Some(read(bound)),
            Known::Unknown => {}
        }
        learn(true);
    }
}

/// Looks it up; false where that would have to wait, and may not.
#[cold]
fn learn(waits: bool) -> bool {
    let changes = CHANGES.get();
    let table = store::table();
    sequence::on_change(table.map(Source::oid), forget);
    let Some(bindings) = table.map_or_else(|| Some(Vec::new()), |_| store::all(waits)) else {
        LOCKED_OUT.set(true);
        return false;
    };
    let known = bound_by(bindings).map_or(Known::Nothing, Known::Bound);
    if matches!(known, Known::Bound(_)) && LOCKED_OUT.replace(false) {
        sequence::plan_anew();
    }
    // Looked at again where a change was told of meanwhile.
    if CHANGES.get() == changes {
        *KNOWN.borrow_mut() = known;
    }
    true
}

fn bound_by(bindings: Vec<(Oid, Binding)>) -> Option<Bound> {
    let bindings: FxHashMap<_, _> =
        bindings.into_iter().map(|(sequence, binding)| (sequence.to_u32(), binding)).collect();
    (!bindings.is_empty()).then_some(())?;
    let owner = |of: &u32| {
        let of = Oid::from(*of);
        sequence::owner(of).map(|(table, column)| ((table.to_u32(), column), of))
    };
    let columns = bindings.keys().filter_map(owner).collect();
    Some(Bound { targets: store::targets(of_column)?, bindings, columns })
}

/// Has what is bound looked up anew.
fn forget() {
    CHANGES.set(CHANGES.get().wrapping_add(1));
    if let Ok(mut known) = KNOWN.try_borrow_mut() {
        *known = Known::Unknown;
    }
}
