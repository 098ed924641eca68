//! A server whose wall clock a test steps, by libfaketime. Monotonic time stays true.

use crate::server::{Home, Server};
use anyhow::{Context, Result};
use std::fs;
use std::path::{Path, PathBuf};

/// What the postmaster's environment needs to have a false clock; it shows true time for now.
pub(crate) fn environment(home: &Home) -> Result<Vec<(String, String)>> {
    write(home.path(), "+0")?;
    let file = file(home.path());
    let variables = [
        ("LD_PRELOAD", library()?),
        ("FAKETIME_TIMESTAMP_FILE", file),
        ("FAKETIME_NO_CACHE", "1".into()),
        ("FAKETIME_DONT_FAKE_MONOTONIC", "1".into()),
    ];
    Ok(variables.map(|(name, value)| (name.into(), value.to_string_lossy().into_owned())).into())
}

fn library() -> Result<PathBuf> {
    let folders = fs::read_dir("/usr/lib")?.flatten().map(|entry| entry.path());
    folders
        .chain([PathBuf::from("/usr/lib")])
        .map(|folder| folder.join("faketime/libfaketime.so.1"))
        .find(|library| library.is_file())
        .context("libfaketime.so.1 is missing: install the package libfaketime")
}

fn file(folder: &Path) -> PathBuf {
    folder.join("clock")
}

/// Renamed into place, so that no process ever reads half an offset.
fn write(folder: &Path, offset: &str) -> Result<()> {
    let new = folder.join("clock.new");
    fs::write(&new, format!("{offset}\n"))?;
    Ok(fs::rename(new, file(folder))?)
}

impl Server {
    /// Steps the clock of all the server's processes at once: an offset from true time such as `-1h`,
    /// `+2.5` (seconds) or `+0`.
    ///
    /// # Errors
    /// The server's folder cannot be written.
    pub fn set_clock(&self, offset: &str) -> Result<()> {
        write(self.home.path(), offset)
    }
}
