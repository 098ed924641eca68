//! The directory of tags: a hash table from tags to slots, in shared memory that the caller provides.
//!
//! The directory neither allocates nor locks: the caller holds the lock. Sessions remember the slot that they found, so
//! an id usually needs no search. A key keeps its slot until the key is removed.
//!
//! An index of hashes leads to the slots, and is at most half full. The index uses open addressing with linear probing. A
//! removal closes the gap by moving later entries up (Knuth, volume 3, 6.4, algorithm R), so probes stay short.

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

/// The index value that means no slot.
const NOWHERE: u32 = u32::MAX;

/// Returns the length of the index for `slot_count` slots: a power of two that leaves at least half of the index empty.
pub const fn index_len(slot_count: usize) -> usize {
    slot_count.saturating_mul(2).next_power_of_two()
}

/// One entry of a directory, for one slot.
#[derive(Clone, Copy, Debug)]
pub struct DirectoryEntry<V = ()>(EntryState<V>);

#[derive(Clone, Copy, Debug)]
#[allow(clippy::large_enum_variant, reason = "the memory is there whether the place is used or not")]
enum EntryState<V> {
    /// A free slot, with the index of the next free slot.
    Free { next: u32 },
    /// A slot of a key, with the key's hash.
    Used { hash: u64, key: TagKey, value: V },
}

impl<V> DirectoryEntry<V> {
    /// A free slot.
    pub const EMPTY: Self = Self(EntryState::Free { next: NOWHERE });
}

/// The directory, with a value for each key. Processes share this struct as well as its memory.
#[derive(Debug)]
pub struct Directory<'m, V = ()> {
    entries: &'m mut [DirectoryEntry<V>],
    /// The slots at their hashes, with [`NOWHERE`] for empty entries. The length is a power of two, or 0.
    index: &'m mut [u32],
    free: u32,
    len: usize,
    shares: Shares<'m>,
}

impl<'m, V> Directory<'m, V> {
    /// Returns an empty directory that overwrites this memory. The length of the index is rounded down to a power of
    /// two. The directory uses at most half that number of entries. `shares` counts the slots of each database, as far
    /// as its memory suffices.
    pub fn new(
        entries: &'m mut [DirectoryEntry<V>],
        index: &'m mut [u32],
        shares: &'m mut [DatabaseShare],
    ) -> Self {
        let size = index.len().checked_ilog2().map_or(0, |log2| 1 << log2);
        let index = index.get_mut(..size).unwrap_or_default();
        index.fill(NOWHERE);
        let count = entries.len().min(size / 2);
        let entries = entries.get_mut(..count).unwrap_or_default();
        let mut free = NOWHERE;
        for (slot_index, entry) in (0..NOWHERE).zip(entries.iter_mut()).rev() {
            *entry = DirectoryEntry(EntryState::Free { next: free });
            free = slot_index;
        }
        Self { entries, index, free, len: 0, shares: Shares::new(shares) }
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

    /// Returns true if no slot is free.
    pub fn is_full(&self) -> bool {
        self.free == NOWHERE
    }

    /// Returns the key of a slot.
    pub fn get(&self, slot_index: usize) -> Option<&TagKey> {
        self.entry(slot_index).map(|(_, key, _)| key)
    }

    /// Returns the value of a slot's key.
    pub fn value(&self, slot_index: usize) -> Option<&V> {
        self.entry(slot_index).map(|(.., value)| value)
    }

    /// Returns the value of a slot's key for a change.
    pub fn value_mut(&mut self, slot_index: usize) -> Option<&mut V> {
        match self.entries.get_mut(slot_index) {
            Some(DirectoryEntry(EntryState::Used { value, .. })) => Some(value),
            _ => None,
        }
    }

    /// Returns all keys with their slots, in the order of slots.
    pub fn iter(&self) -> impl Iterator<Item = (usize, &TagKey)> {
        (0..self.entries.len())
            .filter_map(|slot_index| Some((slot_index, self.get(slot_index)?)))
            .take(self.len)
    }

    /// Returns the slot of a key.
    pub fn find(&self, key: &TagKey) -> Option<usize> {
        let wanted = FxBuildHasher.hash_one(key);
        let is_it = |slot_index| {
            self.entry(slot_index).is_some_and(|(hash, found, _)| hash == wanted && found == key)
        };
        self.probe(wanted, is_it).map(|at| self.index[at] as usize)
    }

    /// Gives a free slot to a key that has no slot; None if the directory is full.
    pub fn insert(&mut self, key: TagKey, value: V) -> Option<usize> {
        debug_assert!(self.find(&key).is_none(), "the key has a place already");
        let (hash, slot_index) = (FxBuildHasher.hash_one(key), self.free);
        let entry = self.entries.get_mut(slot_index as usize)?;
        let DirectoryEntry(EntryState::Free { next }) = *entry else { return None };
        *entry = DirectoryEntry(EntryState::Used { hash, key, value });
        let gap = self.along(hash).find(|at| self.index[*at] == NOWHERE)?;
        self.index[gap] = slot_index;
        self.free = next;
        self.len += 1;
        self.shares.add(key.database);
        Some(slot_index as usize)
    }

    /// Frees a slot, and returns its key.
    pub fn remove(&mut self, slot_index: usize) -> Option<TagKey> {
        let (hash, key, _) = self.entry(slot_index)?;
        let key = *key;
        if let Some(at) = self.probe(hash, |found| found == slot_index) {
            self.close(at);
        }
        self.entries[slot_index] = DirectoryEntry(EntryState::Free { next: self.free });
        self.free = u32::try_from(slot_index).unwrap_or(NOWHERE);
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

    fn entry(&self, slot_index: usize) -> Option<(u64, &TagKey, &V)> {
        match self.entries.get(slot_index) {
            Some(DirectoryEntry(EntryState::Used { hash, key, value })) => Some((*hash, key, value)),
            _ => None,
        }
    }

    /// Returns the first index entry that `will_do` accepts, from the hash's home to the next empty entry.
    fn probe(&self, hash: u64, will_do: impl Fn(usize) -> bool) -> Option<usize> {
        let met = |at: &usize| self.index[*at] == NOWHERE || will_do(self.index[*at] as usize);
        self.along(hash).find(met).filter(|at| self.index[*at] != NOWHERE)
    }

    /// Returns all positions in the index, starting at the hash's home.
    fn along(&self, hash: u64) -> impl Iterator<Item = usize> + use<V> {
        let (home, len) = (self.home(hash), self.index.len());
        (0..len).map(move |step| (home + step) & (len - 1))
    }

    /// Returns a hash's home: the index position where a search begins. The low bits are used, because the hasher mixes them
    /// best.
    #[expect(clippy::cast_possible_truncation, reason = "the low bits are what is wanted")]
    const fn home(&self, hash: u64) -> usize {
        hash as usize & self.index.len().saturating_sub(1)
    }

    /// Removes an index entry. A later entry of the same run moves into the gap if a search from its home would otherwise
    /// stop at the gap. The entry's own position then becomes the gap.
    fn close(&mut self, mut gap: usize) {
        let mask = self.index.len() - 1;
        for at in (gap + 1..=gap + mask).map(|at| at & mask) {
            let slot_index = self.index[at];
            let Some((hash, ..)) = self.entry(slot_index as usize) else { break };
            let from_home = at.wrapping_sub(self.home(hash)) & mask;
            let from_gap = at.wrapping_sub(gap) & mask;
            if from_home >= from_gap {
                self.index[gap] = slot_index;
                gap = at;
            }
        }
        self.index[gap] = NOWHERE;
    }
}
