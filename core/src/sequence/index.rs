//! The index of an array by hashes: a hash table's index in memory that the caller provides, for shared memory sized at
//! start.
//!
//! Nothing is allocated and nothing locked here. Addressing is open and probing linear; the index is at most half full. Removing closes
//! the gap by moving later places up (Knuth, volume 3, 6.4, algorithm R), so that probes stay as short as they were however many
//! things come and go.

/// No place: what of the index is empty.
pub const NOWHERE: u32 = u32::MAX;

/// The length of the index for so many places: the power of two that leaves at least half of it empty.
pub const fn index_len(places: usize) -> usize {
    places.saturating_mul(2).next_power_of_two()
}

/// The index.
#[derive(Debug)]
pub struct Index<'m>(&'m mut [u32]);

impl<'m> Index<'m> {
    /// An empty one in this memory, whatever that held before. Where it is not as long as [`index_len`] says, the largest power of two
    /// is used.
    pub fn new(memory: &'m mut [u32]) -> Self {
        let size = memory.len().checked_ilog2().map_or(0, |log2| 1 << log2);
        let memory = memory.get_mut(..size).unwrap_or_default();
        memory.fill(NOWHERE);
        Self(memory)
    }

    /// Returns the number of places it serves: from 0 to one less than this.
    pub const fn serves(&self) -> usize {
        self.0.len() / 2
    }

    /// The first place with a hash that will do.
    #[inline]
    pub fn find(&self, hash: u64, will_do: impl FnMut(u32) -> bool) -> Option<u32> {
        self.0.get(self.probe(hash, will_do)?).copied()
    }

    /// Notes a place that is not in it yet; false, and nothing is noted, where it is full.
    pub fn insert(&mut self, hash: u64, place: u32) -> bool {
        let gap = self.along(hash).find(|(_, place)| *place == NOWHERE).map(|(at, _)| at);
        let Some(entry) = gap.and_then(|at| self.0.get_mut(at)) else { return false };
        *entry = place;
        true
    }

    /// Takes a place out of it. `hash_of`: those of all the others.
    pub fn remove(&mut self, hash: u64, place: u32, hash_of: impl Fn(u32) -> Option<u64>) {
        if let Some(at) = self.probe(hash, |found| found == place) {
            self.close(at, hash_of);
        }
    }

    /// Where the first place is that will do, going from the hash to the next gap.
    #[inline]
    fn probe(&self, hash: u64, mut will_do: impl FnMut(u32) -> bool) -> Option<usize> {
        let met = self.along(hash).find(|(_, place)| *place == NOWHERE || will_do(*place));
        met.filter(|(_, place)| *place != NOWHERE).map(|(at, _)| at)
    }

    /// All of it once around, from a hash's home on.
    #[inline]
    fn along(&self, hash: u64) -> impl Iterator<Item = (usize, u32)> {
        let (home, mask) = (self.home(hash), self.mask());
        (0..self.0.len()).map(move |step| (home + step) & mask).map(|at| (at, self.0[at]))
    }

    /// Where a hash would have its place, were it free.
    #[expect(clippy::cast_possible_truncation, reason = "the low bits are what is wanted")]
    const fn home(&self, hash: u64) -> usize {
        hash as usize & self.mask()
    }

    const fn mask(&self) -> usize {
        self.0.len().saturating_sub(1)
    }

    /// Empties the entry at `gap`. Whatever a probe from its own home would not find behind the gap moves into it and leaves the next
    /// one, up to the end of the cluster.
    fn close(&mut self, mut gap: usize, hash_of: impl Fn(u32) -> Option<u64>) {
        let mask = self.mask();
        for at in (gap + 1..=gap + mask).map(|at| at & mask) {
            let place = self.0[at];
            let Some(hash) = hash_of(place).filter(|_| place != NOWHERE) else { break };
            let from_home = at.wrapping_sub(self.home(hash)) & mask;
            let from_gap = at.wrapping_sub(gap) & mask;
            if from_home >= from_gap {
                self.0[gap] = place;
                gap = at;
            }
        }
        self.0[gap] = NOWHERE;
    }
}
