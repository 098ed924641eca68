//! The folder in which a server lives.

use crate::owner::Owner;
use crate::programs::Programs;
use anyhow::Result;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

/// The folder of a server: data, log, sockets. Removed in the end.
#[derive(Debug)]
pub struct Folder {
    path: TempDir,
    /// The account it belongs to.
    pub owner: Owner,
    /// The programs that work on it.
    pub programs: Programs,
}

impl Folder {
    /// An empty one. Its path is short, because a socket's may have 107 bytes, and in the system's folder
    /// for such things, because the owner may not be able to read the checkout.
    pub fn new(programs: Programs, owner: Owner) -> Result<Self> {
        let path = tempfile::Builder::new().prefix("sf").tempdir()?;
        owner.give(path.path())?;
        Ok(Self { path, owner, programs })
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        self.path.path()
    }

    /// The cluster's data directory.
    pub fn data(&self) -> PathBuf {
        self.path().join("data")
    }

    /// A program of Postgres's, run here by the owner.
    pub fn command(&self, program: &str) -> Command {
        self.programs.command(program, self.path())
    }

    /// The server's log, of all its starts.
    pub fn log(&self) -> PathBuf {
        self.path().join("log")
    }
}
