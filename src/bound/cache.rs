//! This process's cache of the database's bound sequences.
//!
//! Each sequence is looked up when it is first needed, and again after any change of the table of bindings. While another
//! session has the table locked, cached rows are used, if they come from the same table and no later change of the table was
//! committed.
//!
//! Without usable rows, calls are redirected to this extension as if sequences were bound. Such a redirection is always
//! correct, because the extension's function decides for each sequence. The function treats a sequence that does not stand at
//! its end (its maximum) as not bound. For a sequence at its end, the function waits until it can read the table.

use crate::pg::catalog::{Source, Unseen};
use crate::pg::per_process::PerProcess;
use crate::pg::read_lock::Wait;
use crate::pg::redirect::{self, Identities, Targets};
use crate::pg::relation::{self, Relation};
use crate::pg::sequence::{self, SequenceUse};
use crate::pg::{relcache, role, server, snapshot, transaction};
use crate::shared::bindings;
use crate::store::bound::{self as store, Bound, NumberSource};
use crate::store::tables::SEQUENCE_BINDING;
use pgrx::pg_sys::Oid;
use rustc_hash::FxHashMap;
use snowflake_ids_core::bound::{Increment, is_sentinel};
use std::cell::{Cell, RefCell};
use std::hash::Hash;

/// The answer to the question whether the database has bound sequences.
#[derive(Clone, Copy, PartialEq, Eq)]
enum AnyBound {
    None,
    Some,
    Undecided,
}

/// The result of the last read of the table of bindings.
struct CachedSequences {
    table: Source,
    /// The number of committed changes at the time of the read; None if the result must not be used while the table is
    /// locked.
    changes: Option<u64>,
    any: AnyBound,
    targets: Option<Targets>,
    /// The sequences that were looked up.
    sequences: FxHashMap<u32, CachedSequence>,
    /// The sequences of columns that were looked up, each with the number of changed relations until then.
    columns: FxHashMap<(u32, i16), (u64, Option<Oid>)>,
    /// The tables whose former identities were looked up, each with the number of changed relations until then.
    identities: FxHashMap<u32, (u64, Identities)>,
}

struct CachedSequence {
    /// The sequence's row; None if it has no row.
    row: Option<Bound>,
    /// The transaction that locked the sequence last.
    locked_by: Cell<Option<u32>>,
    /// The role that passed the check of its rights to nextval, and the number of changes of rights until then.
    permit: Cell<Option<(Oid, u64)>>,
}

/// The most entries of `sequences`, of `columns` and of `identities`. A full map is emptied before another entry is added.
const MOST_KEPT: usize = 4_096;

static CACHE: PerProcess<RefCell<Option<CachedSequences>>> = PerProcess::new(RefCell::new(None));
static ANY: PerProcess<Cell<Option<AnyBound>>> = PerProcess::new(Cell::new(None));
/// True if the planner hook redirected calls to this extension when it last needed to know.
static REDIRECTS: PerProcess<Cell<bool>> = PerProcess::new(Cell::new(false));
static FORGOTTEN: PerProcess<Cell<u64>> = PerProcess::new(Cell::new(0));

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum OwnChange {
    Nothing,
    /// The transaction has removed rows of dropped sequences, or marked rows as checked. The cached results of other
    /// sessions stay valid.
    Tidied,
    Changed,
}

static OWN: PerProcess<Cell<OwnChange>> = PerProcess::new(Cell::new(OwnChange::Nothing));
/// True while this process changes the table only in ways that leave other sessions' cached results valid.
static TIDIES: PerProcess<Cell<bool>> = PerProcess::new(Cell::new(false));

/// Returns whether [`targets_at_once`] reads no table. Calls no server function.
pub fn is_known() -> bool {
    ANY.get().is_some()
}

/// Returns the functions that calls are redirected to; None if no sequence of this database is bound. Waits for no lock,
/// because this function runs for each planned statement. Needs a transaction.
#[inline]
pub fn targets_at_once() -> Option<Targets> {
    let targets =
        if any() == AnyBound::None { None } else { CACHE.borrow().as_ref().and_then(|known| known.targets) };
    REDIRECTS.set(targets.is_some());
    targets
}

/// Returns whether calls in the statement that is being planned are redirected, if there may be any, and whether the function
/// could be in the way: it is none of the functions to redirect to. Calls no server function.
pub fn is_redirecting(function: Oid) -> bool {
    let is_ours = |cached: &CachedSequences| cached.targets.is_some_and(|targets| targets.has(function));
    REDIRECTS.get() && !CACHE.borrow().as_ref().is_some_and(is_ours)
}

/// Returns whether any sequence is bound. Needs a transaction.
pub fn is_any_bound() -> bool {
    match any() {
        AnyBound::None => false,
        AnyBound::Some => true,
        AnyBound::Undecided => store::is_any(Wait::Yes(None)).unwrap_or(false),
    }
}

/// Returns the bound sequences. Needs a transaction.
pub fn bound() -> Vec<Oid> {
    if any() == AnyBound::None { Vec::new() } else { store::all() }
}

/// Returns the bound sequence that a column owns or that the column's identity uses. If there is none, returns the sequence of the
/// parent table's column with the same name, because a partition inherits its parent's default. Does not wait for locks. Needs a
/// transaction.
pub fn of_column(table: Oid, column: i16) -> Option<Oid> {
    let (key, changes) = ((table.to_u32(), column), relcache::changes());
    let is_current = |(as_of, sequence): &(u64, Option<Oid>)| (*as_of == changes).then_some(*sequence);
    if let Some(found) = CACHE.borrow().as_ref().and_then(|known| is_current(known.columns.get(&key)?)) {
        return found;
    }
    let forgotten = FORGOTTEN.get();
    // The list keeps visited columns, because several inheritance paths may lead to the same parent table.
    let mut columns = vec![(table, column)];
    let (mut next, mut found) = (0, None);
    while let Some(&(table, column)) = columns.get(next) {
        found = owned_by(table, column);
        if found.is_some() {
            break;
        }
        for above in relation::columns_above(table, column) {
            if !columns.contains(&above) {
                columns.push(above);
            }
        }
        next += 1;
    }
    keep(forgotten, key, (changes, found), |known| &mut known.columns);
    found
}

/// Returns the columns of a table that were identities, and create ids in their defaults. Does not wait for locks. Needs a
/// transaction, and a lock on the table.
fn identities(table: Oid) -> Identities {
    let (key, changes) = (table.to_u32(), relcache::changes());
    let found = CACHE.borrow().as_ref().and_then(|known| known.identities.get(&key).cloned());
    if let Some((_, found)) = found.filter(|(as_of, _)| *as_of == changes) {
        return found;
    }
    if !relation::has_defaults(table) {
        return Identities::default();
    }
    let forgotten = FORGOTTEN.get();
    let targets = CACHE.borrow().as_ref().and_then(|known| known.targets);
    let identity = |(column, of)| {
        let row = row_at_once(of).ok()??;
        let identity = row.identity?;
        believed(of, row)?;
        redirect::default_gives_id(table, column, targets.as_ref()?).then_some((column, identity))
    };
    let found: Identities = sequence::owned_by(table).into_iter().filter_map(identity).collect();
    keep(forgotten, key, (changes, found.clone()), |known| &mut known.identities);
    found
}

/// Does the same as [`identities`] if any sequence may be bound.
pub fn identities_at_once(table: Oid) -> Identities {
    if targets_at_once().is_some() { identities(table) } else { Identities::default() }
}

/// Returns the sequence of a column that was an identity, and creates ids in its default. As [`identities`].
pub fn former_identity(table: Oid, column: i16) -> Option<Oid> {
    let is_former = identities_at_once(table).iter().any(|(of, _)| *of == column);
    is_former.then(|| owned_by(table, column))?
}

fn owned_by(table: Oid, column: i16) -> Option<Oid> {
    let owned = sequence::owned_by(table).into_iter().filter(|(of, _)| *of == column);
    let rows: Vec<_> = owned.map(|(_, sequence)| (sequence, row_at_once(sequence))).collect();
    let bound = rows.iter().find(|(_, row)| matches!(row, Ok(Some(_))));
    // A sequence whose row could not be read is returned too; [`super::recorded_of_column`] checks that sequence again.
    bound.or_else(|| rows.iter().find(|(_, row)| row.is_err())).map(|(sequence, _)| *sequence)
}

/// Returns the tag or generator that a sequence is bound to; None if the sequence is not bound. If the sequence is not cached
/// and the table is locked, waits for the lock, as the server's functions wait for a locked sequence. A timeout or a cancel
/// ends the wait. Needs a transaction.
pub fn binding_of(sequence: Oid) -> Option<NumberSource> {
    let row =
        row_at_once(sequence).or_else(|Locked| store::of_sequence(sequence, Wait::Yes(None))).ok()??;
    believed(sequence, row)
}

/// Returns whether a sequence is bound. The caller has locked it. Only this transaction can have bound a sequence that this
/// transaction created: if another transaction has locked the table of bindings, this one has not written to it. As
/// [`binding_of`].
pub fn is_bound(of: Oid) -> bool {
    (!sequence::is_new(of) || matches!(row_at_once(of), Ok(Some(_)))) && binding_of(of).is_some()
}

/// Returns the tag or generator of a sequence that a call of nextval, currval or setval names. Does not wait for locks:
/// while the table is locked, a sequence that does not stand at its end counts as not bound. Use [`binding_of`] for a
/// sequence that this transaction has just altered, because that sequence may not stand at its end yet.
pub fn called_binding_at_once(sequence: Oid) -> Result<Option<NumberSource>, Locked> {
    match row_at_once(sequence) {
        Ok(row) => Ok(row.and_then(|row| believed(sequence, row))),
        Err(Locked) if stands_at_end(sequence) => Err(Locked),
        Err(Locked) => Ok(None),
    }
}

fn called_binding_of(sequence: Oid) -> Option<NumberSource> {
    called_binding_at_once(sequence).unwrap_or_else(|Locked| binding_of(sequence))
}

fn believed(sequence: Oid, row: Bound) -> Option<NumberSource> {
    (row.is_checked || stands_at_end(sequence)).then_some(row.binding)
}

/// Returns the tag or generator of a sequence that a call of nextval, currval or setval names; None if the sequence is not
/// bound. Locks a bound sequence, so that its binding stays until the transaction ends.
pub fn locked_binding_of(sequence: Oid) -> Option<NumberSource> {
    let found = called_binding_of(sequence);
    let this = Some(transaction::number());
    if found.is_none() || of_cached(sequence, |cached| cached.locked_by.get()).flatten() == this {
        return found;
    }
    sequence::lock(sequence);
    let found = called_binding_of(sequence);
    of_cached(sequence, |cached| cached.locked_by.set(this));
    found
}

/// Returns whether each number of a bound sequence stands for one id of its tag. Needs a transaction.
pub fn is_single(sequence: Oid) -> bool {
    of_cached(sequence, |cached| cached.row.as_ref().is_some_and(|row| row.is_single)).unwrap_or_else(|| {
        store::of_sequence(sequence, Wait::Yes(None)).ok().flatten().is_some_and(|row| row.is_single)
    })
}

/// Returns whether the current role may call nextval of a sequence. Needs a transaction.
pub fn allows_next(sequence: Oid) -> bool {
    role::watch();
    // The number is read before the check. If a right changes during the check, the next call checks again.
    let permit = Some((role::current(), role::changes().wrapping_add(relcache::changes())));
    if of_cached(sequence, |cached| cached.permit.get()).flatten() == permit {
        return true;
    }
    let allowed = sequence::allows(sequence, SequenceUse::Next);
    of_cached(sequence, |cached| cached.permit.set(permit.filter(|_| allowed)));
    allowed
}

fn of_cached<T>(sequence: Oid, work: impl FnOnce(&CachedSequence) -> T) -> Option<T> {
    CACHE.borrow().as_ref()?.sequences.get(&sequence.to_u32()).map(work)
}

/// Returns whether a sequence stands at its end (its maximum), as a bound sequence does. A sequence gets to its end by
/// `bind_sequence`, by setval, or by the last number that its own nextval can give. Needs a transaction.
pub fn stands_at_end(sequence: Oid) -> bool {
    let terms = sequence::terms(sequence)
        .filter(|terms| terms.is_bigint && !terms.cycles && Increment::new(terms.increment).is_ok());
    let position = Relation::find(sequence).and_then(|relation| relation.position());
    terms.zip(position).is_some_and(|(terms, at)| is_sentinel(at.last_value, at.is_called, terms.max))
}

/// The error that the table is locked and the sequence is not cached.
pub struct Locked;

/// Returns the row of a sequence. Does not wait for locks. Needs a transaction.
pub fn row_at_once(sequence: Oid) -> Result<Option<Bound>, Locked> {
    if any() == AnyBound::None {
        return Ok(None);
    }
    if let Some(row) = of_cached(sequence, |cached| cached.row.clone()) {
        return Ok(row);
    }
    let forgotten = FORGOTTEN.get();
    match store::of_sequence(sequence, Wait::No) {
        Ok(row) => {
            let (locked_by, permit) = (Cell::new(None), Cell::new(None));
            let cached = CachedSequence { row: row.clone(), locked_by, permit };
            keep(forgotten, sequence.to_u32(), cached, |known| &mut known.sequences);
            Ok(row)
        }
        Err(Unseen::NoTable) => Ok(None),
        Err(Unseen::Locked) => Err(Locked),
    }
}

/// Caches a result. Drops the result if the cache was invalidated since `forgotten` was read, or if the table could not be
/// read.
fn keep<K: Eq + Hash, V>(
    forgotten: u64,
    of: K,
    value: V,
    kept: impl FnOnce(&mut CachedSequences) -> &mut FxHashMap<K, V>,
) {
    if FORGOTTEN.get() == forgotten
        && let Ok(mut known) = CACHE.try_borrow_mut()
        && let Some(known) = known.as_mut()
        && known.any != AnyBound::Undecided
    {
        let kept = kept(known);
        if kept.len() >= MOST_KEPT {
            kept.clear();
        }
        kept.insert(of, value);
    }
}

#[inline]
fn any() -> AnyBound {
    ANY.get().unwrap_or_else(learn)
}

/// Finds out whether any sequence is bound. Does not wait for locks.
#[cold]
fn learn() -> AnyBound {
    let forgotten = FORGOTTEN.get();
    let table = SEQUENCE_BINDING.find();
    sequence::on_change(table.map(Source::oid), forget);
    let Some(table) = table else { return learned(forgotten, None) };
    // The count is read before the table. If a change is committed in between, the stored count is already outdated, which
    // causes another look-up.
    let committed = bindings::CHANGES.get().map(bindings::Changes::count);
    // COMMIT PREPARED counts nothing. What is prepared later counts after this read.
    let is_prepared = snapshot::is_any_prepared();
    let any = match store::is_any(Wait::No) {
        Ok(true) => AnyBound::Some,
        Ok(false) => AnyBound::None,
        Err(Unseen::NoTable) => return learned(forgotten, None),
        Err(Unseen::Locked) => return last_known(table, committed),
    };
    // A change of this transaction may be rolled back, and a standby counts no changes. In these cases, too, the result must
    // not be used while the table is locked.
    let is_own = OWN.get() != OwnChange::Nothing;
    let changes = committed.filter(|_| !is_prepared && !is_own && !server::in_recovery());
    learned(forgotten, Some(CachedSequences::of(table, changes, any)))
}

fn learned(forgotten: u64, known: Option<CachedSequences>) -> AnyBound {
    let any = known.as_ref().map_or(AnyBound::None, |known| known.any);
    *CACHE.borrow_mut() = known;
    // The answer is not stored if an invalidation arrived meanwhile, so that the next call looks again.
    if FORGOTTEN.get() == forgotten {
        ANY.set(Some(any));
    }
    any
}

/// Returns the cached answer for a locked table. The answer is not stored, so the next call tries to read the table again.
fn last_known(table: Source, committed: Option<u64>) -> AnyBound {
    let serves = |known: &&CachedSequences| {
        let is_as_it_was = known.changes.is_some() && known.changes == committed;
        known.table == table && (known.any == AnyBound::Undecided || is_as_it_was)
    };
    if let Some(any) = CACHE.borrow().as_ref().filter(serves).map(|known| known.any) {
        return any;
    }
    let undecided = CachedSequences::of(table, None, AnyBound::Undecided);
    let any = undecided.any;
    *CACHE.borrow_mut() = Some(undecided);
    any
}

impl CachedSequences {
    fn of(table: Source, changes: Option<u64>, any: AnyBound) -> Self {
        let known =
            CACHE.borrow().as_ref().filter(|known| known.table == table).and_then(|known| known.targets);
        let targets = if any == AnyBound::None {
            None
        } else {
            known.filter(Targets::exist).or_else(|| store::targets(of_column, identities))
        };
        // Without the functions to redirect to, the server's own functions run, and fail at the end of the sequence.
        let any = if targets.is_none() { AnyBound::None } else { any };
        let (sequences, columns, identities) = Default::default();
        Self { table, changes, any, targets, sequences, columns, identities }
    }
}

fn forget() {
    FORGOTTEN.set(FORGOTTEN.get().wrapping_add(1));
    ANY.set(None);
}

pub fn changed() {
    let own = if TIDIES.get() { OwnChange::Tidied } else { OwnChange::Changed };
    OWN.set(OWN.get().max(own));
}

/// Runs `work`, which changes the table only in ways that leave other sessions' cached results valid.
pub fn tidy<T>(work: impl FnOnce() -> T) -> T {
    struct EndOfTransaction;
    impl Drop for EndOfTransaction {
        fn drop(&mut self) {
            TIDIES.set(false);
        }
    }
    TIDIES.set(true);
    // The flag is also reset after an error, because the session may continue after a rollback to a savepoint.
    let _end = EndOfTransaction;
    work()
}

/// Counts the transaction's changes. Called after a commit, a rollback, and PREPARE TRANSACTION, while the locks are still held.
pub fn ended() {
    if OWN.replace(OwnChange::Nothing) != OwnChange::Nothing
        && let Some(changes) = bindings::CHANGES.get()
    {
        changes.add();
    }
}
