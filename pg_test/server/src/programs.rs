//! Postgres's programs, run as the owner of the servers.

use crate::owner::Owner;
use anyhow::{Context, Result, ensure};
use std::env;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::Arc;
use tempfile::TempDir;

/// The programs of one Postgres installation.
#[derive(Clone, Debug)]
pub struct Programs {
    bindir: PathBuf,
    owner: Owner,
    /// The folder of a copied Postgres. The folder stays while any server uses it.
    _root: Option<Arc<TempDir>>,
}

impl Programs {
    /// Finds the programs.
    ///
    /// # Errors
    /// `PG_CONFIG` does not run, or no server is installed beside it.
    pub fn find(owner: Owner) -> Result<Self> {
        let bindir = installed(&pg_config(), "bindir")?;
        let postgres = bindir.join("postgres");
        ensure!(postgres.is_file(), "{} is missing: install the server's package", postgres.display());
        Ok(Self { bindir, owner, _root: None })
    }

    /// The programs in another folder.
    pub(crate) fn at(bindir: PathBuf, owner: Owner, root: Arc<TempDir>) -> Self {
        Self { bindir, owner, _root: Some(root) }
    }

    /// The programs' folder.
    pub(crate) fn bindir(&self) -> &Path {
        &self.bindir
    }

    /// A program of this Postgres that the owner runs in `folder`, without the caller's settings.
    pub fn command(&self, program: &str, folder: &Path) -> Command {
        let mut command = Command::new(self.bindir.join(program));
        self.owner.run(&mut command);
        for name in env::vars_os().map(|(name, _)| name).filter(is_setting) {
            command.env_remove(name);
        }
        command.current_dir(folder).env("HOME", folder).env("LC_ALL", "C");
        // Only tests of backtraces set these variables.
        command.env_remove("RUST_BACKTRACE").env_remove("RUST_LIB_BACKTRACE");
        command
    }
}

/// The `pg_config` of the Postgres to test.
pub(crate) fn pg_config() -> OsString {
    env::var_os("PG_CONFIG").unwrap_or_else(|| "pg_config".into())
}

/// A folder of a Postgres, by the name that `pg_config` uses.
pub(crate) fn installed(pg_config: &OsStr, folder: &str) -> Result<PathBuf> {
    let path = output(Command::new(pg_config).arg(format!("--{folder}")))
        .context("set PG_CONFIG to the pg_config of the Postgres to test")?;
    Ok(PathBuf::from(path.trim()))
}

/// Whether this is a variable such as PGHOST or PGOPTIONS.
#[allow(clippy::ptr_arg, reason = "the form that filter wants")]
fn is_setting(name: &OsString) -> bool {
    name.to_str().is_some_and(|name| name.starts_with("PG"))
}

/// Runs a command to its end, and returns its output.
///
/// # Errors
/// The command cannot be started, or fails; the error has its output.
pub fn output(command: &mut Command) -> Result<String> {
    let Output { status, stdout, stderr } = said(command)?;
    ensure!(status.success(), "{command:?} failed: {status}\n{}", String::from_utf8_lossy(&stderr));
    Ok(String::from_utf8_lossy(&stdout).into_owned())
}

/// Runs a command to its end, and returns its output and status, even after a failure.
///
/// # Errors
/// The command cannot be started.
pub(crate) fn said(command: &mut Command) -> Result<Output> {
    command.output().with_context(|| format!("cannot run {command:?}"))
}

/// Copies files as `cp -a` does.
pub fn copy_files(from: &Path, to: &Path) -> Result<()> {
    output(Command::new("cp").arg("-a").args([from, to])).map(drop)
}
