//! libpq options of foreign servers and connection strings.

use super::functions::{ConnInfoOption, libpq};
use crate::pg::encoding::converted;
use pgrx::{PgList, pg_sys};
use std::collections::HashSet;
use std::ffi::{CStr, CString, c_char};

/// The letter that marks options for libpq's internal use.
const NOT_FOR_USERS: u8 = b'D';

/// Returns the libpq options of a foreign server for a role, as UTF-8. The server's options come first, then the options of
/// the user mapping; the last value of an option counts. Leaves out `client_encoding`, and options of the foreign-data
/// wrapper, such as `fetch_size`.
///
/// Throws the server's error if the foreign server or the user mapping does not exist. Call only within a transaction.
pub fn options_of(server: &str, user: pg_sys::Oid) -> Vec<(String, String)> {
    let known = known();
    // SAFETY: the caller is within a transaction; the results live in the current memory context, and are copied.
    let options = unsafe {
        let server = pg_sys::GetForeignServerByName(in_server_encoding(server).as_ptr(), false);
        let mapping = pg_sys::GetUserMapping(user, (*server).serverid);
        [(*server).options, (*mapping).options].map(|options| read(options)).concat()
    };
    options.into_iter().filter(|(name, _)| known.contains(name)).collect()
}

/// Returns the options in a libpq connection string, without `client_encoding`. The string is in UTF-8.
///
/// # Errors
/// Returns libpq's message if the string is malformed.
pub fn options_of_string(string: &str) -> Result<Vec<(String, String)>, String> {
    let string = CString::new(string).map_err(|_| "it has a zero byte".to_owned())?;
    let libpq = libpq();
    let mut error: *mut c_char = std::ptr::null_mut();
    // SAFETY: the text ends with a zero byte. The result is a list or an error message, and is copied and freed.
    let options = unsafe {
        let list = (libpq.parse_options)(string.as_ptr(), &raw mut error);
        if list.is_null() {
            let said = if error.is_null() { "out of memory".to_owned() } else { text(error) };
            (libpq.free_memory)(error.cast());
            return Err(said);
        }
        of_list(list, |option| (!option.value.is_null()).then(|| (text(option.keyword), text(option.value))))
    };
    Ok(options.into_iter().filter(|(name, _)| name != "client_encoding").collect())
}

/// Reads the options of a list, and frees the list.
///
/// # Safety
/// The list ends with an option without a name, or is null.
unsafe fn of_list<T>(list: *mut ConnInfoOption, read: impl Fn(&ConnInfoOption) -> Option<T>) -> Vec<T> {
    let mut found = Vec::new();
    let mut option = list;
    // SAFETY: the caller passes a list that ends with an option without a name, or null.
    unsafe {
        while !option.is_null() && !(*option).keyword.is_null() {
            found.extend(read(&*option));
            option = option.add(1);
        }
        (libpq().free_options)(list);
    }
    found
}

/// # Safety
/// `text` ends with a zero byte.
unsafe fn text(text: *const c_char) -> String {
    // SAFETY: the caller passes a text that ends with a zero byte.
    unsafe { CStr::from_ptr(text) }.to_string_lossy().trim().to_owned()
}

/// Returns the owner of a foreign server. Throws the server's error if the foreign server does not exist. Call only within a
/// transaction.
pub fn owner_of(server: &str) -> pg_sys::Oid {
    // SAFETY: the caller is within a transaction.
    unsafe { (*pg_sys::GetForeignServerByName(in_server_encoding(server).as_ptr(), false)).owner }
}

/// # Safety
/// `options` is a list of options.
unsafe fn read(options: *mut pg_sys::List) -> Vec<(String, String)> {
    // SAFETY: each option in the list has a name, and a value that can be shown as text.
    unsafe {
        let options = PgList::<pg_sys::DefElem>::from_pg(options);
        options
            .iter_ptr()
            .map(|option| (utf8((*option).defname), utf8(pg_sys::defGetString(option))))
            .collect()
    }
}

/// Returns the names of the libpq options that users may set, without `client_encoding`.
fn known() -> HashSet<String> {
    // SAFETY: libpq returns null, or a list that ends with an option without a name. Its texts end with a zero byte.
    let mut names: HashSet<String> = unsafe {
        let shown = |option: &ConnInfoOption| {
            let is_shown = !CStr::from_ptr(option.display).to_bytes().contains(&NOT_FOR_USERS);
            is_shown.then(|| text(option.keyword))
        };
        of_list((libpq().default_options)(), shown).into_iter().collect()
    };
    names.remove("client_encoding");
    names
}

/// # Safety
/// `text` ends with a zero byte, and is in the database's encoding.
unsafe fn utf8(text: *const c_char) -> String {
    // SAFETY: the caller passes a text with a zero byte at its end.
    let bytes = unsafe { CStr::from_ptr(text) }.to_bytes();
    String::from_utf8_lossy(&converted(bytes, pg_sys::pg_server_to_any)).into_owned()
}

/// Converts a name to the encoding of the catalogs. A name with a zero byte becomes an empty name, which no object has.
fn in_server_encoding(name: &str) -> CString {
    let name = CString::new(name).unwrap_or_default();
    CString::new(converted(name.to_bytes(), pg_sys::pg_any_to_server)).unwrap_or_default()
}
