//! Servers on copies of another one's data directory.

use crate::clock;
use crate::programs;
use crate::server::{DataDirectory, Server};
use anyhow::{Result, ensure};
use std::fs;
use std::path::Path;
use std::process::Command;

/// As `cp -a` copies them.
pub(crate) fn copy_files(from: &Path, to: &Path) -> Result<()> {
    programs::output(Command::new("cp").arg("-a").args([from, to])).map(drop)
}

impl Server {
    /// A stopped server on a copy of this stopped one's files, as `cp -a` makes it.
    ///
    /// # Errors
    /// This one runs, or the copy fails.
    pub fn copy(&self) -> Result<Self> {
        ensure!(self.postmaster.is_none(), "the files of a running server are none to copy");
        let home = self.new_home()?;
        copy_files(&self.data(), &home.data())?;
        self.on(home)
    }

    /// A stopped server on a base backup of this running one; nothing makes it a standby.
    ///
    /// # Errors
    /// The backup fails.
    pub fn base_backup(&self) -> Result<Self> {
        self.backup(&[])
    }

    /// This stopped server, its data directory moved elsewhere within the file system.
    ///
    /// # Errors
    /// It runs, or the folder does not move.
    pub fn moved(self) -> Result<Self> {
        ensure!(self.postmaster.is_none(), "the folder of a running server is none to move");
        let home = self.new_home()?;
        fs::rename(self.data(), home.data())?;
        self.on(home)
    }

    /// A stopped server on what `pg_basebackup` makes of this one.
    pub(crate) fn backup(&self, options: &[&str]) -> Result<Self> {
        let home = self.new_home()?;
        self.back_up_to(&home.data(), options)?;
        self.on(home)
    }

    /// Has `pg_basebackup` write to a folder.
    pub(crate) fn back_up_to(&self, folder: &Path, options: &[&str]) -> Result<()> {
        let mut backup = self.command("pg_basebackup");
        backup.args(["--checkpoint=fast", "--no-sync"]).args(options).arg("--pgdata").arg(folder);
        programs::output(&mut backup).map(drop)
    }

    fn new_home(&self) -> Result<DataDirectory> {
        DataDirectory::new(self.home.programs.clone(), self.home.owner)
    }

    /// A stopped server on the cluster in `home`. It has a false clock of its own if this one has one.
    fn on(&self, home: DataDirectory) -> Result<Self> {
        let environment = if self.environment.is_empty() { Vec::new() } else { clock::environment(&home)? };
        Self::new(home, environment)
    }
}
