//! Parts of a data directory, restored from an earlier moment.

use crate::programs::copy_files;
use crate::server::Server;
use anyhow::{Result, ensure};
use std::fs;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// A file of the extension in a data directory. All other files belong to Postgres.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The state file.
    State,
    /// The marker file, which shows that a state file existed.
    Marker,
    /// The saved-range file.
    SavedRanges,
}

/// All parts.
pub const PARTS: [Part; 3] = [Part::State, Part::Marker, Part::SavedRanges];

impl Part {
    /// The part's path in a data directory.
    pub const fn path(self) -> &'static str {
        match self {
            Self::State => "snowflake_ids.state.json",
            Self::Marker => "pg_logical/snowflake_ids.marker",
            Self::SavedRanges => "snowflake_ids.saved_ranges.json",
        }
    }
}

/// Where a part comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum From {
    /// From the earlier moment, if the part existed then.
    Old,
    /// From the present: the part stays.
    Present,
    /// The part is removed.
    Missing,
}

/// The files of a data directory at a moment.
#[derive(Debug)]
pub struct Moment(TempDir);

impl Moment {
    /// A part as it was at that moment.
    pub fn file(&self, part: Part) -> PathBuf {
        self.data().join(part.path())
    }

    fn data(&self) -> PathBuf {
        self.0.path().join("data")
    }
}

impl Server {
    /// Copies the files of this stopped server.
    pub fn keep(&self) -> Result<Moment> {
        ensure!(self.postmaster.is_none(), "the files of a running server are none to copy");
        let moment = self.moment()?;
        copy_files(&self.data(), &moment.data())?;
        Ok(moment)
    }

    /// Copies this running server by `pg_basebackup`.
    pub fn keep_backup(&self) -> Result<Moment> {
        let moment = self.moment()?;
        self.back_up_to(&moment.data(), &[])?;
        Ok(moment)
    }

    fn moment(&self) -> Result<Moment> {
        let folder = tempfile::Builder::new().prefix("sfold").tempdir()?;
        self.folder.owner.give(folder.path())?;
        Ok(Moment(folder))
    }

    /// Restores parts of this stopped server's data directory. `postgres`: whether Postgres's files are restored; `parts`: the
    /// source of each file of the extension.
    pub fn put_back(&self, moment: &Moment, postgres: bool, parts: impl Fn(Part) -> From) -> Result<()> {
        ensure!(self.postmaster.is_none(), "the files of a running server are none to replace");
        let (data, aside) = (self.data(), self.folder.path().join("aside"));
        fs::create_dir(&aside)?;
        let kept = |part: Part| aside.join(part.path().replace('/', "-"));
        // Moving keeps the inodes of the files.
        for part in PARTS.into_iter().filter(|part| data.join(part.path()).exists()) {
            fs::rename(data.join(part.path()), kept(part))?;
        }
        if postgres {
            empty(&data)?;
            copy_files(&moment.data().join("."), &data)?;
            for part in PARTS {
                remove(&data.join(part.path()))?;
            }
            self.set_address()?;
        }
        for part in PARTS {
            let (path, old) = (data.join(part.path()), moment.file(part));
            match parts(part) {
                From::Old if old.exists() => copy_files(&old, &path)?,
                From::Present if kept(part).exists() => fs::rename(kept(part), path)?,
                _ => {}
            }
        }
        Ok(fs::remove_dir_all(aside)?)
    }
}

/// Empties a folder without removing it.
fn empty(folder: &Path) -> Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            fs::remove_dir_all(entry.path())?;
        } else {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

fn remove(file: &Path) -> Result<()> {
    if file.exists() {
        fs::remove_file(file)?;
    }
    Ok(())
}
