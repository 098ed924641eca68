//! Shared memory: blocks that are laid out and filled at server start.

use super::lock;
use pgrx::{pg_guard, pg_sys};
use std::ffi::{CStr, c_int};
use std::sync::OnceLock;

/// A block of shared memory: what it is called, and what it takes to make it.
pub struct Block {
    /// What the server calls it.
    pub name: &'static CStr,
    /// Its size in bytes.
    pub size: fn() -> usize,
    /// Writes the first state into a block of that size, which begins with a cache line.
    pub fill: unsafe fn(*mut u8),
    /// Remembers where a filled block is.
    pub attach: unsafe fn(*mut u8),
}

static BLOCKS: OnceLock<&'static [Block]> = OnceLock::new();

/// What is done with shared memory by the process that makes it, while no other can look at it.
#[derive(Clone, Copy, Debug)]
pub struct Keep {
    /// When it is laid out, also after a crash.
    pub begin: fn(),
    /// When the server has stopped in good order.
    pub end: fn(),
}

static KEEP: OnceLock<Keep> = OnceLock::new();

/// Asks the server for these blocks of shared memory, and has them filled.
pub fn request(blocks: &'static [Block], keep: Keep) {
    BLOCKS.get_or_init(|| blocks);
    KEEP.get_or_init(|| keep);
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

fn reserve() {
    for block in blocks() {
        // SAFETY: called while the server adds up the sizes of shared memory.
        unsafe { pg_sys::RequestAddinShmemSpace((block.size)() + CACHE_LINE) }
    }
    lock::request();
}

fn blocks() -> &'static [Block] {
    BLOCKS.get().copied().unwrap_or_default()
}

/// What the server aligns blocks to.
const CACHE_LINE: usize = 128;

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
    for block in blocks() {
        // SAFETY: called by the server where shared memory is to be laid out, and only there.
        unsafe { block.lay_out() };
    }
    // SAFETY: variables of this process; the callback stays for as long as this shared memory does.
    unsafe {
        if !pg_sys::IsUnderPostmaster {
            if let Some(keep) = KEEP.get() {
                (keep.begin)();
            }
            pg_sys::on_shmem_exit(Some(on_exit), pg_sys::Datum::from(0));
        }
    }
}

/// Children begin with an empty list of such callbacks. After a crash the code is not 0; an immediate shutdown is told by
/// the state of the cluster.
#[pg_guard]
unsafe extern "C-unwind" fn on_exit(code: c_int, _argument: pg_sys::Datum) {
    if code == 0
        && super::cluster::is_shut_down()
        && let Some(keep) = KEEP.get()
    {
        (keep.end)();
    }
}

impl Block {
    /// # Safety
    /// Only from the startup hook.
    unsafe fn lay_out(&self) {
        /// The place of `AddinShmemInitLock` among the server's main locks, from 13 to 18.
        const ADDIN_SHMEM_INIT_LOCK: usize = 21;
        // SAFETY: the lock exists since before the hook; the block is ours alone, of the size asked for, and
        // aligned to a cache line by the server (`ShmemAlloc` does so for every block).
        unsafe {
            let lock = &raw mut (*pg_sys::MainLWLockArray.add(ADDIN_SHMEM_INIT_LOCK)).lock;
            pg_sys::LWLockAcquire(lock, pg_sys::LWLockMode::LW_EXCLUSIVE);
            let mut found = false;
            let block: *mut u8 =
                pg_sys::ShmemInitStruct(self.name.as_ptr(), (self.size)(), &raw mut found).cast();
            if !found {
                (self.fill)(block);
            }
            (self.attach)(block);
            pg_sys::LWLockRelease(lock);
        }
    }
}
