//! Functions that change a tag. Every role may call these functions. Each function checks the caller's rights, and then
//! calls the function of the same name in schema `snowflake_ids_internal`, with the rights of the tables' owner.

use crate::pg::report::spi;
use crate::pg::statement::Statement;
use crate::pg::tag_text::{self, TagArg, TagText};
use crate::pg::text::{Text, handed_on};
use crate::pg::tuple::NoRow;
use crate::sql::rights::{Changed, listed};
use crate::store::tables::SEGMENT;
use crate::tag::error::SegmentError;
use crate::tag::{privilege, slot};
use pgrx::AnyNumeric;
use pgrx::pg_sys::panic::ErrorReport;
use pgrx::prelude::*;
use snowflake_ids_core::tag::definition::{MAX_DESCRIPTION_BYTES, MAX_NAME_BYTES};
use snowflake_ids_core::tag::privilege::{Access, Privileges};

/// Changes a segment tag; null arguments change nothing.
#[allow(clippy::too_many_arguments, reason = "what a tag has")]
#[pg_extern(schema = "snowflake_ids", volatile, parallel_unsafe)]
fn segment_alter(
    tag: Option<TagArg<'_>>,
    step: default!(Option<i64>, "NULL"),
    max_step: default!(Option<i64>, "NULL"),
    increment: default!(Option<i64>, "NULL"),
    remainder: default!(Option<i64>, "NULL"),
    description: default!(Option<Text<'_>>, "NULL"),
    max_value: default!(Option<i64>, "NULL"),
    time_zone: default!(Option<Text<'_>>, "NULL"),
    format: default!(Option<Text<'_>>, "NULL"),
    owner: default!(Option<Text<'_>>, "NULL"),
) -> Result<(), ErrorReport> {
    let numbers = [step, max_step, increment, remainder].map(Into::into);
    let rest = [
        handed_on(description.as_ref(), "description", MAX_DESCRIPTION_BYTES)?,
        max_value.into(),
        handed_on(time_zone.as_ref(), "time_zone", MAX_NAME_BYTES)?,
        handed_on(format.as_ref(), "format", MAX_NAME_BYTES)?,
        handed_on(owner.as_ref(), "owner", MAX_NAME_BYTES)?,
    ];
    let sql = "SELECT snowflake_ids_internal.segment_alter($1, $2, $3, $4, $5, $6, $7, $8, $9, $10::name),
            snowflake_ids_internal.segment_adopted($1)";
    Changed::tag(tag, Access::Own)?.run(sql, numbers.into_iter().chain(rest))
}

#[pg_extern(schema = "snowflake_ids", volatile, parallel_unsafe)]
fn segment_drop(tag: Option<TagArg<'_>>) -> Result<(), ErrorReport> {
    Changed::tag(tag, Access::Own)?.run("SELECT snowflake_ids_internal.segment_drop($1)", [])
}

/// Moves a segment tag, like setval: the next id is the first id above the value.
#[pg_extern(schema = "snowflake_ids", volatile, parallel_unsafe)]
fn segment_set(
    tag: Option<TagArg<'_>>,
    value: Option<AnyNumeric>,
    force: default!(Option<bool>, false),
) -> Result<(), ErrorReport> {
    let sql =
        "SELECT snowflake_ids_internal.segment_set($1, $2, $3), snowflake_ids_internal.segment_adopted($1)";
    Changed::tag(tag, Access::Move)?.run(sql, [value.into(), force.into()])
}

/// Raises a tag so that its next ids are above a value. Returns the highest id that counts as issued.
#[pg_extern(schema = "snowflake_ids", volatile, parallel_unsafe)]
fn segment_raise(tag: Option<TagArg<'_>>, value: Option<i64>) -> Result<Option<i64>, ErrorReport> {
    let own = Changed::tag(tag, Access::Move)?;
    own.change(|| RAISE.value(&[TagText(own.object.name()).into(), value.into()]).map_err(spi))
}

static RAISE: Statement = Statement::new("SELECT snowflake_ids_internal.segment_raise($1, $2)");

/// Discards the ids of a segment tag that this server has reserved but not handed out. These ids become a gap. The next
/// call for an id reserves new ids.
#[pg_extern(schema = "snowflake_ids", volatile, parallel_unsafe)]
fn segment_discard(tag: Option<TagArg<'_>>) -> Result<(), ErrorReport> {
    let own = Changed::tag(tag, Access::Move)?;
    slot::discard(own.source, &own.object.name());
    Ok(())
}

/// Returns whether the current role has at least one of these privileges on a segment tag.
#[pg_extern(schema = "snowflake_ids", stable, parallel_safe, strict)]
fn has_segment_privilege(tag: TagArg<'_>, privilege: Text<'_>) -> Result<bool, ErrorReport> {
    let tag = tag_text::checked(tag.0).map_err(SegmentError::BadTag)?;
    let wanted = listed(Some(privilege))?;
    for action in [Access::Take, Access::Look, Access::Move] {
        if wanted.has(action.privilege()) && privilege::allows(&tag, action)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Adds the privileges in `more` to `held`, and removes the privileges in `less`. All lists are in the stored form.
#[pg_extern(schema = "snowflake_ids_internal", immutable, parallel_safe, strict)]
fn segment_privileges(held: Text<'_>, more: Text<'_>, less: Text<'_>) -> Result<String, ErrorReport> {
    let read = |list: Text<'_>| Ok::<_, ErrorReport>(Privileges::stored(&list.read("privileges")?));
    Ok(read(held)?.with(read(more)?).without(read(less)?).to_string())
}

/// Makes all sessions look up privileges again.
#[allow(clippy::unnecessary_wraps, reason = "the form of a trigger")]
#[pg_trigger(sql = "CREATE FUNCTION snowflake_ids_internal.segment_privileges_changed() RETURNS trigger
LANGUAGE c AS 'MODULE_PATHNAME', 'segment_privileges_changed_trigger';")]
fn segment_privileges_changed<'a>(_trigger: &'a PgTrigger<'a>) -> NoRow<'a> {
    if let Some(source) = SEGMENT.find() {
        source.announce();
    }
    Ok(None)
}
