//! Servers on copies of another one's data directory.

use crate::clock;
use crate::folder::Folder;
use crate::programs;
use crate::server::Server;
use anyhow::{Result, ensure};
use std::fs;
use std::path::Path;

impl Server {
    /// A stopped server on a copy of this stopped one's files, as `cp -a` makes it.
    pub fn copy(&self) -> Result<Self> {
        ensure!(self.postmaster.is_none(), "the files of a running server are none to copy");
        let folder = self.new_folder()?;
        programs::copy_files(&self.data(), &folder.data())?;
        self.on(folder)
    }

    /// A stopped server on a base backup of this running one; nothing makes it a standby.
    pub fn base_backup(&self) -> Result<Self> {
        self.backup(&[])
    }

    /// This stopped server, its data directory moved elsewhere within the file system.
    pub fn moved(self) -> Result<Self> {
        ensure!(self.postmaster.is_none(), "the folder of a running server is none to move");
        let folder = self.new_folder()?;
        fs::rename(self.data(), folder.data())?;
        self.on(folder)
    }

    /// A stopped server on what `pg_basebackup` makes of this one.
    pub(crate) fn backup(&self, options: &[&str]) -> Result<Self> {
        let folder = self.new_folder()?;
        self.back_up_to(&folder.data(), options)?;
        self.on(folder)
    }

    /// Has `pg_basebackup` write to a folder.
    pub(crate) fn back_up_to(&self, to: &Path, options: &[&str]) -> Result<()> {
        let mut backup = self.command("pg_basebackup");
        backup.args(["--checkpoint=fast", "--no-sync"]).args(options).arg("--pgdata").arg(to);
        programs::output(&mut backup).map(drop)
    }

    fn new_folder(&self) -> Result<Folder> {
        Folder::new(self.folder.programs.clone(), self.folder.owner)
    }

    /// A stopped server on the cluster in `folder`. It has a false clock of its own if this one has one.
    fn on(&self, folder: Folder) -> Result<Self> {
        let environment = if self.environment.is_empty() { Vec::new() } else { clock::environment(&folder)? };
        Self::new(folder, environment)
    }
}
