//! Lookup of host names in a thread, so that interrupts end the wait.
//!
//! The C library may wait for silent name servers for ten seconds or more, and no signal ends this wait. Therefore a thread
//! calls the C library. The thread blocks all signals, because the server's signal handlers must not run in the thread. The
//! thread calls no server function. If the caller stops waiting, the thread ends when the C library returns.

use super::timeout::Timeout;
use pgrx::pg_sys::WL_SOCKET_READABLE;
use snowflake_ids_core::registry::error::ConnectionError;
use snowflake_ids_core::registry::hosts::{self, Setting};
use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::thread;

/// The prefix that the standard library puts before the C library's error.
const LOOKUP: &str = "failed to lookup address information: ";

/// Returns the options, with the addresses of the host name added. libpq itself looks up the names in a list of hosts, in
/// the environment or in a service file.
///
/// # Errors
/// Returns [`ConnectionError::NoAddress`] if the lookup fails, or an error of [`Timeout::wait`].
pub fn looked_up(options: &[Setting], timeout: &mut Timeout) -> Result<Vec<Setting>, ConnectionError> {
    let Some(name) = hosts::name(options) else { return Ok(options.to_vec()) };
    let unknown = |reason: io::Error| {
        let reason = reason.to_string();
        let reason = reason.strip_prefix(LOOKUP).unwrap_or(&reason);
        ConnectionError::NoAddress(format!("could not translate host name \"{name}\" to address: {reason}"))
    };
    let (done, end) = UnixStream::pair().map_err(unknown)?;
    let found = FoundAddresses::default();
    let (thread_name, thread_found) = (name.to_owned(), Arc::clone(&found));
    let look_up = move || {
        // This end is dropped after the addresses are stored. The other end, on which the caller waits, then becomes
        // readable.
        let _end = end;
        let addresses = look_up(&thread_name);
        *thread_found.lock() = Some(addresses);
    };
    without_signals(|| thread::Builder::new().spawn(look_up)).map_err(unknown)?;
    timeout.wait(done.as_raw_fd(), WL_SOCKET_READABLE)?;
    let addresses = found.lock().take();
    let none = || Err(io::Error::other("the lookup ended without an answer"));
    Ok(hosts::with_addresses(options, name, &addresses.unwrap_or_else(none).map_err(unknown)?))
}

/// The addresses that the thread found; None until the lookup is done.
#[expect(clippy::disallowed_types, reason = "two threads of one process share it, and no other process does")]
type FoundAddresses = Arc<parking_lot::Mutex<Option<io::Result<Vec<String>>>>>;

fn look_up(name: &str) -> io::Result<Vec<String>> {
    // The port does not matter: libpq takes it from its own options.
    Ok((name, 0).to_socket_addrs()?.map(numeric).collect())
}

fn numeric(address: SocketAddr) -> String {
    match address {
        SocketAddr::V6(link) if link.scope_id() != 0 => format!("{}%{}", link.ip(), link.scope_id()),
        other => other.ip().to_string(),
    }
}

/// Runs `work` with all signals blocked. In threads that `work` starts, the signals stay blocked.
fn without_signals<T>(work: impl FnOnce() -> T) -> T {
    // SAFETY: the set is filled before it is used; the previous mask is restored.
    unsafe {
        let mut all = std::mem::zeroed();
        let mut before = std::mem::zeroed();
        libc::sigfillset(&raw mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, &raw mut before);
        let done = work();
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const before, std::ptr::null_mut());
        done
    }
}
