//! The tables of series and of their counters.

use super::rows::{OfRow, mark};
use super::statements::{Counters, counters_of};
use crate::store::series as definitions;
use pgrx::spi::SpiError;
use snowflake_ids_core::series::KeyType;

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
        let Some(table) = (if some.is_empty() { None } else { definitions::counters(of) }) else { continue };
        let results = table.as_owner_qualified(|| work(counters_of(of), of, &some))?;
        mark(&mut done, places.into_iter().zip(results));
    }
    Ok(done)
}
