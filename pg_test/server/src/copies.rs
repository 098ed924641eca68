//! Servers on copies of another server's data directory.

use crate::clock;
use crate::folder::Folder;
use crate::programs;
use crate::server::Server;
use anyhow::{Result, ensure};
use std::fs;
use std::path::Path;

impl Server {
    /// Copies this stopped server's files as `cp -a` does. Returns a stopped server.
    pub fn copy(&self) -> Result<Self> {
        ensure!(self.postmaster.is_none(), "the files of a running server are none to copy");
        let folder = self.new_folder()?;
        programs::copy_files(&self.data(), &folder.data())?;
        self.on(folder)
    }

    /// Makes a base backup of this running server. Returns a stopped server that is not a standby.
    pub fn base_backup(&self) -> Result<Self> {
        self.backup(&[])
    }

    /// Moves this stopped server's data directory within the file system.
    pub fn moved(self) -> Result<Self> {
        ensure!(self.postmaster.is_none(), "the folder of a running server is none to move");
        let folder = self.new_folder()?;
        fs::rename(self.data(), folder.data())?;
        self.on(folder)
    }

    /// Makes a base backup by `pg_basebackup` with these options. Returns a stopped server.
    pub(crate) fn backup(&self, options: &[&str]) -> Result<Self> {
        let folder = self.new_folder()?;
        self.back_up_to(&folder.data(), options)?;
        self.on(folder)
    }

    /// Writes a base backup into a folder.
    pub(crate) fn back_up_to(&self, to: &Path, options: &[&str]) -> Result<()> {
        let mut backup = self.command("pg_basebackup");
        backup.args(["--checkpoint=fast", "--no-sync"]).args(options).arg("--pgdata").arg(to);
        programs::output(&mut backup).map(drop)
    }

    fn new_folder(&self) -> Result<Folder> {
        Folder::new(self.folder.programs.clone(), self.folder.owner)
    }

    /// A stopped server on the cluster in `folder`. If this server has a shifted clock, the new server gets a shifted clock of
    /// its own.
    fn on(&self, folder: Folder) -> Result<Self> {
        let environment = if self.environment.is_empty() { Vec::new() } else { clock::environment(&folder)? };
        Self::new(folder, environment)
    }
}
