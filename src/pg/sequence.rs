//! Sequences of others: how they count, who may use them, and calls of the server's functions for them.

use super::process::PerProcess;
use super::{relcache, role, tuple};
use pgrx::{IntoDatum, pg_sys};
use std::cell::Cell;
use std::ffi::CStr;
use std::sync::{Once, OnceLock};

// Not in pg_sys.
unsafe extern "C-unwind" {
    fn nextval_internal(sequence: pg_sys::Oid, check_permissions: bool) -> i64;
}

/// The action for a change of a table.
type OnSequenceChange = fn();

/// The table that is watched, where there is one, and what is done.
type Watched = (Option<pg_sys::Oid>, OnSequenceChange);

static WATCHED: PerProcess<Cell<Option<Watched>>> = PerProcess::new(Cell::new(None));

/// Has `action` called, and all statements planned anew, whenever this table was changed or dropped; with none, whenever any was.
pub fn on_change(table: Option<pg_sys::Oid>, action: OnSequenceChange) {
    static ONCE: Once = Once::new();
    WATCHED.set(Some((table, action)));
    ONCE.call_once(|| relcache::listen(changed));
}

fn changed(relation: pg_sys::Oid) {
    let Some((table, action)) = WATCHED.get() else { return };
    if relation == pg_sys::InvalidOid || table.is_none_or(|table| table == relation) {
        action();
        if table.is_some() {
            plan_anew();
        }
    }
}

static TOLD: OnceLock<OnSequenceChange> = OnceLock::new();

/// Has `action` called in each process whenever a relation was changed. It must not fail. Only while the server loads libraries.
pub fn tell_changes(action: OnSequenceChange) {
    TOLD.get_or_init(|| action);
    relcache::listen(any_changed);
}

fn any_changed(_relation: pg_sys::Oid) {
    if let Some(action) = TOLD.get() {
        action();
    }
}

/// Has all statements planned anew.
pub fn plan_anew() {
    // SAFETY: as the server does itself when a catalog changes that any plan may rest on.
    unsafe { pg_sys::ResetPlanCache() };
}

/// Locks a sequence against being altered, bound or dropped until the transaction ends, and takes in earlier changes.
pub fn lock(sequence: pg_sys::Oid) {
    // SAFETY: within a transaction, at whose end the lock goes.
    unsafe { pg_sys::LockRelationOid(sequence, pg_sys::RowExclusiveLock.cast_signed()) };
}

/// Lets such a lock for reading go.
pub fn unlock(sequence: pg_sys::Oid) {
    // SAFETY: the lock was taken before, in this transaction.
    unsafe { pg_sys::UnlockRelationOid(sequence, pg_sys::AccessShareLock.cast_signed()) };
}

/// The same for reading, if that is to be had at once; it always is where this transaction has another lock on it.
pub fn lock_at_once(sequence: pg_sys::Oid) -> bool {
    // SAFETY: as above.
    unsafe { pg_sys::ConditionalLockRelationOid(sequence, pg_sys::AccessShareLock.cast_signed()) }
}

/// Returns whether this transaction has given a sequence another file, as a restart does, and has locked it for that.
/// The caller has it locked for reading, at least.
pub fn has_new_file(sequence: pg_sys::Oid) -> bool {
    let since = |relation: &pg_sys::RelationData| {
        #[cfg(any(feature = "pg14", feature = "pg15"))]
        let since = relation.rd_firstRelfilenodeSubid;
        #[cfg(not(any(feature = "pg14", feature = "pg15")))]
        let since = relation.rd_firstRelfilelocatorSubid;
        since
    };
    since_when(sequence, since) != 0
}

/// Returns whether this transaction has created a sequence. The caller has it locked for reading, at least.
pub fn is_new(sequence: pg_sys::Oid) -> bool {
    since_when(sequence, |relation| relation.rd_createSubid) != 0
}

/// The subtransaction that an entry of the relation cache names; 0 where it names none.
fn since_when(
    sequence: pg_sys::Oid,
    read: impl FnOnce(&pg_sys::RelationData) -> pg_sys::SubTransactionId,
) -> pg_sys::SubTransactionId {
    let lock = pg_sys::NoLock.cast_signed();
    // SAFETY: within a transaction, with a lock; null where the relation is gone. What is opened is closed.
    unsafe {
        let relation = pg_sys::try_relation_open(sequence, lock);
        let Some(open) = relation.as_ref() else { return 0 };
        let since = read(open);
        pg_sys::relation_close(relation, lock);
        since
    }
}

/// The column that owns a sequence, or is an identity by it. Only within a transaction.
pub fn owner(sequence: pg_sys::Oid) -> Option<(pg_sys::Oid, i16)> {
    /// The kinds of dependency of a serial's, and of an identity's.
    const AUTOMATIC: u8 = b'a';
    const INTERNAL: u8 = b'i';
    let (mut table, mut column) = (pg_sys::InvalidOid, 0);
    let mut is_owned = |kind: u8| {
        // SAFETY: as above; a scan of the catalog, which writes to both.
        unsafe { pg_sys::sequenceIsOwned(sequence, kind.cast_signed() as _, &raw mut table, &raw mut column) }
    };
    let is_owned = is_owned(AUTOMATIC) || is_owned(INTERNAL);
    is_owned.then_some(())?;
    Some((table, i16::try_from(column).ok()?))
}

/// The columns of a table that own sequences, and those. Only within a transaction.
pub fn owned_by(table: pg_sys::Oid) -> Vec<(i16, pg_sys::Oid)> {
    // SAFETY: as above; a scan of the catalog, which gives a list of oids.
    let owned = unsafe {
        let list = pg_sys::getOwnedSequences(table);
        let count = list.as_ref().and_then(|list| usize::try_from(list.length).ok()).unwrap_or_default();
        let owned: Vec<_> = (0..count).map(|index| (*(*list).elements.add(index)).oid_value).collect();
        pg_sys::list_free(list);
        owned
    };
    let column_of =
        |sequence| owner(sequence).filter(|(of, _)| *of == table).map(|(_, column)| (column, sequence));
    owned.into_iter().filter_map(column_of).collect()
}

/// Returns whether a relation is a sequence. Only within a transaction.
pub fn is_sequence(relation: pg_sys::Oid) -> bool {
    // SAFETY: as above. A character of C's has a sign on some machines.
    unsafe { pg_sys::get_rel_relkind(relation) }.to_ne_bytes() == [pg_sys::RELKIND_SEQUENCE]
}

/// The terms by which a sequence counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SequenceTerms {
    pub increment: i64,
    pub min: i64,
    pub max: i64,
    pub cycles: bool,
    pub is_bigint: bool,
}

/// Returns how a sequence counts; None where there is none of this oid. Only within a transaction.
pub fn terms(sequence: pg_sys::Oid) -> Option<SequenceTerms> {
    let cache = pg_sys::SysCacheIdentifier::SEQRELID;
    tuple::cached(cache, sequence, |row| {
        // SAFETY: columns of pg_sequence, which are never null: an oid, three bigints and a boolean.
        let datum =
            |column| unsafe { tuple::cached_column(cache, row, column) }.map_or(0, pg_sys::Datum::value);
        let number = |column| datum(column).cast_signed() as i64;
        SequenceTerms {
            increment: number(4),
            min: number(6),
            max: number(5),
            cycles: datum(8) != 0,
            is_bigint: datum(2) == pg_sys::Datum::from(pg_sys::INT8OID).value(),
        }
    })
}

/// Returns what a sequence is called; an empty name where it is gone. Only within a transaction.
pub fn name(sequence: pg_sys::Oid) -> String {
    // SAFETY: as above; null, or a copy that belongs to the transaction's memory.
    let name = unsafe { pg_sys::get_rel_name(sequence) };
    if name.is_null() {
        return String::new();
    }
    // SAFETY: as above; a name ends with a zero byte.
    unsafe { CStr::from_ptr(name) }.to_string_lossy().into_owned()
}

/// The use that a role wants to make of a sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SequenceUse {
    /// The next number.
    Next,
    /// The number that the session got.
    Look,
    /// To move it.
    Set,
}

/// Returns whether the current role may use a sequence so. Only within a transaction.
pub fn allows(sequence: pg_sys::Oid, usage: SequenceUse) -> bool {
    let rights = match usage {
        SequenceUse::Next => pg_sys::ACL_USAGE | pg_sys::ACL_UPDATE,
        SequenceUse::Look => pg_sys::ACL_SELECT | pg_sys::ACL_USAGE,
        SequenceUse::Set => pg_sys::ACL_UPDATE,
    };
    // SAFETY: as above; of several rights any does.
    let allowed =
        unsafe { pg_sys::pg_class_aclcheck(sequence, role::current(), pg_sys::AclMode::from(rights)) };
    allowed == pg_sys::AclResult::ACLCHECK_OK
}

/// The server's nextval; without a look at rights for an identity column.
pub fn nextval(sequence: pg_sys::Oid, checked: bool) -> i64 {
    // SAFETY: within a transaction; errors of the server's become panics at the boundary.
    unsafe { pg_sys::ffi::pg_guard_ffi_boundary(|| nextval_internal(sequence, checked)) }
}

/// The server's currval.
pub fn currval(sequence: pg_sys::Oid) -> i64 {
    call(pg_sys::currval_oid, &[sequence.into_datum()])
}

/// The server's lastval.
pub fn lastval() -> i64 {
    call(pg_sys::lastval, &[])
}

/// The server's setval.
pub fn setval(sequence: pg_sys::Oid, value: i64, is_called: bool) -> i64 {
    call(pg_sys::setval3_oid, &[sequence.into_datum(), value.into_datum(), is_called.into_datum()])
}

fn call(
    function: unsafe fn(pg_sys::FunctionCallInfo) -> pg_sys::Datum,
    arguments: &[Option<pg_sys::Datum>],
) -> i64 {
    // SAFETY: one of the server's functions of these arguments, all of which give a bigint.
    let number: Option<i64> = unsafe { pgrx::direct_function_call(function, arguments) };
    number.unwrap_or_default()
}
