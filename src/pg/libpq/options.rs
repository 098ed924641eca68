//! The options of a foreign server that are libpq's.

use super::functions::{ConnInfoOption, libpq};
use pgrx::{PgList, pg_sys};
use std::collections::HashSet;
use std::ffi::{CStr, CString, c_char, c_int};

/// The letter of options that are for libpq's own purposes, such as the one that makes a walsender.
const NOT_FOR_USERS: u8 = b'D';

/// libpq's options of a foreign server for a role, as text in UTF-8: the server's, then the user mapping's, of which the
/// last of a name counts. The wrapper's own, such as `fetch_size`, are left out, and so is `client_encoding`.
///
/// The server's errors are thrown where there is no such foreign server, or no mapping for the role. Only within a
/// transaction.
pub fn options_of(server: &str, user: pg_sys::Oid) -> Vec<(String, String)> {
    let known = known();
    // SAFETY: within a transaction; what is found lives as long as the memory context that it is in, and is copied.
    let options = unsafe {
        let server = pg_sys::GetForeignServerByName(in_server_encoding(server), false);
        let mapping = pg_sys::GetUserMapping(user, (*server).serverid);
        [(*server).options, (*mapping).options].map(|options| read(options)).concat()
    };
    options.into_iter().filter(|(name, _)| known.contains(name)).collect()
}

/// The options that a connection string of libpq's names, as text in UTF-8, which it is in.
///
/// # Errors
/// It is none; libpq's words.
pub fn options_of_string(string: &str) -> Result<Vec<(String, String)>, String> {
    let string = CString::new(string).map_err(|_| "it has a zero byte".to_owned())?;
    let libpq = libpq();
    let mut error: *mut c_char = std::ptr::null_mut();
    // SAFETY: a text that ends with a zero byte. A list, or a message in its place, which is copied and freed.
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

/// Reads the options of a list, and frees it.
///
/// # Safety
/// A list that ends with an option without a name; or null.
unsafe fn of_list<T>(list: *mut ConnInfoOption, read: impl Fn(&ConnInfoOption) -> Option<T>) -> Vec<T> {
    let mut found = Vec::new();
    let mut option = list;
    // SAFETY: as above.
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
/// A text that ends with a zero byte.
unsafe fn text(text: *const c_char) -> String {
    // SAFETY: as above.
    unsafe { CStr::from_ptr(text) }.to_string_lossy().trim().to_owned()
}

/// The owner of a foreign server. One that there is not is the server's error. Only within a transaction.
pub fn owner_of(server: &str) -> pg_sys::Oid {
    // SAFETY: as above.
    unsafe { (*pg_sys::GetForeignServerByName(in_server_encoding(server), false)).owner }
}

/// # Safety
/// A list of options.
unsafe fn read(options: *mut pg_sys::List) -> Vec<(String, String)> {
    // SAFETY: as above; each has a name, and a value that can be shown as text.
    unsafe {
        let options = PgList::<pg_sys::DefElem>::from_pg(options);
        options
            .iter_ptr()
            .map(|option| (utf8((*option).defname), utf8(pg_sys::defGetString(option))))
            .collect()
    }
}

/// The names of the options that libpq knows and users may set.
fn known() -> HashSet<String> {
    // SAFETY: a list, with texts that end with a zero byte.
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
/// A text that ends with a zero byte, in the database's encoding.
unsafe fn utf8(text: *const c_char) -> String {
    // SAFETY: as above; what is converted is allocated in the memory context, and copied.
    unsafe {
        let length = c_int::try_from(CStr::from_ptr(text).count_bytes()).unwrap_or(c_int::MAX);
        let converted = pg_sys::pg_server_to_any(text, length, pg_sys::pg_enc::PG_UTF8.cast_signed());
        CStr::from_ptr(converted).to_string_lossy().into_owned()
    }
}

/// A name as the catalogs have it, in the memory context. With a zero byte it is no name, and found nowhere.
fn in_server_encoding(name: &str) -> *const c_char {
    let name = CString::new(name).unwrap_or_default();
    let length = c_int::try_from(name.count_bytes()).unwrap_or(c_int::MAX);
    // SAFETY: the text is copied, and where it isn't converted that is done here.
    unsafe {
        let copy = pg_sys::pstrdup(name.as_ptr());
        pg_sys::pg_any_to_server(copy, length, pg_sys::pg_enc::PG_UTF8.cast_signed())
    }
}
