//! Attaching ids to columns of tables, and detaching them. Most of the code is SQL, in the files of the folder `attach`. This
//! file has the parts that need other rights than the caller's, or that work with oids instead of names.

use crate::column::tags;
use crate::pg::relation::{self, Relation};
use crate::pg::report::report;
use crate::pg::tag_text::TagText;
use crate::pg::text::Text;
use crate::pg::{extension, role, statement, utility};
use crate::shared::generator::SHARED;
use crate::sql::error::CallError;
use crate::tag::error::SegmentError;
use pgrx::pg_sys::panic::ErrorReport;
use pgrx::prelude::*;
use snowflake_ids_core::column::error::ColumnError;

/// Keeps the extension from being dropped until the transaction ends. Each function that runs with more rights than its
/// caller calls this function first. Without this call, the extension could be dropped while such a function waits for a
/// lock. Names in the function's code could then mean objects of other roles. Nobody can replace this function, because it
/// is in `pg_catalog`.
#[pg_extern(name = "snowflake_extension_keep", volatile, parallel_unsafe)]
pub fn extension_keep() -> Result<(), ErrorReport> {
    if extension::keep() { Ok(()) } else { Err(SegmentError::NoTable.into()) }
}

/// Locks a table against all other sessions until the transaction ends. The argument is an oid, because the name may
/// belong to another table after the wait for the lock. The caller must check the table again afterwards.
#[pg_extern(schema = "snowflake_ids_internal", volatile, parallel_unsafe, strict)]
fn lock_relation(relation: pg_sys::Oid) -> Result<(), ErrorReport> {
    let relation = found(relation)?;
    if !role::has_privileges_of(relation.owner()) {
        return Err(CallError::NotOwner.into());
    }
    relation.lock();
    Ok(())
}

/// Runs a statement as the owner of a relation, because the statement may run the owner's code. Returns the bigint in
/// the first row of the result, or null.
#[pg_extern(schema = "snowflake_ids_internal", volatile, parallel_unsafe, strict)]
fn as_owner(relation: pg_sys::Oid, statement: Text<'_>) -> Result<Option<i64>, ErrorReport> {
    let relation = found(relation)?;
    // A role that may SET ROLE to the owner can run the statement anyway. A role that only inherits the owner's
    // privileges would gain rights.
    if !relation.may_act_as_owner() {
        return Err(CallError::CannotActAsOwner.into());
    }
    let sql = statement.sql()?;
    let number = relation.as_owner(|| utility::unseen(&sql, || statement::number(&sql)));
    Ok(number.map_err(|error| CallError::NoNumber { error: error.to_string() })?)
}

/// Creates a sequence that belongs to the relation's owner. The caller needs CREATE on the sequence's schema. Runs no
/// user's code.
#[pg_extern(schema = "snowflake_ids_internal", volatile, parallel_unsafe, strict)]
fn create_sequence_for(relation: pg_sys::Oid, statement: Text<'_>) -> Result<pg_sys::Oid, ErrorReport> {
    let owner = found(relation)?.owner();
    if !role::has_privileges_of(owner) {
        return Err(CallError::NotOwner.into());
    }
    let sql = statement.sql()?;
    let made = utility::unseen(&sql, || relation::create_sequence(&sql, owner));
    Ok(made.ok_or(CallError::NotCreateSequence)?)
}

/// Returns the position of a sequence; null if the relation is no sequence.
#[pg_extern(schema = "snowflake_ids_internal", volatile, parallel_safe, strict)]
fn sequence_position(
    sequence: pg_sys::Oid,
) -> Result<
    TableIterator<'static, (name!(last_value, Option<i64>), name!(is_called, Option<bool>))>,
    ErrorReport,
> {
    let sequence = found(sequence)?;
    if !sequence.is_readable() {
        return Err(CallError::SequenceUnreadable.into());
    }
    let position = sequence.position();
    let row = (position.map(|at| at.last_value), position.map(|at| at.is_called));
    Ok(TableIterator::once(row))
}

/// Returns whether the library was loaded at server start, which is necessary to generate ids.
#[pg_extern(schema = "snowflake_ids_internal", stable, parallel_safe)]
fn is_preloaded() -> bool {
    SHARED.get().is_some()
}

fn found(relation: pg_sys::Oid) -> Result<Relation, ErrorReport> {
    Relation::find(relation).ok_or_else(|| report(ColumnError::NoRelation(relation.to_u32())))
}

/// Returns the tag that a default names; null if the tag does not exist.
#[pg_extern(schema = "snowflake_ids_internal", volatile, parallel_unsafe, strict)]
fn tag_of_default(expression: Text<'_>) -> Result<Option<TagText>, ErrorReport> {
    /// A limit in bytes, above the length of any default that attach writes.
    const MOST: usize = 1 << 20;
    tags::tag_of_default(expression.bytes(MOST, "default")?.to_vec())
}

extension_sql_file!(
    "attach/attach.sql",
    name = "attach_attach",
    requires = [as_owner, is_preloaded, own_default, "segments", "registries", "segment_nextval"]
);
extension_sql_file!("attach/checks.sql", name = "attach_checks", requires = ["attach_attach"]);
extension_sql_file!("id_type.sql", name = "id_type", requires = ["segments"]);
extension_sql_file!("attach/columns.sql", name = "attach_columns", requires = ["attach_checks", "id_type"]);
extension_sql_file!("attach/defaults.sql", name = "attach_defaults", requires = ["attach_columns"]);
extension_sql_file!("attach/raise.sql", name = "attach_raise", requires = ["attach_defaults"]);
extension_sql_file!(
    "attach/distributed.sql",
    name = "attach_distributed",
    requires = ["attach_raise", "citus"]
);
extension_sql_file!(
    "attach/changes.sql",
    name = "attach_changes",
    requires = ["attach_distributed", create_sequence_for, free_sequence_name, highest_number, sequence_move]
);
extension_sql_file!("attach/schema.sql", name = "attach_schema", requires = ["attach_changes"]);
