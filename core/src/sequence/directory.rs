//! The slots of tags: a hash table in memory that the caller provides, for shared memory sized at start.
//!
//! Nothing is allocated and nothing locked here; the caller holds the lock, and sessions remember the slot
//! they found, so this is not on the path of an id. A key keeps its slot until it is removed.
//!
//! Slots are found through an index of their hashes, which is at most half full: addressing is open and probing linear. Removing
//! closes the gap by moving later places up (Knuth, volume 3, 6.4, algorithm R), so that probes stay short however many keys come
//! and go.

mod shares;
mod tag;

pub use shares::{DatabaseShare, Shares};
pub use tag::Tag;

use rustc_hash::FxBuildHasher;
use std::hash::BuildHasher;

/// The name of a tag on a server with many databases.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TagKey {
    /// The oid of the tag's database.
    pub database: u32,
    /// The oid of the table that holds the tag's row: another one after the extension was created anew.
    pub source: u32,
    /// The tag.
    pub tag: Tag,
}

/// No slot.
const NOWHERE: u32 = u32::MAX;

/// The length of the index for so many slots: the power of two that leaves at least half of it empty.
pub const fn index_len(slot_count: usize) -> usize {
    slot_count.saturating_mul(2).next_power_of_two()
}

/// One slot of a directory.
#[derive(Clone, Copy, Debug)]
pub struct DirectoryEntry<V = ()>(EntryState<V>);

#[derive(Clone, Copy, Debug)]
#[allow(clippy::large_enum_variant, reason = "the memory is there whether the place is used or not")]
enum EntryState<V> {
    /// A free slot, and the next such place.
    Free { next: u32 },
    /// A key's, with its hash.
    Used { hash: u64, key: TagKey, value: V },
}

impl<V> DirectoryEntry<V> {
    /// A free slot.
    pub const EMPTY: Self = Self(EntryState::Free { next: NOWHERE });
}

/// The directory, with a value for each key. All processes that share it share this value, too, not only the memory it works in.
#[derive(Debug)]
pub struct Directory<'m, V = ()> {
    entries: &'m mut [DirectoryEntry<V>],
    /// Slots by the low bits of their hashes, [`NOWHERE`] for none. Its length is a power of two, or 0.
    index: &'m mut [u32],
    /// The first free slot.
    free: u32,
    len: usize,
    shares: Shares<'m>,
}

impl<'m, V> Directory<'m, V> {
    /// An empty directory in this memory, whatever it held before. Of an index that is not as long as [`index_len`] says, the largest
    /// power of two is used, and as many entries as that serves. Databases are counted in `shares`, as far as it goes.
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

    /// Returns the number of slots each database has, where that is counted.
    pub fn shares(&self) -> &Shares<'m> {
        &self.shares
    }

    /// Returns the number of keys there are.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns whether it holds no key.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns whether every place is taken.
    pub fn is_full(&self) -> bool {
        self.free == NOWHERE
    }

    /// The key that has a slot.
    pub fn get(&self, slot_index: usize) -> Option<&TagKey> {
        self.entry(slot_index).map(|(_, key, _)| key)
    }

    /// The value of the key that has a slot.
    pub fn value(&self, slot_index: usize) -> Option<&V> {
        self.entry(slot_index).map(|(.., value)| value)
    }

    /// The same, to be changed.
    pub fn value_mut(&mut self, slot_index: usize) -> Option<&mut V> {
        match self.entries.get_mut(slot_index) {
            Some(DirectoryEntry(EntryState::Used { value, .. })) => Some(value),
            _ => None,
        }
    }

    /// All keys and their places, by place.
    pub fn iter(&self) -> impl Iterator<Item = (usize, &TagKey)> {
        (0..self.entries.len())
            .filter_map(|slot_index| Some((slot_index, self.get(slot_index)?)))
            .take(self.len)
    }

    /// The slot that a key has.
    pub fn find(&self, key: &TagKey) -> Option<usize> {
        let wanted = FxBuildHasher.hash_one(key);
        let is_it = |slot_index| {
            self.entry(slot_index).is_some_and(|(hash, found, _)| hash == wanted && found == key)
        };
        self.probe(wanted, is_it).map(|at| self.index[at] as usize)
    }

    /// Gives a slot to a key that has none yet; None when the directory is full.
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

    /// Frees a slot; the key that had it.
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

    /// Frees the slots of some keys; tells which they were.
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

    /// The entry of the index with the first place that will do, going from the hash to the next gap.
    fn probe(&self, hash: u64, will_do: impl Fn(usize) -> bool) -> Option<usize> {
        let met = |at: &usize| self.index[*at] == NOWHERE || will_do(self.index[*at] as usize);
        self.along(hash).find(met).filter(|at| self.index[*at] != NOWHERE)
    }

    /// All of the index once around, from a hash's home on.
    fn along(&self, hash: u64) -> impl Iterator<Item = usize> + use<V> {
        let (home, len) = (self.home(hash), self.index.len());
        (0..len).map(move |step| (home + step) & (len - 1))
    }

    /// The slot of a hash in the index, were it free. The hasher has brought its best bits to the low end.
    #[expect(clippy::cast_possible_truncation, reason = "the low bits are what is wanted")]
    const fn home(&self, hash: u64) -> usize {
        hash as usize & self.index.len().saturating_sub(1)
    }

    /// Empties an entry of the index. Whatever a probe from its own home would not find behind the gap moves into it and leaves the
    /// next one, up to the end of the cluster.
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
