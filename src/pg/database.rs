//! The databases of the cluster.

use super::{tuple, worker};
use pgrx::pg_sys;
use std::ffi::CStr;
use std::fs;
use std::path::{Path, PathBuf};

/// Returns whether there is a database of this oid. Only within a transaction.
pub fn exists(database: u32) -> bool {
    name(database).is_some()
}

/// The same for workers, which have no transaction yet; true also where it can't be found out.
pub fn may_exist(database: u32) -> bool {
    worker::transaction(|| exists(database)).unwrap_or(true)
}

/// Returns whether the server keeps files of a database, without a transaction; true where that cannot be found out.
pub fn has_files(database: u32) -> bool {
    /// Tablespaces, and in each a folder for each major version.
    const TABLESPACES: &str = "pg_tblspc";
    let folders =
        |path: PathBuf| fs::read_dir(path).into_iter().flatten().flatten().map(|entry| entry.path());
    let name = database.to_string();
    let of_version = || folders(PathBuf::from(TABLESPACES)).flat_map(folders);
    Path::new("base").join(&name).try_exists().unwrap_or(true)
        || of_version().any(|folder| folder.join(&name).try_exists().unwrap_or(true))
}

/// Returns what a database is called. Only within a transaction.
pub fn name(database: u32) -> Option<String> {
    find(|row| (row.oid.to_u32() == database).then(|| name_of(row)))
}

/// The database of this name. Only within a transaction.
pub fn of_name(name: &str) -> Option<u32> {
    find(|row| (name_of(row) == name).then(|| row.oid.to_u32()))
}

/// The databases in which there may be the extension, also closed ones; not closed templates, which are there to be copied, nor those
/// whose removal was cut short. Only within a transaction.
pub fn all_in_use() -> Vec<u32> {
    let mut found = Vec::new();
    let _: Option<()> = find(|row| {
        let is_closed_template = row.datistemplate && !row.datallowconn;
        if !is_closed_template && row.datconnlimit != INVALID {
            found.push(row.oid.to_u32());
        }
        None
    });
    found
}

/// Returns whether a database, also a closed template, can be used, for workers without a transaction; true where that can't be found out.
pub fn may_be_used(database: u32) -> bool {
    let is_valid = |row: &pg_sys::FormData_pg_database| row.datconnlimit != INVALID;
    let look = || find(|row| (row.oid.to_u32() == database).then(|| is_valid(row)));
    worker::transaction(|| look() == Some(true)).unwrap_or(true)
}

/// The limit of sessions that the server writes where the removal of a database was cut short.
const INVALID: i32 = -2;

fn name_of(row: &pg_sys::FormData_pg_database) -> String {
    // SAFETY: a name ends with a zero byte.
    unsafe { CStr::from_ptr(row.datname.data.as_ptr()).to_string_lossy().into_owned() }
}

/// The first row that is wanted. Not by an index, which a worker without a database may be unable to open.
fn find<T>(mut wanted: impl FnMut(&pg_sys::FormData_pg_database) -> Option<T>) -> Option<T> {
    let mut found = None;
    // SAFETY: as above. A scan of the shared catalog; rows of it begin with the struct's fields.
    unsafe {
        let lock = pg_sys::AccessShareLock.cast_signed();
        let catalog = pg_sys::table_open(pg_sys::DatabaseRelationId, lock);
        tuple::scan(catalog, pg_sys::InvalidOid, std::ptr::null_mut(), &mut [], |row| {
            found = wanted(&*pg_sys::GETSTRUCT(row).cast());
            found.is_none()
        });
        pg_sys::table_close(catalog, lock);
    }
    found
}
