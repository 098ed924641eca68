//! Shared memory: values that are created at server start.

use super::lock::{self, For, LwLock};
use super::report::report;
use parking_lot::lock_api::RawRwLock as _;
use pgrx::pg_sys::panic::ErrorReport;
use pgrx::{pg_guard, pg_sys};
use snowflake_ids_core::error::NotReadyError;
use std::ffi::{CStr, c_int};
use std::mem::needs_drop;
use std::ptr::{NonNull, null_mut};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicPtr, Ordering::Relaxed};

/// A value in shared memory. All processes see it at the same address, because they are forked from the postmaster.
pub struct Shmem<T> {
    /// The name of the block.
    name: &'static CStr,
    /// Creates the value; None if the configuration does not allow it. Called first to measure the size, with arrays that are
    /// empty. So `make` reads no element of an array, and the lengths depend on the configuration alone.
    make: fn(&mut Rest) -> Option<T>,
    place: AtomicPtr<T>,
}

impl<T: Send + Sync> Shmem<T> {
    /// Declares a value that the server creates at start, if [`request`] names its block.
    pub const fn new(name: &'static CStr, make: fn(&mut Rest) -> Option<T>) -> Self {
        // A type with a destructor would own something outside of the block.
        const { assert!(!needs_drop::<T>() && align_of::<T>() <= CACHE_LINE) };
        Self { name, make, place: AtomicPtr::new(null_mut()) }
    }

    /// Returns the value; None if the library was not preloaded, or if `make` returned None.
    #[inline]
    pub fn get(&self) -> Option<&'static T> {
        // SAFETY: the pointer is null, or points to the value that `lay_out` wrote. The value stays valid as long as this process.
        unsafe { self.place.load(Relaxed).as_ref() }
    }

    /// Returns the value. Fails if there is none; the error names the function that needs the value.
    #[allow(clippy::result_large_err, reason = "pgrx takes the SQLSTATE from a report by value")]
    pub fn ready(&self, function: &'static str) -> Result<&'static T, ErrorReport> {
        self.get().ok_or_else(|| report(NotReadyError::NotPreloaded(function)))
    }
}

/// The memory behind a value, for arrays with a length that is known only at server start.
pub struct Rest {
    /// None while the size is measured. The arrays are then empty.
    memory: Option<NonNull<u8>>,
    /// The bytes that the arrays take so far.
    used: usize,
    size: usize,
}

impl Rest {
    /// Allocates the next array.
    pub fn array<T: Send + Sync>(&mut self, len: usize, mut value: impl FnMut() -> T) -> &'static mut [T] {
        const { assert!(!needs_drop::<T>()) };
        let from = self.used;
        let most = len.saturating_mul(size_of::<T>()).saturating_add(align_of::<T>());
        self.used = from.saturating_add(most);
        let Some(memory) = self.memory else { return &mut [] };
        assert!(self.used <= self.size, "arrays in shared memory take more than was asked for");
        // SAFETY: the range is large enough, aligned and handed out once; all elements are written before they are read.
        unsafe {
            let free = memory.as_ptr().add(from);
            let start: *mut T = free.add(free.align_offset(align_of::<T>())).cast();
            for index in 0..len {
                start.add(index).write(value());
            }
            std::slice::from_raw_parts_mut(start, len)
        }
    }

    /// Returns a lock for this purpose. A lock that is returned while the size is measured is never taken.
    pub fn lock(&self, purpose: For) -> LwLock {
        if self.memory.is_some() { LwLock::requested(purpose) } else { LwLock::INIT }
    }
}

/// A block of shared memory, independent of the type of its value.
pub trait SharedBlock: Sync {
    /// Returns the size in bytes.
    fn size(&self) -> usize;
    /// Creates the value, unless it exists.
    ///
    /// # Safety
    /// Only the startup hook may call this function.
    unsafe fn lay_out(&self);
}

impl<T: Send + Sync> SharedBlock for Shmem<T> {
    fn size(&self) -> usize {
        let mut rest = Rest { memory: None, used: 0, size: 0 };
        let _ = (self.make)(&mut rest);
        size_of::<T>() + rest.used
    }

    unsafe fn lay_out(&self) {
        /// The index of `AddinShmemInitLock` among the server's main locks, in Postgres 14 to 19.
        const ADDIN_SHMEM_INIT_LOCK: usize = 21;
        let size = self.size();
        // SAFETY: the lock exists before the hook runs. The block has the requested size, and `ShmemAlloc`
        // aligns every block to a cache line.
        unsafe {
            let lock = &raw mut (*pg_sys::MainLWLockArray.add(ADDIN_SHMEM_INIT_LOCK)).lock;
            pg_sys::LWLockAcquire(lock, pg_sys::LWLockMode::LW_EXCLUSIVE);
            let mut found = false;
            let block: *mut T = pg_sys::ShmemInitStruct(self.name.as_ptr(), size, &raw mut found).cast();
            let memory = NonNull::new(block.add(1).cast());
            let mut rest = Rest { memory, used: 0, size: size - size_of::<T>() };
            if !found && let Some(value) = (self.make)(&mut rest) {
                block.write(value);
                found = true;
            }
            self.place.store(if found { block } else { null_mut() }, Relaxed);
            pg_sys::LWLockRelease(lock);
        }
    }
}

/// The blocks of the extension, and actions of the postmaster on them while no other process can access shared memory.
#[derive(Clone, Copy)]
pub struct Wanted {
    pub blocks: &'static [&'static dyn SharedBlock],
    /// Called when shared memory is created, including after a crash.
    pub begin: fn(),
    /// Called when the server has shut down cleanly.
    pub end: fn(),
}

static WANTED: OnceLock<Wanted> = OnceLock::new();

/// Requests these blocks from the server, and installs the hooks that create their values.
pub fn request(wanted: Wanted) {
    WANTED.get_or_init(|| wanted);
    // SAFETY: the postmaster, which is single-threaded, chains the hooks while it loads libraries.
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
    for block in WANTED.get().into_iter().flat_map(|wanted| wanted.blocks) {
        // SAFETY: called while the server computes the size of shared memory.
        unsafe { pg_sys::RequestAddinShmemSpace(block.size() + CACHE_LINE) }
    }
    lock::request();
}

/// The server's alignment of blocks, in bytes.
const CACHE_LINE: usize = 128;

#[cfg(not(feature = "pg14"))]
#[pg_guard]
unsafe extern "C-unwind" fn on_request() {
    // SAFETY: the previous hook is called once, as the server would call it.
    unsafe {
        if let Some(previous) = PREVIOUS_REQUEST {
            pg_sys::ffi::pg_guard_ffi_boundary(|| previous());
        }
    }
    reserve();
}

#[pg_guard]
unsafe extern "C-unwind" fn on_startup() {
    // SAFETY: the previous hook is called once, as the server would call it.
    unsafe {
        if let Some(previous) = PREVIOUS_STARTUP {
            pg_sys::ffi::pg_guard_ffi_boundary(|| previous());
        }
    }
    let Some(wanted) = WANTED.get() else { return };
    for block in wanted.blocks {
        // SAFETY: the server calls this hook only to create shared memory.
        unsafe { block.lay_out() };
    }
    // SAFETY: variables of this process; the callback is valid as long as the shared memory.
    unsafe {
        if !pg_sys::IsUnderPostmaster {
            (wanted.begin)();
            pg_sys::on_shmem_exit(Some(on_exit), pg_sys::Datum::from(0));
        }
    }
}

/// Runs the `end` action after a clean shutdown. After a crash the exit code is not 0. After an immediate shutdown the
/// control file does not show a clean state. Child processes do not inherit this callback.
#[pg_guard]
unsafe extern "C-unwind" fn on_exit(code: c_int, _argument: pg_sys::Datum) {
    if code == 0
        && super::cluster::is_shut_down()
        && let Some(wanted) = WANTED.get()
    {
        (wanted.end)();
    }
}
