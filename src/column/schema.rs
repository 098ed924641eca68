//! Attaches and detaches the columns of a schema, as the procedures `attach_all` and `detach_all` call it.

use super::facts;
use super::steps::Target;
use crate::pg::guc;
use crate::pg::per_process::PerProcess;
use crate::pg::report::{report, spi, with_texts};
use crate::pg::statement::Statement;
use crate::pg::text::TextOut;
use pgrx::pg_sys::Oid;
use pgrx::pg_sys::panic::ErrorReport;
use snowflake_ids_core::column::default::IdKind;
use snowflake_ids_core::column::error::ColumnError;
use snowflake_ids_core::column::facts::Sequence;
use std::cell::Cell;

static DETACH: Statement = Statement::new("SELECT snowflake_ids.detach($1, $2)");
static UNBIND: Statement = Statement::new("SELECT snowflake_ids.unbind_sequence($1)");
/// Does not lock a distributed table, because another session attaches that table, and would wait for this session.
static LOCK: Statement = Statement::new(
    "SELECT snowflake_ids_internal.lock_table($1) WHERE NOT snowflake_ids_internal.is_distributed($1)",
);

/// The name of a relation or of a column; then also the column's name alone, if it still takes numbers from the sequence.
static PLACE: Statement = Statement::new(
    "SELECT concat($1::regclass, '.' || quote_ident(a.attname)), a.attname::text FROM (SELECT) AS one LEFT JOIN pg_attribute AS a
         ON a.attrelid = $1 AND a.attnum = $2 AND NOT a.attisdropped
             AND ($3 IS NULL OR EXISTS (SELECT FROM snowflake_ids_internal.sequences_of($1, a.attname) AS s WHERE s.sequence = $3))",
);

/// True during a call of [`change`], whose caller commits next.
static COMMITS: PerProcess<Cell<bool>> = PerProcess::new(Cell::new(false));

/// Returns whether [`change`] is running. Its caller catches errors, so it runs in a subtransaction, as in a transaction block.
pub fn commits() -> bool {
    COMMITS.get()
}

/// Attaches columns that take numbers from one sequence, or one column; or detaches them, if `kind` is None. A column without a
/// number stands for the sequence alone, which is unbound. Errors begin with the name of the column.
pub fn change(
    columns: &[(Oid, Option<i16>)],
    sequence: Option<Oid>,
    kind: Option<IdKind>,
) -> Result<(), ErrorReport> {
    struct Running;
    impl Drop for Running {
        fn drop(&mut self) {
            COMMITS.set(false);
        }
    }
    COMMITS.set(true);
    let _running = Running;
    // Locks all tables before their sequence, because an INSERT locks its table and then waits for the sequence.
    for (table, _) in columns.iter().filter(|(_, number)| number.is_some()) {
        let (place, _) = place(*table, None, sequence)?;
        named(&place, kind, || LOCK.run(&[(*table).into()]).map_err(spi));
    }
    let mut shared = None;
    for (of, number) in columns {
        let (place, attribute) = place(*of, *number, sequence)?;
        named(&place, kind, || match (number, attribute, kind) {
            (None, ..) => UNBIND.run(&[(*of).into()]).map_err(spi),
            (_, None, _) => Err(report(ColumnError::ColumnChanged)),
            (_, Some(attribute), None) => DETACH.run(&[(*of).into(), attribute.into()]).map_err(spi),
            (_, Some(attribute), Some(kind)) => attach(*of, attribute, kind, sequence, &mut shared),
        });
        // The first call has already reported the other columns.
        if number.is_some() && guc::shown(c"client_min_messages").as_deref() != Some("error") {
            guc::set_for_transaction(c"client_min_messages", c"warning");
        }
    }
    Ok(())
}

/// Attaches a column. The first column that binds the sequence leaves its facts for the next, because the sequence may have
/// thousands of users.
fn attach(
    table: Oid,
    attribute: TextOut,
    kind: IdKind,
    sequence: Option<Oid>,
    shared: &mut Option<Sequence>,
) -> Result<(), ErrorReport> {
    let mut target = Target::of(table, attribute, kind);
    target.shared = shared.take();
    target.attach_on_all_nodes()?;
    *shared = target.shared;
    if shared.as_ref().is_some_and(|shared| shared.bound.is_none()) {
        *shared = sequence.map(facts::of_sequence).transpose()?;
    }
    Ok(())
}

fn place(
    of: Oid,
    number: Option<i16>,
    sequence: Option<Oid>,
) -> Result<(String, Option<TextOut>), ErrorReport> {
    let arguments = [of.into(), number.into(), sequence.into()];
    let found = PLACE.first(&arguments, |row| Ok((row.get::<TextOut>(1)?, row.get::<TextOut>(2)?)));
    let (place, attribute) = found.map_err(spi)?.unwrap_or_default();
    Ok((place.map(|place| place.to_utf8_lossy()).unwrap_or_default(), attribute))
}

/// Runs `work`, whose errors begin with the name of a place.
fn named(place: &str, kind: Option<IdKind>, work: impl FnOnce() -> Result<(), ErrorReport>) {
    with_texts(work, |error| {
        let again = if kind.is_some() { "Call attach_all again." } else { "Call detach_all again." };
        let detail = error.detail().unwrap_or("The other columns are not affected.");
        [format!("{place}: {}", error.message()), detail.to_owned(), error.hint().unwrap_or(again).to_owned()]
    });
}
