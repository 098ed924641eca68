//! What a registry does about dense series when it is asked.

use crate::guard::{Guard, holds};
use crate::series::dense::host::RowKey;
use crate::series::key::Key;
use crate::tag_rows::LockWait;
use crate::wire::{
    KeyReached, Numbers, NumbersOutcome, NumbersRequest, NumbersReturn, NumbersWant, SharedKey, SharedTerms,
};
use std::collections::BTreeMap;

pub use crate::series::dense::host::KeyRow;

/// Of how many days a period may begin later than the registry's: somewhere it is tomorrow.
const DAYS_AHEAD: i32 = 1;
/// How many of the largest reservations a row may be behind what a node received: what a failover may lose.
const LARGEST_BEHIND: i64 = 2;

/// The bits of a version that say how many numbers were reserved, with those that the node had right before them; the others are random.
const COUNT_BITS: u32 = 16;
const MOST_COUNTED: i64 = (1 << COUNT_BITS) - 1;

/// The version of a reservation of so many numbers, made of a random number.
fn version_of(random: i64, count: i64) -> i64 {
    random & !MOST_COUNTED | count.clamp(0, MOST_COUNTED)
}

/// How many numbers of a reservation can come back: those below are others'.
const fn returnable(version: i64) -> i64 {
    version & MOST_COUNTED
}

/// A series as the registry's database has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SharedSeries {
    /// There is no dense series of this name.
    Unknown,
    /// Another transaction has its row locked: it may be dropped.
    Locked,
    /// It is there.
    There {
        /// Its id.
        id: i64,
        /// What must be the same at nodes.
        terms: SharedTerms,
        /// The highest number of a key.
        max_value: i64,
        /// The most numbers that are reserved at once.
        max_step: u32,
    },
}

/// The row of a key, looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FoundRow {
    /// It is there, and locked until the transaction ends.
    There(KeyRow),
    /// Another transaction has it locked.
    Locked,
    /// There is none.
    None,
}

/// The tables of a registry, within a transaction.
pub trait NumberRegistry {
    /// Why a statement failed.
    type Error;

    /// A series, which stays there until the transaction ends.
    fn shared_series(&mut self, name: &str) -> Result<SharedSeries, Self::Error>;
    /// A key as this database has it; None where that is none that it could have.
    fn key(&mut self, key: &SharedKey) -> Option<Key>;
    /// Reads and locks the rows of keys, in this order.
    fn read(&mut self, rows: &[RowKey], wait: LockWait) -> Result<Vec<FoundRow>, Self::Error>;
    /// Writes rows that are locked, and makes those that are new; for each whether that is done: not where another transaction has made
    /// it meanwhile.
    fn write(&mut self, rows: &[(RowKey, KeyRow, bool)]) -> Result<Vec<bool>, Self::Error>;
    /// A random number: none that a row had before.
    fn random(&mut self) -> i64;
}

/// Takes back what a node returns of keys, and reserves numbers of others. `today`: by the registry's clock, in days since 1970-01-01.
pub fn reserve_numbers<R: NumberRegistry>(
    rows: &mut R,
    asked: &NumbersRequest,
    today: i32,
) -> Result<Numbers, R::Error> {
    let (id, max_value, max_step) = match rows.shared_series(&asked.series)? {
        SharedSeries::Unknown => return Ok(Numbers::Unknown),
        SharedSeries::Locked => return Ok(Numbers::Locked),
        SharedSeries::There { terms, .. } if terms != asked.terms => return Ok(Numbers::Differs),
        SharedSeries::There { id, max_value, max_step, .. } => (id, max_value, max_step),
    };
    let mut row_of = |key: &SharedKey| {
        let is_of_type = key.key_type().name() == asked.terms.key_type;
        let key = is_of_type.then(|| rows.key(key)).flatten()?;
        Some(RowKey { series: id, key })
    };
    let returns: Vec<_> = asked.returns.iter().map(|back| (row_of(&back.key), back)).collect();
    let wants: Vec<_> = asked.wants.iter().map(|want| (row_of(&want.key), want)).collect();
    let mut book =
        Book::read(rows, returns.iter().map(|(row, _)| row).chain(wants.iter().map(|(row, _)| row)))?;
    let returned = returns.iter().map(|(row, back)| row.as_ref().is_none_or(|row| book.take_back(row, back)));
    let returned = returned.collect();
    let terms =
        Terms { start: asked.terms.start, max_value, max_step, latest: today.saturating_add(DAYS_AHEAD) };
    let mut outcomes = Vec::with_capacity(wants.len());
    for (row, want) in &wants {
        outcomes.push(match row {
            Some(row) => book.reserve(row, want, &terms, rows.random()),
            None => NumbersOutcome::NoKey,
        });
    }
    let raced = book.write(rows)?;
    for ((row, _), outcome) in wants.iter().zip(&mut outcomes) {
        if row.as_ref().is_some_and(|row| raced.contains(row)) {
            *outcome = NumbersOutcome::Locked;
        }
    }
    Ok(Numbers::Done { returned, outcomes })
}

/// What of a series bounds what is reserved.
struct Terms {
    start: i64,
    max_value: i64,
    max_step: u32,
    /// The latest day on which a period may begin.
    latest: i32,
}

/// The rows of one request: as they were found, and as they are to be.
struct Book(BTreeMap<RowKey, (FoundRow, FoundRow)>);

impl Book {
    /// In the order of the keys, so that two nodes that want the same ones never wait for each other. One that is alone is waited for,
    /// as many nodes may want the same key at once; of several, none has to wait for another's.
    fn read<'r, R: NumberRegistry>(
        rows: &mut R,
        wanted: impl Iterator<Item = &'r Option<RowKey>>,
    ) -> Result<Self, R::Error> {
        let mut keys: Vec<RowKey> = wanted.flatten().cloned().collect();
        keys.sort_unstable();
        keys.dedup();
        if keys.is_empty() {
            return Ok(Self(BTreeMap::new()));
        }
        let wait = if keys.len() > 1 { LockWait::Skip } else { LockWait::Wait };
        let found = rows.read(&keys, wait)?;
        Ok(Self(keys.into_iter().zip(found).map(|(key, found)| (key, (found, found))).collect()))
    }

    /// Sets a row back to what is in use; false: another transaction has it locked.
    fn take_back(&mut self, row: &RowKey, back: &NumbersReturn) -> bool {
        let Some((_, now)) = self.0.get_mut(row) else { return true };
        match now {
            FoundRow::There(found) => {
                let is_last = found.version == Some(back.version) || !holds(Guard::NumbersVersion);
                if found.reached == back.reserved && is_last {
                    let before = found.reached.last.saturating_sub(returnable(back.version));
                    let reached = KeyReached { last: back.given.max(before), ..found.reached };
                    *now = FoundRow::There(KeyRow { reached, version: None });
                }
                true
            }
            FoundRow::None => true,
            FoundRow::Locked => false,
        }
    }

    fn reserve(&mut self, row: &RowKey, want: &NumbersWant, terms: &Terms, random: i64) -> NumbersOutcome {
        let Some((_, now)) = self.0.get_mut(row) else { return NumbersOutcome::NoKey };
        let found = match now {
            FoundRow::Locked => return NumbersOutcome::Locked,
            FoundRow::There(row) => Some(*row),
            FoundRow::None => None,
        };
        let outcome = grant(found, want, terms, random);
        if let NumbersOutcome::Given { last, day, version, .. } = outcome {
            *now = FoundRow::There(KeyRow { reached: KeyReached { last, day }, version: Some(version) });
        }
        outcome
    }

    /// Writes what has changed; gives the rows that others have made meanwhile.
    fn write<R: NumberRegistry>(self, rows: &mut R) -> Result<Vec<RowKey>, R::Error> {
        let changed = self.0.into_iter().filter_map(|(key, (was, now))| match now {
            FoundRow::There(row) if was != now => Some((key, row, was == FoundRow::None)),
            _ => None,
        });
        let changed: Vec<(RowKey, KeyRow, bool)> = changed.collect();
        if changed.is_empty() {
            return Ok(Vec::new());
        }
        let done = rows.write(&changed)?;
        Ok(changed.into_iter().zip(done).filter(|(_, done)| !done).map(|((key, ..), _)| key).collect())
    }
}

/// What a key gets whose row says this.
fn grant(row: Option<KeyRow>, want: &NumbersWant, terms: &Terms, random: i64) -> NumbersOutcome {
    if want.day > terms.latest {
        return NumbersOutcome::Ahead;
    }
    let (before, found) = (terms.start - 1, row.map(|row| row.reached));
    let day = found.map_or(want.day, |row| row.day.max(want.day));
    let last = found.filter(|row| row.day == day).map_or(before, |row| row.last);
    let received =
        want.received.filter(|received| received.day == day).map_or(before, |received| received.last);
    if received > last.saturating_add(LARGEST_BEHIND.saturating_mul(terms.max_step.into())) {
        return NumbersOutcome::Behind;
    }
    // It was set back: what the node has received is in use.
    let base = if holds(Guard::NumbersRaised) { last.max(received) } else { last };
    // No other node has reserved any since: what is reserved ahead follows on what this one had.
    let is_alone =
        found.is_some() && want.received.is_some_and(|received| received.day == day) && received == last;
    let ahead = if is_alone || !holds(Guard::NumbersAlone) { want.ahead.min(terms.max_step) } else { 0 };
    let (count, most) = (i64::from(want.waiting.max(ahead)), terms.max_value.min(want.max_value));
    if count == 0 {
        NumbersOutcome::Nothing
    } else if base >= most {
        NumbersOutcome::Exhausted
    } else {
        let last = base.saturating_add(count).min(most);
        // What the node had before, and can prove, comes back with it.
        let own = row.filter(|row| is_alone && row.version == want.version);
        let had = own.and_then(|row| row.version).map_or(0, returnable);
        NumbersOutcome::Given { first: base + 1, last, day, version: version_of(random, had + last - base) }
    }
}
