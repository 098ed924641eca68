//! Safe wrappers for libpq's connections and results. Only libpq's own lookup of host names can block.

use super::ceiling::Ceiling;
use super::functions::{Functions, NoticeReceiver, PgConn, PgResult, libpq};
use pgrx::pg_sys::{self, WL_SOCKET_READABLE, WL_SOCKET_WRITEABLE};
use snowflake_ids_core::registry::error::{ConnectionError, SqlError};
use snowflake_ids_core::registry::wire::{MAX_BYTES, said};
use std::ffi::{CStr, CString, c_char, c_int, c_uint, c_void};
use std::ptr::{self, NonNull};

// Values of libpq's enums.
const CONNECTION_OK: c_uint = 0;
const CONNECTION_BAD: c_uint = 1;
const POLLING_READING: c_uint = 1;
const POLLING_WRITING: c_uint = 2;
const POLLING_OK: c_uint = 3;
const ERRORS_DEFAULT: c_int = 1;
const ERRORS_VERBOSE: c_int = 2;
const EMPTY_QUERY: c_uint = 0;
const COMMAND_OK: c_uint = 1;
const TUPLES_OK: c_uint = 2;
const FATAL_ERROR: c_uint = 7;

/// The memory that libpq may take: a buffer of up to twice the longest accepted result, a copy, and a reserve.
const ROOM: usize = 5 * MAX_BYTES;

/// A libpq connection, and its file descriptor in the server's budget.
pub struct Handle {
    libpq: &'static Functions,
    connection: NonNull<PgConn>,
    ceiling: Ceiling,
    _descriptor: Descriptor,
}

impl Handle {
    /// Starts to connect.
    pub fn start<'a>(options: impl Iterator<Item = (&'a str, &'a str)>) -> Result<Self, ConnectionError> {
        let failed = |why: &str| ConnectionError::Unreachable(why.to_owned());
        let options: Result<Vec<_>, _> =
            options.map(|(name, value)| Ok((CString::new(name)?, CString::new(value)?))).collect();
        let options = options.map_err(|_: std::ffi::NulError| failed("an option has a zero byte"))?;
        let end = [ptr::null::<c_char>()];
        let names: Vec<_> = options.iter().map(|(name, _)| name.as_ptr()).chain(end).collect();
        let values: Vec<_> = options.iter().map(|(_, value)| value.as_ptr()).chain(end).collect();

        let libpq = libpq();
        let descriptor =
            Descriptor::acquire().ok_or_else(|| failed("this server has too many files open"))?;
        // SAFETY: the two arrays have the same length and end with null. The strings outlive the call.
        let connection = unsafe { (libpq.connect_start_params)(names.as_ptr(), values.as_ptr(), 0) };
        let connection = NonNull::new(connection).ok_or_else(|| failed("out of memory"))?;
        let handle = Self { libpq, connection, ceiling: Ceiling::above(ROOM), _descriptor: descriptor };
        let ignore: NoticeReceiver = ignore_notice;
        // SAFETY: this connection exists until the handle is dropped. The receiver ignores its argument.
        let status = unsafe {
            (libpq.set_notice_receiver)(connection.as_ptr(), ignore, ptr::null_mut());
            (libpq.set_error_verbosity)(connection.as_ptr(), ERRORS_VERBOSE);
            (libpq.status)(connection.as_ptr())
        };
        if status == CONNECTION_BAD { Err(handle.connect_error()) } else { Ok(handle) }
    }

    /// Continues to connect. Returns the socket events to wait for, or None once the connection is established. From then
    /// on no call blocks, not even closing.
    pub fn poll(&self) -> Result<Option<u32>, ConnectionError> {
        let connection = self.connection.as_ptr();
        // SAFETY: the connection exists until the handle is dropped.
        match self.ceiling.over(|| unsafe { (self.libpq.connect_poll)(connection) }) {
            POLLING_READING => Ok(Some(WL_SOCKET_READABLE)),
            POLLING_WRITING => Ok(Some(WL_SOCKET_WRITEABLE)),
            POLLING_OK if self.never_block() => Ok(None),
            _ => Err(self.connect_error()),
        }
    }

    /// Switches the connection to non-blocking mode. Returns whether the switch succeeded.
    fn never_block(&self) -> bool {
        // SAFETY: the connection exists until the handle is dropped.
        unsafe {
            (self.libpq.set_error_verbosity)(self.connection.as_ptr(), ERRORS_DEFAULT);
            (self.libpq.set_nonblocking)(self.connection.as_ptr(), 1) == 0
        }
    }

    fn connect_error(&self) -> ConnectionError {
        // SAFETY: the connection exists; the text is valid until the next call, and is copied.
        let lines = unsafe { start_of((self.libpq.error_message)(self.connection.as_ptr())) };
        match ConnectionError::of_connecting(&lines) {
            ConnectionError::Rejected(code, words) => ConnectionError::Rejected(code, in_one_line(&words)),
            ConnectionError::Unreachable(words) => ConnectionError::Unreachable(in_one_line(&words)),
            other => other,
        }
    }

    /// Returns the socket to wait for. The socket changes whenever libpq tries another address.
    pub fn socket(&self) -> c_int {
        // SAFETY: the connection exists until the handle is dropped.
        unsafe { (self.libpq.socket)(self.connection.as_ptr()) }
    }

    /// Returns whether libpq regards the connection as established.
    pub fn is_good(&self) -> bool {
        // SAFETY: the connection exists until the handle is dropped.
        unsafe { (self.libpq.status)(self.connection.as_ptr()) == CONNECTION_OK }
    }

    /// Returns libpq's last error as the reason for the lost connection.
    fn lost(&self) -> ConnectionError {
        // SAFETY: the connection exists; the text is valid until the next call, and is copied.
        let message = unsafe { start_of((self.libpq.error_message)(self.connection.as_ptr())) };
        ConnectionError::Lost(in_one_line(&message))
    }

    fn unless_lost(&self, is_done: bool) -> Result<(), ConnectionError> {
        if is_done { Ok(()) } else { Err(self.lost()) }
    }

    /// Queues a statement with one text argument for sending.
    pub fn send(&mut self, sql: &CStr, argument: &CStr) -> Result<(), ConnectionError> {
        /// The format code of text.
        const TEXT: c_int = 0;
        let types = [pg_sys::TEXTOID.to_u32()];
        let values = [argument.as_ptr()];
        let (no_lengths, no_formats) = (ptr::null(), ptr::null());
        // SAFETY: one type and one value; values in text format need no lengths and formats. libpq copies its arguments.
        let sent = unsafe {
            (self.libpq.send_query_params)(
                self.connection.as_ptr(),
                sql.as_ptr(),
                1,
                types.as_ptr(),
                values.as_ptr(),
                no_lengths,
                no_formats,
                TEXT,
            ) == 1
        };
        // The new limit allows the result in addition to the memory that is in use after the statement was queued.
        self.ceiling = Ceiling::above(ROOM);
        self.unless_lost(sent)
    }

    /// Sends as much as the socket accepts. Returns whether everything was sent.
    pub fn flush(&self) -> Result<bool, ConnectionError> {
        // SAFETY: the connection exists until the handle is dropped.
        let left = unsafe { (self.libpq.flush)(self.connection.as_ptr()) };
        self.unless_lost(left == 0 || left == 1).map(|()| left == 0)
    }

    /// Reads the input that has arrived.
    pub fn consume(&self) -> Result<(), ConnectionError> {
        // SAFETY: the connection exists until the handle is dropped.
        let input = || unsafe { (self.libpq.consume_input)(self.connection.as_ptr()) };
        self.unless_lost(self.ceiling.over(input) == 1)
    }

    /// Returns whether [`next`](Self::next) would wait.
    pub fn is_busy(&self) -> bool {
        // SAFETY: the connection exists until the handle is dropped.
        self.ceiling.over(|| unsafe { (self.libpq.is_busy)(self.connection.as_ptr()) == 1 })
    }

    /// Returns the next result of the statement; None after the last one. Call only if [`is_busy`](Self::is_busy) returns
    /// false.
    pub fn next(&self) -> Option<LibpqAnswer> {
        // SAFETY: the connection exists; the caller owns the result.
        let answer = self.ceiling.over(|| unsafe { (self.libpq.get_result)(self.connection.as_ptr()) });
        Some(LibpqAnswer { libpq: self.libpq, answer: NonNull::new(answer)? })
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        // SAFETY: the connection exists until now.
        unsafe { (self.libpq.finish)(self.connection.as_ptr()) };
    }
}

/// Discards notices: libpq would write them to the server's log without naming their origin.
unsafe extern "C" fn ignore_notice(_nothing: *mut c_void, _notice: *const PgResult) {}

/// A file descriptor in the server's budget for this process, reserved for use outside of the server's own files.
struct Descriptor;

impl Descriptor {
    fn acquire() -> Option<Self> {
        // SAFETY: counts within this process.
        unsafe { pg_sys::AcquireExternalFD() }.then_some(Self)
    }
}

impl Drop for Descriptor {
    fn drop(&mut self) {
        // SAFETY: the descriptor was acquired. It is closed by now, because `Handle::drop` runs before the fields are dropped.
        unsafe { pg_sys::ReleaseExternalFD() };
    }
}

/// The result of a statement.
pub struct LibpqAnswer {
    libpq: &'static Functions,
    answer: NonNull<PgResult>,
}

impl LibpqAnswer {
    /// Returns the first column of the first row. The text is empty if the value is null, or if there is no row.
    ///
    /// # Errors
    /// Fails if the statement failed, or if the value has more than `most` bytes.
    pub fn value(&self, most: usize) -> Result<String, ConnectionError> {
        let answer = self.answer.as_ptr();
        // SAFETY: the result exists until it is dropped.
        match unsafe { (self.libpq.result_status)(answer) } {
            EMPTY_QUERY | COMMAND_OK => Ok(String::new()),
            // SAFETY: the result exists; a missing value has length 0 and a null pointer.
            TUPLES_OK => unsafe {
                // The length is checked before the value is copied.
                let bytes = (self.libpq.get_length)(answer, 0, 0);
                if usize::try_from(bytes).map_or(true, |bytes| bytes > most) {
                    return Err(ConnectionError::TooLong);
                }
                let value = (self.libpq.get_value)(answer, 0, 0);
                let text = (!value.is_null()).then(|| CStr::from_ptr(value).to_string_lossy().into_owned());
                Ok(text.unwrap_or_default())
            },
            FATAL_ERROR => Err(self.failure()),
            other => Err(ConnectionError::Lost(format!(
                "the answer is neither rows nor an error, but of kind {other}"
            ))),
        }
    }

    fn failure(&self) -> ConnectionError {
        let code = self.field(b'C').and_then(|code| code.into_bytes().try_into().ok());
        let ended = self.field(b'V').is_some_and(|severity| matches!(severity.as_str(), "FATAL" | "PANIC"));
        match (code, self.field(b'M')) {
            (Some(code), Some(message)) if !ended => {
                let [detail, hint] = [b'D', b'H'].map(|field| self.field(field));
                ConnectionError::Refused(SqlError { code, message, detail, hint })
            }
            // The other server sent this message as it closed the connection.
            (_, Some(message)) => ConnectionError::Lost(message),
            // libpq found the connection closed.
            _ => {
                // SAFETY: the text lives as long as the result.
                let message = unsafe { start_of((self.libpq.result_error_message)(self.answer.as_ptr())) };
                ConnectionError::Lost(in_one_line(&message))
            }
        }
    }

    /// Returns a field of the error, named by its letter in the protocol.
    fn field(&self, letter: u8) -> Option<String> {
        // SAFETY: the text lives as long as the result.
        unsafe {
            let field = (self.libpq.result_error_field)(self.answer.as_ptr(), letter.into());
            (!field.is_null()).then(|| said(&start_of(field)))
        }
    }
}

impl Drop for LibpqAnswer {
    fn drop(&mut self) {
        // SAFETY: the result exists until now.
        unsafe { (self.libpq.clear)(self.answer.as_ptr()) };
    }
}

/// Returns the beginning of a text.
///
/// # Safety
/// The text ends with a zero byte.
unsafe fn start_of(text: *const c_char) -> String {
    const MOST: usize = 8_192;
    // SAFETY: the caller passes a text that ends with a zero byte.
    let bytes = unsafe { CStr::from_ptr(text) }.to_bytes();
    String::from_utf8_lossy(bytes.get(..MOST).unwrap_or(bytes)).into_owned()
}

/// Joins the lines of a libpq message. Each line is a sentence about one address that was tried. A line that begins with a
/// tab continues the previous line.
fn in_one_line(message: &str) -> String {
    let line = message.lines().filter(|line| !line.trim().is_empty()).fold(String::new(), |all, line| {
        let more = line.trim();
        let gap = match () {
            () if all.is_empty() => "",
            () if all.ends_with(['.', '?', '!']) => " ",
            () if more.starts_with(char::is_uppercase) => ". ",
            () if line.starts_with('\t') => " ",
            () => "; ",
        };
        all + gap + more
    });
    said(&line)
}
