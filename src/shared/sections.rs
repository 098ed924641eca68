//! The keys of monotonic series, in shared memory. Which numbers a section's keys may have is in the slot of its tag.

use crate::pg::lock::{For, LwLock};
use crate::pg::random;
use crate::pg::shmem::{Rest, Shmem};
use crate::settings;
use crate::shared::slot::Slot;
use parking_lot::lock_api::RwLock;
use snowflake_ids_core::series::Key;
use snowflake_ids_core::series::monotonic::{Bucket, Hash, Keys, Section};

/// All of it.
pub struct Sections {
    keys: Keys<'static>,
    /// Held by the process that sweeps.
    sweeping: RwLock<LwLock, ()>,
}

/// The block.
pub static SECTIONS: Shmem<Sections> = Shmem::new(c"snowflake_ids sections", rest, make);

impl Sections {
    /// The keys.
    #[inline]
    pub fn keys(&self) -> &Keys<'static> {
        &self.keys
    }

    /// Returns where a key of a series is.
    #[inline]
    pub fn hash(&self, series: i64, key: &Key) -> Hash {
        Hash::of(self.keys.secret(), series, key)
    }

    /// Sweeps away what all sections left.
    #[cold]
    pub fn sweep(&self, slots: &[Slot], needs: impl Fn() -> bool) {
        let _alone = self.sweeping.write();
        // Another process may have done it meanwhile.
        if needs() {
            let sections: Vec<&Section> = slots.iter().map(|slot| &slot.section).collect();
            self.keys.sweep(&sections);
        }
    }
}

/// The keys; None where the library was not preloaded, and where there is no memory for one section.
#[inline]
pub fn sections() -> Option<&'static Sections> {
    SECTIONS.get()
}

fn buckets() -> usize {
    settings::config().map_or(0, |config| config.series_memory / size_of::<Bucket>())
}

fn rest() -> usize {
    Rest::for_array::<Bucket>(buckets())
}

fn make(rest: &mut Rest) -> Option<Sections> {
    let buckets = Some(buckets()).filter(|count| *count > 0)?;
    let keys = Keys::new(rest.array(buckets, Bucket::default), random::token().cast_unsigned());
    Some(Sections { keys, sweeping: RwLock::from_raw(LwLock::requested(For::Sweep), ()) })
}
