//! A memory limit for the data that another server sends.
//!
//! libpq reads each message as a whole, up to 1 GB. libpq's buffer grows to the size that the message header announces, and
//! the result contains one more copy of the message. No libpq setting limits this memory. Therefore the address space of the
//! process (`RLIMIT_AS`) is limited during each libpq call that reads. If malloc fails, libpq reports a broken connection.

use std::fs;

/// A temporary limit of this process's address space; None if the system does not report the current size.
#[derive(Clone, Copy, Debug)]
pub struct Ceiling {
    bytes: Option<libc::rlim_t>,
}

impl Ceiling {
    /// Creates a limit: the current size of the address space plus `room` bytes.
    pub fn above(room: usize) -> Self {
        let bytes = mapped().map(|mapped| mapped.saturating_add(room as libc::rlim_t));
        Self { bytes }
    }

    /// Runs `work` under the limit. `work` must not throw or panic.
    pub fn over<T>(self, work: impl FnOnce() -> T) -> T {
        let former = self.bytes.and_then(lower);
        let done = work();
        if let Some(former) = former {
            // SAFETY: restores the previous limit, which is always allowed.
            unsafe { libc::setrlimit(libc::RLIMIT_AS, &raw const former) };
        }
        done
    }
}

/// Lowers the limit and returns the previous limit; None if the call failed.
fn lower(bytes: libc::rlim_t) -> Option<libc::rlimit> {
    let mut former = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: writes to a local variable, and sets a limit that is not above the previous one.
    unsafe {
        if libc::getrlimit(libc::RLIMIT_AS, &raw mut former) != 0 {
            return None;
        }
        let lower = libc::rlimit { rlim_cur: bytes.min(former.rlim_cur), ..former };
        (libc::setrlimit(libc::RLIMIT_AS, &raw const lower) == 0).then_some(former)
    }
}

/// Returns the size of this process's address space in bytes, as Linux reports it.
fn mapped() -> Option<libc::rlim_t> {
    let pages: libc::rlim_t = fs::read_to_string("/proc/self/statm").ok()?.split(' ').next()?.parse().ok()?;
    // SAFETY: asks for a constant of the system.
    let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    pages.checked_mul(libc::rlim_t::try_from(page).ok()?)
}
