//! Attaching, detaching, and verdicts on columns and sequences. Each function reads facts, asks the core, and does or reports
//! what the core says.

use crate::column::facts::{self, with_column};
use crate::column::steps::{self, Target};
use crate::column::{bind, new_columns, node, schema, tags};
use crate::pg::relation;
use crate::pg::report::{report, spi};
use crate::pg::text::{Text, TextOut};
use crate::pg::transaction;
use crate::settings;
use crate::sql::attach::extension_keep;
use crate::store::citus;
use pgrx::pg_sys::Oid;
use pgrx::pg_sys::panic::ErrorReport;
use pgrx::prelude::*;
use snowflake_ids_core::column::default::{self, IdKind, own};
use snowflake_ids_core::column::error::ColumnError;
use snowflake_ids_core::column::new_column::NewIds;
use snowflake_ids_core::column::plan::{Attached, Tags, attached, plan};
use snowflake_ids_core::column::steps::ValueSource;
use snowflake_ids_core::column::verdict::{self, Action, SequenceFate, Wish};
use snowflake_ids_core::error::MAX_TEXT_BYTES;
use std::ffi::CStr;

/// The longest name of a column, in bytes, in any build of Postgres.
const NAME: usize = 1_024;

/// The function that an error names.
const ATTACH: &str = "snowflake_ids.attach";

/// Plans a schema, or all schemas if `schema` is null.
#[pg_extern(schema = "snowflake_ids_internal", volatile, parallel_unsafe)]
#[search_path(pg_catalog, pg_temp)]
fn column_plan(
    schema: Option<Oid>,
    kind: Option<Text<'_>>,
) -> Result<
    TableIterator<
        'static,
        (
            name!(relation, Oid),
            name!(number, i16),
            name!(found, &'static str),
            name!(sequence, Option<Oid>),
            name!(action, &'static str),
            name!(reason, Option<TextOut>),
        ),
    >,
    ErrorReport,
> {
    let kind = checked_kind(&kind.ok_or_else(|| report(ColumnError::NullArgument("kind")))?)?;
    let facts = facts::of_schema(schema, kind)?;
    let most =
        settings::config().map_or(i64::MAX, |config| i64::try_from(config.max_tags).unwrap_or(i64::MAX));
    let rows = plan(&facts, kind, Tags { count: facts::count_tags()?, most }).into_iter().map(|row| {
        let action = match row.action {
            Some(Action::Attach) => "attach",
            Some(Action::Bind(_)) => "bind",
            None => "skip",
        };
        let reason = row.reason.and_then(TextOut::of);
        let sequence = row.column.source().map(Oid::from);
        (row.column.table.oid.into(), row.column.number, row.found.name(), sequence, action, reason)
    });
    Ok(TableIterator::new(rows.collect::<Vec<_>>()))
}

/// Returns what gives ids in a schema, or in all schemas: columns, or sequences that columns share. `kind` null means both
/// kinds.
#[pg_extern(schema = "snowflake_ids_internal", volatile, parallel_unsafe)]
#[search_path(pg_catalog, pg_temp)]
fn columns_attached(
    schema: Option<Oid>,
    kind: Option<Text<'_>>,
) -> Result<
    TableIterator<
        'static,
        (name!(relation, Option<Oid>), name!(number, Option<i16>), name!(sequence, Option<Oid>)),
    >,
    ErrorReport,
> {
    let kind = kind.as_ref().map(checked_kind).transpose()?;
    let facts = facts::of_schema(schema, IdKind::Snowflake)?;
    let rows = attached(&facts, kind).into_iter().map(|found| match found {
        Attached::Column(table, number) => (Some(table.into()), Some(number), None),
        Attached::Sequence(sequence) => (None, None, Some(sequence.into())),
    });
    Ok(TableIterator::new(rows))
}

/// Fails in a transaction block, which a procedure that commits cannot end.
#[pg_extern(schema = "snowflake_ids_internal", volatile, parallel_unsafe, strict)]
fn check_may_commit(procedure: Text<'_>) -> Result<(), ErrorReport> {
    if transaction::is_block() {
        let procedure = procedure.read("procedure")?.into_owned();
        return Err(report(ColumnError::InBlock { procedure }));
    }
    Ok(())
}

/// Attaches columns of a schema that take numbers from one sequence, or one column; or detaches them, if the kind is null.
#[pg_extern(
    sql = "CREATE FUNCTION snowflake_ids_internal.change_columns(relations oid[], numbers smallint[], sequence oid, kind text)
RETURNS void LANGUAGE c SET search_path = pg_catalog, pg_temp SET standard_conforming_strings = on
SET quote_all_identifiers = off SET citus.enable_ddl_propagation = off AS 'MODULE_PATHNAME', 'change_columns_wrapper';"
)]
fn change_columns(
    relations: Option<Array<'_, Oid>>,
    numbers: Option<Array<'_, i16>>,
    sequence: Option<Oid>,
    kind: Option<Text<'_>>,
) -> Result<(), ErrorReport> {
    let (Some(relations), Some(numbers)) = (relations, numbers) else {
        return Err(report(ColumnError::NullArgument("relations and numbers")));
    };
    let columns: Vec<_> =
        relations.iter().zip(numbers.iter()).filter_map(|(of, number)| Some((of?, number))).collect();
    schema::change(&columns, sequence, kind.map(|kind| kind_of(&kind)).transpose()?)
}

/// Attaches a column on this node. Does nothing, and returns false, if the table is distributed and the call comes from a user.
#[pg_extern(schema = "snowflake_ids_internal", volatile, parallel_unsafe)]
#[search_path(pg_catalog, pg_temp)]
fn attach_here(
    relation: Option<Oid>,
    attribute: Option<Text<'_>>,
    kind: Option<Text<'_>>,
    tag: Option<Text<'_>>,
    sequence: Option<Text<'_>>,
    generator: Option<Text<'_>>,
    is_user: default!(Option<bool>, "false"),
) -> Result<bool, ErrorReport> {
    let (Some(relation), Some(attribute), Some(sequence)) = (relation, attribute, sequence) else {
        return Err(report(ColumnError::NullArgument("relation, column, kind and sequence")));
    };
    let (fate, kind) = (sequence.read("sequence")?, kind.as_ref().map(|kind| kind.read("kind")).transpose()?);
    let (tag, generator) = (given(tag.as_ref(), "tag")?, given(generator.as_ref(), "generator")?);
    let wish = wish(kind.as_deref(), tag.as_ref(), &fate, generator.as_ref())?;
    let mut target = Target { relation, attribute: name_of(&attribute)?, wish, tag, generator, shared: None };
    if is_user == Some(true) {
        steps::check_source(ATTACH, target.generator.as_ref())?;
        if target.is_distributed()? {
            return Ok(false);
        }
    }
    target.attach().map(|()| true)
}

/// Detaches a column, whose name is of type `name`.
#[pg_extern(sql = false)]
fn detach(
    relation: Option<Oid>,
    attribute: Option<&CStr>,
    kind: Option<Text<'_>>,
) -> Result<(), ErrorReport> {
    begin("detach")?;
    let (Some(relation), Some(attribute)) = (relation, attribute) else {
        return Err(report(ColumnError::NullArgument("relation and column")));
    };
    let source = kind.map(|kind| ValueSource::read(&kind.read("kind")?).map_err(report)).transpose()?;
    steps::detach(relation, TextOut::of_bytes(attribute.to_bytes()), source)
}

/// Checks the kind of ids, with the tag and the generator, if there are any.
#[pg_extern(schema = "snowflake_ids_internal", volatile, parallel_unsafe)]
#[search_path(pg_catalog, pg_temp)]
fn check_kind(
    kind: Option<Text<'_>>,
    tag: Option<Text<'_>>,
    generator: Option<Text<'_>>,
) -> Result<(), ErrorReport> {
    let kind = kind.as_ref().map(|kind| kind.read("kind")).transpose()?;
    let (tag, generator) = (given(tag.as_ref(), "tag")?, given(generator.as_ref(), "generator")?);
    wish(kind.as_deref(), tag.as_ref(), SequenceFate::Redirect.name(), generator.as_ref())?;
    steps::check_source(ATTACH, generator.as_ref())
}

/// Fails if the next id of a default of this extension is not above the ids of a column.
#[pg_extern(schema = "snowflake_ids_internal", volatile, parallel_unsafe, strict)]
#[search_path(pg_catalog, pg_temp)]
fn check_next(
    relation: Oid,
    attribute: Text<'_>,
    highest: i64,
    expression: Text<'_>,
) -> Result<(), ErrorReport> {
    let written = text(&expression, "expression")?;
    with_column(relation, &name_of(&attribute)?, |_, column| steps::check_next(column, &written, highest))
}

/// Returns a default of this extension in the form that attach writes; null for any other default.
#[pg_extern(schema = "snowflake_ids_internal", immutable, parallel_safe, strict)]
fn own_default(written: Text<'_>) -> Result<Option<TextOut>, ErrorReport> {
    let written = TextOut::of_bytes(written.bytes(usize::MAX, "default")?).to_utf8_lossy();
    Ok(own(&written).and_then(|(_, written)| TextOut::of(written)))
}

/// Returns a call of a function with a text, as Postgres prints it with `standard_conforming_strings`.
#[pg_extern(schema = "snowflake_ids_internal", immutable, parallel_safe, strict)]
fn call_with(function: Text<'_>, argument: Text<'_>) -> Result<TextOut, ErrorReport> {
    let (function, argument) = (text(&function, "function")?, text(&argument, "argument")?);
    Ok(TextOut::of_bytes(&default::call(function.as_bytes(), argument.as_bytes())))
}

/// Returns a default in the form that attach writes.
#[pg_extern(schema = "snowflake_ids_internal", immutable, parallel_safe)]
fn id_default(
    kind: Option<Text<'_>>,
    tag: Option<Text<'_>>,
    generator: default!(Option<Text<'_>>, "NULL"),
) -> Result<Option<TextOut>, ErrorReport> {
    let Some(kind) = kind else { return Ok(None) };
    let (tag, generator) = (given(tag.as_ref(), "tag")?, given(generator.as_ref(), "generator")?);
    Ok(Some(tags::written(kind_of(&kind)?, tag.as_ref(), generator.as_ref())))
}

/// Returns the tag for a column that is attached without a tag.
#[pg_extern(schema = "snowflake_ids_internal", stable, parallel_safe, strict)]
fn default_tag(relation: Oid) -> Option<TextOut> {
    tags::named_after(relation)
}

/// Returns the base type of a domain, bigint for `snowflake_id`, and any other type unchanged.
#[pg_extern(sql = "CREATE FUNCTION snowflake_ids_internal.base_type(type oid) RETURNS regtype
STRICT STABLE PARALLEL SAFE LANGUAGE c AS 'MODULE_PATHNAME', 'base_type_wrapper';")]
fn base_type(of: Oid) -> Oid {
    let base = relation::base_type(of);
    if relation::type_in_catalog(c"snowflake_id") == Some(base) { pg_sys::INT8OID } else { base }
}

/// Returns a free name for a sequence of a column, as serial chooses it.
#[pg_extern(schema = "snowflake_ids_internal", volatile, parallel_unsafe, strict)]
fn free_sequence_name(relation: Oid, attribute: Text<'_>) -> Result<Option<TextOut>, ErrorReport> {
    Ok(relation::free_sequence_name(relation, &name_of(&attribute)?))
}

/// Returns the highest number of a sequence.
#[pg_extern(schema = "snowflake_ids_internal", volatile, parallel_unsafe, strict)]
#[search_path(pg_catalog, pg_temp)]
fn highest_number(sequence: Oid) -> Result<i64, ErrorReport> {
    tags::highest_number(sequence)
}

fn wish(
    kind: Option<&str>,
    tag: Option<&TextOut>,
    fate: &str,
    generator: Option<&TextOut>,
) -> Result<Wish, ErrorReport> {
    let (tag, generator) = (tag.map(TextOut::to_utf8_lossy), generator.map(TextOut::to_utf8_lossy));
    Wish::read(kind, tag, generator, fate).map_err(report)
}

fn given(argument: Option<&Text<'_>>, name: &'static str) -> Result<Option<TextOut>, ErrorReport> {
    argument.map(|argument| text(argument, name)).transpose()
}

fn text(text: &Text<'_>, name: &'static str) -> Result<TextOut, ErrorReport> {
    Ok(TextOut::of_bytes(text.bytes(MAX_TEXT_BYTES, name)?))
}

fn name_of(attribute: &Text<'_>) -> Result<TextOut, ErrorReport> {
    Ok(TextOut::of_bytes(attribute.bytes(NAME, "column")?))
}

/// Checks whether a column can be attached to ids of a kind, or detached, apart from its uses.
#[pg_extern(schema = "snowflake_ids_internal", volatile, parallel_unsafe, strict)]
#[search_path(pg_catalog, pg_temp)]
fn check_column(relation: Oid, attribute: Text<'_>, kind: Text<'_>) -> Result<(), ErrorReport> {
    let kind = kind_of(&kind)?;
    with_column(relation, &name_of(&attribute)?, |facts, column| {
        verdict::check(&facts.members(column), column, kind).map_err(report)
    })
}

/// Detaches a column on a worker.
#[pg_extern(schema = "snowflake_ids_internal", volatile, parallel_unsafe)]
#[search_path(pg_catalog, pg_temp)]
fn detach_on_node(
    relation: Option<Oid>,
    attribute: Option<Text<'_>>,
    kind: Option<Text<'_>>,
    sequence: Option<Text<'_>>,
    highest: Option<i64>,
) -> Result<(), ErrorReport> {
    let (Some(relation), Some(attribute), Some(kind), Some(sequence)) = (relation, attribute, kind, sequence)
    else {
        return Err(report(ColumnError::NullArgument("relation, column, kind and sequence")));
    };
    let source = ValueSource::read(&kind.read("kind")?).map_err(report)?;
    node::detach_on_node(relation, name_of(&attribute)?, source, &text(&sequence, "sequence")?, highest)
}

/// Locks a table and the tables below against all other sessions.
#[pg_extern(schema = "snowflake_ids_internal", volatile, parallel_unsafe, strict)]
#[search_path(pg_catalog, pg_temp)]
fn lock_table(relation: Oid) -> Result<(), ErrorReport> {
    steps::lock(relation)
}

/// Begins a call of a role that manages tags.
fn begin(function: &str) -> Result<(), ErrorReport> {
    extension_keep()?;
    tags::check_manager(function)
}

/// Fails if the caller does not manage tags.
#[pg_extern(schema = "snowflake_ids_internal", volatile, parallel_unsafe, strict)]
#[search_path(pg_catalog, pg_temp)]
fn check_manages_tags(function: Text<'_>) -> Result<(), ErrorReport> {
    tags::check_manager(&function.read("function")?)
}

/// Returns whether workers of a Citus cluster take ids from this database's tags.
#[pg_extern(schema = "snowflake_ids_internal", stable, parallel_unsafe)]
fn has_workers() -> Result<bool, ErrorReport> {
    citus::has_workers().map_err(spi)
}

/// Binds a sequence of the caller.
#[pg_extern(sql = false)]
fn bind_sequence(
    of: Option<Oid>,
    kind: Option<Text<'_>>,
    tag: Option<Text<'_>>,
    generator: Option<Text<'_>>,
) -> Result<(), ErrorReport> {
    begin("bind_sequence")?;
    let of = of.ok_or_else(|| report(ColumnError::NullArgument("sequence")))?;
    let kind = kind.as_ref().map(|kind| kind.read("kind")).transpose()?;
    let (tag, generator) = (given(tag.as_ref(), "tag")?, given(generator.as_ref(), "generator")?);
    let kind = wish(kind.as_deref(), tag.as_ref(), SequenceFate::Redirect.name(), generator.as_ref())?.kind;
    bind::bind(of, kind, tag, generator.as_ref())
}

/// Unbinds a sequence of the caller.
#[pg_extern(sql = false)]
fn unbind_sequence(of: Option<Oid>) -> Result<(), ErrorReport> {
    begin("unbind_sequence")?;
    bind::unbind(of.ok_or_else(|| report(ColumnError::NullArgument("sequence")))?)
}

/// Gives ids to new columns of a table: the column `number`, or all columns if `number` is 0. DDL of every role calls this
/// function.
#[pg_extern(
    sql = "CREATE FUNCTION snowflake_ids_internal.attach_created(relation oid, number integer, kind text) RETURNS void
STRICT VOLATILE PARALLEL UNSAFE LANGUAGE c SET search_path = pg_catalog, pg_temp SET standard_conforming_strings = on
SET quote_all_identifiers = off SET citus.enable_ddl_propagation = off AS 'MODULE_PATHNAME', 'attach_created_wrapper';"
)]
fn attach_created(relation: Oid, number: i32, kind: Text<'_>) -> Result<(), ErrorReport> {
    let name = kind.read("kind")?;
    let ids = NewIds::named(&name).ok_or_else(|| report(ColumnError::UnknownKind(name.into_owned())))?;
    new_columns::attach(relation, number, ids)
}

/// Raises a tag above ids that a column holds.
#[pg_extern(schema = "snowflake_ids_internal", volatile, parallel_unsafe, strict)]
#[search_path(pg_catalog, pg_temp)]
fn seed_tag(tag: Text<'_>, highest: i64) -> Result<(), ErrorReport> {
    tags::raise_restored(&text(&tag, "tag")?, highest)
}

/// Returns the kind of ids that the library is ready to give.
fn checked_kind(kind: &Text<'_>) -> Result<IdKind, ErrorReport> {
    let kind = kind_of(kind)?;
    steps::check_source(ATTACH, None).map(|()| kind)
}

fn kind_of(kind: &Text<'_>) -> Result<IdKind, ErrorReport> {
    let name = kind.read("kind")?;
    IdKind::named(&name).ok_or_else(|| report(ColumnError::UnknownKind(name.into_owned())))
}
