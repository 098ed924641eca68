//! The limit of memory that libpq takes for what another server sends.
//!
//! It reads each message as a whole, of up to a gigabyte. Its buffer is as large as the message says that it will be, and
//! for the answer it copies all of it once more. Nothing in its interface bounds that. What does is the process's own
//! limit of address space. It is lowered around each of libpq's calls that reads, and only around those. Then malloc tells
//! libpq that there is no memory, which libpq takes for a broken connection.

use std::fs;

/// A limit of this process's address space for a while; none where the system does not say how much of it is in use.
#[derive(Clone, Copy, Debug)]
pub struct Ceiling {
    bytes: Option<libc::rlim_t>,
}

impl Ceiling {
    /// So many bytes above what this process has mapped now.
    pub fn above(room: usize) -> Self {
        let bytes = mapped().map(|mapped| mapped.saturating_add(room as libc::rlim_t));
        Self { bytes }
    }

    /// Does `work`, which neither throws nor panics, with no more than this.
    pub fn over<T>(self, work: impl FnOnce() -> T) -> T {
        let former = self.bytes.and_then(lower);
        let done = work();
        if let Some(former) = former {
            // SAFETY: sets the limit that was there before, which may be done always.
            unsafe { libc::setrlimit(libc::RLIMIT_AS, &raw const former) };
        }
        done
    }
}

/// Lowers the limit, and returns the former one; None where that failed.
fn lower(bytes: libc::rlim_t) -> Option<libc::rlimit> {
    let mut former = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: reads into a variable of ours, and sets a limit that is no higher than what may be.
    unsafe {
        if libc::getrlimit(libc::RLIMIT_AS, &raw mut former) != 0 {
            return None;
        }
        let lower = libc::rlimit { rlim_cur: bytes.min(former.rlim_cur), ..former };
        (libc::setrlimit(libc::RLIMIT_AS, &raw const lower) == 0).then_some(former)
    }
}

/// The bytes of address space that this process has in use, as Linux tells.
fn mapped() -> Option<libc::rlim_t> {
    let pages: libc::rlim_t = fs::read_to_string("/proc/self/statm").ok()?.split(' ').next()?.parse().ok()?;
    // SAFETY: asks for a constant of the system.
    let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    pages.checked_mul(libc::rlim_t::try_from(page).ok()?)
}
