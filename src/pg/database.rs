//! Databases of the cluster.

use super::{process, tuple};
use pgrx::pg_sys;
use std::ffi::CStr;
use std::fs;
use std::path::{Path, PathBuf};

/// Returns whether a database may exist. Call only in workers, outside a transaction. Returns true if the catalog cannot be
/// read.
pub fn may_exist(database: u32) -> bool {
    process::transaction(|| name(database).is_some()).unwrap_or(true)
}

/// Returns whether the data directory contains files of a database. Needs no transaction. Returns true if a check of a folder
/// fails.
pub fn has_files(database: u32) -> bool {
    /// The folder of tablespaces; each tablespace has a folder for each major version.
    const TABLESPACES: &str = "pg_tblspc";
    let folders =
        |path: PathBuf| fs::read_dir(path).into_iter().flatten().flatten().map(|entry| entry.path());
    let name = database.to_string();
    let of_version = || folders(PathBuf::from(TABLESPACES)).flat_map(folders);
    Path::new("base").join(&name).try_exists().unwrap_or(true)
        || of_version().any(|folder| folder.join(&name).try_exists().unwrap_or(true))
}

/// Returns the name of a database. Call only within a transaction.
pub fn name(database: u32) -> Option<String> {
    find(|row| (row.oid.to_u32() == database).then(|| name_of(row)))
}

/// Returns the OID of the database with this name. Call only within a transaction.
pub fn of_name(name: &str) -> Option<u32> {
    find(|row| (name_of(row) == name).then(|| row.oid.to_u32()))
}

/// Returns the databases that may contain the extension. Leaves out templates that allow no connections, and databases that
/// are partly dropped. Call only within a transaction.
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

/// Returns whether a database exists and is not partly dropped. Templates that allow no connections count, too. Call only in
/// workers, outside a transaction. Returns true if the catalog cannot be read.
pub fn may_be_used(database: u32) -> bool {
    let is_valid = |row: &pg_sys::FormData_pg_database| row.datconnlimit != INVALID;
    let look = || find(|row| (row.oid.to_u32() == database).then(|| is_valid(row)));
    process::transaction(|| look() == Some(true)).unwrap_or(true)
}

/// The `datconnlimit` of a database that is partly dropped.
const INVALID: i32 = -2;

fn name_of(row: &pg_sys::FormData_pg_database) -> String {
    // SAFETY: a name ends with a zero byte.
    unsafe { CStr::from_ptr(row.datname.data.as_ptr()).to_string_lossy().into_owned() }
}

/// Returns the first result that is not None. Scans the catalog without an index, because a worker that is connected to no
/// database may be unable to open the index.
fn find<T>(mut wanted: impl FnMut(&pg_sys::FormData_pg_database) -> Option<T>) -> Option<T> {
    let mut found = None;
    // SAFETY: the caller is within a transaction. Rows of the shared catalog begin with the fields of the struct.
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
