//! A server whose wall clock a test steps. Monotonic time stays true.

use crate::folder::Folder;
use crate::preload;
use anyhow::Result;
use std::fs;
use std::path::{Path, PathBuf};

/// Sets up a shifted clock for a postmaster, with an offset of zero. Returns the environment. libfaketime uses a lock, which a
/// killed process would leave locked.
pub(crate) fn environment(folder: &Folder) -> Result<Vec<(String, String)>> {
    set(folder, "+0")?;
    Ok(vec![preload::variable(folder, "clock.c", &file(folder.path()))?])
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
