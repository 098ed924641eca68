//! A cluster becomes one of another Postgres.

use crate::programs;
use crate::server::Server;
use crate::sql::Session;
use anyhow::{Result, ensure};
use std::process::Command;

impl Server {
    /// Removes what Debian's 15.20 notes with each column of each table. `pg_dump` of newer versions takes it for an option, which no
    /// server of theirs has.
    #[track_caller]
    pub fn strip_version_of_columns(&self) -> Result<()> {
        let strip = "set allow_system_table_mods = on;
            update pg_attribute set attoptions = null where attoptions::text like '{pg_attver=%'";
        self.connect("postgres")?.run(strip)
    }

    /// Has `pg_upgrade` fill this stopped server's new cluster from another stopped server's.
    #[track_caller]
    pub fn pg_upgrade(&self, old: &Self, options: &[&str]) -> Result<()> {
        ensure!(self.postmaster.is_none() && old.postmaster.is_none(), "a server is running");
        let mut upgrade = self.folder.command("pg_upgrade");
        upgrade.arg("--old-bindir").arg(old.folder.programs.bindir()).arg("--old-datadir").arg(old.data());
        upgrade.arg("--new-bindir").arg(self.folder.programs.bindir()).arg("--new-datadir").arg(self.data());
        upgrade.arg("--old-port").arg(old.port().to_string()).arg("--new-port").arg(self.port().to_string());
        upgrade.args(["--username", "postgres"]).args(options);
        let said = programs::said(&mut upgrade)?;
        ensure!(
            said.status.success(),
            "{}\n{}",
            String::from_utf8_lossy(&said.stdout),
            self.pg_upgrade_errors()?
        );
        Ok(())
    }

    /// The errors of the programs that it ran. From 15 on it keeps their logs in the new data directory, before where it
    /// was started.
    fn pg_upgrade_errors(&self) -> Result<String> {
        let folder = self.folder.path().to_string_lossy();
        let mut grep = Command::new("grep");
        grep.args(["-r", "-h", "-i", "-A", "6", "--include=*.log", "-e", "error:", "-e", "fatal:", &folder]);
        Ok(String::from_utf8_lossy(&programs::said(&mut grep)?.stdout).into_owned())
    }
}
