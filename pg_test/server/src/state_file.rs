//! The state file, in which a server reserves its ids.

use crate::server::Server;
use crate::wait::until_true;
use anyhow::Result;
use std::fs::{self, DirEntry};
use std::io::ErrorKind;
use std::os::unix::fs::symlink;
use std::path::PathBuf;

impl Server {
    /// The state file.
    pub fn state_file(&self) -> PathBuf {
        self.data().join("snowflake_ids.state.json")
    }

    /// The temporary name under which the state file is written.
    pub fn new_state_file(&self) -> PathBuf {
        self.data().join("snowflake_ids.state.json.new")
    }

    /// The contents of rejected state files.
    #[track_caller]
    pub fn rejected_state_files(&self) -> Result<Vec<Vec<u8>>> {
        let files = fs::read_dir(self.data())?.flatten();
        let rejected = |entry: &DirEntry| {
            entry.file_name().to_string_lossy().starts_with("snowflake_ids.state.json.rejected")
        };
        files.filter(rejected).map(|entry| Ok(fs::read(entry.path())?)).collect()
    }

    /// Changes the present state file's content; the file keeps its owner.
    #[track_caller]
    pub fn damage_state_file(&self, damage: impl FnOnce(Vec<u8>) -> Vec<u8>) -> Result<()> {
        let path = self.state_file();
        let damaged = damage(fs::read(&path)?);
        Ok(fs::write(path, damaged)?)
    }

    /// Makes it impossible to write the state file, until the obstacle is [removed](Obstacle::remove).
    #[track_caller]
    pub fn obstruct_state_file(&self, what: Fault) -> Result<Obstacle> {
        let path = self.new_state_file();
        // The server may just be writing the file.
        until_true("no process writes the state file", || {
            let made = match what {
                Fault::Unwritable => fs::create_dir(&path),
                Fault::DiskFull => symlink("/dev/full", &path),
            };
            match made {
                Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(false),
                made => Ok(made.map(|()| true)?),
            }
        })?;
        Ok(Obstacle { path, what })
    }
}

/// The reason why a file cannot be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// A folder has the file's name.
    Unwritable,
    /// The disk is full.
    DiskFull,
}

/// An obstacle to writing a state file.
#[derive(Debug)]
#[must_use]
pub struct Obstacle {
    path: PathBuf,
    what: Fault,
}

impl Obstacle {
    /// Removes the obstacle.
    #[track_caller]
    pub fn remove(self) -> Result<()> {
        match self.what {
            Fault::Unwritable => fs::remove_dir(self.path)?,
            Fault::DiskFull => fs::remove_file(self.path)?,
        }
        Ok(())
    }
}
