//! The server's generator of snowflake ids in shared memory.

use crate::pg::clock::{SystemClock, since_boot};
use crate::pg::cluster;
use crate::pg::lock::{For, LwLock};
use crate::pg::server;
use crate::pg::shmem::Block;
use crate::settings;
use parking_lot::lock_api::RwLock;
use snowflake_ids_core::issuer::{self, Issuing};
use snowflake_ids_core::{Clock, UnixMicros};
use std::ops::Deref;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

/// What the issuer shares with all processes, and what only a server has. Tallies, one per process, follow it in memory.
#[repr(C, align(64))]
pub struct Shared {
    issuing: issuer::Shared,
    tallies: usize,
    /// The state lock, and what it guards.
    pub state_lock: RwLock<LwLock, Issuing>,
}

impl Deref for Shared {
    type Target = issuer::Shared;

    #[inline]
    fn deref(&self) -> &issuer::Shared {
        &self.issuing
    }
}

/// How many ids one process after the other took in one place of the process table. Its owner alone writes
/// it, so that counting takes no atomic step; a cache line each, so that owners don't slow each other.
#[repr(C, align(64))]
struct Tally(AtomicU64);

static SHARED: AtomicPtr<Shared> = AtomicPtr::new(std::ptr::null_mut());

/// The server's shared state; None where the library was not preloaded.
#[inline]
pub fn shared() -> Option<&'static Shared> {
    // SAFETY: null, or what `attach` left there, which lives and stays where it is as long as this process.
    unsafe { SHARED.load(Ordering::Relaxed).as_ref() }
}

impl Shared {
    /// Counts ids that this process took.
    #[inline]
    pub fn count(&self, ids: u64) {
        if let Some(Tally(tally)) = self.tallies().get(server::process_number()) {
            tally.store(tally.load(Ordering::Relaxed) + ids, Ordering::Relaxed);
        }
    }

    /// The ids that all processes took since server start.
    pub fn counted(&self) -> u64 {
        self.tallies().iter().map(|tally| tally.0.load(Ordering::Relaxed)).sum()
    }

    #[inline]
    fn tallies(&self) -> &[Tally] {
        // SAFETY: `fill` wrote this many tallies right behind the struct, in the same allocation.
        unsafe { std::slice::from_raw_parts(std::ptr::from_ref(self).add(1).cast(), self.tallies) }
    }
}

/// The wall clock, but where it has jumped too far ahead to be followed: then the time by the anchor.
impl Clock for Shared {
    fn now(&self) -> UnixMicros {
        self.believed(SystemClock.now(), since_boot(), settings::max_clock_jump())
    }
}

const _: () = assert!(size_of::<Shared>().is_multiple_of(align_of::<Tally>()));

/// The block, as the server lays it out.
pub const BLOCK: Block = Block { name: c"snowflake_ids generator", size, fill, attach };

fn size() -> usize {
    size_of::<Shared>() + server::max_processes() * size_of::<Tally>()
}

unsafe fn attach(block: *mut u8) {
    SHARED.store(block.cast(), Ordering::Relaxed);
}

unsafe fn fill(block: *mut u8) {
    let Some(config) = settings::config() else { return };
    let block: *mut Shared = block.cast();
    let tallies = server::max_processes();
    let shared = Shared {
        issuing: issuer::Shared::new(
            config.layout,
            config.identity,
            SystemClock.now(),
            since_boot(),
            cluster::checkpoint_time(),
        ),
        tallies,
        state_lock: RwLock::from_raw(LwLock::requested(For::State), Issuing::default()),
    };
    // SAFETY: the block is writable, aligned to a cache line and of the size above.
    unsafe {
        block.write(shared);
        let first: *mut Tally = block.add(1).cast();
        for index in 0..tallies {
            first.add(index).write(Tally(AtomicU64::new(0)));
        }
    }
}
