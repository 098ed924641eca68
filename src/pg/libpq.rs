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

use handle::{Handle, LibpqAnswer, Poll};
use std::ffi::CString;
use std::time::Duration;
use timeout::{Need, Timeout};

/// What is set for every connection, whatever the options: the last of a name counts.
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
    /// A [`ConnectionError`] that says why there is no connection. Where libpq can't be loaded, and where the wait is
    /// interrupted, an error is thrown.
    pub fn open(options: &[(String, String)], limit: Duration) -> Result<Self, ConnectionError> {
        let mut timeout = Timeout::new(limit);
        let options = names::looked_up(options, &mut timeout)?;
        let options = options.iter().map(|(name, value)| (name.as_str(), value.as_str())).chain(OURS);
        let handle = Handle::start(options)?;
        let mut need = Need::Write;
        loop {
            timeout.wait(handle.socket(), need)?;
            need = match handle.poll() {
                Poll::Reading => Need::Read,
                Poll::Writing => Need::Write,
                Poll::Done if handle.never_block() => return Ok(Self { handle: Some(handle) }),
                Poll::Done | Poll::Failed => return Err(handle.connect_error()),
            };
        }
    }

    /// Runs a statement with one text argument. Gives the first column of the first row as text; empty where that is
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
        self.run(sql, argument, limit, |answer| answer.value(most)).map(Option::unwrap_or_default)
    }

    /// Runs a statement, and gives what was read of its last answer; None where it has none.
    fn run<T>(
        &mut self,
        sql: &str,
        argument: &str,
        limit: Duration,
        read: impl Fn(&LibpqAnswer) -> Result<T, ConnectionError>,
    ) -> Result<Option<T>, ConnectionError> {
        let (Ok(sql), Ok(argument)) = (CString::new(sql), CString::new(argument)) else {
            return Err(zero_byte());
        };
        // Taken out, so that it is closed by whatever ends this early.
        let handle = self.handle.take().filter(Handle::is_good);
        let mut handle = handle
            .ok_or_else(|| ConnectionError::Unreachable("the connection was closed before".to_owned()))?;
        if !handle.send(&sql, &argument) {
            return Err(ConnectionError::Lost(handle.error()));
        }
        let mut timeout = Timeout::new(limit);
        flush(&handle, &mut timeout)?;
        let answer = receive(&handle, &mut timeout, read);
        if matches!(answer, Ok(_) | Err(ConnectionError::Refused { .. })) {
            self.handle = Some(handle);
        }
        answer
    }

    /// Returns whether nothing is known against it: so a server that closed it is noticed before it is asked. One that
    /// went away without a word is not.
    pub fn is_good(&mut self) -> bool {
        // Once for what the server said before it closed, and once for the end.
        let good = |handle: &Handle| handle.consume() && handle.consume() && handle.is_good();
        self.handle = self.handle.take().filter(good);
        self.handle.is_some()
    }
}

/// Sends what did not fit into the socket; a server that does not read until it was read from is read from.
fn flush(handle: &Handle, timeout: &mut Timeout) -> Result<(), ConnectionError> {
    while !handle.flush().map_err(ConnectionError::Lost)? {
        timeout.wait(handle.socket(), Need::ReadOrWrite)?;
        if !handle.consume() {
            return Err(ConnectionError::Lost(handle.error()));
        }
    }
    Ok(())
}

/// Reads to the end of what the server has to say to one statement.
fn receive<T>(
    handle: &Handle,
    timeout: &mut Timeout,
    read: impl Fn(&LibpqAnswer) -> Result<T, ConnectionError>,
) -> Result<Option<T>, ConnectionError> {
    let mut found = Ok(None);
    while let Some(answer) = next(handle, timeout)? {
        match read(&answer) {
            Ok(value) => found = found.map(|_| Some(value)),
            Err(failure @ ConnectionError::Refused { .. }) => found = Err(failure),
            // Nothing more will come.
            Err(failure) => return Err(failure),
        }
    }
    found
}

fn next(handle: &Handle, timeout: &mut Timeout) -> Result<Option<LibpqAnswer>, ConnectionError> {
    while handle.is_busy() {
        timeout.wait(handle.socket(), Need::Read)?;
        if !handle.consume() {
            return Err(ConnectionError::Lost(handle.error()));
        }
    }
    Ok(handle.next())
}

/// Returns what the server would say to a text with a zero byte, which can't be sent to it.
fn zero_byte() -> ConnectionError {
    ConnectionError::Refused {
        code: *b"22021",
        message: "invalid byte sequence for encoding \"UTF8\": 0x00".to_owned(),
        detail: None,
        hint: None,
    }
}
