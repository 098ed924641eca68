//! Verdicts on columns and sequences. Each function reads facts, asks the core, and reports what the core says.

use crate::column::facts;
use crate::pg::clock::SystemClock;
use crate::pg::guc;
use crate::pg::relation::Relation;
use crate::pg::report::{report, tell};
use crate::pg::sequence;
use crate::pg::text::{Text, TextOut};
use crate::pg::transaction;
use crate::settings;
use crate::sql::error::CallError;
use pgrx::pg_sys::Oid;
use pgrx::pg_sys::panic::ErrorReport;
use pgrx::prelude::*;
use snowflake_ids_core::column::default::IdKind;
use snowflake_ids_core::column::error::ColumnError;
use snowflake_ids_core::column::facts::{Column, Facts, Sequence};
use snowflake_ids_core::column::other_layout;
use snowflake_ids_core::column::plan::{Attached, Tags, attached, plan};
use snowflake_ids_core::column::verdict::{self, Action, Former, Wish};
use snowflake_ids_core::{Clock, Explain};

/// The longest name of a column, in bytes, in any build of Postgres.
const NAME: usize = 1_024;

/// Plans a schema, or all schemas if `schema` is null. `tags` is the number of tags that exist.
#[pg_extern(schema = "snowflake_ids_internal", volatile, parallel_unsafe)]
#[search_path(pg_catalog, pg_temp)]
fn column_plan(
    schema: Option<Oid>,
    kind: Text<'_>,
    tags: Option<i64>,
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
    let kind = kind_of(&kind)?;
    let facts = facts::of_schema(schema, kind)?;
    let most =
        settings::config().map_or(i64::MAX, |config| i64::try_from(config.max_tags).unwrap_or(i64::MAX));
    let rows = plan(&facts, kind, Tags { count: tags.unwrap_or_default(), most }).into_iter().map(|row| {
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
    let kind = kind.map(|kind| kind_of(&kind)).transpose()?;
    let facts = facts::of_schema(schema, IdKind::Snowflake)?;
    let rows = attached(&facts, kind).into_iter().map(|found| match found {
        Attached::Column(table, number) => (Some(table.into()), Some(number), None),
        Attached::Sequence(sequence) => (None, None, Some(sequence.into())),
    });
    Ok(TableIterator::new(rows))
}

/// Decides how a column of a locked table takes ids. Reports the uses of the column. Returns the sequence to bind; null if
/// the column gets a default.
#[pg_extern(schema = "snowflake_ids_internal", volatile, parallel_unsafe)]
#[search_path(pg_catalog, pg_temp)]
fn column_verdict(
    relation: Option<Oid>,
    attribute: Text<'_>,
    kind: Text<'_>,
    tag: Option<Text<'_>>,
    sequence: Text<'_>,
    generator: Option<Text<'_>>,
) -> Result<Option<Oid>, ErrorReport> {
    let text = |text: Option<Text<'_>>, name| {
        text.map(|text| text.read(name).map(std::borrow::Cow::into_owned)).transpose()
    };
    let wish = Wish {
        kind: kind_of(&kind)?,
        tag: text(tag, "tag")?,
        generator: text(generator, "generator")?,
        former: Former::of(&sequence.read("sequence")?).unwrap_or(Former::Redirect),
    };
    let Some(relation) = relation else { return Ok(None) };
    let mut locked = None;
    // Judges again under the lock of the sequence: it may have changed during the wait for the lock.
    loop {
        let unlocked = with_column(relation, &attribute, |facts, column, name| {
            let action = verdict::judge(facts, column, &wish).map_err(report)?;
            let sequence = if let Action::Bind(oid) = action { Some(oid) } else { None };
            if sequence == locked {
                let uses = facts::uses(&facts.members(column), name, wish.kind)?;
                verdict::notices(facts, column, wish.kind, action, uses).into_iter().for_each(tell);
                return Ok(None);
            }
            Ok(Some(sequence))
        })?;
        let Some(sequence) = unlocked else { return Ok(locked.map(Oid::from)) };
        sequence.and_then(|oid: u32| Relation::find(oid.into())).inspect(Relation::lock);
        locked = sequence;
    }
}

/// Checks whether a column can be attached to ids of a kind, or detached, apart from its uses.
#[pg_extern(schema = "snowflake_ids_internal", volatile, parallel_unsafe, strict)]
#[search_path(pg_catalog, pg_temp)]
fn check_column(relation: Oid, attribute: Text<'_>, kind: Text<'_>) -> Result<(), ErrorReport> {
    let kind = kind_of(&kind)?;
    with_column(relation, &attribute, |facts, column, _| {
        let tables = facts.members(column).into_iter().map(|member| &member.table);
        verdict::check_tables(tables).and_then(|()| verdict::check_column(column, kind)).map_err(report)
    })
}

/// Locks a table and the tables below in ACCESS EXCLUSIVE mode, which ALTER TABLE needs. Two sessions that upgraded a weaker
/// lock would deadlock. Until the commit, no session can insert rows, create a view on a table, change a table's owner, or add
/// a child table.
#[pg_extern(schema = "snowflake_ids_internal", volatile, parallel_unsafe, strict)]
#[search_path(pg_catalog, pg_temp)]
fn lock_table(relation: Oid) -> Result<(), ErrorReport> {
    let mut locked = Vec::new();
    // Repeats until all tables below are locked. Everything may have changed during the wait for a lock.
    loop {
        let tables = facts::of_tables(relation)?;
        if tables.is_empty() {
            return Err(CallError::NoRelation(relation.to_u32()).into());
        }
        verdict::check_tables(tables.iter()).map_err(report)?;
        // A snapshot taken before the lock would miss rows that were inserted during the wait for the lock.
        if !transaction::sees_new_commits() && !sequence::is_new(relation) {
            let level = guc::shown(c"transaction_isolation").unwrap_or_default();
            return Err(CallError::Isolation { level }.into());
        }
        let open: Vec<_> =
            tables.iter().map(|table| table.oid).filter(|table| !locked.contains(table)).collect();
        if open.is_empty() {
            return Ok(());
        }
        open.iter().filter_map(|table| Relation::find((*table).into())).for_each(|table| table.lock());
        locked.extend(open);
    }
}

/// Checks other columns that use a sequence: each must be able to hold numbers up to `most`. Reports these columns.
#[pg_extern(schema = "snowflake_ids_internal", volatile, parallel_unsafe, strict)]
#[search_path(pg_catalog, pg_temp)]
fn check_others_of_sequence(
    of: Oid,
    relation: Oid,
    attribute: Text<'_>,
    most: i64,
) -> Result<(), ErrorReport> {
    let sequence = sequence_of(of)?;
    with_column(relation, &attribute, |facts, column, _| {
        let members = facts.members(column);
        verdict::check_others(&sequence, &members, most).map_err(report)?;
        verdict::others(&sequence, &members).for_each(|user| tell(verdict::tell(&sequence, user)));
        Ok(())
    })
}

/// Decides whether a sequence can be bound by itself to ids of a kind. Reports columns that calculate with its numbers.
#[pg_extern(schema = "snowflake_ids_internal", volatile, parallel_unsafe, strict)]
#[search_path(pg_catalog, pg_temp)]
fn sequence_verdict(of: Oid, kind: Text<'_>) -> Result<(), ErrorReport> {
    let notices = verdict::judge_sequence(&sequence_of(of)?, kind_of(&kind)?).map_err(report)?;
    notices.into_iter().for_each(tell);
    Ok(())
}

/// Returns the highest number that all columns of a sequence can hold.
#[pg_extern(schema = "snowflake_ids_internal", volatile, parallel_unsafe, strict)]
#[search_path(pg_catalog, pg_temp)]
fn sequence_most(of: Oid) -> Result<i64, ErrorReport> {
    Ok(verdict::most_of_users(&sequence_of(of)?))
}

/// Fails if a relation is no sequence, or not the caller's.
#[pg_extern(schema = "snowflake_ids_internal", volatile, parallel_unsafe, strict)]
#[search_path(pg_catalog, pg_temp)]
fn sequence_check_owned(of: Oid) -> Result<(), ErrorReport> {
    verdict::check_sequence_owner(&sequence_of(of)?).map_err(report)
}

/// Returns the first property that keeps a sequence from being bound; no row if there is none.
#[pg_extern(schema = "snowflake_ids_internal", volatile, parallel_unsafe, strict)]
#[search_path(pg_catalog, pg_temp)]
fn sequence_obstacle(
    of: Oid,
) -> Result<
    TableIterator<'static, (name!(message, Option<TextOut>), name!(detail, Option<TextOut>))>,
    ErrorReport,
> {
    let obstacle = verdict::obstacle(&sequence_of(of)?);
    let row =
        obstacle.map(|obstacle| (TextOut::of(obstacle.to_string()), obstacle.detail().and_then(TextOut::of)));
    Ok(TableIterator::new(row))
}

/// Checks the right to a tag whose name comes from a table or a sequence.
#[pg_extern(schema = "snowflake_ids_internal", volatile, parallel_unsafe, strict)]
#[search_path(pg_catalog, pg_temp)]
fn check_unnamed_tag(relation: Oid, tag: Text<'_>) -> Result<(), ErrorReport> {
    let name = tag.read("tag")?.into_owned();
    let Some((relation, is_denied)) = facts::right_to_tag(relation, &tag)? else { return Ok(()) };
    verdict::check_unnamed_tag(&relation, Some(&name), is_denied).map_err(report)
}

/// Returns the HINT for a column whose highest id is above the next id of a default.
#[pg_extern(schema = "snowflake_ids_internal", volatile, parallel_unsafe, strict)]
fn other_layout_hint(
    table: Text<'_>,
    attribute: Text<'_>,
    highest: i64,
    written: Text<'_>,
) -> Result<Option<TextOut>, ErrorReport> {
    let [table, attribute, written] =
        [table.read("relation")?, attribute.read("column")?, written.read("default")?];
    Ok(TextOut::of(other_layout::hint(&table, &attribute, highest, &written, SystemClock.now())))
}

fn kind_of(kind: &Text<'_>) -> Result<IdKind, ErrorReport> {
    let name = kind.read("kind")?;
    Ok(IdKind::of(&name).ok_or(CallError::UnknownKind)?)
}

fn sequence_of(of: Oid) -> Result<Sequence, ErrorReport> {
    if let Some(sequence) = facts::of_sequences([of.to_u32()].into_iter())?.pop() {
        return Ok(sequence);
    }
    let relation = facts::of_tables(of)?.pop().ok_or(CallError::NoRelation(of.to_u32()))?;
    Err(report(ColumnError::NotASequence(relation.name)))
}

/// Runs `work` with the facts of a column.
fn with_column<T>(
    relation: Oid,
    attribute: &Text<'_>,
    work: impl FnOnce(&Facts, &Column, &TextOut) -> Result<T, ErrorReport>,
) -> Result<T, ErrorReport> {
    let name = TextOut::of_bytes(attribute.bytes(NAME, "column")?);
    let facts = facts::of_column(relation, &name)?;
    if let Some(column) = facts.columns().iter().find(|column| column.table.oid == relation.to_u32()) {
        return work(&facts, column, &name);
    }
    let attribute = attribute.read("column")?.into_owned();
    let table =
        facts::of_tables(relation)?.into_iter().next().ok_or(CallError::NoRelation(relation.to_u32()))?;
    Err(report(ColumnError::NoColumn { attribute, table: table.name }))
}
