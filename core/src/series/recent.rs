//! The numbers that a session got last, of so many keys as it has room for.

use super::key::Key;
use rustc_hash::FxHashMap;

/// A key of a series, by the series' id.
type Place = (i64, Key);

/// The number that a session got last of each of the keys that it used last: of [`Recent::KEYS`] at least, and of twice as many at
/// most.
#[derive(Debug, Default)]
pub struct Recent {
    present: FxHashMap<Place, i64>,
    /// Those before, which are forgotten when the others are as many.
    former: FxHashMap<Place, i64>,
}

impl Recent {
    /// Of how many keys at least a number is remembered.
    pub const KEYS: usize = 1_000;

    /// Notes a number.
    pub fn note(&mut self, series: i64, key: Key, number: i64) {
        let place = (series, key);
        if self.present.len() >= Self::KEYS && !self.present.contains_key(&place) {
            self.former = std::mem::take(&mut self.present);
        }
        self.present.insert(place, number);
    }

    /// The last number of a key.
    pub fn last(&self, series: i64, key: Key) -> Option<i64> {
        let place = (series, key);
        self.present.get(&place).or_else(|| self.former.get(&place)).copied()
    }
}
