//! Users' tables and sequences, identified by OID. After a wait for a lock, a name may refer to another relation.

use super::role::{self, RoleSettings};
use super::text::TextOut;
use super::{extension, relcache, tuple};
use pgrx::{FromDatum, PgList, pg_sys};
use std::ffi::{CStr, CString, c_void};
use std::num::NonZeroUsize;
use std::ptr::null_mut;

/// A row of `pg_class`.
#[derive(Clone, Copy, Debug)]
pub struct Relation {
    oid: pg_sys::Oid,
    owner: pg_sys::Oid,
    is_sequence: bool,
}

/// The position of a sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SequencePosition {
    /// The last number that the sequence returned, or the next number if `is_called` is false.
    pub last_value: i64,
    /// True if the sequence has returned `last_value`.
    pub is_called: bool,
}

impl Relation {
    /// Returns the relation with this OID, or None if this transaction sees none. Call only within a transaction.
    pub fn find(oid: pg_sys::Oid) -> Option<Self> {
        tuple::cached(pg_sys::SysCacheIdentifier::RELOID, oid, |row| {
            // SAFETY: a cached row begins with the struct.
            let class: &pg_sys::FormData_pg_class = unsafe { &*pg_sys::GETSTRUCT(row).cast() };
            // C's `char` is signed on some machines only, so the bytes are compared.
            let is_sequence = class.relkind.to_ne_bytes() == [pg_sys::RELKIND_SEQUENCE];
            Self { oid, owner: class.relowner, is_sequence }
        })
    }

    /// Returns the relation of this name in the same schema as `other`, or None. Call only within a transaction.
    pub fn beside(other: pg_sys::Oid, name: &CStr) -> Option<Self> {
        // SAFETY: the caller is within a transaction; the name ends with a zero byte.
        let oid = unsafe {
            let schema = pg_sys::get_rel_namespace(other);
            (schema != pg_sys::InvalidOid).then(|| pg_sys::get_relname_relid(name.as_ptr(), schema))?
        };
        Self::find(oid)
    }

    /// Does the same as [`Self::beside`], and locks the relation for writing until the transaction ends. The
    /// relation's name and owner cannot change until then.
    pub fn written_beside(other: pg_sys::Oid, name: &CStr) -> Option<Self> {
        let found = Self::beside(other, name)?;
        // SAFETY: the caller is within a transaction, which releases the lock at its end.
        unsafe { pg_sys::LockRelationOid(found.oid, pg_sys::RowExclusiveLock.cast_signed()) };
        // The relation may have been dropped or renamed during the wait for the lock.
        Self::beside(other, name).filter(|now| now.oid == found.oid)
    }

    /// Returns whether a role has a privilege on the relation.
    pub fn allows(&self, privilege: u32, role: pg_sys::Oid) -> bool {
        role::has_any(role, privilege, self.oid)
    }

    pub fn owner(&self) -> pg_sys::Oid {
        self.owner
    }

    /// Locks the relation exclusively until the transaction ends. During the wait, the relation may be dropped or get another owner.
    pub fn lock(&self) {
        // SAFETY: the caller is within a transaction, which releases the lock at its end.
        unsafe { pg_sys::LockRelationOid(self.oid, pg_sys::AccessExclusiveLock.cast_signed()) };
    }

    /// Runs `work` with the rights of the relation's owner: see [`role::with_rights`]. If the caller bypasses row-level
    /// security, FORCE ROW LEVEL SECURITY hides no rows from `work`. Fails if code of the owner dropped the extension.
    pub fn as_owner<T>(&self, work: impl FnOnce() -> T) -> T {
        extension::outlasting(|| {
            role::with_rights(self.owner, role::bypasses_row_security(), RoleSettings::End, work)
        })
    }

    /// Locks the definition of a table until the transaction ends, if the current role may read any of its columns.
    pub fn lock_to_read(&self) {
        // SAFETY: the caller is within a transaction, which releases the lock at its end.
        unsafe {
            let select = pg_sys::AclMode::from(pg_sys::ACL_SELECT);
            let any = pg_sys::AclMaskHow::ACLMASK_ANY;
            let of_columns = || pg_sys::pg_attribute_aclcheck_all(self.oid, role::current(), select, any);
            if self.is_readable() || of_columns() == pg_sys::AclResult::ACLCHECK_OK {
                pg_sys::LockRelationOid(self.oid, pg_sys::AccessShareLock.cast_signed());
            }
        }
    }

    /// Returns whether the caller has the owner's privileges and may become the owner. Running code as the owner then
    /// gives the caller no new rights.
    pub fn may_act_as_owner(&self) -> bool {
        role::has_privileges_of(self.owner) && role::can_become(self.owner)
    }

    /// Runs `work`, which reads the relation. Uses the owner's rights if the caller may act as the owner, and the caller's
    /// rights otherwise. Code of the relation, such as a view or a policy, never gets rights that the caller lacks.
    pub fn as_reader<T>(&self, work: impl FnOnce() -> T) -> T {
        if self.may_act_as_owner() {
            return self.as_owner(work);
        }
        extension::outlasting(|| role::with_rights(role::current(), false, RoleSettings::End, work))
    }

    /// Returns whether the caller may read the relation.
    pub fn is_readable(&self) -> bool {
        self.allows(pg_sys::ACL_SELECT, role::current())
    }

    /// Returns the position of a sequence; None if the relation is no sequence. Uses no SELECT, because a SELECT needs the
    /// sequence's name. During a wait for a lock, a user could create a view of this name, and the view's code would run.
    pub fn position(&self) -> Option<SequencePosition> {
        if !self.is_sequence {
            return None;
        }
        // SAFETY: the caller is within a transaction. The relation is closed again. A sequence has one row of three columns
        // that are never null. An open sequence stays a sequence.
        unsafe {
            let lock = pg_sys::AccessShareLock.cast_signed();
            let sequence = pg_sys::try_relation_open(self.oid, lock);
            if sequence.is_null() {
                return None;
            }
            let mut position = None;
            tuple::scan(sequence, pg_sys::InvalidOid, null_mut(), &mut [], |row| {
                let column = |number| pgrx::htup::heap_getattr_raw(row, number, (*sequence).rd_att);
                let (first, third) = (NonZeroUsize::MIN, NonZeroUsize::MIN.saturating_add(2));
                position = column(first).zip(column(third)).map(|(last_value, is_called)| SequencePosition {
                    last_value: last_value.value().cast_signed() as i64,
                    is_called: is_called.value() != 0,
                });
                false
            });
            pg_sys::relation_close(sequence, lock);
            position
        }
    }
}

/// Runs a CREATE SEQUENCE statement with the caller's rights. The new sequence belongs to `owner` from the start, like an
/// identity sequence, because a later ALTER SEQUENCE would have to find the sequence by name. Returns the sequence's OID;
/// None if the statement is not CREATE SEQUENCE.
pub fn create_sequence(statement: &CStr, owner: pg_sys::Oid) -> Option<pg_sys::Oid> {
    // SAFETY: the caller is within a transaction. The parser's nodes outlive the call; the tag of a node names its struct.
    unsafe {
        let parsed = PgList::<pg_sys::RawStmt>::from_pg(pg_sys::pg_parse_query(statement.as_ptr()));
        let raw = parsed.get_ptr(0).filter(|_| parsed.len() == 1)?;
        if (*(*raw).stmt).type_ != pg_sys::NodeTag::T_CreateSeqStmt {
            return None;
        }
        let create: *mut pg_sys::CreateSeqStmt = (*raw).stmt.cast();
        (*create).ownerId = owner;
        let mut planned = pg_sys::PlannedStmt {
            type_: pg_sys::NodeTag::T_PlannedStmt,
            commandType: pg_sys::CmdType::CMD_UTILITY,
            canSetTag: true,
            utilityStmt: create.cast(),
            stmt_location: -1,
            ..Default::default()
        };
        let context = pg_sys::ProcessUtilityContext::PROCESS_UTILITY_QUERY;
        let (nothing, no_environment, no_rows) = (null_mut(), null_mut(), pg_sys::None_Receiver);
        let (planned, text) = (&raw mut planned, statement.as_ptr());
        pg_sys::ProcessUtility(planned, text, false, context, nothing, no_environment, no_rows, null_mut());
        // Makes the sequence visible to later commands.
        pg_sys::CommandCounterIncrement();
        let lock = pg_sys::NoLock.cast_signed();
        let found = pg_sys::RangeVarGetRelidExtended((*create).sequence, lock, 0, None, null_mut());
        Some(found)
    }
}

/// Returns whether any column of a table has a default. Call only within a transaction.
pub fn has_defaults(table: pg_sys::Oid) -> bool {
    let has_defaults = |entry: &pg_sys::RelationData| {
        // SAFETY: an entry has a descriptor, whose constraints are null or valid.
        let constraints = unsafe { (*entry.rd_att).constr.as_ref() };
        constraints.is_some_and(|constraints| constraints.num_defval > 0)
    };
    relcache::with_entry(table, has_defaults).unwrap_or(false)
}

/// Returns the name of a relation; None if there is none. Call only within a transaction.
pub(super) fn name(relation: pg_sys::Oid) -> Option<CString> {
    // SAFETY: the caller is within a transaction; the result is null, or a copy in the current memory context.
    unsafe {
        let name = pg_sys::get_rel_name(relation);
        (!name.is_null()).then(|| CStr::from_ptr(name).to_owned())
    }
}

/// Returns the base type of a domain, and any other type unchanged. Call only within a transaction.
pub fn base_type(of: pg_sys::Oid) -> pg_sys::Oid {
    if tuple::cached(pg_sys::SysCacheIdentifier::TYPEOID, of, drop).is_none() {
        return of;
    }
    // SAFETY: the caller is within a transaction; the type exists.
    unsafe { pg_sys::getBaseType(of) }
}

/// Returns the type of this name in schema `pg_catalog`. Call only within a transaction.
pub fn type_in_catalog(name: &CStr) -> Option<pg_sys::Oid> {
    const OID: pg_sys::AttrNumber = 1;
    let cache = tuple::cache_id(pg_sys::SysCacheIdentifier::TYPENAMENSP);
    let schema = pg_sys::Oid::from(pg_sys::PG_CATALOG_NAMESPACE);
    // SAFETY: the caller is within a transaction; the cache's keys are a name and an OID.
    let found = unsafe {
        pg_sys::GetSysCacheOid(cache, OID, name.as_ptr().into(), schema.into(), 0.into(), 0.into())
    };
    (found != pg_sys::InvalidOid).then_some(found)
}

/// Returns the name of a column; empty if there is none. Call only within a transaction.
pub fn column_name(table: pg_sys::Oid, column: i16) -> TextOut {
    // SAFETY: the caller is within a transaction; the result is null, or a copy in the current memory context.
    unsafe {
        let name = pg_sys::get_attname(table, column, true);
        TextOut::of_bytes(if name.is_null() { b"" } else { CStr::from_ptr(name).to_bytes() })
    }
}

/// Returns a free name for a sequence of a column, as serial chooses it, with the table's schema; None if there is no such
/// table. Call only within a transaction.
pub fn free_sequence_name(table: pg_sys::Oid, column: &TextOut) -> Option<TextOut> {
    let (of, column) = (name(table)?, CString::new(column.as_bytes()).ok()?);
    // SAFETY: the caller is within a transaction; names end with a zero byte.
    unsafe {
        let schema = pg_sys::get_rel_namespace(table);
        let free = pg_sys::ChooseRelationName(of.as_ptr(), column.as_ptr(), c"seq".as_ptr(), schema, false);
        let quoted = pg_sys::quote_qualified_identifier(pg_sys::get_namespace_name(schema), free);
        Some(TextOut::of_bytes(CStr::from_ptr(quoted).to_bytes()))
    }
}

/// Returns the names of a relation's schema and of the relation; None if there is none. Call only within a transaction.
pub fn schema_and_name(of: pg_sys::Oid) -> Option<(CString, CString)> {
    let relation = name(of)?;
    // SAFETY: the caller is within a transaction; the result is null, or a copy in the current memory context.
    unsafe {
        let schema = pg_sys::get_namespace_name(pg_sys::get_rel_namespace(of));
        (!schema.is_null()).then(|| (CStr::from_ptr(schema).to_owned(), relation))
    }
}

/// Returns a name as an SQL identifier, quoted if necessary.
pub fn quoted(name: &[u8]) -> Vec<u8> {
    let name = CString::new(name).unwrap_or_default();
    // SAFETY: the result is the name itself, or a copy in the current memory context.
    unsafe { CStr::from_ptr(pg_sys::quote_identifier(name.as_ptr())) }.to_bytes().to_vec()
}

/// Returns whether a table of Postgres's own storage has no page, so that it has no row. Call only within a transaction that has
/// locked the table.
pub fn has_no_page(table: pg_sys::Oid) -> bool {
    let is_empty = |entry: &pg_sys::RelationData| {
        // SAFETY: an entry has the row of `pg_class`. C's `char` is signed on some machines only, so the bytes are compared.
        let class = unsafe { &*entry.rd_rel };
        let is_table = class.relkind.to_ne_bytes() == [pg_sys::RELKIND_RELATION];
        let relation = std::ptr::from_ref(entry).cast_mut();
        // SAFETY: the caller has locked the table, whose files stay.
        is_table
            && class.relam == pg_sys::HEAP_TABLE_AM_OID
            && unsafe { pg_sys::RelationGetNumberOfBlocksInFork(relation, pg_sys::ForkNumber::MAIN_FORKNUM) }
                == 0
    };
    relcache::with_entry(table, is_empty).unwrap_or(false)
}

/// Returns whether a table is gone, or a table below it, at any level, is missing in `known`. Call only within a transaction that
/// has locked the known tables, so that none of them gets another table below it meanwhile.
pub fn has_more_below(table: pg_sys::Oid, known: &[pg_sys::Oid]) -> bool {
    if Relation::find(table).is_none() {
        return true;
    }
    // SAFETY: the caller is within a transaction. The function scans a catalog, and returns a list of OIDs.
    unsafe {
        let below = pg_sys::find_all_inheritors(table, pg_sys::NoLock.cast_signed(), null_mut());
        PgList::<c_void>::from_pg(below).iter_oid().any(|oid| !known.contains(&oid))
    }
}

/// OIDs of `pg_inherits`, and of its index on the child table.
const INHERITS: u32 = 2611;
const INHERITS_BY_TABLE: u32 = 2680;
/// OIDs of `pg_attrdef`, and of its index on the OID.
const DEFAULTS: u32 = 2604;
const DEFAULTS_BY_OID: u32 = 2657;

/// Returns the columns of the same name in the direct parents of a table. Call only within a transaction.
pub fn columns_above(table: pg_sys::Oid, column: i16) -> Vec<(pg_sys::Oid, i16)> {
    // SAFETY: the caller is within a transaction; the result is null, or a copy in the current memory context.
    let name = unsafe { pg_sys::get_attname(table, column, true) };
    if name.is_null() {
        return Vec::new();
    }
    // SAFETY: the caller is within a transaction; the result is 0 if the parent has no such column.
    let column_of = |parent| unsafe { pg_sys::get_attnum(parent, name) };
    let columns = parents(table).into_iter().map(|parent| (parent, column_of(parent)));
    columns.filter(|(_, column)| *column > 0).collect()
}

fn parents(table: pg_sys::Oid) -> Vec<pg_sys::Oid> {
    const TABLE: i16 = 1;
    const PARENT: NonZeroUsize = NonZeroUsize::MIN.saturating_add(1);
    let mut found = Vec::new();
    // SAFETY: the caller is within a transaction. The columns of a row are never null.
    unsafe {
        scan(INHERITS, INHERITS_BY_TABLE, TABLE, table, |row, columns| {
            let parent = pgrx::htup::heap_getattr_raw(row, PARENT, columns);
            found.extend(parent.and_then(|parent| pg_sys::Oid::from_datum(parent, false)));
        });
    }
    found
}

/// Calls `each` for the rows of a catalog whose key is this OID.
///
/// # Safety
/// The caller is within a transaction. The index belongs to the catalog, and begins with the key.
unsafe fn scan(
    catalog: u32,
    index: u32,
    key: i16,
    of: pg_sys::Oid,
    mut each: impl FnMut(pg_sys::HeapTuple, pg_sys::TupleDesc),
) {
    // SAFETY: the relation is closed again.
    unsafe {
        let lock = pg_sys::AccessShareLock.cast_signed();
        let catalog = pg_sys::table_open(catalog.into(), lock);
        let mut scanned = pg_sys::ScanKeyData::default();
        #[allow(clippy::cast_possible_truncation, reason = "the number of a strategy")]
        let equal = pg_sys::BTEqualStrategyNumber as pg_sys::StrategyNumber;
        pg_sys::ScanKeyInit(&raw mut scanned, key, equal, pg_sys::F_OIDEQ.into(), of.into());
        tuple::scan(catalog, index.into(), null_mut(), &mut [scanned], |row| {
            each(row, (*catalog).rd_att);
            true
        });
        pg_sys::table_close(catalog, lock);
    }
}

/// Returns the column that has the default with this OID, and the default. Call only within a transaction.
pub(super) fn column_of_default(of: pg_sys::Oid) -> Option<(pg_sys::Oid, i16, *mut c_void)> {
    const OID: i16 = 1;
    const TABLE: NonZeroUsize = NonZeroUsize::MIN.saturating_add(1);
    let mut found = None;
    // SAFETY: the caller is within a transaction. The columns of a row are never null.
    unsafe {
        scan(DEFAULTS, DEFAULTS_BY_OID, OID, of, |row, columns| {
            let value = |number| pgrx::htup::heap_getattr_raw(row, number, columns);
            let table = value(TABLE).and_then(|table| pg_sys::Oid::from_datum(table, false));
            let number = value(TABLE.saturating_add(1)).and_then(|number| i16::from_datum(number, false));
            let written = value(TABLE.saturating_add(2));
            found = table.zip(number).zip(written).map(|((table, number), written)| {
                let written = pg_sys::text_to_cstring(written.cast_mut_ptr());
                (table, number, pg_sys::stringToNode(written))
            });
        });
    }
    found
}
