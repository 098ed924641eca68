//! Upgrades of a cluster to another Postgres by `pg_upgrade`.

use crate::programs;
use crate::server::Server;
use crate::sql::Session;
use anyhow::{Result, ensure};
use std::process::Command;

impl Server {
    /// Removes the version that Debian's Postgres 15.20 records with each column of each table. A `pg_dump` of a newer Postgres
    /// writes this version as a column option, which the newer server rejects.
    #[track_caller]
    pub fn strip_version_of_columns(&self) -> Result<()> {
        let strip = "set allow_system_table_mods = on;
            update pg_attribute set attoptions = null where attoptions::text like '{pg_attver=%'";
        self.connect("postgres")?.run(strip)
    }

    /// Fills this stopped server's new cluster from another stopped server's cluster, by `pg_upgrade`.
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

    /// The errors of programs that `pg_upgrade` ran. Since Postgres 15, the logs of these programs are in the new data directory;
    /// in earlier versions, in the folder where `pg_upgrade` was started.
    fn pg_upgrade_errors(&self) -> Result<String> {
        let folder = self.folder.path().to_string_lossy();
        let mut grep = Command::new("grep");
        grep.args(["-r", "-h", "-i", "-A", "6", "--include=*.log", "-e", "error:", "-e", "fatal:", &folder]);
        Ok(String::from_utf8_lossy(&programs::said(&mut grep)?.stdout).into_owned())
    }
}
