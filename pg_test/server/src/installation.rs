//! A Postgres of a test's own, with versions of the extension in it that the installed one does not have.

use crate::owner::Owner;
use crate::programs::{self, Programs};
use anyhow::{Context, Result};
use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use tempfile::TempDir;

/// A copy of a Postgres, with a version of the extension. Postgres finds its files from where its programs lie, so what is put
/// here goes nowhere else.
#[derive(Clone, Debug)]
pub struct Installation {
    /// The `pg_config` of the Postgres that this is a copy of.
    pg_config: OsString,
    /// The folder below which it lies; removed when nothing runs from it any more.
    root: Arc<TempDir>,
    owner: Owner,
}

/// A version of the extension.
#[derive(Clone, Debug)]
pub enum Version {
    /// The installed files.
    Present,
    /// The files below a folder, as `make` packages it.
    Packaged(PathBuf),
}

impl Installation {
    /// One of the Postgres that `PG_CONFIG` names, with the extension as it is installed there.
    pub fn new() -> Result<Self> {
        Self::with(&Version::Present)
    }

    /// One of it with another version of the extension.
    pub fn with(version: &Version) -> Result<Self> {
        Self::of(programs::pg_config(), version)
    }

    /// One of the Postgres that has this `pg_config`. Programs are copied; all else are links.
    pub fn of(pg_config: OsString, version: &Version) -> Result<Self> {
        let owner = Owner::of_servers()?;
        let root = tempfile::Builder::new().prefix("pg").tempdir()?;
        owner.give(root.path())?;
        let installation = Self { pg_config, root: Arc::new(root), owner };
        installation.copy("bindir", &["--archive"])?;
        for folder in ["pkglibdir", "sharedir"] {
            installation.copy(folder, &["--recursive", "--symbolic-link"])?;
        }
        installation.put(version)?;
        Ok(installation)
    }

    fn copy(&self, folder: &str, options: &[&str]) -> Result<()> {
        let (from, to) = (programs::installed(&self.pg_config, folder)?, self.folder(folder)?);
        fs::create_dir_all(to.parent().context("a folder of Postgres is the root")?)?;
        programs::output(Command::new("cp").args(options).arg(from).arg(to)).map(drop)
    }

    /// A folder of Postgres here, as `pg_config` calls it.
    fn folder(&self, name: &str) -> Result<PathBuf> {
        let installed = programs::installed(&self.pg_config, name)?;
        Ok(self.root.path().join(installed.strip_prefix("/").unwrap_or(&installed)))
    }

    /// Puts a version of the extension over the one that is here, as `make install` does under servers that run.
    pub fn put(&self, version: &Version) -> Result<()> {
        let package = match version {
            Version::Present => Path::new(""),
            Version::Packaged(folder) => folder,
        };
        let mut install = Command::new(checkout().join("devtools/install.sh"));
        install.arg(package).env("DESTDIR", self.root.path()).env("PG_CONFIG", &self.pg_config);
        programs::output(install.env("TARGET", self.root.path())).map(drop)
    }

    /// Puts the install scripts of all versions beside that of the present one: a server needs a version's own to create it.
    pub fn put_released_scripts(&self) -> Result<()> {
        let extension = self.folder("sharedir")?.join("extension");
        for version in released()? {
            let name = format!("snowflake_ids--{version}.sql");
            fs::copy(checkout().join("sql/install").join(&name), extension.join(name))?;
        }
        Ok(())
    }

    /// Puts an extension there that has this script.
    pub fn put_extension(&self, name: &str, script: &str) -> Result<()> {
        let extension = self.folder("sharedir")?.join("extension");
        fs::write(extension.join(format!("{name}.control")), "default_version = '1'")?;
        fs::write(extension.join(format!("{name}--1.sql")), script)?;
        Ok(())
    }

    pub(crate) fn programs(&self) -> Result<Programs> {
        Ok(Programs::at(self.folder("bindir")?, self.owner, Arc::clone(&self.root)))
    }
}

/// One of two Postgres that `make test-pg-upgrade` goes `FROM` and `TO`, with the present version as it was built for it.
pub fn of_pg_upgrade(which: &str) -> Result<Installation> {
    let variable = |name: &str| {
        let name = format!("PG_UPGRADE_{which}{name}");
        env::var_os(&name).with_context(|| format!("{name} is not set: give make test-pg-upgrade"))
    };
    Installation::of(variable("")?, &Version::Packaged(variable("_PACKAGE")?.into()))
}

/// The last release before this version, which `make test-upgrade` has built.
pub fn last_release() -> Result<Version> {
    let folder = env::var_os("SNOWFLAKE_IDS_RELEASED")
        .context("give make test-upgrade: it builds the last release")?;
    Ok(Version::Packaged(folder.into()))
}

/// The versions before the present one that have an install script, which each release leaves.
pub fn released() -> Result<Vec<String>> {
    let mut versions = Vec::new();
    for file in fs::read_dir(checkout().join("sql/install"))? {
        let name = file?.file_name();
        let version =
            name.to_str().and_then(|name| name.strip_prefix("snowflake_ids--")?.strip_suffix(".sql"));
        versions.extend(version.filter(|version| *version != env!("CARGO_PKG_VERSION")).map(str::to_owned));
    }
    versions.sort();
    Ok(versions)
}

fn checkout() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..")
}
