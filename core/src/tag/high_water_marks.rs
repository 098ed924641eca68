//! High-water marks of tags, in memory that the caller provides. A transaction that changes a tag's row hands out ids
//! from the row itself. If the transaction is rolled back, only the tag's high-water mark records the highest of these
//! ids. A tag that loses its slot keeps its mark.
//!
//! Only the transaction that has locked a tag's row raises the mark. The next transaction that locks the row reads the
//! mark.

use crate::tag::directory::{Directory, TagKey};
use crate::tag::reservation::{HighWaterMark, Reached};

/// The high-water marks of tags.
#[derive(Debug)]
pub struct HighWaterMarks<'m>(pub Directory<'m, HighWaterMark>);

impl HighWaterMarks<'_> {
    /// Returns a tag's high-water mark.
    pub fn get(&self, key: &TagKey) -> Option<HighWaterMark> {
        self.0.value(self.0.find(key)?).copied()
    }

    /// Raises a tag's high-water mark. Returns false if there is no memory left for another tag.
    pub fn raise(&mut self, key: &TagKey, high_water_mark: HighWaterMark) -> bool {
        let Some(at) = self.0.find(key) else { return self.0.insert(*key, high_water_mark).is_some() };
        self.0.value_mut(at).map(|recorded| *recorded = high_water_mark.beside(Some(*recorded))).is_some()
    }

    /// Drops a tag's high-water mark if the mark is not above `known`. The row already covers ids up to `known`. A
    /// higher mark comes from a later transaction, and stays. A `known` of None drops any mark.
    pub fn clear(&mut self, key: &TagKey, known: Option<Reached>) {
        if let Some(at) = self.0.find(key)
            && known.is_none_or(|known| {
                self.0.value(at).is_none_or(|high_water_mark| high_water_mark.reached() <= known)
            })
        {
            self.0.remove(at);
        }
    }

    /// Drops the high-water marks of some tags.
    pub fn clear_all(&mut self, of: impl Fn(&TagKey) -> bool) {
        self.0.remove_all(of, |_| ());
    }

    /// Returns all high-water marks.
    pub fn iter(&self) -> impl Iterator<Item = (&TagKey, HighWaterMark)> {
        self.0.iter().filter_map(|(at, key)| Some((key, *self.0.value(at)?)))
    }
}
