//! The keys of monotonic series and their last numbers, in shared memory. Keys form groups, called sections. The slot of
//! a section's tag holds the range of numbers that the section may give.

use crate::pg::lock::{For, LwLock};
use crate::pg::random;
use crate::pg::shmem::{Rest, Shmem};
use crate::settings;
use crate::shared::slot::Slot;
use parking_lot::lock_api::RwLock;
use snowflake_ids_core::series::Key;
use snowflake_ids_core::series::monotonic::{Bucket, Hash, Keys, Section};

/// The keys, and a lock for sweeps.
pub struct Sections {
    pub keys: Keys<'static>,
    /// The lock that a process holds while it sweeps.
    sweeping: RwLock<LwLock, ()>,
}

/// The keys; missing if `series_memory` is too small.
pub static SECTIONS: Shmem<Sections> = Shmem::new(c"snowflake_ids sections", make);

impl Sections {
    /// Returns the hash of a key, which determines its bucket.
    #[inline]
    pub fn hash(&self, series: i64, key: &Key) -> Hash {
        Hash::of(self.keys.secret(), series, key)
    }

    /// Removes the keys of sections that have lost their slot to another tag. Does nothing if `needs` returns false after
    /// the lock was taken.
    #[cold]
    pub fn sweep(&self, slots: &[Slot], needs: impl Fn() -> bool) {
        let _alone = self.sweeping.write();
        // Another process may have swept during the wait for the lock.
        if needs() {
            let sections: Vec<&Section> = slots.iter().map(|slot| &slot.section).collect();
            self.keys.sweep(&sections);
        }
    }
}

fn make(rest: &mut Rest) -> Option<Sections> {
    let buckets = settings::config()?.series_memory / size_of::<Bucket>();
    if buckets == 0 {
        return None;
    }
    let keys = Keys::new(rest.array(buckets, Bucket::default), random::token().cast_unsigned());
    Some(Sections { keys, sweeping: RwLock::from_raw(rest.lock(For::Sweep), ()) })
}
