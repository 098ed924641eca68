//! Dense series that several servers count, as a registry has them: their rows, and those of their keys.

use super::dense::Tables;
use super::dense::definitions::terms_of;
use super::dense::rows::{key_of, key_row, keys, mark, place, said, series_of};
use super::dense::statements::Counters;
use super::dense::tables::by_type;
use super::series::datum;
use crate::pg::encoding::from_utf8;
use crate::pg::random;
use crate::pg::statement::Statement;
use crate::pg::tag::{self, TagText};
use pgrx::pg_sys::BuiltinOid::TEXTOID;
use pgrx::spi::SpiError;
use rustc_hash::FxHashSet;
use snowflake_ids_core::number_registry::{FoundRow, KeyRow, NumberRegistry, SharedSeries};
use snowflake_ids_core::series::dense::RowKey;
use snowflake_ids_core::series::{Key, KeyType};
use snowflake_ids_core::tag_rows::LockWait;
use snowflake_ids_core::wire::SharedKey;

static NAMED: Statement = Statement::new(
    "SELECT s.id, pg_catalog.convert_to(s.name, 'UTF8'), s.key_type, s.start, s.reset, pg_catalog.convert_to(s.time_zone, 'UTF8'),
         s.max_value, s.max_step
     FROM snowflake_ids.series AS s
     WHERE s.name OPERATOR(pg_catalog.=) $1 COLLATE pg_catalog.\"C\" AND s.kind OPERATOR(pg_catalog.=) 'dense' FOR KEY SHARE SKIP LOCKED",
    &[TEXTOID],
);
static IS_NAMED: Statement = Statement::new(
    "SELECT true FROM snowflake_ids.series AS s
     WHERE s.name OPERATOR(pg_catalog.=) $1 COLLATE pg_catalog.\"C\" AND s.kind OPERATOR(pg_catalog.=) 'dense'",
    &[TEXTOID],
);
static COUNTED: Statement = Statement::new(
    "SELECT pg_catalog.convert_to(s.name, 'UTF8') FROM snowflake_ids.series AS s
     WHERE s.kind OPERATOR(pg_catalog.=) 'dense'
         AND (EXISTS (SELECT FROM snowflake_ids.series_bigint AS k WHERE k.series OPERATOR(pg_catalog.=) s.id)
              OR EXISTS (SELECT FROM snowflake_ids.series_text AS k WHERE k.series OPERATOR(pg_catalog.=) s.id)
              OR EXISTS (SELECT FROM snowflake_ids.series_uuid AS k WHERE k.series OPERATOR(pg_catalog.=) s.id))
     ORDER BY s.name LIMIT 1",
    &[],
);

/// A dense series of which keys have numbers here, if there is one.
pub fn counted() -> Result<Option<String>, SpiError> {
    let name = COUNTED.first(&[], |row| row.get::<Vec<u8>>(1))?;
    Ok(name.flatten().map(|name| String::from_utf8_lossy(&name).into_owned()))
}

impl NumberRegistry for Tables {
    type Error = SpiError;

    fn shared_series(&mut self, name: &str) -> Result<SharedSeries, SpiError> {
        let Some(name) = from_utf8(name).and_then(|bytes| tag::checked(&bytes).ok()) else {
            return Ok(SharedSeries::Unknown);
        };
        let found = NAMED.first(&[TagText(name).into()], |row| {
            let max_step = row.get::<i32>(8)?.and_then(|most| u32::try_from(most).ok()).unwrap_or(1);
            let (id, max_value) =
                (row.get::<i64>(1)?.unwrap_or_default(), row.get::<i64>(7)?.unwrap_or_default());
            let there = |(_, terms)| SharedSeries::There { id, terms, max_value, max_step };
            Ok(terms_of(row)?.map_or(SharedSeries::Unknown, there))
        })?;
        Ok(match found {
            Some(found) => found,
            None if IS_NAMED.first(&[TagText(name).into()], |_| Ok(()))?.is_some() => SharedSeries::Locked,
            None => SharedSeries::Unknown,
        })
    }

    fn key(&mut self, key: &SharedKey) -> Option<Key> {
        // Such a byte is in no text.
        if matches!(key, SharedKey::Text(text) if text.contains('\0')) {
            return None;
        }
        key.to_key(from_utf8)
    }

    fn read(&mut self, rows: &[RowKey], wait: LockWait) -> Result<Vec<FoundRow>, SpiError> {
        match (rows, wait) {
            ([row], LockWait::Wait) => {
                by_type(rows, FoundRow::None, |counters, _, _| wait_for(counters, row))
            }
            _ => by_type(rows, FoundRow::Locked, lock_free),
        }
    }

    fn write(&mut self, rows: &[(RowKey, KeyRow, bool)]) -> Result<Vec<bool>, SpiError> {
        let of = |is_new: bool| {
            rows.iter().filter(move |(.., new)| *new == is_new).map(|(row, says, _)| (row.clone(), *says))
        };
        let (known, new): (Vec<_>, Vec<_>) = (of(false).collect(), of(true).collect());
        by_type(&known, (), |counters, of, rows| {
            counters.put.run(&said(of, rows))?;
            Ok(vec![(); rows.len()])
        })?;
        let mut made: FxHashSet<(i64, Key)> = FxHashSet::default();
        by_type(&new, (), |counters, of, rows| {
            let all = counters
                .make
                .all(&said(of, rows), |row| Ok((row.get::<i64>(1)?.unwrap_or_default(), key_of(of, row)?)))?;
            made.extend(all);
            Ok(vec![(); rows.len()])
        })?;
        Ok(rows.iter().map(|(row, _, new)| !new || made.contains(&(row.series, row.key.clone()))).collect())
    }

    fn random(&mut self) -> i64 {
        random::token()
    }
}

/// Waits for a row.
fn wait_for(counters: &Counters, row: &RowKey) -> Result<Vec<FoundRow>, SpiError> {
    let found = counters.read.first(&[row.series.into(), datum(&row.key)], key_row)?;
    Ok(vec![found.map_or(FoundRow::None, FoundRow::There)])
}

/// Locks those rows that no other transaction has locked.
fn lock_free(counters: &Counters, of: KeyType, rows: &[&RowKey]) -> Result<Vec<FoundRow>, SpiError> {
    let mut found = vec![FoundRow::None; rows.len()];
    let arguments = || [series_of(rows), keys(of, rows)];
    let there = counters.look.all(&arguments(), place)?;
    mark(&mut found, there.into_iter().map(|place| (place, FoundRow::Locked)));
    let ours =
        counters.read_free.all(&arguments(), |row| Ok((place(row)?, FoundRow::There(key_row(row)?))))?;
    mark(&mut found, ours.into_iter());
    Ok(found)
}
