//! A connection pooler between clients and a server: `PgBouncer`, in transaction mode.

use crate::owner::Owner;
use crate::port::Port;
use crate::server::Server;
use crate::wait;
use anyhow::{Context, Result, bail};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use postgres::{Client, NoTls};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use tempfile::TempDir;

/// The password of `postgres`.
const PASSWORD: &str = "pooled";

/// A pooler for one test, ended when dropped.
#[derive(Debug)]
pub struct Bouncer {
    folder: TempDir,
    owner: Owner,
    port: Port,
    process: Option<Child>,
}

impl Bouncer {
    /// Starts a pooler for a server. `sessions`: the number of server sessions per user and database; `settings`: further lines of
    /// the pooler's configuration.
    pub fn start(server: &Server, sessions: usize, settings: &str) -> Result<Self> {
        let owner = Owner::of_servers()?;
        let folder = tempfile::Builder::new().prefix("sfb").tempdir()?;
        owner.give(folder.path())?;
        let mut bouncer = Self { folder, owner, port: Port::free()?, process: None };
        let path = bouncer.folder.path();
        let users = format!(
            "\"postgres\" \"{PASSWORD}\"\n\"{}\" \"{}\"\n",
            crate::cluster::ROLE,
            crate::cluster::PASSWORD
        );
        fs::write(path.join("users"), users)?;
        let configuration = format!(
            "[databases]\n* = host=127.0.0.1 port={}\n[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {}\n\
             unix_socket_dir =\nauth_type = scram-sha-256\nauth_file = {}\nadmin_users = postgres\npool_mode = transaction\n\
             default_pool_size = {sessions}\nserver_login_retry = 0.1\n{settings}\n",
            server.port(),
            bouncer.port(),
            path.join("users").display(),
        );
        fs::write(path.join("pgbouncer.ini"), configuration)?;
        for file in ["users", "pgbouncer.ini"] {
            owner.give(&path.join(file))?;
        }
        bouncer.start_again()?;
        Ok(bouncer)
    }

    /// Starts the pooler on the same port, and waits until it accepts sessions.
    pub fn start_again(&mut self) -> Result<()> {
        let log = File::options().create(true).append(true).open(self.log())?;
        let mut command = Command::new(program()?);
        self.owner.run(&mut command);
        command
            .arg(self.folder.path().join("pgbouncer.ini"))
            .stdin(Stdio::null())
            .stderr(log.try_clone()?)
            .stdout(log);
        self.process = Some(command.spawn().with_context(|| format!("cannot run {command:?}"))?);
        let started = wait::until(wait::LONG, "the pooler to take sessions", || {
            if let Some(status) = self.process.as_mut().map(Child::try_wait).transpose()?.flatten() {
                bail!("it ended: {status}");
            }
            Ok(self.connect("pgbouncer").ok().map(drop))
        });
        started.with_context(|| fs::read_to_string(self.log()).unwrap_or_default())
    }

    fn log(&self) -> PathBuf {
        self.folder.path().join("log")
    }

    /// Kills the pooler, so that its clients lose their sessions.
    pub fn kill(&mut self) -> Result<()> {
        let mut process = self.process.take().context("the pooler does not run")?;
        kill(Pid::from_raw(process.id().try_into()?), Signal::SIGKILL)?;
        process.wait()?;
        Ok(())
    }

    /// The pooler's TCP port on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.port.number()
    }

    /// Opens a session of `postgres` through the pooler. The database `pgbouncer` is the pooler's own console.
    pub fn connect(&self, database: &str) -> Result<Client> {
        let mut config = Client::configure();
        config.host("127.0.0.1").port(self.port()).user("postgres").password(PASSWORD).dbname(database);
        Ok(config.connect(NoTls)?)
    }

    /// Runs a command of the pooler, such as `pause`.
    pub fn tell(&self, command: &str) -> Result<()> {
        self.connect("pgbouncer")?.simple_query(command)?;
        Ok(())
    }
}

impl Drop for Bouncer {
    fn drop(&mut self) {
        if self.process.is_some() {
            let _ = self.kill();
        }
    }
}

/// Finds the program `pgbouncer`. Debian installs it in a folder that only root's PATH has.
fn program() -> Result<PathBuf> {
    let folders = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&folders)
        .chain([Path::new("/usr/sbin").to_owned()])
        .map(|folder| folder.join("pgbouncer"))
        .find(|program| program.is_file())
        .context("pgbouncer is missing: install the package pgbouncer")
}
