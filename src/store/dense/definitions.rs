//! What series say: to their worker, and to registries.

use crate::pg::statement::Statement;
use pgrx::pg_sys::BuiltinOid::INT8ARRAYOID;
use pgrx::spi::{SpiError, SpiHeapTupleData};
use rustc_hash::FxHashMap;
use snowflake_ids_core::series::dense::{Definition, Found};
use snowflake_ids_core::wire::SharedTerms;

static SERIES: Statement = Statement::new(
    "SELECT s.id, s.start, s.max_value, s.step, s.max_step FROM snowflake_ids.series AS s
     WHERE s.id OPERATOR(pg_catalog.=) ANY ($1) AND s.kind OPERATOR(pg_catalog.=) 'dense' FOR KEY SHARE SKIP LOCKED",
    &[INT8ARRAYOID],
);
static SERIES_UNLOCKED: Statement = Statement::new(
    "SELECT s.id FROM snowflake_ids.series AS s WHERE s.id OPERATOR(pg_catalog.=) ANY ($1)",
    &[INT8ARRAYOID],
);

static TERMS: Statement = Statement::new(
    "SELECT s.id, pg_catalog.convert_to(s.name, 'UTF8'), s.key_type, s.start, s.reset, pg_catalog.convert_to(s.time_zone, 'UTF8')
     FROM snowflake_ids.series AS s WHERE s.id OPERATOR(pg_catalog.=) ANY ($1)",
    &[INT8ARRAYOID],
);

/// What series say, in this order. Those that are there stay until the transaction ends.
pub fn series(ids: &[i64]) -> Result<Vec<Found>, SpiError> {
    let one = |row: &SpiHeapTupleData<'_>| {
        let number = |place: usize| row.get::<i64>(place).map(Option::unwrap_or_default);
        let step = |place: usize| {
            row.get::<i32>(place).map(|step| step.and_then(|step| u32::try_from(step).ok()).unwrap_or(1))
        };
        let (start, max_value) = (number(2)?, number(3)?);
        let found = Found::There(Definition { start, max_value, step: step(4)?, max_step: step(5)? });
        Ok((number(1)?, found))
    };
    let mut found: FxHashMap<i64, Found> = SERIES.all(&[ids.to_vec().into()], one)?.into_iter().collect();
    let rest: Vec<i64> = ids.iter().filter(|id| !found.contains_key(*id)).copied().collect();
    if !rest.is_empty() {
        let locked = SERIES_UNLOCKED.all(&[rest.into()], |row| row.get::<i64>(1))?;
        found.extend(locked.into_iter().flatten().map(|id| (id, Found::Locked)));
    }
    Ok(ids.iter().map(|id| found.get(id).copied().unwrap_or(Found::Unknown)).collect())
}

/// What series are to registries, in this order; None for one that is not there, or whose name other servers could not know.
pub fn terms(ids: &[i64]) -> Result<Vec<Option<(String, SharedTerms)>>, SpiError> {
    let found = TERMS.all(&[ids.to_vec().into()], |row| Ok((row.get::<i64>(1)?, terms_of(row)?)))?;
    let found: FxHashMap<Option<i64>, _> = found.into_iter().collect();
    Ok(ids.iter().map(|id| found.get(&Some(*id)).cloned().flatten()).collect())
}

/// The name of a row, and its terms.
pub fn terms_of(row: &SpiHeapTupleData<'_>) -> Result<Option<(String, SharedTerms)>, SpiError> {
    let text = |place: usize| {
        row.get::<Vec<u8>>(place).map(|bytes| String::from_utf8(bytes.unwrap_or_default()).ok())
    };
    let (name, time_zone) = (text(2)?, text(6)?.unwrap_or_default());
    let reset = row.get::<String>(5)?;
    let terms = SharedTerms {
        key_type: row.get::<String>(3)?.unwrap_or_default(),
        start: row.get::<i64>(4)?.unwrap_or_default(),
        time_zone: if reset.is_some() { time_zone } else { String::new() },
        reset,
    };
    Ok(name.map(|name| (name, terms)))
}
