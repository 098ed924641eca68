//! The keys of monotonic series and their last numbers, in shared memory. Keys form groups, called sections. The slot of
//! a section's tag holds the range of numbers that the section may give.

use crate::pg::lock::{For, LwLock};
use crate::pg::random;
use crate::pg::shmem::{Rest, Shmem};
use crate::settings;
use crate::shared::segments::PIECE;
use crate::shared::slot::Slot;
use parking_lot::lock_api::RwLock;
use snowflake_ids_core::series::Key;
use snowflake_ids_core::series::monotonic::{Bucket, Hash, Keys, SweepStep};

/// The keys, and the sweep.
pub struct Sections {
    pub keys: Keys<'static>,
    /// The next step of the sweep. A process holds the lock for one piece of the sweep.
    sweep: RwLock<LwLock, SweepStep>,
}

/// The keys; missing if `series_memory` is too small.
pub static SECTIONS: Shmem<Sections> = Shmem::new(c"snowflake_ids sections", make);

impl Sections {
    /// Returns the hash of a key, which determines its bucket.
    #[inline]
    pub fn hash(&self, series: i64, key: &Key) -> Hash {
        Hash::of(self.keys.secret(), series, key)
    }

    /// Carries out a piece of the sweep that removes the keys of sections that have lost their slot to another tag.
    #[cold]
    pub fn sweep(&self, slots: &[Slot]) {
        let section = |slot_index: u32| slots.get(slot_index as usize).map(|slot| &slot.section);
        let count = u32::try_from(slots.len()).unwrap_or(u32::MAX);
        self.keys.sweep(&mut self.sweep.write(), PIECE, count, &section);
    }
}

fn make(rest: &mut Rest) -> Option<Sections> {
    let buckets = settings::config()?.series_memory / size_of::<Bucket>();
    if buckets == 0 {
        return None;
    }
    let keys = Keys::new(rest.array(buckets, Bucket::default), random::token().cast_unsigned());
    Some(Sections { keys, sweep: RwLock::from_raw(rest.lock(For::Sweep), SweepStep::Begin(0)) })
}
