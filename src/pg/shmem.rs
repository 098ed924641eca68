//! Shared memory: values that are made at server start.

use super::lock;
use pgrx::{pg_guard, pg_sys};
use std::ffi::{CStr, c_int};
use std::mem::needs_drop;
use std::ptr::null_mut;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicPtr, Ordering::Relaxed};

/// A value in shared memory, the same for all processes: they are forked from the postmaster that made it.
pub struct Shmem<T> {
    /// Its name in the server.
    name: &'static CStr,
    /// The bytes behind it that its arrays take.
    rest: fn() -> usize,
    /// Makes it; None where it is not to be had.
    make: fn(&mut Rest) -> Option<T>,
    place: AtomicPtr<T>,
}

impl<T: Send + Sync> Shmem<T> {
    /// A value that the server makes when it starts, if that is asked of it.
    pub const fn new(name: &'static CStr, rest: fn() -> usize, make: fn(&mut Rest) -> Option<T>) -> Self {
        // A value that has to be dropped has something outside of the block.
        const { assert!(!needs_drop::<T>() && align_of::<T>() <= CACHE_LINE) };
        Self { name, rest, make, place: AtomicPtr::new(null_mut()) }
    }

    /// The value; None where the library was not preloaded.
    #[inline]
    pub fn get(&self) -> Option<&'static T> {
        // SAFETY: null, or what `lay_out` left there, which lives and stays where it is as long as this process.
        unsafe { self.place.load(Relaxed).as_ref() }
    }
}

/// The memory behind a value, for arrays whose lengths are known only when the server starts.
pub struct Rest {
    next: *mut u8,
    left: usize,
}

impl Rest {
    /// The bytes that an array takes at most.
    pub const fn for_array<T>(len: usize) -> usize {
        len * size_of::<T>() + align_of::<T>()
    }

    /// The next array.
    pub fn array<T: Send + Sync>(&mut self, len: usize, mut value: impl FnMut() -> T) -> &'static mut [T] {
        const { assert!(!needs_drop::<T>()) };
        let skipped = self.next.align_offset(align_of::<T>());
        let size = skipped.saturating_add(len.saturating_mul(size_of::<T>()));
        assert!(size <= self.left, "arrays in shared memory take more than was asked for");
        // SAFETY: there is room for as many values, aligned, and it is given away only here; all are written before they
        // are read.
        unsafe {
            let start: *mut T = self.next.add(skipped).cast();
            (self.next, self.left) = (self.next.add(size), self.left - size);
            for index in 0..len {
                start.add(index).write(value());
            }
            std::slice::from_raw_parts_mut(start, len)
        }
    }
}

/// A block of shared memory, whatever is in it.
pub trait SharedBlock: Sync {
    /// Its size in bytes.
    fn size(&self) -> usize;
    /// Has the value in it made, unless it is there.
    ///
    /// # Safety
    /// Only from the startup hook.
    unsafe fn lay_out(&self);
}

impl<T: Send + Sync> SharedBlock for Shmem<T> {
    fn size(&self) -> usize {
        size_of::<T>() + (self.rest)()
    }

    unsafe fn lay_out(&self) {
        /// The place of `AddinShmemInitLock` among the server's main locks, from 14 to 18.
        const ADDIN_SHMEM_INIT_LOCK: usize = 21;
        // SAFETY: the lock exists since before the hook; the block is ours alone, of the size asked for, and
        // aligned to a cache line by the server (`ShmemAlloc` does so for every block).
        unsafe {
            let lock = &raw mut (*pg_sys::MainLWLockArray.add(ADDIN_SHMEM_INIT_LOCK)).lock;
            pg_sys::LWLockAcquire(lock, pg_sys::LWLockMode::LW_EXCLUSIVE);
            let (size, mut found) = (self.size(), false);
            let block: *mut T = pg_sys::ShmemInitStruct(self.name.as_ptr(), size, &raw mut found).cast();
            let mut rest = Rest { next: block.add(1).cast(), left: size - size_of::<T>() };
            if !found && let Some(value) = (self.make)(&mut rest) {
                block.write(value);
                found = true;
            }
            self.place.store(if found { block } else { null_mut() }, Relaxed);
            pg_sys::LWLockRelease(lock);
        }
    }
}

static BLOCKS: OnceLock<&'static [&'static dyn SharedBlock]> = OnceLock::new();

/// The actions on shared memory of the process that makes it, while no other can look at it.
#[derive(Clone, Copy, Debug)]
pub struct Keep {
    /// Called when it is laid out, also after a crash.
    pub begin: fn(),
    /// Called when the server has stopped in good order.
    pub end: fn(),
}

static KEEP: OnceLock<Keep> = OnceLock::new();

/// Asks the server for these blocks of shared memory, and has their values made.
pub fn request(blocks: &'static [&'static dyn SharedBlock], keep: Keep) {
    BLOCKS.get_or_init(|| blocks);
    KEEP.get_or_init(|| keep);
    // SAFETY: hooks are chained in the postmaster, which is single-threaded, while it loads libraries.
    unsafe {
        #[cfg(feature = "pg14")]
        reserve();
        #[cfg(not(feature = "pg14"))]
        {
            PREVIOUS_REQUEST = pg_sys::shmem_request_hook;
            pg_sys::shmem_request_hook = Some(on_request);
        }
        PREVIOUS_STARTUP = pg_sys::shmem_startup_hook;
        pg_sys::shmem_startup_hook = Some(on_startup);
    }
}

#[cfg(not(feature = "pg14"))]
static mut PREVIOUS_REQUEST: pg_sys::shmem_request_hook_type = None;
static mut PREVIOUS_STARTUP: pg_sys::shmem_startup_hook_type = None;

fn reserve() {
    for block in blocks() {
        // SAFETY: called while the server adds up the sizes of shared memory.
        unsafe { pg_sys::RequestAddinShmemSpace(block.size() + CACHE_LINE) }
    }
    lock::request();
}

fn blocks() -> &'static [&'static dyn SharedBlock] {
    BLOCKS.get().copied().unwrap_or_default()
}

/// The server's alignment of blocks.
const CACHE_LINE: usize = 128;

#[cfg(not(feature = "pg14"))]
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
