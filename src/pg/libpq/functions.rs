//! libpq's functions, loaded at first use.
//!
//! Most processes never need libpq. A server may be built without libpq's headers, or may have another version of libpq
//! than the build machine. All versions have the functions used below. The server's module `libpqwalreceiver` is linked
//! with libpq, so opening this module loads libpq.

use crate::pg::error::ServerError;
use crate::pg::report::raise;
use pgrx::pg_sys;
use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::sync::OnceLock;

/// A module that every server has and that is linked with libpq. `$libdir` makes the path independent of
/// `dynamic_library_path`.
const MODULE: &CStr = c"$libdir/libpqwalreceiver";

/// libpq's connection object.
#[repr(C)]
pub struct PgConn([u8; 0]);

/// libpq's result object.
#[repr(C)]
pub struct PgResult([u8; 0]);

/// libpq's description of a connection option.
#[repr(C)]
pub struct ConnInfoOption {
    /// The name; null in the entry that ends a list.
    pub keyword: *const c_char,
    environment: *const c_char,
    compiled: *const c_char,
    /// The value; null if the option is not set.
    pub value: *const c_char,
    label: *const c_char,
    /// The way clients should show the option. A `D` marks options for libpq's internal use.
    pub display: *const c_char,
    size: c_int,
}

/// libpq's callback for notices.
pub type NoticeReceiver = unsafe extern "C" fn(*mut c_void, *const PgResult);

macro_rules! functions {
    ($($name:ident = $symbol:literal($($argument:ty),*) $(-> $result:ty)?;)*) => {
        /// Pointers to libpq's functions.
        pub struct Functions {
            $(#[doc = stringify!($symbol)] pub $name: unsafe extern "C" fn($($argument),*) $(-> $result)?,)*
        }

        impl Functions {
            /// # Safety
            /// The process has loaded libpq, and no other library defines these names.
            unsafe fn find() -> Self {
                // SAFETY: the types match libpq's header. Versions of libpq with the same library name have the same types.
                unsafe {
                    Self {
                        $($name: std::mem::transmute::<
                            *mut c_void,
                            unsafe extern "C" fn($($argument),*) $(-> $result)?,
                        >(symbol($symbol)),)*
                    }
                }
            }
        }
    };
}

functions! {
    connect_start_params = c"PQconnectStartParams"(*const *const c_char, *const *const c_char, c_int) -> *mut PgConn;
    connect_poll = c"PQconnectPoll"(*mut PgConn) -> c_uint;
    finish = c"PQfinish"(*mut PgConn);
    status = c"PQstatus"(*const PgConn) -> c_uint;
    socket = c"PQsocket"(*const PgConn) -> c_int;
    error_message = c"PQerrorMessage"(*const PgConn) -> *const c_char;
    set_nonblocking = c"PQsetnonblocking"(*mut PgConn, c_int) -> c_int;
    set_error_verbosity = c"PQsetErrorVerbosity"(*mut PgConn, c_int) -> c_int;
    set_notice_receiver = c"PQsetNoticeReceiver"(*mut PgConn, NoticeReceiver, *mut c_void) -> Option<NoticeReceiver>;
    send_query_params = c"PQsendQueryParams"(
        *mut PgConn, *const c_char, c_int, *const c_uint, *const *const c_char, *const c_int, *const c_int, c_int
    ) -> c_int;
    flush = c"PQflush"(*mut PgConn) -> c_int;
    consume_input = c"PQconsumeInput"(*mut PgConn) -> c_int;
    is_busy = c"PQisBusy"(*mut PgConn) -> c_int;
    get_result = c"PQgetResult"(*mut PgConn) -> *mut PgResult;
    result_status = c"PQresultStatus"(*const PgResult) -> c_uint;
    result_error_message = c"PQresultErrorMessage"(*const PgResult) -> *const c_char;
    result_error_field = c"PQresultErrorField"(*const PgResult, c_int) -> *const c_char;
    get_value = c"PQgetvalue"(*const PgResult, c_int, c_int) -> *const c_char;
    get_length = c"PQgetlength"(*const PgResult, c_int, c_int) -> c_int;
    clear = c"PQclear"(*mut PgResult);
    default_options = c"PQconndefaults"() -> *mut ConnInfoOption;
    parse_options = c"PQconninfoParse"(*const c_char, *mut *mut c_char) -> *mut ConnInfoOption;
    free_memory = c"PQfreemem"(*mut c_void);
    free_options = c"PQconninfoFree"(*mut ConnInfoOption);
}

/// Returns libpq's functions. The first call loads libpq, and throws the server's error if loading fails.
pub fn libpq() -> &'static Functions {
    static FOUND: OnceLock<Functions> = OnceLock::new();
    // SAFETY: the name is a constant. The server loads modules with global symbols, so `dlsym` finds the functions.
    FOUND.get_or_init(|| unsafe {
        pg_sys::load_file(MODULE.as_ptr(), false);
        Functions::find()
    })
}

fn symbol(name: &CStr) -> *mut c_void {
    // SAFETY: looks up a symbol.
    let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    if found.is_null() {
        raise(ServerError::NoFunction(name.to_string_lossy().into_owned()));
    }
    found
}
