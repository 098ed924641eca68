//! Binding sequences. Most of the code is SQL, in `bound.sql`; this file has the parts that work with oids instead
//! of names.

use crate::bound::cache;
use crate::pg::relation::Relation;
use crate::pg::sequence;
use crate::pg::tuple::NoRow;
use crate::sql::error::CallError;
use crate::store::tables::SEQUENCE_BINDING;
use pgrx::pg_sys::panic::ErrorReport;
use pgrx::prelude::*;

/// Calls the server's setval for a sequence, bound or not, with the rights of the sequence's owner.
#[pg_extern(schema = "snowflake_ids_internal", volatile, parallel_unsafe, strict)]
fn sequence_move(of: pg_sys::Oid, value: i64, is_called: bool) -> Result<i64, ErrorReport> {
    Ok(own(of)?.as_owner(|| sequence::setval(of, value, is_called)))
}

/// Returns whether a sequence is at its end (its maximum). The extension keeps bound sequences there.
#[pg_extern(schema = "snowflake_ids_internal", stable, parallel_safe, strict)]
fn sequence_stands_at_end(of: pg_sys::Oid) -> bool {
    cache::stands_at_end(of)
}

/// Returns a sequence if the caller may SET ROLE to its owner.
pub fn own(of: pg_sys::Oid) -> Result<Relation, ErrorReport> {
    let relation = Relation::find(of).ok_or(CallError::SequenceDropped)?;
    if relation.may_act_as_owner() {
        return Ok(relation);
    }
    Err(CallError::CannotActAsOwnerOfSequence.into())
}

/// Makes all sessions look up bound sequences again, and plan their statements again.
#[allow(clippy::unnecessary_wraps, reason = "the form of a trigger")]
#[pg_trigger(sql = "CREATE FUNCTION snowflake_ids_internal.sequence_binding_changed() RETURNS trigger
LANGUAGE c AS 'MODULE_PATHNAME', 'sequence_binding_changed_trigger';")]
fn sequence_binding_changed<'a>(trigger: &'a PgTrigger<'a>) -> NoRow<'a> {
    let table = trigger.relid()?;
    if let Some(source) = SEQUENCE_BINDING.find().filter(|source| source.oid() == table) {
        cache::changed();
        source.announce();
    }
    Ok(None)
}

extension_sql_file!(
    "bound.sql",
    name = "sequences",
    requires = [sequence_stands_at_end, sequence_binding_changed, "generators", "segments"]
);
