//! Asking another Postgres, without ever waiting where cancel and shutdown can't reach.
//!
//! libpq is not linked: it comes into a process when the first connection is opened ([`functions`]). Its calls are
//! the asynchronous ones; between them a process sleeps on the socket and its latch ([`timeout`]), so that cancel,
//! `statement_timeout` and SIGTERM end a wait at once. The one that would wait all the same, for the address of a host's
//! name, is left to a thread ([`names`]).
//!
//! An interrupt throws an error, which unwinds through here as a panic does: a connection that is being opened or
//! asked is then dropped, and so closed. Where a process ends instead (shutdown of a session, death of the
//! postmaster), the kernel closes it.
//!
//! Closing never waits: what is left to be sent is dropped, and no cancel request goes to a server that is silent,
//! since that would need another connection to it. It notices that it lost its client when it next writes or reads.

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

/// Options of every connection, whatever the others are: the last of a name counts.
const OURS: [(&str, &str); 2] = [("client_encoding", "UTF8"), ("fallback_application_name", "snowflake_ids")];

/// A connection to another server. Text on it is UTF-8.
pub struct Connection {
    /// None once it was given up, and while the server is asked.
    handle: Option<Handle>,
}

impl Connection {
    /// Connects with these options of libpq's. Of several hosts, one that doesn't answer takes all of the time, and libpq
    /// looks up their names itself, where nothing can interrupt it: those are for
    /// [`hosts::each`](snowflake_ids_core::registry::hosts::each).
    ///
    /// # Errors
    /// [`ConnectionError`]. Where libpq can't be loaded, and where the wait is interrupted, an error is thrown.
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

    /// Runs a statement with one text argument. Returns the first column of the first row as text; empty where that is
    /// null, and where there is none.
    ///
    /// No more is read than `most` bytes. libpq reads a message as a whole, and has it in memory twice, before a caller can
    /// look at it; so it is kept from taking more memory than that takes ([`ceiling`]).
    ///
    /// # Errors
    /// [`ConnectionError::Silent`], [`ConnectionError::Lost`], [`ConnectionError::TooLong`] and [`ConnectionError::Refused`]; but for the last, the connection
    /// is closed, as it is where the wait is interrupted, by an error that is thrown. [`ConnectionError::Unreachable`] where it was closed
    /// before, and nothing was asked.
    pub fn ask(
        &mut self,
        sql: &str,
        argument: &str,
        limit: Duration,
        most: usize,
    ) -> Result<String, ConnectionError> {
        let (Ok(sql), Ok(argument)) = (CString::new(sql), CString::new(argument)) else {
            // The server's error for a zero byte, which can't be sent to it.
            let message = "invalid byte sequence for encoding \"UTF8\": 0x00";
            return Err(ConnectionError::Refused(SqlError::new(*b"22021", message)));
        };
        // Taken out, so that it is closed by whatever ends this early.
        let handle = self.handle.take().filter(Handle::is_good);
        let mut handle = handle
            .ok_or_else(|| ConnectionError::Unreachable("the connection was closed before".to_owned()))?;
        handle.send(&sql, &argument)?;
        let mut timeout = Timeout::new(limit);
        // A server that does not read until it was read from is read from.
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

    /// Returns whether nothing is known against it: so a server that closed it is noticed before it is asked. One that
    /// went away without a word is not.
    pub fn is_good(&mut self) -> bool {
        // Once for what the server said before it closed, and once for the end.
        let good =
            |handle: &Handle| handle.consume().and_then(|()| handle.consume()).is_ok() && handle.is_good();
        self.handle = self.handle.take().filter(good);
        self.handle.is_some()
    }
}

/// Reads to the end of the server's answers to one statement. Returns the value of the last.
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
            // Nothing more will come.
            Err(failure) => return Err(failure),
        }
    }
}
