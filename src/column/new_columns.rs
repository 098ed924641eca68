//! Gives ids to columns that are created with a sequence of their own, as `snowflake_ids.new_columns` says.

use super::{facts, tags};
use crate::pg::report::{spi, tell, with_texts};
use crate::pg::statement::Statement;
use crate::pg::{redirect, relation};
use pgrx::pg_sys::Oid;
use pgrx::pg_sys::panic::ErrorReport;
use snowflake_ids_core::column::bound::changes_to_bind;
use snowflake_ids_core::column::facts::Sequence;
use snowflake_ids_core::column::new_column::{Fate, NewColumn, NewIds};

static ATTACH: Statement = Statement::new("SELECT snowflake_ids.attach($1, $2, $3)");
static BIND: Statement = Statement::new("SELECT snowflake_ids.bind_sequence($1)");

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
        Fate::Attached => {
            let attribute = relation::column_name(table, column.number);
            ATTACH.run(&[table.into(), attribute.into(), ids.name().into()]).map_err(spi)?;
        }
        Fate::Bound => {
            tags::alter(of, changes_to_bind(&sequence))?;
            BIND.run(&[of.into()]).map_err(spi)?;
            tags::remember(&sequence, None)?;
        }
    }
    Ok(())
}
