//! New clusters: made by `initdb`, or copied from a template in a tenth of the time.

use crate::folder::Folder;
use crate::programs;
use anyhow::{Context, Result};
use std::env;
use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

/// The variable that names a cluster made by `initdb` with these arguments. Postgres's own tests use the same variable.
const TEMPLATE: &str = "INITDB_TEMPLATE";

/// Creates the cluster of a server.
pub(crate) fn create(folder: &Folder, checksums: bool) -> Result<()> {
    match env::var_os(TEMPLATE) {
        Some(template) if !checksums => copy(Path::new(&template), folder),
        _ => initdb(folder, checksums),
    }
}

fn initdb(folder: &Folder, checksums: bool) -> Result<()> {
    let mut initdb = folder.command("initdb");
    // The empty cluster need not be synced.
    initdb.args(["--no-sync", "--auth=trust", "--username=postgres", "--encoding=UTF8", "--locale=C"]);
    if checksums {
        initdb.arg("--data-checksums");
    }
    programs::output(initdb.arg("--pgdata").arg(folder.data())).map(drop)
}

/// Copies the template. The copy gets a system identifier of its own, because the identifier distinguishes servers.
fn copy(template: &Path, folder: &Folder) -> Result<()> {
    programs::copy_files(template, &folder.data()).with_context(|| format!("{TEMPLATE} names no cluster"))?;
    let identifier = u64::try_from(SystemTime::now().duration_since(UNIX_EPOCH)?.as_nanos())?;
    // The system identifier is the first field of the control file in all versions.
    let mut control = File::options().write(true).open(folder.data().join("global/pg_control"))?;
    control.write_all(&identifier.to_ne_bytes())?;
    // The program rewrites the control file's checksum, and begins a WAL with the new identifier.
    let mut resetwal = folder.command("pg_resetwal");
    programs::output(resetwal.arg("--force").arg("--pgdata").arg(folder.data())).map(drop)
}
