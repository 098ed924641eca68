//! A streaming standby.

use crate::programs;
use crate::server::{Home, Server};
use crate::sql;
use crate::wait;
use anyhow::Result;
use std::time::Duration;

impl Server {
    /// A standby of this server, with the same settings, that streams from it.
    ///
    /// # Errors
    /// The copy fails, or does not start, or does not connect.
    pub fn standby(&self) -> Result<Self> {
        let home = Home::new(self.home.programs.clone(), self.home.owner)?;
        let mut copy = self.command("pg_basebackup");
        copy.args(["--write-recovery-conf", "--checkpoint=fast", "--no-sync", "--pgdata"]).arg(home.data());
        programs::output(&mut copy)?;
        let mut standby = Self::new(home, Vec::new())?;
        standby.start_again()?;
        let mut client = standby.connect("postgres")?;
        wait::until(Duration::from_secs(20), "the standby to stream", || {
            let streams: bool = sql::one(&mut client, "select count(*) > 0 from pg_stat_wal_receiver")?;
            Ok(streams.then_some(()))
        })?;
        Ok(standby)
    }
}
