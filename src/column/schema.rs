//! Attaches and detaches the columns of a schema, as the procedures `attach_all` and `detach_all` call it.

use crate::pg::guc;
use crate::pg::report::{report, spi, with_texts};
use crate::pg::statement::Statement;
use crate::pg::text::TextOut;
use pgrx::pg_sys::Oid;
use pgrx::pg_sys::panic::ErrorReport;
use snowflake_ids_core::column::default::IdKind;
use snowflake_ids_core::column::error::ColumnError;

static ATTACH: Statement = Statement::new("SELECT snowflake_ids.attach($1, $2, $3)");
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

/// Attaches the column with this number, or detaches it if `kind` is None. Without a number, locks the table, or unbinds the
/// sequence, which is `of` then. Errors begin with the name.
pub fn change(
    of: Oid,
    number: Option<i16>,
    sequence: Option<Oid>,
    kind: Option<IdKind>,
) -> Result<(), ErrorReport> {
    let arguments = [of.into(), number.into(), sequence.into()];
    let found = PLACE.first(&arguments, |row| Ok((row.get::<TextOut>(1)?, row.get::<TextOut>(2)?)));
    let (place, attribute) = found.map_err(spi)?.unwrap_or_default();
    let place = place.map(|place| place.to_utf8_lossy()).unwrap_or_default();
    let change = || match (number, attribute, kind) {
        (None, ..) if sequence.is_some() => UNBIND.run(&[of.into()]).map_err(spi),
        (None, ..) => LOCK.run(&[of.into()]).map_err(spi),
        (_, None, _) => Err(report(ColumnError::ColumnChanged)),
        (_, Some(attribute), None) => DETACH.run(&[of.into(), attribute.into()]).map_err(spi),
        (_, Some(attribute), Some(kind)) => {
            ATTACH.run(&[of.into(), attribute.into(), kind.name().into()]).map_err(spi)
        }
    };
    with_texts(change, |error| {
        let again = if kind.is_some() { "Call attach_all again." } else { "Call detach_all again." };
        let detail = error.detail().unwrap_or("The other columns are not affected.");
        [format!("{place}: {}", error.message()), detail.to_owned(), error.hint().unwrap_or(again).to_owned()]
    });
    // The first call has already reported the other columns.
    if number.is_some() && guc::shown(c"client_min_messages").as_deref() != Some("error") {
        guc::set_for_transaction(c"client_min_messages", c"warning");
    }
    Ok(())
}
