//! Which place a tag has: a hash table in memory that the caller provides, for shared memory sized at start.
//!
//! Nothing is allocated and nothing locked here; the caller holds the lock, and sessions remember the place
//! they found, so this is not on the path of an id. A key keeps its place until it is removed.
//!
//! The table is an index of places with open addressing and linear probing, at most half full. Removing closes
//! the gap by moving later places up (Knuth, volume 3, 6.4, algorithm R), so that probes stay as short as they
//! were however many tags come and go.

mod tag;

pub use tag::Tag;

use rustc_hash::FxBuildHasher;
use std::hash::BuildHasher;

/// What a tag's segments are known by on a server with many databases.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Key {
    /// The oid of the tag's database.
    pub database: u32,
    /// The oid of the table that holds the tag's row: another one after the extension was created anew.
    pub source: u32,
    /// The tag.
    pub tag: Tag,
}

impl Key {
    fn hash(&self) -> u32 {
        // The low half: the hasher has brought its best bits there.
        let [a, b, c, d, ..] = FxBuildHasher.hash_one(self).to_le_bytes();
        u32::from_le_bytes([a, b, c, d])
    }
}

/// One place of a directory.
#[derive(Clone, Copy, Debug)]
pub struct Entry(State);

#[derive(Clone, Copy, Debug)]
#[allow(clippy::large_enum_variant, reason = "the memory is there whether the place is used or not")]
enum State {
    /// A free place, and the next such place.
    Free { next: u32 },
    /// A key's, with its hash.
    Used { hash: u32, key: Key },
}

impl Entry {
    /// A free place.
    pub const EMPTY: Self = Self(State::Free { next: NOWHERE });
}

/// In the index: no place. As the next free place: there is none.
const NOWHERE: u32 = u32::MAX;

/// The length of the index for this many entries: the power of two that leaves at least half of it empty.
pub const fn index_len(entries: usize) -> usize {
    entries.saturating_mul(2).next_power_of_two()
}

/// The directory. All processes that share it share this value, too, not only the memory it works in.
#[derive(Debug)]
pub struct Directory<'m> {
    entries: &'m mut [Entry],
    index: &'m mut [u32],
    /// The first free place.
    free: u32,
    len: usize,
}

impl<'m> Directory<'m> {
    /// An empty directory in this memory, whatever it held before. Of an index that is not as long as
    /// [`index_len`] says, the largest power of two is used, and as many entries as that serves.
    pub fn new(entries: &'m mut [Entry], index: &'m mut [u32]) -> Self {
        let size = index.len().checked_ilog2().map_or(0, |log2| 1 << log2);
        let index = index.get_mut(..size).unwrap_or_default();
        let count = entries.len().min(size / 2);
        let entries = entries.get_mut(..count).unwrap_or_default();
        index.fill(NOWHERE);
        let mut free = NOWHERE;
        for (place, entry) in (0..NOWHERE).zip(entries.iter_mut()).rev() {
            *entry = Entry(State::Free { next: free });
            free = place;
        }
        Self { entries, index, free, len: 0 }
    }

    /// How many keys there are.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether it holds no tag.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Whether every place is taken.
    pub fn is_full(&self) -> bool {
        self.free == NOWHERE
    }

    /// The key that has a place.
    pub fn get(&self, place: usize) -> Option<&Key> {
        match self.entries.get(place) {
            Some(Entry(State::Used { key, .. })) => Some(key),
            _ => None,
        }
    }

    /// All keys and their places, by place.
    pub fn iter(&self) -> impl Iterator<Item = (usize, &Key)> {
        (0..self.entries.len()).filter_map(|place| Some((place, self.get(place)?)))
    }

    /// The place that a key has.
    pub fn find(&self, key: &Key) -> Option<usize> {
        let wanted = key.hash();
        let found = |place: u32| match self.entry(place) {
            Some(State::Used { hash, key: found }) => *hash == wanted && found == key,
            _ => false,
        };
        let at = self.probe(wanted, found)?;
        self.index.get(at).map(|place| *place as usize)
    }

    /// Gives a place to a key that has none yet; None when the directory is full.
    pub fn insert(&mut self, key: Key) -> Option<usize> {
        debug_assert!(self.find(&key).is_none(), "the key has a place already");
        let (hash, place) = (key.hash(), self.free);
        let Some(&State::Free { next }) = self.entry(place) else { return None };
        let at = self.gap(hash)?;
        *self.index.get_mut(at)? = place;
        *self.entries.get_mut(place as usize)? = Entry(State::Used { hash, key });
        self.free = next;
        self.len += 1;
        Some(place as usize)
    }

    /// Frees a place; the key that had it.
    pub fn remove(&mut self, place: usize) -> Option<Key> {
        let entry = self.entries.get_mut(place)?;
        let Entry(State::Used { hash, key }) = *entry else { return None };
        let place = u32::try_from(place).ok()?;
        *entry = Entry(State::Free { next: self.free });
        self.free = place;
        self.len -= 1;
        if let Some(at) = self.probe(hash, |found| found == place) {
            self.close(at);
        }
        Some(key)
    }

    fn entry(&self, place: u32) -> Option<&State> {
        self.entries.get(place as usize).map(|entry| &entry.0)
    }

    /// Where in the index the first place is that will do, going from the hash to the next gap.
    fn probe(&self, hash: u32, mut will_do: impl FnMut(u32) -> bool) -> Option<usize> {
        let met = self.along(hash).find(|(_, place)| *place == NOWHERE || will_do(*place));
        met.filter(|(_, place)| *place != NOWHERE).map(|(at, _)| at)
    }

    /// Where in the index the first gap is, going from the hash.
    fn gap(&self, hash: u32) -> Option<usize> {
        self.along(hash).find(|(_, place)| *place == NOWHERE).map(|(at, _)| at)
    }

    /// The index once around, from a hash's home on.
    fn along(&self, hash: u32) -> impl Iterator<Item = (usize, u32)> {
        let (home, mask) = (self.home(hash), self.mask());
        (0..self.index.len()).map(move |step| (home + step) & mask).map(|at| (at, self.index[at]))
    }

    /// Where in the index a hash would have its place, were it free.
    fn home(&self, hash: u32) -> usize {
        hash as usize & self.mask()
    }

    fn mask(&self) -> usize {
        self.index.len().saturating_sub(1)
    }

    /// Takes the place at `gap` out of the index. Whatever a probe from its own home would not find behind the
    /// gap moves into it and leaves the next one, up to the end of the cluster.
    fn close(&mut self, mut gap: usize) {
        let mask = self.mask();
        for at in (gap + 1..=gap + mask).map(|at| at & mask) {
            let place = self.index[at];
            let Some(&State::Used { hash, .. }) = self.entry(place) else { break };
            let from_home = at.wrapping_sub(self.home(hash)) & mask;
            let from_gap = at.wrapping_sub(gap) & mask;
            if from_home >= from_gap {
                self.index[gap] = place;
                gap = at;
            }
        }
        self.index[gap] = NOWHERE;
    }
}
