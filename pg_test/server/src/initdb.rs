//! A new cluster: by `initdb`, or on a copy of one, which costs a tenth.

use crate::folder::Folder;
use crate::programs;
use anyhow::{Context, Result};
use std::env;
use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

/// The variable, known from Postgres's own tests, that names a cluster made by `initdb` with these arguments.
const TEMPLATE: &str = "INITDB_TEMPLATE";

/// Makes the cluster of a server.
pub(crate) fn create(folder: &Folder, checksums: bool) -> Result<()> {
    match env::var_os(TEMPLATE) {
        Some(template) if !checksums => copy(Path::new(&template), folder),
        _ => initdb(folder, checksums),
    }
}

fn initdb(folder: &Folder, checksums: bool) -> Result<()> {
    let mut initdb = folder.command("initdb");
    // Neither the server's speed nor its safety depends on a sync of the empty cluster.
    initdb.args(["--no-sync", "--auth=trust", "--username=postgres", "--encoding=UTF8", "--locale=C"]);
    if checksums {
        initdb.arg("--data-checksums");
    }
    programs::output(initdb.arg("--pgdata").arg(folder.data())).map(drop)
}

/// The copy gets a system identifier of its own, as a cluster by `initdb` has: it is what tells servers apart.
fn copy(template: &Path, folder: &Folder) -> Result<()> {
    programs::copy_files(template, &folder.data()).with_context(|| format!("{TEMPLATE} names no cluster"))?;
    let identifier = u64::try_from(SystemTime::now().duration_since(UNIX_EPOCH)?.as_nanos())?;
    // It comes first in the control file, in all versions.
    let mut control = File::options().write(true).open(folder.data().join("global/pg_control"))?;
    control.write_all(&identifier.to_ne_bytes())?;
    // Computes the checksum of the control file anew, and begins a WAL with the identifier.
    let mut resetwal = folder.command("pg_resetwal");
    programs::output(resetwal.arg("--force").arg("--pgdata").arg(folder.data())).map(drop)
}
