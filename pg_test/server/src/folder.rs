//! The folder of a server.

use crate::owner::Owner;
use crate::programs::Programs;
use anyhow::Result;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

/// A server's folder with data, log and sockets, removed at the end.
#[derive(Debug)]
pub struct Folder {
    path: TempDir,
    /// The account that owns the folder.
    pub owner: Owner,
    /// The programs that run in the folder.
    pub programs: Programs,
}

impl Folder {
    /// Creates an empty folder. Its path is short, because a socket's path has at most 107 bytes. The new folder is in the system's
    /// temporary folder, because the owner may not be able to read the checkout.
    pub fn new(programs: Programs, owner: Owner) -> Result<Self> {
        let path = tempfile::Builder::new().prefix("sf").tempdir()?;
        owner.give(path.path())?;
        Ok(Self { path, owner, programs })
    }

    /// The folder's path.
    pub fn path(&self) -> &Path {
        self.path.path()
    }

    /// The cluster's data directory.
    pub fn data(&self) -> PathBuf {
        self.path().join("data")
    }

    /// A program of Postgres that the owner runs in this folder.
    pub fn command(&self, program: &str) -> Command {
        self.programs.command(program, self.path())
    }

    /// The record of synced and renamed files.
    pub fn syncs(&self) -> PathBuf {
        self.path().join("syncs")
    }

    /// The server's log from all of its starts.
    pub fn log(&self) -> PathBuf {
        self.path().join("log")
    }
}
