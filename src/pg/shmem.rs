//! Shared memory: one block, laid out and filled at server start.

use super::clock::SystemClock;
use super::server;
use crate::settings::Config;
use pgrx::{pg_guard, pg_sys};
use snowflake_ids_core::{Clock, Generator, Layout, Node};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

/// The server's generator and what belongs to it. Tallies, one per process, follow it in memory.
#[repr(C, align(64))]
pub struct Shared {
    /// Hands out positions.
    pub generator: Generator,
    /// The layout of the ids.
    pub layout: Layout,
    /// The server's identity; None until an operator chose one.
    pub node: Option<Node>,
    /// The bits of the identity, in place.
    pub placed: u64,
    /// Steps back of the clock that sessions have met. Repeats the generator's count among what is hardly
    /// ever written: an id out of a session's block then touches no line that others write.
    steps_back: AtomicU64,
    tallies: usize,
}

/// How many ids one process after the other took in one place of the process table. Its owner alone writes
/// it, so that counting takes no atomic step; a cache line each, so that owners don't slow each other.
#[repr(C, align(64))]
struct Tally(AtomicU64);

static SHARED: AtomicPtr<Shared> = AtomicPtr::new(std::ptr::null_mut());
static CONFIG: OnceLock<Config> = OnceLock::new();

/// The server's shared state; None where the library was not preloaded.
#[inline]
pub fn shared() -> Option<&'static Shared> {
    // SAFETY: null, or what `fill` left there, which lives and stays where it is as long as this process.
    unsafe { SHARED.load(Ordering::Relaxed).as_ref() }
}

impl Shared {
    /// Steps back of the clock that sessions have met.
    #[inline]
    pub fn steps_back(&self) -> u64 {
        self.steps_back.load(Ordering::Relaxed)
    }

    /// Makes known what the generator has counted.
    #[inline]
    pub fn announce_steps_back(&self) {
        let counted = self.generator.steps_back();
        if counted != self.steps_back() {
            // Never downwards, so that no block seems fresh again.
            self.steps_back.fetch_max(counted, Ordering::Relaxed);
        }
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

const _: () = assert!(size_of::<Shared>().is_multiple_of(align_of::<Tally>()));

/// Asks the server for shared memory and has it filled with a fresh generator of this configuration.
pub fn request(config: Config) {
    CONFIG.get_or_init(|| config);
    // SAFETY: hooks are chained in the postmaster, which is single-threaded, while it loads libraries.
    unsafe {
        #[cfg(any(feature = "pg13", feature = "pg14"))]
        reserve();
        #[cfg(not(any(feature = "pg13", feature = "pg14")))]
        {
            PREVIOUS_REQUEST = pg_sys::shmem_request_hook;
            pg_sys::shmem_request_hook = Some(on_request);
        }
        PREVIOUS_STARTUP = pg_sys::shmem_startup_hook;
        pg_sys::shmem_startup_hook = Some(on_startup);
    }
}

#[cfg(not(any(feature = "pg13", feature = "pg14")))]
static mut PREVIOUS_REQUEST: pg_sys::shmem_request_hook_type = None;
static mut PREVIOUS_STARTUP: pg_sys::shmem_startup_hook_type = None;

fn size() -> usize {
    size_of::<Shared>() + server::max_processes() * size_of::<Tally>()
}

fn reserve() {
    // SAFETY: called while the server adds up the sizes of shared memory.
    unsafe { pg_sys::RequestAddinShmemSpace(size() + align_of::<Shared>()) }
}

#[cfg(not(any(feature = "pg13", feature = "pg14")))]
#[pg_guard]
unsafe extern "C-unwind" fn on_request() {
    // SAFETY: the hook that was set before ours is called once, as the server would have.
    unsafe {
        if let Some(previous) = PREVIOUS_REQUEST {
            pg_sys::ffi::pg_guard_ffi_boundary(|| previous());
        }
    }
    reserve();
}

#[pg_guard]
unsafe extern "C-unwind" fn on_startup() {
    // SAFETY: as in on_request.
    unsafe {
        if let Some(previous) = PREVIOUS_STARTUP {
            pg_sys::ffi::pg_guard_ffi_boundary(|| previous());
        }
    }
    if let Some(config) = CONFIG.get() {
        // SAFETY: called by the server where shared memory is to be laid out, and only there.
        unsafe { attach(config) };
    }
}

/// # Safety
/// Only from the startup hook.
unsafe fn attach(config: &Config) {
    /// The place of `AddinShmemInitLock` among the server's main locks, from 13 to 18.
    const ADDIN_SHMEM_INIT_LOCK: usize = 21;
    // SAFETY: the lock exists since before the hook; the block is ours alone, of the size asked for, and
    // aligned to a cache line by the server (`ShmemAlloc` does so for every block).
    unsafe {
        let lock = &raw mut (*pg_sys::MainLWLockArray.add(ADDIN_SHMEM_INIT_LOCK)).lock;
        pg_sys::LWLockAcquire(lock, pg_sys::LWLockMode::LW_EXCLUSIVE);
        let mut found = false;
        let block: *mut Shared =
            pg_sys::ShmemInitStruct(c"snowflake_ids".as_ptr(), size(), &raw mut found).cast();
        if !found {
            fill(block, config);
        }
        SHARED.store(block, Ordering::Relaxed);
        pg_sys::LWLockRelease(lock);
    }
}

/// # Safety
/// `block` is writable, aligned and `size()` bytes long.
unsafe fn fill(block: *mut Shared, config: &Config) {
    let Config { layout, node } = *config;
    let tallies = server::max_processes();
    let shared = Shared {
        generator: Generator::new(&layout, SystemClock.now()),
        layout,
        node,
        // Checked when the settings were read.
        placed: node.and_then(|node| layout.place(node).ok()).unwrap_or(0),
        steps_back: AtomicU64::new(0),
        tallies,
    };
    // SAFETY: as the function's.
    unsafe {
        block.write(shared);
        let first: *mut Tally = block.add(1).cast();
        for index in 0..tallies {
            first.add(index).write(Tally(AtomicU64::new(0)));
        }
    }
}
