//! The columns that a COPY FROM leaves out. The server evaluates their defaults without the planner hook.

use super::per_process::PerProcess;
use super::relation::Relation;
use super::{redirect, role};
use pgrx::{PgList, pg_guard, pg_sys};
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::ffi::CStr;

/// Functions that are called for COPY FROM.
#[derive(Clone, Copy, Debug)]
pub struct CopyWatch {
    /// Returns whether calls of sequence functions are redirected.
    pub redirects: fn() -> bool,
    /// COPY FROM leaves these columns of a table out, which have defaults. The function may refuse the statement.
    pub left_out: fn(pg_sys::Oid, &[i16]),
}

/// A table, and columns of it.
type Columns = (pg_sys::Oid, Vec<i16>);

/// The columns that the COPY FROM that began last leaves out. A column is taken out when its default has been planned.
static LEFT_OUT: PerProcess<RefCell<Option<Columns>>> = PerProcess::new(RefCell::new(None));

/// Looks up the columns that a COPY FROM leaves out, if sequences may be bound. Returns the statement, or a copy of it that names
/// the table's schema.
///
/// # Safety
/// The statement is a COPY FROM, and the caller is within a transaction.
#[pg_guard]
pub(super) unsafe extern "C-unwind" fn begun(
    statement: *mut pg_sys::PlannedStmt,
    watch: &CopyWatch,
) -> *mut pg_sys::PlannedStmt {
    LEFT_OUT.take();
    // SAFETY: the caller passes a valid statement; the tag of a node names its struct. The copy belongs to the current memory
    // context, which outlives the statement.
    unsafe {
        let copy: *mut pg_sys::CopyStmt = (*statement).utilityStmt.cast();
        let options = PgList::<pg_sys::DefElem>::from_pg((*copy).options);
        // With the option DEFAULT of Postgres 16, a row may ask for the default of any column.
        let takes_defaults = options.iter_ptr().any(|option| CStr::from_ptr((*option).defname) == c"default");
        if (*copy).attlist.is_null() && !takes_defaults || !(watch.redirects)() {
            return statement;
        }
        // As the server does it: locks the table before it checks rights.
        let lock = pg_sys::RowExclusiveLock.cast_signed();
        let missing_ok = pg_sys::RVROption::RVR_MISSING_OK;
        let table =
            pg_sys::RangeVarGetRelidExtended((*copy).relation, lock, missing_ok, None, std::ptr::null_mut());
        if table == pg_sys::InvalidOid {
            return statement;
        }
        let listed = PgList::<pg_sys::Node>::from_pg((*copy).attlist);
        let given: BTreeSet<i16> =
            listed.iter_ptr().map(|name| pg_sys::get_attnum(table, redirect::string(name.cast()))).collect();
        let all = redirect::columns_with_defaults(table);
        let left_out: Vec<_> = all.difference(&given).copied().collect();
        let may_insert =
            Relation::find(table).is_some_and(|of| of.allows(pg_sys::ACL_INSERT, role::current()));
        if may_insert && !(*copy).attlist.is_null() {
            (watch.left_out)(table, &left_out);
        }
        let left_out = if takes_defaults { all.into_iter().collect() } else { left_out };
        LEFT_OUT.replace(Some((table, left_out)));
        let statement: *mut pg_sys::PlannedStmt = pg_sys::copyObjectImpl(statement.cast()).cast();
        let copy: *mut pg_sys::CopyStmt = (*statement).utilityStmt.cast();
        // The server looks the table up again, and finds the one that is locked.
        (*(*copy).relation).schemaname = pg_sys::get_namespace_name(pg_sys::get_rel_namespace(table));
        statement
    }
}

pub(super) fn ended() {
    LEFT_OUT.take();
}

/// Returns the table and the first of these columns whose default is this call, and takes the column out.
///
/// # Safety
/// The call is a node. The caller is within a transaction.
pub unsafe fn column_of(call: *const pg_sys::FuncExpr) -> Option<(pg_sys::Oid, i16)> {
    let mut left_out = LEFT_OUT.try_borrow_mut().ok()?;
    let (table, columns) = left_out.as_mut()?;
    // SAFETY: the caller passes a node; the table is locked.
    let is_it = |column: &i16| unsafe { redirect::default_is(*table, *column, call) };
    let place = columns.iter().position(is_it)?;
    Some((*table, columns.remove(place)))
}
