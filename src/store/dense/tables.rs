//! The tables of series and of their counters.

use super::rows::{OfRow, mark};
use super::statements::{Counters, counters_of};
use crate::pg::catalog::Source;
use crate::pg::process::PerProcess;
use crate::store::series as definitions;
use pgrx::spi::SpiError;
use snowflake_ids_core::series::KeyType;
use std::cell::Cell;

/// The table of series, and those of counters in the order of the types of keys.
type Beside = (Source, [Option<Source>; KeyType::ALL.len()]);

/// The table of series that was found last, and those of counters beside it: they go together.
static FOUND: PerProcess<Cell<Option<Beside>>> = PerProcess::new(Cell::new(None));

/// The table of series of this database; None where the extension is not. Only within a transaction. To look whether a table is the
/// extension's costs more than a row, and is done once for each.
pub fn table() -> Option<Source> {
    let named = definitions::named()?;
    if FOUND.get().is_none_or(|(found, _)| found != named) {
        let table = definitions::table()?;
        FOUND.set(Some((table, KeyType::ALL.map(definitions::counters))));
    }
    Some(named)
}

/// The table of counters of a type of keys, once that of series was found.
fn table_of(of: KeyType) -> Option<Source> {
    let (_, counters) = FOUND.get()?;
    KeyType::ALL.iter().zip(counters).find(|(one, _)| **one == of)?.1
}

/// Does something with the keys of each type, as the owner of their table; what came of each, in the order of all.
pub fn by_type<T: OfRow, R: Clone>(
    all: &[T],
    otherwise: R,
    mut work: impl FnMut(&Counters, KeyType, &[&T]) -> Result<Vec<R>, SpiError>,
) -> Result<Vec<R>, SpiError> {
    let mut done = vec![otherwise; all.len()];
    for of in KeyType::ALL {
        let (places, some): (Vec<usize>, Vec<&T>) =
            all.iter().enumerate().filter(|(_, one)| one.row().key.key_type() == of).unzip();
        let Some(table) = (if some.is_empty() { None } else { table_of(of) }) else { continue };
        let results = table.as_owner_qualified(|| work(counters_of(of), of, &some))?;
        mark(&mut done, places.into_iter().zip(results));
    }
    Ok(done)
}
