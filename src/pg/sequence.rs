//! Users' sequences: their properties, privileges, locks, and the server's sequence functions.

use super::per_process::PerProcess;
use super::{relcache, role, tuple};
use pgrx::{IntoDatum, pg_sys};
use std::cell::Cell;
use std::ffi::{CStr, c_char};
use std::sync::Once;

// pg_sys does not declare this function.
unsafe extern "C-unwind" {
    fn nextval_internal(sequence: pg_sys::Oid, check_permissions: bool) -> i64;
}

/// An action that runs after a relation has changed.
type OnSequenceChange = fn();

/// The watched table and the action. None means that every relation is watched.
type Watched = (Option<pg_sys::Oid>, OnSequenceChange);

static WATCHED: PerProcess<Cell<Option<Watched>>> = PerProcess::new(Cell::new(None));
/// True if this process may have a plan that would be another one if more sequences were bound.
static MAY_MISS: PerProcess<Cell<bool>> = PerProcess::new(Cell::new(false));

/// Records that the planner hook left a call, or a default that creates ids, as it was.
pub(super) fn record_plain_plan() {
    MAY_MISS.set(true);
}

/// Runs `action` whenever this table has changed, and then discards the plans of this process that may miss the change. If
/// `table` is None, runs `action` whenever any relation has changed, and keeps the plans. A later call replaces the table and
/// the action.
pub fn on_change(table: Option<pg_sys::Oid>, action: OnSequenceChange) {
    static ONCE: Once = Once::new();
    WATCHED.set(Some((table, action)));
    ONCE.call_once(|| relcache::listen(changed));
}

fn changed(relation: pg_sys::Oid) {
    let Some((table, action)) = WATCHED.get() else { return };
    if relation == pg_sys::InvalidOid || table.is_none_or(|table| table == relation) {
        action();
        // Redirected calls decide for each sequence, so plans with these calls stay valid. Planning anew after each binding would
        // take most of the time of binding many sequences.
        if table.is_some() && MAY_MISS.take() {
            plan_anew();
        }
    }
}

/// Discards all plans of this process, so that each statement is planned again.
pub fn plan_anew() {
    // SAFETY: the server itself calls this function after changes of some catalogs.
    unsafe { pg_sys::ResetPlanCache() };
}

/// Locks a sequence until the transaction ends, even if a subtransaction is rolled back before. Until then, other sessions
/// cannot alter, drop or bind the sequence. After the call, this session sees the changes that were committed before.
pub fn lock(sequence: pg_sys::Oid) {
    // SAFETY: the caller is within a transaction, whose resource owner holds the lock until the end. After an error, the
    // server sets the current resource owner again, as it does for its own nextval.
    unsafe {
        let owner = pg_sys::CurrentResourceOwner;
        pg_sys::CurrentResourceOwner = pg_sys::TopTransactionResourceOwner;
        pg_sys::LockRelationOid(sequence, pg_sys::RowExclusiveLock.cast_signed());
        pg_sys::CurrentResourceOwner = owner;
    }
}

/// Returns whether this transaction has given the sequence a new file, as TRUNCATE ... RESTART IDENTITY does.
pub fn has_new_file(sequence: pg_sys::Oid) -> bool {
    let since = |relation: &pg_sys::RelationData| {
        #[cfg(any(feature = "pg14", feature = "pg15"))]
        let since = relation.rd_firstRelfilenodeSubid;
        #[cfg(not(any(feature = "pg14", feature = "pg15")))]
        let since = relation.rd_firstRelfilelocatorSubid;
        since
    };
    has_id_of_transaction(sequence, since)
}

/// Returns whether this transaction has created the sequence or another relation.
pub fn is_new(sequence: pg_sys::Oid) -> bool {
    has_id_of_transaction(sequence, |relation| relation.rd_createSubid)
}

/// Returns whether the present subtransaction has created the sequence. Its rollback then undoes all that happened to the
/// sequence. Call only within a transaction.
pub fn is_of_subtransaction(sequence: pg_sys::Oid) -> bool {
    // SAFETY: the caller is within a transaction.
    let present = unsafe { pg_sys::GetCurrentSubTransactionId() };
    relcache::with_entry(sequence, |entry| entry.rd_createSubid) == Some(present)
}

/// Returns whether the relcache entry of a sequence has a subtransaction id. Needs no lock: a transaction holds an exclusive lock
/// on what it has created or rewritten, and only that has an id.
fn has_id_of_transaction(
    sequence: pg_sys::Oid,
    read: impl FnOnce(&pg_sys::RelationData) -> pg_sys::SubTransactionId,
) -> bool {
    relcache::with_entry(sequence, read).is_some_and(|since| since != 0)
}

/// Returns the column that owns a sequence, as a serial or an identity column does. Call only within a transaction.
pub fn owner(sequence: pg_sys::Oid) -> Option<(pg_sys::Oid, i16)> {
    /// The dependency types of serial and identity columns.
    const AUTOMATIC: u8 = b'a';
    const INTERNAL: u8 = b'i';
    let (mut table, mut column) = (pg_sys::InvalidOid, 0);
    let mut is_owned = |kind: u8| {
        // SAFETY: the caller is within a transaction. The function scans a catalog, and writes to both variables.
        unsafe { pg_sys::sequenceIsOwned(sequence, kind.cast_signed() as _, &raw mut table, &raw mut column) }
    };
    let is_owned = is_owned(AUTOMATIC) || is_owned(INTERNAL);
    is_owned.then_some(())?;
    Some((table, i16::try_from(column).ok()?))
}

/// Returns the columns of a table that own sequences, each with its sequence. Call only within a transaction.
pub fn owned_by(table: pg_sys::Oid) -> Vec<(i16, pg_sys::Oid)> {
    // SAFETY: the caller is within a transaction. The function scans a catalog, and returns a list of OIDs.
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

/// Returns whether a sequence is unlogged. Call only within a transaction.
pub fn is_unlogged(sequence: pg_sys::Oid) -> bool {
    // SAFETY: the caller is within a transaction. C's `char` is signed on some machines only, so the bytes are compared.
    unsafe { pg_sys::get_rel_persistence(sequence) }.to_ne_bytes() == [pg_sys::RELPERSISTENCE_UNLOGGED]
}

/// Makes a sequence durable that this transaction has made unlogged, and locked.
pub fn make_logged(sequence: pg_sys::Oid) {
    // Before Postgres 15 no sequence is unlogged.
    #[cfg(not(feature = "pg14"))]
    // SAFETY: the caller has locked the sequence.
    unsafe {
        pg_sys::SequenceChangePersistence(
            sequence,
            c_char::from_ne_bytes([pg_sys::RELPERSISTENCE_PERMANENT]),
        );
    }
    #[cfg(feature = "pg14")]
    let _ = sequence;
}

/// Returns whether a relation is a sequence. Call only within a transaction.
pub fn is_sequence(relation: pg_sys::Oid) -> bool {
    // SAFETY: the caller is within a transaction. C's `char` is signed on some machines only, so the bytes are compared.
    unsafe { pg_sys::get_rel_relkind(relation) }.to_ne_bytes() == [pg_sys::RELKIND_SEQUENCE]
}

/// The properties of a sequence in `pg_sequence`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SequenceTerms {
    pub increment: i64,
    pub min: i64,
    pub max: i64,
    pub cycles: bool,
    pub is_bigint: bool,
}

/// Returns the properties of a sequence; None if there is no sequence with this OID. Call only within a transaction.
pub fn terms(sequence: pg_sys::Oid) -> Option<SequenceTerms> {
    let cache = pg_sys::SysCacheIdentifier::SEQRELID;
    tuple::cached(cache, sequence, |row| {
        // SAFETY: a cached row begins with the struct.
        let form: &pg_sys::FormData_pg_sequence = unsafe { &*pg_sys::GETSTRUCT(row).cast() };
        SequenceTerms {
            increment: form.seqincrement,
            min: form.seqmin,
            max: form.seqmax,
            cycles: form.seqcycle,
            is_bigint: form.seqtypid == pg_sys::INT8OID,
        }
    })
}

/// Returns the name of a sequence; empty if it is gone. Call only within a transaction.
pub fn name(sequence: pg_sys::Oid) -> String {
    // SAFETY: the caller is within a transaction; the result is null, or a copy in the current memory context.
    let name = unsafe { pg_sys::get_rel_name(sequence) };
    if name.is_null() {
        return String::new();
    }
    // SAFETY: a name ends with a zero byte.
    unsafe { CStr::from_ptr(name) }.to_string_lossy().into_owned()
}

/// A way to use a sequence, for which privileges are checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SequenceUse {
    /// Taking the next number.
    Next,
    /// Reading the number that the session took last.
    Look,
    /// Setting the sequence to a value.
    Set,
}

/// Returns whether the current role may use a sequence in this way. Call only within a transaction.
pub fn allows(sequence: pg_sys::Oid, usage: SequenceUse) -> bool {
    let rights = match usage {
        SequenceUse::Next => pg_sys::ACL_USAGE | pg_sys::ACL_UPDATE,
        SequenceUse::Look => pg_sys::ACL_SELECT | pg_sys::ACL_USAGE,
        SequenceUse::Set => pg_sys::ACL_UPDATE,
    };
    role::has_any(role::current(), rights, sequence)
}

/// Calls the server's nextval. `checked` is false for identity columns, which need no privilege on the sequence.
pub fn nextval(sequence: pg_sys::Oid, checked: bool) -> i64 {
    // SAFETY: the caller is within a transaction; the boundary turns the server's errors into panics.
    unsafe { pg_sys::ffi::pg_guard_ffi_boundary(|| nextval_internal(sequence, checked)) }
}

/// Calls the server's currval.
pub fn currval(sequence: pg_sys::Oid) -> i64 {
    call(pg_sys::currval_oid, &[sequence.into_datum()])
}

/// Calls the server's lastval.
pub fn lastval() -> i64 {
    call(pg_sys::lastval, &[])
}

/// Calls the server's setval.
pub fn setval(sequence: pg_sys::Oid, value: i64, is_called: bool) -> i64 {
    call(pg_sys::setval3_oid, &[sequence.into_datum(), value.into_datum(), is_called.into_datum()])
}

fn call(
    function: unsafe fn(pg_sys::FunctionCallInfo) -> pg_sys::Datum,
    arguments: &[Option<pg_sys::Datum>],
) -> i64 {
    // SAFETY: the function takes these arguments and returns a bigint.
    let number: Option<i64> = unsafe { pgrx::direct_function_call(function, arguments) };
    number.unwrap_or_default()
}
