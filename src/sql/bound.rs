//! Binding sequences. Most of the code is SQL, in `bound.sql`; this file has the parts that work with oids instead
//! of names.

use crate::bound::{bind, cache};
use crate::pg::relation::Relation;
use crate::pg::report::report;
use crate::pg::sequence;
use crate::pg::tag_text::TagText;
use crate::pg::text::Text;
use crate::pg::tuple::NoRow;
use crate::sql::error::CallError;
use crate::store::tables::SEQUENCE_BINDING;
use pgrx::pg_sys::panic::ErrorReport;
use pgrx::prelude::*;
use snowflake_ids_core::bound::Increment;
use snowflake_ids_core::tag::definition::MAX_TAG_BYTES;
use snowflake_ids_core::tag::directory::Tag;

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

/// Records that a sequence of the caller is bound. The sequence must be at its end. The caller needs no right to write to
/// the table.
#[pg_extern(schema = "snowflake_ids_internal", volatile, parallel_unsafe)]
fn sequence_record(
    of: Option<pg_sys::Oid>,
    tag: Option<Text<'_>>,
    last_number: Option<i64>,
    generator: Option<Text<'_>>,
) -> Result<(), ErrorReport> {
    let (Some(of), Some(last_number)) = (of, last_number) else {
        return Err(CallError::NoSequenceOrNumber.into());
    };
    own(of)?;
    let read = |text: Text<'_>, what| {
        let bytes = text.bytes(MAX_TAG_BYTES, what)?;
        let tag = Tag::new(bytes).ok_or(CallError::LongName)?;
        Ok::<_, ErrorReport>(TagText(tag))
    };
    let tag = tag.map(|tag| read(tag, "tag")).transpose()?;
    let generator = generator.map(|name| read(name, "generator")).transpose()?;
    bind::record(of, tag.as_ref(), last_number, generator.as_ref(), false).map_err(report)
}

/// Records that a sequence of the caller is not bound.
#[pg_extern(schema = "snowflake_ids_internal", volatile, parallel_unsafe, strict)]
fn sequence_erase(of: pg_sys::Oid) -> Result<(), ErrorReport> {
    own(of)?;
    bind::erase(of).map_err(report)
}

/// Returns a sequence if the caller may SET ROLE to its owner.
pub fn own(of: pg_sys::Oid) -> Result<Relation, ErrorReport> {
    let relation = Relation::find(of).ok_or(CallError::SequenceDropped)?;
    if relation.may_act_as_owner() {
        return Ok(relation);
    }
    Err(CallError::CannotActAsOwnerOfSequence.into())
}

/// Returns the highest id that an application may use after the application got `number` from a sequence with this
/// increment.
#[pg_extern(schema = "snowflake_ids_internal", immutable, parallel_safe, strict)]
fn sequence_reach(number: i64, increment: i64) -> Result<i64, ErrorReport> {
    Ok(Increment::new(increment).map_err(report)?.reach(number))
}

/// Returns the number above which a sequence with this increment must continue. Applications then use no id up to `highest`
/// again. `single` is true if the sequence's tag has the same increment.
#[pg_extern(schema = "snowflake_ids_internal", immutable, parallel_safe, strict)]
fn sequence_resume_above(highest: i64, increment: i64, single: bool) -> Result<i64, ErrorReport> {
    Ok(Increment::new(increment).map_err(report)?.of_tag(single).resume_above(highest))
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
