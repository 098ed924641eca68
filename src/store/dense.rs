//! The counters of dense series in their tables, many at a time: reserving numbers, and writing back what is left over.
//!
//! A row says up to which number all are reserved.

pub(super) mod definitions;
mod reserve;
pub(super) mod rows;
pub(super) mod statements;
pub(super) mod tables;

pub use statements::plan_by_key;

use super::series::datum;
use super::{citus, registry};
use crate::pg::catalog::Source;
use crate::pg::encoding::to_utf8;
use pgrx::spi::SpiError;
use reserve::reserve;
use rows::{days, key_row, keys, mark, numbers, place, said, series_of};
use snowflake_ids_core::number_registry::KeyRow;
use snowflake_ids_core::series::Key;
use snowflake_ids_core::series::dense::{Found, Origin, Reserve, Reserved, RowKey, Rows, WriteBack};
use snowflake_ids_core::wire::{Registry, SharedKey, SharedTerms};
use statements::counters_of;
use tables::by_type;

/// The tables in a worker's transaction, as the owner of the table of series; None where the extension was dropped.
pub struct Tables(pub Option<Source>);

impl Rows for Tables {
    type Error = SpiError;

    fn source(&mut self) -> Option<u32> {
        self.0.map(Source::number)
    }

    fn series(&mut self, ids: &[i64]) -> Result<Vec<Found>, SpiError> {
        definitions::series(ids)
    }

    fn lock(&mut self, rows: &[RowKey]) -> Result<Vec<bool>, SpiError> {
        by_type(rows, true, |counters, of, rows| {
            let mut free = vec![false; rows.len()];
            let locked = counters.lock_free.all(&[series_of(rows), keys(of, rows)], place)?;
            mark(&mut free, locked.into_iter().map(|place| (place, true)));
            let rest: Vec<usize> = (0..rows.len()).filter(|place| free.get(*place) == Some(&false)).collect();
            if rest.is_empty() {
                return Ok(free);
            }
            // Those that are there are locked.
            let others: Vec<&RowKey> = rest.iter().filter_map(|place| rows.get(*place).copied()).collect();
            let there = counters.look.all(&[series_of(&others), keys(of, &others)], place)?;
            mark(&mut free, rest.iter().map(|place| (*place, true)));
            mark(&mut free, there.into_iter().filter_map(|other| Some((*rest.get(other)?, false))));
            Ok(free)
        })
    }

    fn write_back(&mut self, rows: &[WriteBack]) -> Result<(), SpiError> {
        by_type(rows, (), |counters, of, rows| {
            let arguments = [
                series_of(rows),
                keys(of, rows),
                days(rows.iter().map(|row| row.day)),
                numbers(rows.iter().map(|row| row.given)),
                numbers(rows.iter().map(|row| row.limit)),
            ];
            counters.write_back.run(&arguments)?;
            Ok(vec![(); rows.len()])
        })
        .map(drop)
    }

    fn reserve(&mut self, reserves: &[Reserve]) -> Result<Vec<Reserved>, SpiError> {
        by_type(reserves, Reserved::Locked, reserve)
    }

    fn origin(&mut self) -> Result<Origin, SpiError> {
        let Some(table) = self.0 else { return Ok(Origin::Nowhere) };
        table.as_owner(|| {
            registry::keep_sites()?;
            let mut sites = registry::sites()?.into_iter();
            Ok(match (sites.next(), sites.next()) {
                (None, _) if citus::is_worker()? => Origin::Nowhere,
                (None, _) => Origin::Here,
                (Some(site), None) => Origin::There(site),
                (Some(_), Some(_)) => Origin::Nowhere,
            })
        })
    }

    fn shared(&mut self, ids: &[i64]) -> Result<Vec<Option<(String, SharedTerms)>>, SpiError> {
        definitions::terms(ids)
    }

    fn shared_key(&mut self, key: &Key) -> Option<SharedKey> {
        SharedKey::of(key, to_utf8)
    }

    fn received(&mut self, rows: &[RowKey]) -> Result<Vec<Option<KeyRow>>, SpiError> {
        by_type(rows, None, |counters, of, rows| {
            let mut found = vec![None; rows.len()];
            let there = counters
                .received
                .all(&[series_of(rows), keys(of, rows)], |row| Ok((place(row)?, Some(key_row(row)?))))?;
            mark(&mut found, there.into_iter());
            Ok(found)
        })
    }

    fn receive(&mut self, of: &Registry, rows: &[(RowKey, KeyRow)]) -> Result<(), SpiError> {
        if let Some(table) = self.0 {
            table.as_owner(|| registry::note_seen(of))?;
        }
        by_type(rows, (), |counters, of, rows| {
            counters.put.run(&said(of, rows))?;
            Ok(vec![(); rows.len()])
        })
        .map(drop)
    }
}

/// Locks the row of a key until the transaction ends: up to which number all are reserved, and the day; None where it has none.
pub fn lock(series: i64, key: &Key) -> Result<Option<(i64, i32)>, SpiError> {
    counters_of(key.key_type()).lock.first(&[series.into(), datum(key)], |row| {
        Ok((row.get::<i64>(1)?.unwrap_or_default(), row.get::<i32>(2)?.unwrap_or_default()))
    })
}

/// Sets the row of a key, which is locked, to the last number that was given out.
pub fn lower(series: i64, key: &Key, value: i64) -> Result<(), SpiError> {
    counters_of(key.key_type()).lower.run(&[series.into(), datum(key), value.into()])
}
