//! A server whose wall clock a test steps. Monotonic time stays true.

use crate::folder::Folder;
use crate::programs;
use anyhow::Result;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The source of the library that shifts the time. libfaketime uses a lock, which a killed process would leave locked.
const LIBRARY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/src/clock.c");

/// Sets up a shifted clock for a postmaster, with an offset of zero. Returns the environment.
pub(crate) fn environment(folder: &Folder) -> Result<Vec<(String, String)>> {
    set(folder, "+0")?;
    let (file, library) = (file(folder.path()), folder.path().join("clock.so"));
    let mut compiler = Command::new("cc");
    compiler.args(["-shared", "-fPIC", LIBRARY, "-o"]).arg(&library);
    programs::output(compiler.arg(format!("-DCLOCK=\"{}\"", file.display())))?;
    Ok(vec![("LD_PRELOAD".into(), library.to_string_lossy().into_owned())])
}

fn file(folder: &Path) -> PathBuf {
    folder.join("clock")
}

/// Steps the clock. The file is renamed into place, so that no process reads a partly written offset.
pub(crate) fn set(folder: &Folder, offset: &str) -> Result<()> {
    let new = folder.path().join("clock.new");
    fs::write(&new, format!("{offset}\n"))?;
    Ok(fs::rename(new, file(folder.path()))?)
}
