//! The numbers that a session got last, of so many keys as it has room for.

use super::key::Key;
use rustc_hash::FxHashMap;

/// A key of a series, by the series' id.
type KeyOfSeries = (i64, Key);

/// The numbers that a session got last, of the [`Recent::KEYS`] keys at least that it used last, and of twice as many at most.
#[derive(Debug, Default)]
pub struct Recent {
    /// Of the key that it used last, which is not noted among the others yet: of many numbers of one key only the last one is.
    last: Option<(KeyOfSeries, i64)>,
    present: FxHashMap<KeyOfSeries, i64>,
    /// Those before, which are forgotten when the others are as many.
    former: FxHashMap<KeyOfSeries, i64>,
}

impl Recent {
    /// Of how many keys at least a number is remembered.
    pub const KEYS: usize = 1_000;

    /// Notes a number.
    #[inline]
    pub fn record(&mut self, series: i64, key: &Key, number: i64) {
        match &mut self.last {
            Some(((of, last), recorded)) if *of == series && last == key => *recorded = number,
            _ => self.record_another(series, key, number),
        }
    }

    fn record_another(&mut self, series: i64, key: &Key, number: i64) {
        let Some((place, recorded)) = self.last.replace(((series, key.clone()), number)) else { return };
        // The last key is one of them.
        if self.present.len() + 1 >= Self::KEYS && !self.present.contains_key(&place) {
            self.former = std::mem::take(&mut self.present);
        }
        self.present.insert(place, recorded);
    }

    /// The last number of a key.
    pub fn last(&self, series: i64, key: Key) -> Option<i64> {
        let place = (series, key);
        match &self.last {
            Some((last, number)) if *last == place => Some(*number),
            _ => self.present.get(&place).or_else(|| self.former.get(&place)).copied(),
        }
    }
}
