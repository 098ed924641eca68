//! The places of tags: a hash table in memory that the caller provides, for shared memory sized at start.
//!
//! Nothing is allocated and nothing locked here; the caller holds the lock, and sessions remember the place
//! they found, so this is not on the path of an id. A key keeps its place until it is removed.
//!
//! Places are found through an [`Index`].

mod shares;
mod tag;

pub use shares::{DatabaseShare, Shares};
pub use tag::Tag;

use crate::sequence::index::{Index, NOWHERE};
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
    fn hash(&self) -> u64 {
        // Its low bits say where: the hasher has brought its best ones there.
        FxBuildHasher.hash_one(self)
    }
}

/// One place of a directory.
#[derive(Clone, Copy, Debug)]
pub struct DirectoryEntry(PlaceState);

#[derive(Clone, Copy, Debug)]
#[allow(clippy::large_enum_variant, reason = "the memory is there whether the place is used or not")]
enum PlaceState {
    /// A free place, and the next such place.
    Free { next: u32 },
    /// A key's, with its hash.
    Used { hash: u64, key: Key },
}

impl DirectoryEntry {
    /// A free place.
    pub const EMPTY: Self = Self(PlaceState::Free { next: NOWHERE });
}

/// The directory. All processes that share it share this value, too, not only the memory it works in.
#[derive(Debug)]
pub struct Directory<'m> {
    entries: &'m mut [DirectoryEntry],
    index: Index<'m>,
    /// The first free place.
    free: u32,
    len: usize,
    shares: Shares<'m>,
}

impl<'m> Directory<'m> {
    /// An empty directory in this memory, whatever it held before. Of an index that is not as long as
    /// [`index_len`](crate::sequence::index::index_len) says, the largest power of two is used, and as many entries as that serves.
    pub fn new(entries: &'m mut [DirectoryEntry], index: &'m mut [u32]) -> Self {
        let index = Index::new(index);
        let count = entries.len().min(index.serves());
        let entries = entries.get_mut(..count).unwrap_or_default();
        let mut free = NOWHERE;
        for (place, entry) in (0..NOWHERE).zip(entries.iter_mut()).rev() {
            *entry = DirectoryEntry(PlaceState::Free { next: free });
            free = place;
        }
        Self { entries, index, free, len: 0, shares: Shares::default() }
    }

    /// The same, which counts the places of each database in this memory, as long as there are entries. Only while it is empty.
    #[must_use]
    pub fn with_shares(self, shares: &'m mut [DatabaseShare]) -> Self {
        Self { shares: Shares::new(shares), ..self }
    }

    /// Returns the number of places each database has, where that is counted.
    pub fn shares(&self) -> &Shares<'m> {
        &self.shares
    }

    /// Returns the number of keys there are.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns whether it holds no tag.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns whether every place is taken.
    pub fn is_full(&self) -> bool {
        self.free == NOWHERE
    }

    /// The key that has a place.
    pub fn get(&self, place: usize) -> Option<&Key> {
        match self.entries.get(place) {
            Some(DirectoryEntry(PlaceState::Used { key, .. })) => Some(key),
            _ => None,
        }
    }

    /// All keys and their places, by place.
    pub fn iter(&self) -> impl Iterator<Item = (usize, &Key)> {
        (0..self.entries.len()).filter_map(|place| Some((place, self.get(place)?))).take(self.len)
    }

    /// The place that a key has.
    pub fn find(&self, key: &Key) -> Option<usize> {
        let wanted = key.hash();
        let found = |place: u32| match self.entry(place) {
            Some(PlaceState::Used { hash, key: found }) => *hash == wanted && found == key,
            _ => false,
        };
        self.index.find(wanted, found).map(|place| place as usize)
    }

    /// Gives a place to a key that has none yet; None when the directory is full.
    pub fn insert(&mut self, key: Key) -> Option<usize> {
        debug_assert!(self.find(&key).is_none(), "the key has a place already");
        let (hash, place) = (key.hash(), self.free);
        let Some(&PlaceState::Free { next }) = self.entry(place) else { return None };
        if !self.index.insert(hash, place) {
            return None;
        }
        *self.entries.get_mut(place as usize)? = DirectoryEntry(PlaceState::Used { hash, key });
        self.free = next;
        self.len += 1;
        self.shares.add(key.database);
        Some(place as usize)
    }

    /// Frees a place; the key that had it.
    pub fn remove(&mut self, place: usize) -> Option<Key> {
        let entry = self.entries.get_mut(place)?;
        let DirectoryEntry(PlaceState::Used { hash, key }) = *entry else { return None };
        let place = u32::try_from(place).ok()?;
        *entry = DirectoryEntry(PlaceState::Free { next: self.free });
        self.free = place;
        self.len -= 1;
        self.shares.remove(key.database);
        let Self { entries, index, .. } = self;
        index.remove(hash, place, |other| match entries.get(other as usize) {
            Some(DirectoryEntry(PlaceState::Used { hash, .. })) => Some(*hash),
            _ => None,
        });
        Some(key)
    }

    fn entry(&self, place: u32) -> Option<&PlaceState> {
        self.entries.get(place as usize).map(|entry| &entry.0)
    }
}
