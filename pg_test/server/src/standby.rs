//! Streaming standbys, their promotion, and a former primary that becomes one.

use crate::programs;
use crate::server::{Server, Shutdown};
use crate::sql::Session;
use crate::wait;
use anyhow::{Result, ensure};

impl Server {
    /// A standby of this server, with the same settings, that streams from it. It has a clock of its own to
    /// step if this server has.
    pub fn standby(&self) -> Result<Self> {
        let mut standby = self.backup(&["--write-recovery-conf"])?;
        standby.start_again()?;
        standby.wait_for_stream()?;
        Ok(standby)
    }

    /// Ends its recovery and waits until it has ended.
    pub fn promote(&self) -> Result<()> {
        ensure!(self.connect("postgres")?.one::<bool>("select pg_promote()")?, "not promoted");
        Ok(())
    }

    /// Waits until it has replayed all that its primary has written by now.
    pub fn catch_up(&self, primary: &Self) -> Result<()> {
        let written: String = primary.connect("postgres")?.one("select pg_current_wal_flush_lsn()::text")?;
        let replayed = format!("select pg_last_wal_replay_lsn() >= '{written}'");
        let mut client = self.connect("postgres")?;
        client.becomes_true(&replayed)
    }

    /// Lets a standby receive no more.
    pub fn cut_off(&self) -> Result<()> {
        self.connect("postgres")?.run("alter system set primary_conninfo = ''")?;
        self.read_files_again()?;
        wait::until_true("the stream to end", || Ok(!streams(self)?))
    }

    /// Stops this former primary, which is [rewindable](crate::Builder::rewindable), makes it a standby of the one promoted in its stead, and starts it.
    pub fn rewind(&mut self, primary: &Self) -> Result<()> {
        self.stop(Shutdown::Fast)?;
        // It reads the other's timeline from its control file, which a promotion does not write at once.
        primary.connect("postgres")?.run("checkpoint")?;
        let source = format!(
            "host={} port={} user=postgres dbname=postgres",
            primary.socket_folder().display(),
            primary.port()
        );
        let mut rewind = self.folder.command("pg_rewind");
        rewind.args(["--no-sync", "--write-recovery-conf", "--source-server", &source]);
        programs::output(rewind.arg("--target-pgdata").arg(self.data()))?;
        // The primary's own came with its files.
        self.set_address()?;
        self.start_again()?;
        self.wait_for_stream()
    }

    /// Has `pg_createsubscriber` make this stopped standby a subscriber of its primary, for one database. Publication, slot and
    /// subscription are called `everything`.
    pub fn create_subscriber(&self, publisher: &Self, database: &str) -> Result<()> {
        ensure!(self.postmaster.is_none(), "the standby is running");
        let publisher = format!(
            "host={} port={} user=postgres dbname={database}",
            publisher.socket_folder().display(),
            publisher.port()
        );
        let mut create = self.folder.command("pg_createsubscriber");
        create.arg("--pgdata").arg(self.data()).args([
            "--database",
            database,
            "--publisher-server",
            &publisher,
        ]);
        create
            .arg("--socketdir")
            .arg(self.socket_folder())
            .args(["--subscriber-port", &self.port().to_string()]);
        create.args(["--subscriber-username", "postgres", "--recovery-timeout", "120"]);
        create.args(["--publication", "everything", "--replication-slot", "everything"]);
        programs::output(create.args(["--subscription", "everything"])).map(drop)
    }

    fn wait_for_stream(&self) -> Result<()> {
        wait::until_true("the standby to stream", || streams(self))
    }
}

fn streams(standby: &Server) -> Result<bool> {
    standby.connect("postgres")?.one("select count(*) > 0 from pg_stat_wal_receiver")
}
