//! Statements that meet columns that take ids. ALTER TABLE: the limit of a tag follows the column's type, and a type that cannot
//! hold the ids is refused. ALTER SEQUENCE: what a bound sequence cannot be is refused. COPY: a bound column must be listed.
//! CREATE TABLE ... LIKE INCLUDING IDENTITY: the copy takes ids. The hooks of `src/pg` call these functions.

use super::facts;
use crate::bound::cache;
use crate::pg::relation::{self, Relation};
use crate::pg::report::{raise, report, spi};
use crate::pg::statement::Statement;
use crate::pg::text::TextOut;
use crate::pg::{extension, redirect, sequence};
use crate::store::bound::NumberSource;
use crate::store::tables::SEGMENT;
use pgrx::pg_sys::Oid;
use pgrx::pg_sys::panic::ErrorReport;
use snowflake_ids_core::column::change::{BoundSequence, SequenceChange};
use snowflake_ids_core::column::default::IdKind;
use snowflake_ids_core::column::error::ColumnError;
use snowflake_ids_core::column::facts::Column;
use snowflake_ids_core::column::verdict::{ids_of, new_limit};
use std::ffi::{CStr, c_int};

static LIKE: Statement = Statement::new("SELECT snowflake_ids_internal.attach_like($1, $2, $3)");

static LIMIT: Statement = Statement::new(
    "SELECT snowflake_ids_internal.segment_alter($1, NULL, NULL, NULL, NULL, NULL, $2, NULL, NULL, NULL)",
);

/// Makes a column of a new table an identity like a former identity, and attaches it to the same tag or generator.
pub fn liked(relation: Oid, attribute: &CStr, sequence: Oid) {
    if extension::keep() {
        let attribute = TextOut::of_bytes(attribute.to_bytes());
        let liked = LIKE.run(&[relation.into(), attribute.into(), sequence.into()]);
        liked.unwrap_or_else(|error| raise(spi(error)));
    }
}

/// Adapts the limit of a column's tag to the column's type.
pub fn column_altered(relation: Oid, number: c_int) {
    if let (Some(tags), Ok(number)) = (SEGMENT.find(), i16::try_from(number)) {
        tags.as_owner(|| follow(relation, number)).unwrap_or_else(|error| raise(error));
    }
}

/// Refuses a COPY that leaves out a column whose default takes ids from a bound sequence. The server would call the sequence
/// itself, which stands at its end, and fail at the first row.
pub fn copied(relation: Oid, columns: &[i16]) {
    let is_bound = |sequence: &Oid| matches!(cache::called_binding_at_once(*sequence), Ok(Some(_)));
    for column in columns {
        let (sequences, is_plain) = redirect::sequences_of_default(relation, *column);
        if let (Some(sequence), Some(tables)) = (sequences.into_iter().find(is_bound), SEGMENT.find()) {
            let error = tables.as_owner(|| not_copied(relation, *column, sequence, is_plain));
            raise(error.unwrap_or_else(|error| error));
        }
    }
}

fn not_copied(relation: Oid, number: i16, sequence: Oid, is_plain: bool) -> Result<ErrorReport, ErrorReport> {
    let name = relation::column_name(relation, number);
    let facts = facts::of_column(relation, &name)?;
    let column = facts.columns().iter().find(|column| column.table.oid == relation.to_u32());
    let sequence = facts::of_sequences([sequence.to_u32()].into_iter())?.pop().unwrap_or_default();
    let column = column.cloned().unwrap_or_default();
    Ok(report(ColumnError::not_copied(&column, &sequence, is_plain)))
}

/// Refuses options of ALTER SEQUENCE that a bound sequence cannot have. Returns whether the sequence keeps its type nevertheless.
/// The caller has locked the sequence.
pub fn sequence_altering(of: Oid, change: SequenceChange) -> bool {
    let Some(tables) = SEGMENT.find().filter(|_| cache::is_bound(of)) else { return false };
    let owner = sequence::owner(of);
    owner.and_then(|(table, _)| Relation::find(table)).inspect(Relation::lock_to_read);
    tables.as_owner(|| check_change(of, owner, change)).unwrap_or_else(|error| raise(error))
}

fn check_change(of: Oid, owner: Option<(Oid, i16)>, change: SequenceChange) -> Result<bool, ErrorReport> {
    let name = facts::name_of(of)?;
    let facts = owner.map(|(table, number)| facts::of_column(table, &relation::column_name(table, number)));
    let facts = facts.transpose()?;
    let is_owner = |column: &&Column| owner.is_some_and(|(table, _)| column.table.oid == table.to_u32());
    let bound = BoundSequence {
        name: &name,
        max: sequence::terms(of).map_or(i64::MAX, |terms| terms.max),
        owner: facts.as_ref().and_then(|facts| facts.columns().iter().find(is_owner)),
        is_former: owner.and_then(|(table, number)| cache::former_identity(table, number)) == Some(of),
        is_segment: matches!(cache::binding_of(of), Some(NumberSource::Segment(_))),
    };
    change.check(&bound).map_err(report)?;
    Ok(change.keeps_type(&bound))
}

fn follow(relation: Oid, number: i16) -> Result<(), ErrorReport> {
    // Reads no table of this extension that somebody may have locked.
    let is_bound = |sequence| matches!(cache::row_at_once(sequence), Ok(Some(_)));
    let owned =
        sequence::owned_by(relation).into_iter().filter(|(of, _)| *of == number).map(|(_, owned)| owned);
    let (named, _) = redirect::sequences_of_default(relation, number);
    if !redirect::calls_extension(relation, number) && !named.into_iter().chain(owned).any(is_bound) {
        return Ok(());
    }
    let facts = facts::of_column(relation, &relation::column_name(relation, number))?;
    let Some(column) = facts.columns().iter().find(|column| column.table.oid == relation.to_u32()) else {
        return Ok(());
    };
    for (kind, tag) in ids_of(&facts, column) {
        match tag {
            None if kind == IdKind::Snowflake && column.base.is_narrow() => return Err(narrowed(column)),
            Some(tag) => follow_in_tag(relation, column, &tag)?,
            None => {}
        }
    }
    Ok(())
}

fn follow_in_tag(relation: Oid, column: &Column, tag: &str) -> Result<(), ErrorReport> {
    let Some(text) = TextOut::of(tag.to_owned()) else { return Ok(()) };
    let limit = || facts::limit_of_tag(relation, &text);
    let Some(before) = limit()? else { return Ok(()) };
    // Any role may name a tag in a default.
    let Some(most) = new_limit(&before, column.base).filter(|_| before.may_be_moved) else { return Ok(()) };
    LIMIT.run(&[text.clone().into(), most.into()]).map_err(spi)?;
    // Unused ids were given back, so that the highest id is the last id that was handed out.
    match limit()? {
        Some(after) if after.max_id > most => Err(narrowed(column)),
        _ => Ok(()),
    }
}

fn narrowed(column: &Column) -> ErrorReport {
    report(ColumnError::narrowed(column, column.base))
}
