//! Streaming standbys, their promotion, and former primaries that become standbys.

use crate::programs;
use crate::server::{Server, Shutdown};
use crate::sql::Session;
use crate::wait;
use anyhow::{Result, ensure};

impl Server {
    /// Starts a standby that streams from this server, with the same settings. If this server has a shifted clock, the standby
    /// gets a shifted clock of its own.
    pub fn standby(&self) -> Result<Self> {
        let mut standby = self.backup(&["--write-recovery-conf"])?;
        standby.start_again()?;
        standby.wait_for_stream()?;
        Ok(standby)
    }

    /// Promotes the standby, and waits until its recovery has ended.
    pub fn promote(&self) -> Result<()> {
        ensure!(self.connect("postgres")?.one::<bool>("select pg_promote()")?, "not promoted");
        Ok(())
    }

    /// Waits until the standby has replayed all WAL that its primary has written so far.
    pub fn catch_up(&self, primary: &Self) -> Result<()> {
        let written: String = primary.connect("postgres")?.one("select pg_current_wal_flush_lsn()::text")?;
        let replayed = format!("select pg_last_wal_replay_lsn() >= '{written}'");
        let mut client = self.connect("postgres")?;
        client.becomes_true(&replayed)
    }

    /// Stops the standby's streaming.
    pub fn cut_off(&self) -> Result<()> {
        self.connect("postgres")?.run("alter system set primary_conninfo = ''")?;
        self.read_files_again()?;
        wait::until_true("the stream to end", || Ok(!streams(self)?))
    }

    /// Makes the running standby follow another server.
    pub fn follow(&self, primary: &Self) -> Result<()> {
        let source = primary.source();
        self.connect("postgres")?.run(&format!("alter system set primary_conninfo = '{source}'"))?;
        self.read_files_again()?;
        self.catch_up(primary)
    }

    fn source(&self) -> String {
        format!("host={} port={} user=postgres dbname=postgres", self.socket_folder().display(), self.port())
    }

    /// Stops this former primary, makes it a standby of its successor, and starts it. The former primary must be
    /// [rewindable](crate::Builder::rewindable).
    pub fn rewind(&mut self, primary: &Self) -> Result<()> {
        self.stop(Shutdown::Fast)?;
        // The program reads the successor's timeline from the control file, which a promotion does not write at once.
        primary.connect("postgres")?.run("checkpoint")?;
        let source = primary.source();
        let mut rewind = self.folder.command("pg_rewind");
        rewind.args(["--no-sync", "--write-recovery-conf", "--source-server", &source]);
        programs::output(rewind.arg("--target-pgdata").arg(self.data()))?;
        // The copied files contain the successor's address.
        self.set_address()?;
        self.start_again()?;
        self.wait_for_stream()
    }

    /// Makes this stopped standby a subscriber of its primary for one database, by `pg_createsubscriber`. Publication, slot and
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
