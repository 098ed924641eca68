//! Looking up a host's name so that it can be interrupted.
//!
//! The C library asks the name servers for as long as its configuration says, ten seconds and more where they are silent,
//! and no signal ends that. So a thread asks it: one that gets no signals, which are for the server's code, and that
//! touches nothing of the server's. Where no caller waits for it any more it ends by itself when the C library is done.

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

/// The words of the standard library before the C library's reason.
const LOOKUP: &str = "failed to lookup address information: ";

/// The same options, with the addresses of the host's name if it has one. Of a list of hosts, of an option that is in the
/// environment or in a service file, libpq looks up the names itself.
///
/// # Errors
/// [`ConnectionError::NoAddress`] and [`ConnectionError::Silent`].
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
        // Closed after the addresses are there to be read: so the other end tells when it is done.
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

/// The addresses that the thread found; None as long as it looks.
#[expect(clippy::disallowed_types, reason = "two threads of one process share it, and no other process does")]
type FoundAddresses = Arc<parking_lot::Mutex<Option<io::Result<Vec<String>>>>>;

fn look_up(name: &str) -> io::Result<Vec<String>> {
    // libpq has its own opinion of the port.
    Ok((name, 0).to_socket_addrs()?.map(numeric).collect())
}

fn numeric(address: SocketAddr) -> String {
    match address {
        SocketAddr::V6(link) if link.scope_id() != 0 => format!("{}%{}", link.ip(), link.scope_id()),
        other => other.ip().to_string(),
    }
}

/// Runs `work`, and the threads that it starts for their whole lives, with all signals blocked.
fn without_signals<T>(work: impl FnOnce() -> T) -> T {
    // SAFETY: a set is filled before it is used; what was blocked before is so again after.
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
