//! Ids that transactions gave out by themselves and did not commit, in memory that the caller provides. A tag keeps its note
//! whether it has a slot or not.
//!
//! One transaction at a time raises a tag's note, the one that has the row locked; the transaction that locks the row next reads it.

use crate::sequence::directory::{Directory, TagKey};
use crate::sequence::reservation::{HighWaterMark, Reached};

/// The highest such id of each tag that has one.
#[derive(Debug)]
pub struct HighWaterMarks<'m>(pub Directory<'m, HighWaterMark>);

impl HighWaterMarks<'_> {
    /// Returns what is noted of a tag.
    pub fn get(&self, key: &TagKey) -> Option<HighWaterMark> {
        self.0.value(self.0.find(key)?).copied()
    }

    /// Notes an id; false: there is no memory left for one more tag.
    pub fn raise(&mut self, key: &TagKey, high_water_mark: HighWaterMark) -> bool {
        let Some(at) = self.0.find(key) else { return self.0.insert(*key, high_water_mark).is_some() };
        self.0.value_mut(at).map(|recorded| *recorded = high_water_mark.beside(Some(*recorded))).is_some()
    }

    /// The row knows of ids up to this one by now, or they are given out: a floor up to there is of no more use. A higher one is of
    /// a transaction that came after. None: no floor is of use any more.
    pub fn clear(&mut self, key: &TagKey, known: Option<Reached>) {
        if let Some(at) = self.0.find(key)
            && known.is_none_or(|known| {
                self.0.value(at).is_none_or(|high_water_mark| high_water_mark.reached() <= known)
            })
        {
            self.0.remove(at);
        }
    }

    /// Clears those of some tags.
    pub fn clear_all(&mut self, of: impl Fn(&TagKey) -> bool) {
        self.0.remove_all(of, |_| ());
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = (&TagKey, HighWaterMark)> {
        self.0.iter().filter_map(|(at, key)| Some((key, *self.0.value(at)?)))
    }
}
