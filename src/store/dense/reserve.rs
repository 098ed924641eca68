//! Reserving numbers of keys of one type.

use super::rows::{days, key_of, keys, mark, numbers, place, series_of};
use super::statements::Counters;
use pgrx::spi::SpiError;
use rustc_hash::{FxHashMap, FxHashSet};
use snowflake_ids_core::series::dense::{Reserve, Reserved, RowKey};
use snowflake_ids_core::series::{Key, KeyType};

/// Reserves numbers of keys of one type, in the present transaction.
pub fn reserve(counters: &Counters, of: KeyType, all: &[&Reserve]) -> Result<Vec<Reserved>, SpiError> {
    let mut done: Vec<Option<Reserved>> = vec![None; all.len()];
    let arguments = [
        series_of(all),
        keys(of, all),
        days(all.iter().map(|one| one.day)),
        numbers(all.iter().map(|one| (i64::from(one.waiting) + i64::from(one.extra)).max(1))),
        numbers(all.iter().map(|one| one.start)),
        numbers(all.iter().map(|one| one.max_value)),
    ];
    let extended = counters.extend.all(&arguments, |row| {
        let number = |place: usize| row.get::<i64>(place).map(Option::unwrap_or_default);
        let day = row.get::<i32>(4)?.unwrap_or_default();
        Ok((place(row)?, Some(Reserved::Numbers { first: number(2)? + 1, last: number(3)?, day })))
    })?;
    mark(&mut done, extended.into_iter());
    begin(counters, of, all, &mut done)?;
    look(counters, of, all, &mut done)?;
    Ok(done.into_iter().map(|done| done.unwrap_or(Reserved::Locked)).collect())
}

/// Those of which nothing came yet, and what they are among all.
fn open<'a>(all: &[&'a Reserve], done: &[Option<Reserved>]) -> (Vec<usize>, Vec<&'a Reserve>) {
    let each = all.iter().zip(done).enumerate().filter(|(_, (_, done))| done.is_none());
    each.map(|(place, (one, _))| (place, *one)).unzip()
}

/// Makes rows of those that have none. They get as many numbers as calls wait: of a key that is used once nothing is left over.
fn begin(
    counters: &Counters,
    of: KeyType,
    all: &[&Reserve],
    done: &mut [Option<Reserved>],
) -> Result<(), SpiError> {
    let last = |one: &Reserve| one.max_value.min((one.start - 1).saturating_add(one.waiting.into()));
    let (places, open) = open(all, done);
    let (places, new): (Vec<usize>, Vec<&Reserve>) =
        places.into_iter().zip(open).filter(|(_, one)| one.waiting > 0).unzip();
    if new.is_empty() {
        return Ok(());
    }
    let arguments = [
        series_of(&new),
        keys(of, &new),
        days(new.iter().map(|one| one.day)),
        numbers(new.iter().map(|one| last(one))),
    ];
    let made = counters.begin.all(&arguments, |row| {
        Ok(RowKey { series: row.get::<i64>(1)?.unwrap_or_default(), key: key_of(of, row)? })
    })?;
    let made: FxHashSet<(i64, Key)> = made.into_iter().map(|row| (row.series, row.key)).collect();
    let is_made = |one: &&Reserve| made.contains(&(one.row.series, one.row.key.clone()));
    let made = places.into_iter().zip(new).filter(|(_, one)| is_made(one));
    let numbers = |one: &Reserve| Reserved::Numbers { first: one.start, last: last(one), day: one.day };
    mark(done, made.map(|(place, one)| (place, Some(numbers(one)))));
    Ok(())
}

/// Tells those that have no row, or no numbers left, from those that are locked.
fn look(
    counters: &Counters,
    of: KeyType,
    all: &[&Reserve],
    done: &mut [Option<Reserved>],
) -> Result<(), SpiError> {
    let (places, open) = open(all, done);
    if open.is_empty() {
        return Ok(());
    }
    let says = counters.look.all(&[series_of(&open), keys(of, &open)], |row| {
        Ok((place(row)?, (row.get::<i64>(2)?.unwrap_or_default(), row.get::<i32>(3)?.unwrap_or_default())))
    })?;
    let says: FxHashMap<usize, (i64, i32)> = says.into_iter().collect();
    let each = places.into_iter().zip(open).enumerate().map(|(at, (place, one))| {
        let came = match says.get(&at) {
            None if one.waiting == 0 => Reserved::Nothing,
            Some((last, day)) if *last >= one.max_value && *day >= one.day => Reserved::Exhausted,
            _ => Reserved::Locked,
        };
        (place, Some(came))
    });
    mark(done, each);
    Ok(())
}
