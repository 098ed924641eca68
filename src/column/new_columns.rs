//! Gives ids to columns that are created with a sequence of their own, as `snowflake_ids.new_columns` says.

use super::steps::{self, Target};
use super::{bind, facts, tags};
use crate::pg::report::{tell, with_texts};
use crate::pg::{redirect, relation};
use pgrx::pg_sys::Oid;
use pgrx::pg_sys::panic::ErrorReport;
use snowflake_ids_core::column::bound::changes_to_bind;
use snowflake_ids_core::column::default::IdKind;
use snowflake_ids_core::column::facts::Sequence;
use snowflake_ids_core::column::new_column::{Fate, NewColumn, NewIds};

/// Gives ids to new columns of a table: the column `number`, or all columns if `number` is 0.
pub fn attach(table: Oid, number: i32, ids: NewIds) -> Result<(), ErrorReport> {
    let columns = facts::of_new_columns(table, number)?.into_iter();
    // The copy of a former identity takes its ids already.
    for column in columns.filter(|column| !redirect::calls_extension(table, column.number)) {
        with_texts(
            || attach_one(table, &column, ids),
            |error| column.failed(ids, error.message(), error.detail(), error.hint()),
        );
    }
    Ok(())
}

fn attach_one(table: Oid, column: &NewColumn, ids: NewIds) -> Result<(), ErrorReport> {
    let of = Oid::from(column.sequence);
    let mut sequence = Sequence::default();
    if ids == NewIds::Bound && !column.base.is_narrow() {
        tags::check_manager("bind_sequence")?;
        sequence = facts::of_sequence(of)?;
    }
    match column.fate(ids, &sequence) {
        Fate::Kept(notice) => tell(notice),
        Fate::Attached(kind) => {
            Target::of(table, relation::column_name(table, column.number), kind).attach_on_all_nodes()?;
        }
        Fate::Bound => {
            steps::check_source("snowflake_ids.bind_sequence", None)?;
            let changed = if changes_to_bind(&sequence).next().is_some() {
                tags::alter(of, changes_to_bind(&sequence))?;
                &facts::of_sequence(of)?
            } else {
                &sequence
            };
            bind::bind_locked(changed, IdKind::Snowflake, None, None)?;
            tags::remember(&sequence, None)?;
        }
    }
    Ok(())
}
