//! ALTER TABLE on a column that was an identity, and takes ids by its default now: DROP IDENTITY, ADD GENERATED, SET GENERATED,
//! the options of its sequence, SET DEFAULT and DROP DEFAULT; CREATE TABLE ... (LIKE ... INCLUDING IDENTITY) of such a column. The
//! statements are changed on a copy. ALTER SEQUENCE on a bound sequence.

use super::per_process::PerProcess;
use super::redirect::{Identities, is_node};
use super::report::{raise, report};
use super::{relation, sequence, transaction};
use pgrx::{PgList, pg_guard, pg_sys};
use snowflake_ids_core::column::change::{Altered, SequenceChange, meaning};
use snowflake_ids_core::column::error::ColumnError;
use snowflake_ids_core::column::facts::Base;
use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char, c_void};
use std::ptr::null_mut;

/// Functions that are called for former identities: columns that were identities, and take ids by their defaults.
#[derive(Clone, Copy, Debug)]
pub struct IdentityWatch {
    /// Returns whether any column may be a former identity. May wait for a lock.
    pub is_any: fn() -> bool,
    /// Returns the sequence of a former identity; None for another column. The caller has locked the table.
    pub sequence_of: fn(pg_sys::Oid, i16) -> Option<pg_sys::Oid>,
    /// Returns the former identities of a table that the caller has locked.
    pub all_of: fn(pg_sys::Oid) -> Identities,
    /// CREATE TABLE has made this table, whose column of this name is like the former identity with this sequence.
    pub liked: fn(pg_sys::Oid, &CStr, pg_sys::Oid),
    /// ALTER SEQUENCE is about to change this sequence, which it has locked. Fails if the sequence is bound, and cannot be so.
    /// Returns whether the sequence keeps its type.
    pub sequence_altering: fn(pg_sys::Oid, SequenceChange) -> bool,
    /// SET GENERATED has run for the former identity with this sequence. The letter is that of `pg_attribute.attidentity`.
    pub set: fn(pg_sys::Oid, u8),
    /// ADD GENERATED has made a former identity an identity again. The arguments are its former sequence and its new one.
    pub added: fn(pg_sys::Oid, pg_sys::Oid),
}

/// What follows the statement for a former identity.
enum Later {
    /// The column has become an identity again. The first sequence is its former one, which is dropped.
    Added(pg_sys::Oid, pg_sys::Oid, i16),
    /// The kind of identity is another one.
    Set(pg_sys::Oid, u8),
    /// The column of this name in the new table of this name is like the former identity with this sequence.
    Liked(CString, CString, pg_sys::Oid),
    /// The sequence gets these options.
    Options(pg_sys::Oid, *mut pg_sys::List),
}

/// What follows the running statements, those of outer statements first.
static LATER: PerProcess<RefCell<Vec<Later>>> = PerProcess::new(RefCell::new(Vec::new()));

/// Returns how much follows the outer statements.
pub(super) fn later() -> usize {
    LATER.try_borrow().map_or(0, |later| later.len())
}

pub(super) fn forget() {
    LATER.take();
}

/// Returns a changed copy of an ALTER TABLE that alters the identity of a column that was one; any other statement unchanged.
///
/// # Safety
/// The statement is an ALTER TABLE, and the caller is within a transaction.
#[pg_guard]
pub(super) unsafe extern "C-unwind" fn rewritten(
    statement: *mut pg_sys::PlannedStmt,
    watch: &IdentityWatch,
) -> *mut pg_sys::PlannedStmt {
    // SAFETY: the caller passes a valid statement; the tag of a node names its struct. The copy belongs to the current memory
    // context, which outlives the statement.
    unsafe {
        let alter: *mut pg_sys::AlterTableStmt = (*statement).utilityStmt.cast();
        let commands = PgList::<pg_sys::AlterTableCmd>::from_pg((*alter).cmds);
        let found: Vec<_> = commands.iter_ptr().filter_map(|command| altered((*command).subtype)).collect();
        // A new default waits for no lock but that of its table.
        let waits = found.iter().any(|altered| *altered != Altered::Default);
        if found.is_empty() || waits && !(watch.is_any)() {
            return statement;
        }
        // As the server does it: checks the owner, and holds the lock until the transaction ends.
        let level = pg_sys::AlterTableGetLockLevel((*alter).cmds);
        let table = pg_sys::AlterTableLookupRelation(alter, level);
        let mut former = Vec::new();
        for (place, command) in commands.iter_ptr().enumerate() {
            let Some(mut altered) = altered((*command).subtype).filter(|_| table != pg_sys::InvalidOid)
            else {
                continue;
            };
            let number = pg_sys::get_attnum(table, (*command).name);
            if altered == Altered::Default && (*command).def.is_null() && is_only_inherited(table, number) {
                altered = Altered::InheritedDefault;
            }
            if let Some(sequence) = (watch.sequence_of)(table, number) {
                former.push((place, altered, number, sequence));
            }
            // The server changes the defaults of children, too.
            let changes = matches!(altered, Altered::Default | Altered::InheritedDefault);
            if changes
                && (*(*alter).relation).inh
                && let Some((child, _)) = below(table, (*command).name, watch).iter().find(|(_, own)| *own)
            {
                refuse((*command).name, pg_sys::get_rel_name(*child));
            }
        }
        if former.is_empty() {
            return statement;
        }
        let statement: *mut pg_sys::PlannedStmt = pg_sys::copyObjectImpl(statement.cast()).cast();
        let alter: *mut pg_sys::AlterTableStmt = (*statement).utilityStmt.cast();
        // The server looks the table up again, and finds the one that is locked.
        (*(*alter).relation).schemaname = pg_sys::get_namespace_name(pg_sys::get_rel_namespace(table));
        let old = PgList::<pg_sys::AlterTableCmd>::from_pg((*alter).cmds);
        let mut new = PgList::<pg_sys::AlterTableCmd>::new();
        let mut dropped = Vec::new();
        for (place, command) in old.iter_ptr().enumerate() {
            let Some((_, altered, number, of)) = former.iter().find(|(of, ..)| *of == place) else {
                new.push(command);
                continue;
            };
            let Some(meaning) = meaning(*altered, dropped.contains(of)) else {
                refuse((*command).name, (*(*alter).relation).relname);
            };
            if meaning.drops {
                drop_sequence(*of);
                dropped.push(*of);
                let drops: *mut pg_sys::AlterTableCmd = pg_sys::copyObjectImpl(command.cast()).cast();
                (*drops).subtype = pg_sys::AlterTableType::AT_ColumnDefault;
                (*drops).def = null_mut();
                let below = below(table, (*command).name, watch);
                if below.iter().any(|(_, own)| *own) {
                    // A child that was an identity by itself stays one.
                    let others = below.iter().filter(|(_, own)| !*own).map(|(child, _)| *child);
                    [table].into_iter().chain(others).for_each(|member| alter_alone(member, drops));
                } else {
                    new.push(drops);
                }
            }
            if meaning.is_written {
                new.push(command);
            }
            if meaning.binds {
                LATER.borrow_mut().push(Later::Added(*of, table, *number));
            }
            if *altered == Altered::Set {
                set(*of, (*command).def.cast());
            }
        }
        (*alter).cmds = new.into_pg();
        statement
    }
}

/// Fails as the server does for an identity.
///
/// # Safety
/// The names end with a zero byte.
unsafe fn refuse(attribute: *const c_char, table: *const c_char) -> ! {
    // SAFETY: the caller passes names.
    let name = |name| unsafe { CStr::from_ptr(name) }.to_string_lossy().into_owned();
    raise(report(ColumnError::IsIdentity { attribute: name(attribute), table: name(table) }));
}

/// Returns whether a column is one of a parent, and the table has not declared it itself.
///
/// # Safety
/// The caller is within a transaction.
unsafe fn is_only_inherited(table: pg_sys::Oid, number: i16) -> bool {
    // SAFETY: the caller is within a transaction. The row is read before it is released.
    unsafe {
        let row = pg_sys::SearchSysCacheAttNum(table, number);
        if row.is_null() {
            return false;
        }
        let attribute: *const pg_sys::FormData_pg_attribute = pg_sys::GETSTRUCT(row).cast();
        let is_only_inherited = !(*attribute).attislocal;
        pg_sys::ReleaseSysCache(row);
        is_only_inherited
    }
}

/// Locks the partitions and children of a table, and returns them, each with whether its column of this name was an identity by
/// itself.
///
/// # Safety
/// The name ends with a zero byte. The caller is within a transaction, and has locked the table.
unsafe fn below(table: pg_sys::Oid, name: *const c_char, watch: &IdentityWatch) -> Vec<(pg_sys::Oid, bool)> {
    // SAFETY: the caller is within a transaction; the list holds OIDs, the first of which is the table.
    unsafe {
        let lock = pg_sys::AccessExclusiveLock.cast_signed();
        let all = pg_sys::find_all_inheritors(table, lock, null_mut());
        let count = usize::try_from((*all).length).unwrap_or_default();
        let members = (1..count).map(|place| (*(*all).elements.add(place)).oid_value);
        let is_own = |member| (watch.sequence_of)(member, pg_sys::get_attnum(member, name)).is_some();
        members.map(|member| (member, is_own(member))).collect()
    }
}

/// Runs a subcommand of ALTER TABLE on a table alone. Event triggers do not see it.
///
/// # Safety
/// The caller is within a transaction, and has locked the table.
unsafe fn alter_alone(table: pg_sys::Oid, command: *mut pg_sys::AlterTableCmd) {
    let mut commands = PgList::<pg_sys::AlterTableCmd>::new();
    commands.push(command);
    // SAFETY: sets a flag of the running event trigger query, if there is one. The list outlives the call.
    unsafe {
        pg_sys::EventTriggerInhibitCommandCollection();
        pg_sys::AlterTableInternal(table, commands.into_pg(), false);
        pg_sys::EventTriggerUndoInhibitCommandCollection();
    }
    transaction::see_own_changes();
}

/// Looks up the former identities that a CREATE TABLE copies. Returns the statement, or a copy of it that names the schemas of the
/// tables that it copies.
///
/// # Safety
/// The statement is a CREATE TABLE, and the caller is within a transaction.
#[pg_guard]
pub(super) unsafe extern "C-unwind" fn like(
    statement: *mut pg_sys::PlannedStmt,
    watch: &IdentityWatch,
) -> *mut pg_sys::PlannedStmt {
    let identity = pg_sys::TableLikeOption::CREATE_TABLE_LIKE_IDENTITY;
    // SAFETY: the caller passes a valid statement; the tag of a node names its struct. The copy belongs to the current memory
    // context, which outlives the statement.
    unsafe {
        let likes = |create: *mut pg_sys::CreateStmt| {
            let elements = PgList::<c_void>::from_pg((*create).tableElts);
            let is_like = |element: &*mut c_void| is_node(*element, pg_sys::NodeTag::T_TableLikeClause);
            let clauses =
                elements.iter_ptr().filter(is_like).map(<*mut c_void>::cast::<pg_sys::TableLikeClause>);
            clauses.filter(|clause| (**clause).options & identity != 0).collect::<Vec<_>>()
        };
        if likes((*statement).utilityStmt.cast()).is_empty() {
            return statement;
        }
        let statement: *mut pg_sys::PlannedStmt = pg_sys::copyObjectImpl(statement.cast()).cast();
        let create: *mut pg_sys::CreateStmt = (*statement).utilityStmt.cast();
        let made = CStr::from_ptr((*(*create).relation).relname).to_owned();
        for clause in likes(create) {
            // As the server does it: locks the table before it checks rights.
            let (lock, missing_ok) =
                (pg_sys::AccessShareLock.cast_signed(), pg_sys::RVROption::RVR_MISSING_OK);
            let table =
                pg_sys::RangeVarGetRelidExtended((*clause).relation, lock, missing_ok, None, null_mut());
            if table == pg_sys::InvalidOid {
                continue;
            }
            (*(*clause).relation).schemaname = pg_sys::get_namespace_name(pg_sys::get_rel_namespace(table));
            for (number, _) in (watch.all_of)(table).iter() {
                let name = pg_sys::get_attname(table, *number, true);
                if let Some(sequence) = (watch.sequence_of)(table, *number).filter(|_| !name.is_null()) {
                    let name = CStr::from_ptr(name).to_owned();
                    LATER.borrow_mut().push(Later::Liked(made.clone(), name, sequence));
                }
            }
        }
        statement
    }
}

fn altered(command: pg_sys::AlterTableType::Type) -> Option<Altered> {
    match command {
        pg_sys::AlterTableType::AT_DropIdentity => Some(Altered::Dropped),
        pg_sys::AlterTableType::AT_AddIdentity => Some(Altered::Added),
        pg_sys::AlterTableType::AT_SetIdentity => Some(Altered::Set),
        pg_sys::AlterTableType::AT_ColumnDefault => Some(Altered::Default),
        _ => None,
    }
}

// pgrx declares the function in a form that is no callback.
unsafe extern "C-unwind" {
    fn RangeVarCallbackOwnsRelation(
        relation: *const pg_sys::RangeVar,
        oid: pg_sys::Oid,
        old_oid: pg_sys::Oid,
        arg: *mut c_void,
    );
}

/// Checks an ALTER SEQUENCE before it runs. Returns the statement, or a copy of it without the type that the sequence does not get.
///
/// # Safety
/// The statement is an ALTER SEQUENCE, and the caller is within a transaction.
#[pg_guard]
pub(super) unsafe extern "C-unwind" fn checked_sequence(
    statement: *mut pg_sys::PlannedStmt,
    watch: &IdentityWatch,
) -> *mut pg_sys::PlannedStmt {
    // SAFETY: the caller passes a valid statement. The copy belongs to the current memory context, which outlives the statement.
    unsafe {
        let alter: *mut pg_sys::AlterSeqStmt = (*statement).utilityStmt.cast();
        let mut change = change((*alter).options);
        if !change.is_any() {
            return statement;
        }
        // With the type of an identity's column comes no other option.
        change.is_of_column = (*alter).for_identity && change.base.is_some();
        // As the server does it: checks the owner, and holds the lock until the transaction ends.
        let sequence = pg_sys::RangeVarGetRelidExtended(
            (*alter).sequence,
            pg_sys::ShareRowExclusiveLock.cast_signed(),
            pg_sys::RVROption::RVR_MISSING_OK,
            Some(RangeVarCallbackOwnsRelation),
            null_mut(),
        );
        if !sequence::is_sequence(sequence) || !(watch.sequence_altering)(sequence, change) {
            return statement;
        }
        let statement: *mut pg_sys::PlannedStmt = pg_sys::copyObjectImpl(statement.cast()).cast();
        let alter: *mut pg_sys::AlterSeqStmt = (*statement).utilityStmt.cast();
        (*alter).options = null_mut();
        statement
    }
}

/// # Safety
/// The list holds options of a sequence.
unsafe fn change(options: *mut pg_sys::List) -> SequenceChange {
    let mut change = SequenceChange::default();
    // SAFETY: the list holds options, whose names end with a zero byte.
    unsafe {
        for option in PgList::<pg_sys::DefElem>::from_pg(options).iter_ptr() {
            match CStr::from_ptr((*option).defname).to_bytes() {
                b"as" => {
                    change.base = match pg_sys::typenameTypeId(null_mut(), pg_sys::defGetTypeName(option)) {
                        pg_sys::INT2OID => Some(Base::Smallint),
                        pg_sys::INT4OID => Some(Base::Integer),
                        _ => None,
                    }
                }
                b"maxvalue" if !(*option).arg.is_null() => change.max = Some(pg_sys::defGetInt64(option)),
                b"owned_by" => change.gives_away = true,
                _ => {}
            }
        }
    }
    change
}

/// Drops a sequence as the server drops that of an identity. Fails if another default uses it.
///
/// # Safety
/// The caller is within a transaction, and has locked the table of the sequence.
unsafe fn drop_sequence(sequence: pg_sys::Oid) {
    let (catalog, restrict) = (pg_sys::RelationRelationId, pg_sys::DropBehavior::DROP_RESTRICT);
    let object = pg_sys::ObjectAddress { classId: catalog, objectId: sequence, objectSubId: 0 };
    // SAFETY: the caller is within a transaction.
    unsafe {
        pg_sys::performDeletion(&raw const object, restrict, pg_sys::PERFORM_DELETION_INTERNAL.cast_signed());
    };
    transaction::see_own_changes();
}

/// # Safety
/// The list holds the options of SET GENERATED and of the sequence.
unsafe fn set(sequence: pg_sys::Oid, options: *mut pg_sys::List) {
    let mut rest = PgList::<pg_sys::DefElem>::new();
    // SAFETY: the list holds options, whose names end with a zero byte.
    unsafe {
        for option in PgList::<pg_sys::DefElem>::from_pg(options).iter_ptr() {
            if CStr::from_ptr((*option).defname) != c"generated" {
                rest.push(option);
            } else if let Ok(letter) = u8::try_from(pg_sys::defGetInt32(option)) {
                LATER.borrow_mut().push(Later::Set(sequence, letter));
            }
        }
    }
    if !rest.is_empty() {
        LATER.borrow_mut().push(Later::Options(sequence, rest.into_pg()));
    }
}

/// Does what follows a statement.
pub(super) fn follow(
    first: usize,
    created: &[pg_sys::Oid],
    watch: &IdentityWatch,
    sequence_altered: fn(pg_sys::Oid),
) {
    let mut all = LATER.take();
    let own = all.split_off(first.min(all.len()));
    LATER.replace(all);
    for later in own {
        transaction::see_own_changes();
        match later {
            Later::Set(sequence, letter) => (watch.set)(sequence, letter),
            Later::Liked(name, column, sequence) => {
                let is_it = |table: &&pg_sys::Oid| relation::name(**table).is_some_and(|of| of == name);
                if let Some(table) = created.iter().find(is_it) {
                    (watch.liked)(*table, &column, sequence);
                }
            }
            Later::Options(sequence, options) => {
                // SAFETY: the options are those of the statement.
                unsafe {
                    (watch.sequence_altering)(sequence, change(options));
                    alter_sequence(sequence, options);
                };
                sequence_altered(sequence);
            }
            Later::Added(former, table, number) => {
                let owned = sequence::owned_by(table).into_iter().find(|(of, _)| *of == number);
                let Some((_, new)) = owned else { continue };
                if sequence::terms(new).is_some_and(|terms| !terms.is_bigint) {
                    // SAFETY: the list and its nodes are allocated in the current memory context.
                    unsafe {
                        let mut options = PgList::<pg_sys::DefElem>::new();
                        let bigint = pg_sys::makeTypeNameFromOid(pg_sys::INT8OID, -1);
                        options.push(pg_sys::makeDefElem(c"as".as_ptr().cast_mut(), bigint.cast(), -1));
                        alter_sequence(new, options.into_pg());
                    }
                }
                (watch.added)(former, new);
            }
        }
    }
}

/// Runs ALTER SEQUENCE on a sequence that the transaction has locked, or whose table it has locked.
///
/// # Safety
/// The list holds options of a sequence.
unsafe fn alter_sequence(sequence: pg_sys::Oid, options: *mut pg_sys::List) {
    // SAFETY: the caller is within a transaction. The names are copies in the current memory context.
    unsafe {
        pg_sys::LockRelationOid(sequence, pg_sys::ShareRowExclusiveLock.cast_signed());
        let schema = pg_sys::get_namespace_name(pg_sys::get_rel_namespace(sequence));
        let name = pg_sys::get_rel_name(sequence);
        if schema.is_null() || name.is_null() {
            return;
        }
        let mut statement = pg_sys::AlterSeqStmt {
            type_: pg_sys::NodeTag::T_AlterSeqStmt,
            sequence: pg_sys::makeRangeVar(schema, name, -1),
            options,
            for_identity: true,
            missing_ok: false,
        };
        // Another session may have renamed the schema meanwhile.
        if pg_sys::AlterSequence(null_mut(), &raw mut statement).objectId != sequence {
            raise(report(ColumnError::OtherSequence));
        }
    }
    transaction::see_own_changes();
}
