//! The last numbers that a session got, for a bounded number of keys.

use super::key::Key;
use rustc_hash::FxHashMap;

type KeyOfSeries = (i64, Key);

/// The last numbers that a session got. Remembers at least the [`Recent::KEYS`] keys used last, and at most twice that
/// number of keys.
#[derive(Debug, Default)]
pub struct Recent {
    /// The key used last, and its number. The maps below get this entry only when another key is used, because many calls
    /// use the same key.
    last: Option<(KeyOfSeries, i64)>,
    present: FxHashMap<KeyOfSeries, i64>,
    /// Older entries. The entries of `present` replace these entries when `present` is full.
    former: FxHashMap<KeyOfSeries, i64>,
}

impl Recent {
    /// The least number of keys that are remembered.
    pub const KEYS: usize = 1_000;

    /// Records a number.
    #[inline]
    pub fn record(&mut self, series: i64, key: &Key, number: i64) {
        match &mut self.last {
            Some(((of, last), recorded)) if *of == series && last == key => *recorded = number,
            _ => self.record_another(series, key, number),
        }
    }

    fn record_another(&mut self, series: i64, key: &Key, number: i64) {
        let Some((place, recorded)) = self.last.replace(((series, key.clone()), number)) else { return };
        // The key in `last` counts as one of the keys that are remembered.
        if self.present.len() + 1 >= Self::KEYS && !self.present.contains_key(&place) {
            self.former = std::mem::take(&mut self.present);
        }
        self.present.insert(place, recorded);
    }

    /// Returns the last number of a key; None if the key is not remembered.
    pub fn last(&self, series: i64, key: Key) -> Option<i64> {
        let place = (series, key);
        match &self.last {
            Some((last, number)) if *last == place => Some(*number),
            _ => self.present.get(&place).or_else(|| self.former.get(&place)).copied(),
        }
    }
}
