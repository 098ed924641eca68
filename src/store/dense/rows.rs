//! Keys and what their rows say: as arguments of statements, and out of their results.

use crate::pg::text::{RowBytes, TextOut};
use pgrx::Uuid;
use pgrx::datum::DatumWithOid;
use pgrx::spi::{SpiError, SpiHeapTupleData};
use snowflake_ids_core::number_registry::KeyRow;
use snowflake_ids_core::series::dense::{Reserve, RowKey, WriteBack};
use snowflake_ids_core::series::{Key, KeyType};
use snowflake_ids_core::wire::KeyReached;

/// Something that is about a row.
pub trait OfRow {
    /// That row.
    fn row(&self) -> &RowKey;
}

impl OfRow for RowKey {
    fn row(&self) -> &RowKey {
        self
    }
}

impl OfRow for WriteBack {
    fn row(&self) -> &RowKey {
        &self.row
    }
}

impl OfRow for Reserve {
    fn row(&self) -> &RowKey {
        &self.row
    }
}

impl OfRow for (RowKey, KeyRow) {
    fn row(&self) -> &RowKey {
        &self.0
    }
}

/// What rows are to say, as arguments.
pub fn said<'a>(of: KeyType, rows: &[&(RowKey, KeyRow)]) -> [DatumWithOid<'a>; 5] {
    [
        series_of(rows),
        keys(of, rows),
        days(rows.iter().map(|(_, row)| row.reached.day)),
        numbers(rows.iter().map(|(_, row)| row.reached.last)),
        rows.iter().map(|(_, row)| row.version).collect::<Vec<Option<i64>>>().into(),
    ]
}

/// What a row says, in its second to fourth columns.
pub fn key_row(row: &SpiHeapTupleData<'_>) -> Result<KeyRow, SpiError> {
    let (last, day) = (row.get::<i64>(2)?.unwrap_or_default(), row.get::<i32>(3)?.unwrap_or_default());
    Ok(KeyRow { reached: KeyReached { last, day }, version: row.get::<i64>(4)? })
}

/// The place of a row's argument among all.
pub fn place(row: &SpiHeapTupleData<'_>) -> Result<usize, SpiError> {
    let place = row.get::<i64>(1)?.unwrap_or_default();
    Ok(usize::try_from(place).unwrap_or_default().wrapping_sub(1))
}

/// The series of keys.
pub fn series_of<'a, T: OfRow>(all: &[&T]) -> DatumWithOid<'a> {
    numbers(all.iter().map(|one| one.row().series))
}

/// Numbers, as an argument.
pub fn numbers<'a>(all: impl Iterator<Item = i64>) -> DatumWithOid<'a> {
    all.collect::<Vec<_>>().into()
}

/// Days, as an argument.
pub fn days<'a>(all: impl Iterator<Item = i32>) -> DatumWithOid<'a> {
    all.collect::<Vec<_>>().into()
}

/// Keys, which are all of this type.
pub fn keys<'a, T: OfRow>(of: KeyType, all: &[&T]) -> DatumWithOid<'a> {
    let all = all.iter().map(|one| &one.row().key);
    match of {
        KeyType::Bigint => {
            let all = all.map(|key| if let Key::Bigint(number) = key { *number } else { 0 });
            all.collect::<Vec<_>>().into()
        }
        KeyType::Text => {
            let all = all.map(|key| if let Key::Text(bytes) = key { &**bytes } else { &[] });
            all.map(TextOut::of_bytes).collect::<Vec<_>>().into()
        }
        KeyType::Uuid => {
            let all = all.map(|key| if let Key::Uuid(uuid) = key { *uuid } else { 0 });
            all.map(|uuid| Uuid::from_bytes(uuid.to_be_bytes())).collect::<Vec<_>>().into()
        }
    }
}

/// The key in the second column of a row.
pub fn key_of(of: KeyType, row: &SpiHeapTupleData<'_>) -> Result<Key, SpiError> {
    Ok(match of {
        KeyType::Bigint => Key::Bigint(row.get::<i64>(2)?.unwrap_or_default()),
        KeyType::Text => {
            Key::Text(row.get::<RowBytes>(2)?.map(|bytes| bytes.0.into_vec()).unwrap_or_default().into())
        }
        KeyType::Uuid => Key::Uuid(row.get::<Uuid>(2)?.map_or(0, |uuid| u128::from_be_bytes(*uuid))),
    })
}

/// Puts what came of some into the list of all.
pub fn mark<R>(all: &mut [R], some: impl Iterator<Item = (usize, R)>) {
    for (place, value) in some {
        if let Some(one) = all.get_mut(place) {
            *one = value;
        }
    }
}
