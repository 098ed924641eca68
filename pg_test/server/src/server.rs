//! A running server: its folder, its postmaster and its sessions.

use crate::clock;
use crate::facts::{self, Facts};
use crate::folder::Folder;
use crate::port::Port;
use crate::processes;
use crate::sql::Session;
use crate::wait;
use anyhow::{Context, Result, bail, ensure};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use postgres::{Client, Config, NoTls};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::SystemTime;

/// The number of lines of a server's log that a failing test shows.
const SHOWN: usize = 200;

/// The ways to stop a server, as `pg_ctl` calls them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shutdown {
    /// Waits for sessions to end, then writes a checkpoint.
    Smart,
    /// Ends sessions, then writes a checkpoint.
    Fast,
    /// Writes nothing; the next start recovers.
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

/// A server for one test. Dropping it stops the server and removes its folder.
#[derive(Debug)]
pub struct Server {
    pub(crate) folder: Folder,
    pub(crate) postmaster: Option<Child>,
    port: Port,
    pub(crate) environment: Vec<(String, String)>,
    /// The facts by which the server's machine is known; None for those of this machine.
    pub(crate) facts: Option<Facts>,
    /// Whether dropping the server shows the end of its log.
    pub(crate) tells: bool,
}

impl Server {
    /// A stopped server on the cluster in `folder`.
    pub(crate) fn new(folder: Folder, environment: Vec<(String, String)>) -> Result<Self> {
        let server =
            Self { port: Port::free()?, folder, postmaster: None, environment, facts: None, tells: true };
        server.set_address()?;
        Ok(server)
    }

    /// Writes the server's addresses to `postgresql.conf`.
    pub fn set_address(&self) -> Result<()> {
        self.set("port", &self.port().to_string())?;
        self.set("listen_addresses", "127.0.0.1")?;
        self.set("unix_socket_directories", &self.folder.path().to_string_lossy())
    }

    /// Gives a stopped server another port.
    pub fn move_port(&mut self) -> Result<()> {
        ensure!(self.postmaster.is_none(), "the server is running");
        self.port = Port::free()?;
        self.set_address()
    }

    /// Adds a line to `postgresql.conf`, effective from the next start or reload.
    pub fn set(&self, name: &str, value: &str) -> Result<()> {
        let mut conf = File::options().append(true).open(self.folder.data().join("postgresql.conf"))?;
        writeln!(conf, "{name} = '{}'", value.replace('\'', "''"))?;
        Ok(())
    }

    /// The server's TCP port on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.port.number()
    }

    /// The folder of the server's Unix socket.
    pub fn socket_folder(&self) -> &Path {
        self.folder.path()
    }

    /// The cluster's data directory.
    pub fn data(&self) -> PathBuf {
        self.folder.data()
    }

    /// The server's log from all of its starts.
    pub fn log(&self) -> String {
        fs::read(self.folder.log())
            .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
            .unwrap_or_default()
    }

    /// The last lines of the server's log, with a heading.
    fn end_of_log(&self) -> String {
        let log = self.log();
        let lines = log.lines().collect::<Vec<_>>();
        let shown = &lines[lines.len().saturating_sub(SHOWN)..];
        let heading = format!(
            "the log of the server on port {}, {} of {} lines:",
            self.port(),
            shown.len(),
            lines.len()
        );
        [&[heading.as_str()], shown].concat().join("\n")
    }

    /// The number of lines in the server's log that contain these words.
    pub fn logged(&self, words: &str) -> usize {
        self.log().lines().filter(|line| line.contains(words)).count()
    }

    /// Adds a line to `postgresql.conf`, and reloads the running server's files.
    #[track_caller]
    pub fn reload(&self, name: &str, value: &str) -> Result<()> {
        self.set(name, value)?;
        self.read_files_again()
    }

    /// Reloads the running server's settings and `pg_hba.conf`. All later sessions use the new values, because the postmaster signals
    /// all its children before it starts a new child.
    #[track_caller]
    pub fn read_files_again(&self) -> Result<()> {
        let mut client = self.connect("postgres")?;
        let read: SystemTime = client.one("select pg_conf_load_time()")?;
        client.run("select pg_reload_conf()")?;
        wait::until_true("the server to read its files again", || {
            let again = self.connect("postgres").and_then(|mut new| new.one("select pg_conf_load_time()"));
            // The server may refuse sessions for a moment, if faults are injected.
            Ok(again.is_ok_and(|again: SystemTime| again != read))
        })
    }

    /// Starts the server on its folder and port, and waits until it accepts sessions.
    ///
    /// # Errors
    /// The server does not start; the error has its log.
    pub fn start_again(&mut self) -> Result<()> {
        self.start_with(&[])
    }

    /// Starts the server with more arguments, such as `-b` of `pg_upgrade`.
    ///
    /// # Errors
    /// The server does not start; the error has its log.
    pub fn start_with(&mut self, arguments: &[&str]) -> Result<()> {
        ensure!(self.postmaster.is_none(), "the server is running");
        let logged = self.log().len();
        let log = File::options().create(true).append(true).open(self.folder.log())?;
        let mut postgres = self.folder.command("postgres");
        postgres.arg("-D").arg(self.folder.data()).args(arguments).envs(self.environment.iter().cloned());
        if let Some(facts) = &self.facts {
            postgres = facts::command(&postgres, self.folder.owner, facts);
        }
        postgres.stdin(Stdio::null()).stderr(log.try_clone()?).stdout(log);
        self.postmaster = Some(postgres.spawn().with_context(|| format!("cannot run {postgres:?}"))?);
        let started = wait::until_true("the server to take sessions", || {
            if self.exited()? {
                self.postmaster = None;
                bail!("the server stopped");
            }
            Ok(self.connect("postgres").is_ok())
        });
        started.with_context(|| format!("the server does not start; its log:\n{}", &self.log()[logged..]))
    }

    fn exited(&mut self) -> Result<bool> {
        Ok(match &mut self.postmaster {
            Some(postmaster) => postmaster.try_wait()?.is_some(),
            None => true,
        })
    }

    /// Stops the server, and waits until it has stopped.
    pub fn stop(&mut self, how: Shutdown) -> Result<()> {
        self.ask_to_stop(how)?;
        self.wait_for_exit()
    }

    /// Tells the server to stop, without waiting.
    pub fn ask_to_stop(&self, how: Shutdown) -> Result<()> {
        Ok(kill(self.pid()?, how.signal())?)
    }

    /// Waits until the server has stopped.
    pub fn wait_for_exit(&mut self) -> Result<()> {
        wait::until_true("the server to stop", || self.exited())?;
        self.postmaster = None;
        Ok(())
    }

    /// Kills the postmaster and all its children at once, and waits until none runs. A remaining child would keep the shared
    /// memory and block the next start.
    pub fn kill9(&mut self) -> Result<()> {
        let postmaster = self.pid()?;
        let children = processes::stop(postmaster)?;
        kill(postmaster, Signal::SIGKILL)?;
        processes::signal(&children, Signal::SIGKILL);
        self.wait_for_exit()?;
        processes::wait_for_end(&children)
    }

    /// Steps the clock of all the server's processes. `offset`: the difference from true time, such as `-1h`, `+2.5` (seconds) or
    /// `+0`.
    pub fn set_clock(&self, offset: &str) -> Result<()> {
        clock::set(&self.folder, offset)
    }

    /// The recorded calls that made files of `snowflake_ids` durable, by process, such as `sync snowflake_ids.state.json.new`.
    pub fn syncs(&self) -> Result<BTreeMap<String, Vec<String>>> {
        let mut syncs: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for line in fs::read_to_string(self.folder.syncs())?.lines() {
            let (process, call) =
                line.split_once(' ').with_context(|| format!("a record without a call: {line:?}"))?;
            syncs.entry(process.into()).or_default().push(call.into());
        }
        Ok(syncs)
    }

    /// The postmaster's process.
    pub(crate) fn pid(&self) -> Result<Pid> {
        let postmaster = self.postmaster.as_ref().context("the server is not running")?;
        Ok(Pid::from_raw(postmaster.id().try_into()?))
    }

    /// Stops the server by [`Shutdown::Fast`], and starts it again.
    pub fn restart(&mut self) -> Result<()> {
        self.restart_by(Shutdown::Fast)
    }

    /// Stops the server in this way, and starts it again.
    pub fn restart_by(&mut self, how: Shutdown) -> Result<()> {
        self.stop(how)?;
        self.start_again()
    }

    /// Kills the server as [`Server::kill9`] does, and starts it again.
    pub fn crash(&mut self) -> Result<()> {
        self.kill9()?;
        self.start_again()
    }

    /// Opens a session of the superuser `postgres`.
    pub fn connect(&self, database: &str) -> Result<Client> {
        Ok(self.config(database).connect(NoTls)?)
    }

    /// The configuration of a session of the superuser `postgres`.
    pub fn config(&self, database: &str) -> Config {
        let mut config = Client::configure();
        config.host_path(self.socket_folder()).port(self.port()).user("postgres").dbname(database);
        config
    }

    /// Opens a session in the database `postgres`, and creates the extension if necessary.
    pub fn session(&self) -> Result<Client> {
        let mut client = self.connect("postgres")?;
        client.run("set client_min_messages = warning; create extension if not exists snowflake_ids")?;
        Ok(client)
    }

    /// Makes the database `postgres` a foreign server of a session's database. Statements of the session's role run there as
    /// `role`.
    #[track_caller]
    pub fn connect_from(&self, client: &mut Client, name: &str, role: &str) -> Result<()> {
        client.run(&format!(
            "create extension if not exists postgres_fdw;
             create server {name} foreign data wrapper postgres_fdw options (host '{}', port '{}', dbname 'postgres');
             create user mapping for current_user server {name} options (user '{role}')",
            self.socket_folder().display(),
            self.port()
        ))
    }

    /// Creates a database with the extension. Returns a session in it.
    pub fn create_database(&self, name: &str) -> Result<Client> {
        self.connect("postgres")?.run(&format!("create database {name}"))?;
        let mut client = self.connect(name)?;
        client.run("create extension snowflake_ids")?;
        Ok(client)
    }

    /// Creates a database in an encoding and named after it, with the extension. Returns a session in UTF-8.
    pub fn create_encoded_database(&self, encoding: &str) -> Result<Client> {
        let name = encoding.to_lowercase();
        self.connect("postgres")?.run(&format!(
            "create database {name} encoding '{encoding}' lc_collate 'C' lc_ctype 'C' template template0"
        ))?;
        let mut config = self.config(&name);
        config.options("-c client_encoding=UTF8 -c client_min_messages=warning");
        let mut client = config.connect(NoTls)?;
        client.run("create extension snowflake_ids")?;
        Ok(client)
    }

    /// A program of the server's Postgres, run by the server's owner, with the server's connection settings.
    pub fn command(&self, program: &str) -> Command {
        let mut command = self.folder.command(program);
        command.env("PGHOST", self.socket_folder()).env("PGPORT", self.port().to_string());
        command.env("PGUSER", "postgres");
        command
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // The test framework shows this output only if the test fails.
        if self.tells {
            eprintln!("{}", self.end_of_log());
        }
        if self.postmaster.is_some() && self.stop(Shutdown::Immediate).is_err() {
            let _ = self.kill9();
        }
    }
}
