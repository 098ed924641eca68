//! A running server: its folder, its postmaster, sessions.

use crate::builder::Builder;
use crate::owner::Owner;
use crate::port;
use crate::programs::Programs;
use crate::wait;
use anyhow::{Context, Result, bail, ensure};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use postgres::{Client, NoTls};
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;
use tempfile::TempDir;

/// How long a server may take to start or to stop.
const TIMEOUT: Duration = Duration::from_mins(1);

/// The folder of a server: data, log, sockets. Removed in the end.
#[derive(Debug)]
pub struct DataDirectory {
    folder: TempDir,
    /// The account it belongs to.
    pub owner: Owner,
    /// The programs that work on it.
    pub programs: Programs,
}

impl DataDirectory {
    /// An empty one. Its path is short, because a socket's may have 107 bytes, and in the system's folder
    /// for such things, because the owner may not be able to read the checkout.
    ///
    /// # Errors
    /// The folder cannot be made.
    pub fn new(programs: Programs, owner: Owner) -> Result<Self> {
        let folder = tempfile::Builder::new().prefix("sf").tempdir()?;
        owner.give(folder.path())?;
        Ok(Self { folder, owner, programs })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// The cluster's data directory.
    pub fn data(&self) -> PathBuf {
        self.path().join("data")
    }

    /// A program of Postgres's, run here by the owner.
    pub fn command(&self, program: &str) -> Command {
        self.programs.command(program, self.path())
    }

    fn log(&self) -> PathBuf {
        self.path().join("log")
    }
}

/// The ways to stop a server, as `pg_ctl` calls them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shutdown {
    /// Sessions are waited for, a checkpoint is written.
    Smart,
    /// Sessions are ended, a checkpoint is written.
    Fast,
    /// Nothing is written; the next start recovers.
    Immediate,
}

impl Shutdown {
    const fn signal(self) -> Signal {
        match self {
            Self::Smart => Signal::SIGTERM,
            Self::Fast => Signal::SIGINT,
            Self::Immediate => Signal::SIGQUIT,
        }
    }
}

/// A server of the test's own. Dropping it stops it and removes its folder.
#[derive(Debug)]
pub struct Server {
    pub(crate) home: DataDirectory,
    pub(crate) postmaster: Option<Child>,
    port: u16,
    pub(crate) environment: Vec<(String, String)>,
}

impl Server {
    /// What a server is started with.
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// A stopped server on a cluster that exists in `home`.
    pub(crate) fn new(home: DataDirectory, environment: Vec<(String, String)>) -> Result<Self> {
        let server = Self { port: port::free()?, home, postmaster: None, environment };
        server.set_address()?;
        Ok(server)
    }

    /// Says in `postgresql.conf` where it listens.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn set_address(&self) -> Result<()> {
        self.set("port", &self.port.to_string())?;
        self.set("listen_addresses", "127.0.0.1")?;
        self.set("unix_socket_directories", &self.home.path().to_string_lossy())
    }

    /// Adds a line to `postgresql.conf`; it counts from the next start or reload.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn set(&self, name: &str, value: &str) -> Result<()> {
        let mut conf = File::options().append(true).open(self.home.data().join("postgresql.conf"))?;
        writeln!(conf, "{name} = '{}'", value.replace('\'', "''"))?;
        Ok(())
    }

    /// Its TCP port on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The folder of its unix socket.
    pub fn socket_folder(&self) -> &Path {
        self.home.path()
    }

    /// The cluster's data directory.
    pub fn data(&self) -> PathBuf {
        self.home.data()
    }

    /// Its log, of all its starts.
    pub fn log(&self) -> String {
        fs::read(self.home.log())
            .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
            .unwrap_or_default()
    }

    /// How many lines of its log hold these words.
    pub fn logged(&self, words: &str) -> usize {
        self.log().lines().filter(|line| line.contains(words)).count()
    }

    /// Sets a line of `postgresql.conf` and lets the running server read it.
    ///
    /// # Errors
    /// The file cannot be written, or the server does not run.
    pub fn reload(&self, name: &str, value: &str) -> Result<()> {
        self.set(name, value)?;
        Ok(self.connect("postgres")?.batch_execute("select pg_reload_conf()")?)
    }

    /// Starts it on its folder and port, and waits until it takes sessions.
    ///
    /// # Errors
    /// It does not start; the error holds its log.
    pub fn start_again(&mut self) -> Result<()> {
        ensure!(self.postmaster.is_none(), "the server is running");
        let logged = self.log().len();
        let log = File::options().create(true).append(true).open(self.home.log())?;
        let mut postgres = self.home.command("postgres");
        postgres.arg("-D").arg(self.home.data()).envs(self.environment.iter().cloned());
        postgres.stdin(Stdio::null()).stderr(log.try_clone()?).stdout(log);
        self.postmaster = Some(postgres.spawn().with_context(|| format!("cannot run {postgres:?}"))?);
        let started = wait::until(TIMEOUT, "the server to take sessions", || {
            if self.exited()? {
                self.postmaster = None;
                bail!("the server stopped");
            }
            Ok(self.connect("postgres").is_ok().then_some(()))
        });
        started.with_context(|| format!("the server does not start; its log:\n{}", &self.log()[logged..]))
    }

    fn exited(&mut self) -> Result<bool> {
        Ok(match &mut self.postmaster {
            Some(postmaster) => postmaster.try_wait()?.is_some(),
            None => true,
        })
    }

    /// Stops it and waits until it has.
    ///
    /// # Errors
    /// It is not running, or does not stop.
    pub fn stop(&mut self, how: Shutdown) -> Result<()> {
        self.ask_to_stop(how)?;
        self.wait_for_exit()
    }

    /// Asks it to stop without waiting until it has.
    ///
    /// # Errors
    /// It is not running.
    pub fn ask_to_stop(&self, how: Shutdown) -> Result<()> {
        Ok(kill(self.pid()?, how.signal())?)
    }

    /// Waits until it has stopped.
    ///
    /// # Errors
    /// It does not.
    pub fn wait_for_exit(&mut self) -> Result<()> {
        wait::until(TIMEOUT, "the server to stop", || Ok(self.exited()?.then_some(())))?;
        self.postmaster = None;
        Ok(())
    }

    /// The postmaster's process.
    pub(crate) fn pid(&self) -> Result<Pid> {
        let postmaster = self.postmaster.as_ref().context("the server is not running")?;
        Ok(Pid::from_raw(postmaster.id().try_into()?))
    }

    /// Stops it as [`Shutdown::Fast`] does and starts it again.
    ///
    /// # Errors
    /// It does not stop or does not start.
    pub fn restart(&mut self) -> Result<()> {
        self.stop(Shutdown::Fast)?;
        self.start_again()
    }

    /// A session of the superuser `postgres`.
    ///
    /// # Errors
    /// The server refuses it.
    pub fn connect(&self, database: &str) -> Result<Client> {
        let mut config = Client::configure();
        config.host_path(self.socket_folder()).port(self.port).user("postgres").dbname(database);
        Ok(config.connect(NoTls)?)
    }

    /// A session in the database `postgres`, with the extension created.
    ///
    /// # Errors
    /// The extension is not installed, or refuses to be created.
    pub fn session(&self) -> Result<Client> {
        let mut client = self.connect("postgres")?;
        client.batch_execute(
            "set client_min_messages = warning; create extension if not exists snowflake_ids",
        )?;
        Ok(client)
    }

    /// Creates a database with the extension.
    ///
    /// # Errors
    /// It exists, or the extension is not installed.
    pub fn create_database(&self, name: &str) -> Result<()> {
        self.connect("postgres")?.batch_execute(&format!("create database {name}"))?;
        Ok(self.connect(name)?.batch_execute("create extension snowflake_ids")?)
    }

    /// A program of the server's Postgres, as the server's owner, set to connect to the server.
    pub fn command(&self, program: &str) -> Command {
        let mut command = self.home.command(program);
        command.env("PGHOST", self.socket_folder()).env("PGPORT", self.port.to_string());
        command.env("PGUSER", "postgres");
        command
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if thread::panicking() {
            eprintln!("the log of the server on port {}:\n{}", self.port, self.log());
        }
        if self.postmaster.is_some() && self.stop(Shutdown::Immediate).is_err() {
            let _ = self.kill9();
        }
    }
}
