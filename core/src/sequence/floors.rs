//! Ids that transactions gave out by themselves and did not commit, in memory that the caller provides. A tag keeps its note
//! whether it has a place or not.
//!
//! One transaction at a time raises a tag's note, the one that has the row locked; the transaction that locks the row next reads it.

use crate::sequence::directory::{Directory, Key};
use crate::sequence::reservation::{Floor, Reached};

/// The highest such id of each tag that has one.
#[derive(Debug)]
pub struct Floors<'m> {
    tags: Directory<'m>,
    floors: &'m mut [Floor],
}

impl<'m> Floors<'m> {
    /// None yet. `tags` is empty, and there is a floor for each of its entries.
    pub fn new(tags: Directory<'m>, floors: &'m mut [Floor]) -> Self {
        Self { tags, floors }
    }

    /// Returns what is noted of a tag.
    pub fn get(&self, key: &Key) -> Option<Floor> {
        self.floors.get(self.tags.find(key)?).copied()
    }

    /// Notes an id; false: there is no memory left for one more tag.
    pub fn raise(&mut self, key: &Key, floor: Floor) -> bool {
        let found = self.tags.find(key);
        let noted = found.and_then(|at| self.floors.get(at)).copied();
        let cell = found.or_else(|| self.tags.insert(*key)).and_then(|at| self.floors.get_mut(at));
        cell.map(|cell| *cell = floor.beside(noted)).is_some()
    }

    /// The row knows of ids up to this one by now, or they are given out: a floor up to there is of no more use. A higher one is of
    /// a transaction that came after. None: no floor is of use any more.
    pub fn clear(&mut self, key: &Key, known: Option<Reached>) {
        let Some(at) = self.tags.find(key) else { return };
        let floor = self.floors.get(at).map(Floor::reached);
        if known.is_none_or(|known| floor.is_none_or(|floor| floor <= known)) {
            self.tags.remove(at);
        }
    }

    /// Clears those of some tags.
    pub fn clear_all(&mut self, of: impl Fn(&Key) -> bool) {
        for at in 0..self.floors.len() {
            if self.tags.get(at).is_some_and(&of) {
                self.tags.remove(at);
            }
        }
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = (&Key, Floor)> {
        self.tags.iter().filter_map(|(at, key)| Some((key, *self.floors.get(at)?)))
    }
}
