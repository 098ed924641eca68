//! Connections to other Postgres servers, with waits that cancel and shutdown can interrupt.
//!
//! This library is not linked with libpq. The first connection loads libpq into the process ([`functions`]). This module uses
//! libpq's asynchronous calls. Between the calls the process sleeps on its latch and the socket ([`timeout`]), so cancel,
//! `statement_timeout` and SIGTERM end a wait immediately. Only libpq's lookup of a host name would still block, so a thread
//! looks up the name ([`names`]).
//!
//! An interrupt throws an error, which unwinds like a panic. Unwinding drops the connection that is being opened or used,
//! and the drop closes the connection. If the process ends instead, the kernel closes the connection.
//!
//! Closing never waits: unsent data is discarded. A silent server gets no cancel request, because a cancel request would need
//! another connection. The server notices the lost client at its next read or write.

mod ceiling;
mod functions;
mod handle;
mod names;
mod options;
mod timeout;

pub use options::{options_of, options_of_string, owner_of};
pub use timeout::bound_by;

pub use snowflake_ids_core::registry::error::ConnectionError;

use handle::Handle;
use pgrx::pg_sys::{WL_SOCKET_READABLE, WL_SOCKET_WRITEABLE};
use snowflake_ids_core::registry::error::SqlError;
use std::ffi::CString;
use std::time::Duration;
use timeout::Timeout;

/// Options of every connection. These options come last, because the last value of an option counts.
const OURS: [(&str, &str); 2] = [("client_encoding", "UTF8"), ("fallback_application_name", "snowflake_ids")];

/// A connection to another server. Its client encoding is UTF-8.
pub struct Connection {
    /// None after the connection was closed, and during a request.
    handle: Option<Handle>,
}

impl Connection {
    /// Connects with the given libpq options. Do not pass a list of hosts. The first silent host would use up all of the
    /// time, and nothing could interrupt libpq's lookup of the names. Use
    /// [`hosts::each`](snowflake_ids_core::registry::hosts::each) to try several hosts.
    ///
    /// # Errors
    /// Returns a [`ConnectionError`]. Throws an error if libpq cannot be loaded, or if the wait is interrupted.
    pub fn open(options: &[(String, String)], limit: Duration) -> Result<Self, ConnectionError> {
        let mut timeout = Timeout::new(limit);
        let options = names::looked_up(options, &mut timeout)?;
        let options = options.iter().map(|(name, value)| (name.as_str(), value.as_str())).chain(OURS);
        let handle = Handle::start(options)?;
        let mut events = Some(WL_SOCKET_WRITEABLE);
        while let Some(wanted) = events {
            timeout.wait(handle.socket(), wanted)?;
            events = handle.poll()?;
        }
        Ok(Self { handle: Some(handle) })
    }

    /// Runs a statement with one text argument. Returns the first column of the first row as text. The text is empty if the
    /// value is null, or if there is no row.
    ///
    /// Fails if the value has more than `most` bytes. libpq holds a message twice in memory before the caller can see the
    /// length. Therefore the memory of libpq is limited, too ([`ceiling`]).
    ///
    /// # Errors
    /// Returns [`ConnectionError::Refused`] if the statement failed, and [`ConnectionError::Unreachable`] if the connection
    /// was already closed, so that nothing was sent. [`ConnectionError::Silent`], [`ConnectionError::Lost`] and
    /// [`ConnectionError::TooLong`] close the connection. An interrupt also closes the connection, and throws an error.
    pub fn ask(
        &mut self,
        sql: &str,
        argument: &str,
        limit: Duration,
        most: usize,
    ) -> Result<String, ConnectionError> {
        let (Ok(sql), Ok(argument)) = (CString::new(sql), CString::new(argument)) else {
            // The server would raise this error for a zero byte, which the protocol cannot send.
            let message = "invalid byte sequence for encoding \"UTF8\": 0x00";
            return Err(ConnectionError::Refused(SqlError::new(*b"22021", message)));
        };
        // The handle is taken out of `self`, so that any early return closes the connection.
        let handle = self.handle.take().filter(Handle::is_good);
        let mut handle = handle
            .ok_or_else(|| ConnectionError::Unreachable("the connection was closed before".to_owned()))?;
        handle.send(&sql, &argument)?;
        let mut timeout = Timeout::new(limit);
        // A server may stop reading until its own output has been read, so input is consumed between writes.
        while !handle.flush()? {
            timeout.wait(handle.socket(), WL_SOCKET_READABLE | WL_SOCKET_WRITEABLE)?;
            handle.consume()?;
        }
        let answer = receive(&handle, &mut timeout, most);
        if matches!(answer, Ok(_) | Err(ConnectionError::Refused(_))) {
            self.handle = Some(handle);
        }
        answer
    }

    /// Returns whether the connection seems to be open. Detects that the server has closed the connection. Does not detect
    /// that the server has vanished without closing the connection.
    pub fn is_good(&mut self) -> bool {
        // The first call reads the server's last message. The second call reads the end of the connection.
        let good =
            |handle: &Handle| handle.consume().and_then(|()| handle.consume()).is_ok() && handle.is_good();
        self.handle = self.handle.take().filter(good);
        self.handle.is_some()
    }
}

/// Reads all results of one statement. Returns the last value, or the last error if a result is an error.
fn receive(handle: &Handle, timeout: &mut Timeout, most: usize) -> Result<String, ConnectionError> {
    let mut found = Ok(String::new());
    loop {
        while handle.is_busy() {
            timeout.wait(handle.socket(), WL_SOCKET_READABLE)?;
            handle.consume()?;
        }
        let Some(answer) = handle.next() else { return found };
        match answer.value(most) {
            Ok(value) => found = found.map(|_| value),
            Err(failure @ ConnectionError::Refused(_)) => found = Err(failure),
            // After this error no more results arrive.
            Err(failure) => return Err(failure),
        }
    }
}
