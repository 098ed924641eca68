//! The server's generator of snowflake ids in shared memory.

use crate::pg::clock::{SystemClock, since_boot};
use crate::pg::cluster;
use crate::pg::lock::{For, LwLock};
use crate::pg::server;
use crate::pg::shmem::Block;
use crate::settings;
use crate::shared::counts::Counts;
use parking_lot::lock_api::RwLock;
use snowflake_ids_core::state::Identity;
use snowflake_ids_core::{Clock, Generator, Layout, Node, UnixMicros};
use std::sync::atomic::{AtomicI64, AtomicPtr, AtomicU64, Ordering};

/// What the process knows that holds the state lock.
#[derive(Default)]
pub struct StateLock {
    /// The node whose term the generator has begun; None while it is closed.
    pub node: Option<Node>,
    /// Whether the state was taken up since the server's start.
    pub opened: bool,
}

/// The server's generator and what belongs to it. Tallies, one per process, follow it in memory.
#[repr(C, align(64))]
pub struct Shared {
    /// Hands out positions.
    pub generator: Generator,
    /// The layout of the ids.
    pub layout: Layout,
    /// Who is to issue.
    pub identity: Identity,
    tallies: usize,
    /// The anchor: what the wall clock showed when the machine was started, by the furthest reading that was
    /// believed, which is that of the server's start at first. Far from what every call reads.
    anchor: AtomicI64,
    /// The time of the checkpoint that the server started from.
    pub checkpoint: Option<UnixMicros>,
    /// What happened.
    pub counts: Counts,
    /// What belongs to whoever writes the state.
    pub state_lock: RwLock<LwLock, StateLock>,
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
    /// The time by the anchor.
    pub fn expected(&self, since_boot: u64) -> UnixMicros {
        UnixMicros(self.anchor.load(Ordering::Relaxed)).plus(since_boot)
    }

    /// Makes a reading of the clocks the anchor.
    pub fn set_anchor(&self, wall: UnixMicros, since_boot: u64) {
        self.anchor.store(wall.0.saturating_sub_unsigned(since_boot), Ordering::Relaxed);
    }

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
        let wall = SystemClock.now();
        let expected = self.expected(since_boot());
        if wall.since(expected) > settings::max_clock_jump() { expected } else { wall }
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
    let checkpoint = cluster::checkpoint_time();
    let latest = checkpoint.map_or(SystemClock.now(), |checkpoint| checkpoint.max(SystemClock.now()));
    let shared = Shared {
        generator: Generator::new(),
        layout: config.layout,
        identity: config.identity,
        tallies,
        // A clock that shows less than it did at the last checkpoint is not right yet.
        anchor: AtomicI64::new(latest.0.saturating_sub_unsigned(since_boot())),
        checkpoint,
        counts: Counts::default(),
        state_lock: RwLock::from_raw(LwLock::requested(For::State), StateLock::default()),
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
