//! The directory of tags: a hash table from tags to slots, in shared memory that the caller provides.
//!
//! The directory neither allocates nor locks: the caller holds the lock. Sessions remember the slot that they found, so
//! a call for an id usually needs no search. A key keeps its slot until the key is removed.
//!
//! The entries whose keys have the same hash form a chain, linked by the indexes of their slots. The free entries form
//! another chain.

mod shares;
mod tag;

pub use shares::{DatabaseShare, Shares};
pub use tag::Tag;

use rustc_hash::FxBuildHasher;
use std::hash::BuildHasher;

/// The full name of a tag on a server with several databases.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TagKey {
    /// The OID of the tag's database.
    pub database: u32,
    /// The OID of the table with the tag's row. A new CREATE EXTENSION creates another table.
    pub source: u32,
    /// The tag's name.
    pub tag: Tag,
}

/// The link that ends a chain.
const NOWHERE: u32 = u32::MAX;

/// One entry of a directory, for one slot.
#[derive(Clone, Copy, Debug)]
pub struct DirectoryEntry<V = ()> {
    /// The first slot of the chain of all keys whose hash is the index of this entry.
    first: u32,
    /// The next slot of the chain to which this slot belongs.
    next: u32,
    /// The key that has the slot; None for a free slot.
    used: Option<(TagKey, V)>,
}

impl<V> DirectoryEntry<V> {
    /// A free slot.
    pub const EMPTY: Self = Self { first: NOWHERE, next: NOWHERE, used: None };
}

/// The directory, with a value for each key. Processes share this struct as well as its memory.
#[derive(Debug)]
pub struct Directory<'m, V = ()> {
    entries: &'m mut [DirectoryEntry<V>],
    /// The first slot of the chain of free slots.
    free: u32,
    len: usize,
    shares: Shares<'m>,
}

impl<'m, V> Directory<'m, V> {
    /// Returns an empty directory, which overwrites `entries`. `shares` is memory for the number of slots of each
    /// database; databases beyond this memory are not counted.
    pub fn new(entries: &'m mut [DirectoryEntry<V>], shares: &'m mut [DatabaseShare]) -> Self {
        let mut free = NOWHERE;
        for (slot_index, entry) in (0..NOWHERE).zip(entries.iter_mut()).rev() {
            *entry = DirectoryEntry { next: free, ..DirectoryEntry::EMPTY };
            free = slot_index;
        }
        Self { entries, free, len: 0, shares: Shares::new(shares) }
    }

    /// Returns the number of slots of each database.
    pub fn shares(&self) -> &Shares<'m> {
        &self.shares
    }

    /// Returns the number of keys.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns true if the directory has no key.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the key of a slot.
    pub fn get(&self, slot_index: usize) -> Option<&TagKey> {
        self.entries.get(slot_index)?.used.as_ref().map(|(key, _)| key)
    }

    /// Returns the value of a slot's key.
    pub fn value(&self, slot_index: usize) -> Option<&V> {
        self.entries.get(slot_index)?.used.as_ref().map(|(_, value)| value)
    }

    /// Returns the value of a slot's key for a change.
    pub fn value_mut(&mut self, slot_index: usize) -> Option<&mut V> {
        self.entries.get_mut(slot_index)?.used.as_mut().map(|(_, value)| value)
    }

    /// Returns all keys with their slots, in the order of slots.
    pub fn iter(&self) -> impl Iterator<Item = (usize, &TagKey)> {
        (0..self.entries.len())
            .filter_map(|slot_index| Some((slot_index, self.get(slot_index)?)))
            .take(self.len)
    }

    /// Returns the slot of a key.
    pub fn find(&self, key: &TagKey) -> Option<usize> {
        self.chain(key).find(|slot_index| self.get(*slot_index) == Some(key))
    }

    /// Gives a free slot to a key that has no slot; None if the directory is full.
    pub fn insert(&mut self, key: TagKey, value: V) -> Option<usize> {
        debug_assert!(self.find(&key).is_none(), "the key has a place already");
        let (home, slot_index) = (self.home(&key)?, self.free);
        let first = self.entries[home].first;
        let entry = self.entries.get_mut(slot_index as usize)?;
        self.free = std::mem::replace(&mut entry.next, first);
        entry.used = Some((key, value));
        self.entries[home].first = slot_index;
        self.len += 1;
        self.shares.add(key.database);
        Some(slot_index as usize)
    }

    /// Frees a slot, and returns its key.
    pub fn remove(&mut self, slot_index: usize) -> Option<TagKey> {
        let key = *self.get(slot_index)?;
        let (home, link) = (self.home(&key)?, u32::try_from(slot_index).ok()?);
        let before = self.chain(&key).find(|before| self.entries[*before].next == link);
        let next = std::mem::replace(&mut self.entries[slot_index].next, self.free);
        match before {
            Some(before) => self.entries[before].next = next,
            None => self.entries[home].first = next,
        }
        self.entries[slot_index].used = None;
        self.free = link;
        self.len -= 1;
        self.shares.remove(key.database);
        Some(key)
    }

    /// Frees the slots of all keys that `is_meant` selects, and calls `freed` for each slot.
    pub fn remove_all(&mut self, is_meant: impl Fn(&TagKey) -> bool, mut freed: impl FnMut(usize)) {
        for slot_index in 0..self.entries.len() {
            if self.get(slot_index).is_some_and(&is_meant) {
                self.remove(slot_index);
                freed(slot_index);
            }
        }
    }

    /// Returns the index of the entry that begins the chain of a key's hash; None if the directory has no entries.
    fn home(&self, key: &TagKey) -> Option<usize> {
        let count = u64::try_from(self.entries.len()).ok()?;
        usize::try_from(FxBuildHasher.hash_one(key).checked_rem(count)?).ok()
    }

    /// Returns the slots of all keys with the key's hash.
    fn chain(&self, key: &TagKey) -> impl Iterator<Item = usize> {
        let linked = |link: u32| Some(link as usize).filter(|_| link != NOWHERE);
        let first = self.home(key).and_then(|home| linked(self.entries[home].first));
        std::iter::successors(first, move |slot_index| linked(self.entries[*slot_index].next))
    }
}
