//! The highest ids of transactions that handed out ids themselves and did not commit, in memory that the caller provides.
//! A tag without a slot keeps its high-water mark.
//!
//! Only the transaction that has locked a tag's row raises the mark. The next transaction that locks the row reads the
//! mark.

use crate::sequence::directory::{Directory, TagKey};
use crate::sequence::reservation::{HighWaterMark, Reached};

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

    /// Drops a tag's high-water mark if it is not above `known`. The row records ids up to `known`, or they are handed
    /// out. A higher mark belongs to a later transaction. If `known` is None, drops any mark.
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
