//! A test's own Postgres, with other versions of the extension than the installed one.

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

/// A copy of a Postgres installation, with a version of the extension. Postgres finds its files relative to its programs, so
/// files in the copy affect no other server.
#[derive(Clone, Debug)]
pub struct Installation {
    /// The `pg_config` of the original Postgres.
    pg_config: OsString,
    /// The folder that contains the copy. The folder is removed when no server uses it any more.
    root: Arc<TempDir>,
    owner: Owner,
}

/// A version of the extension.
#[derive(Clone, Debug)]
pub enum Version {
    /// The installed files.
    Present,
    /// Files below a folder, as `make` packages them.
    Packaged(PathBuf),
}

impl Installation {
    /// Copies the Postgres of `PG_CONFIG`, with the installed extension.
    pub fn new() -> Result<Self> {
        Self::with(&Version::Present)
    }

    /// Copies the Postgres of `PG_CONFIG`, with another version of the extension.
    pub fn with(version: &Version) -> Result<Self> {
        Self::of(programs::pg_config(), version)
    }

    /// Copies the Postgres with this `pg_config`. Programs are copied, and all other files are links.
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

    /// A folder of this copy, by the name that `pg_config` uses.
    fn folder(&self, name: &str) -> Result<PathBuf> {
        let installed = programs::installed(&self.pg_config, name)?;
        Ok(self.root.path().join(installed.strip_prefix("/").unwrap_or(&installed)))
    }

    /// Installs a version of the extension over the present one, as `make install` does under running servers.
    pub fn put(&self, version: &Version) -> Result<()> {
        let package = match version {
            Version::Present => Path::new(""),
            Version::Packaged(folder) => folder,
        };
        let mut install = Command::new(checkout().join("devtools/install.sh"));
        install.arg(package).env("DESTDIR", self.root.path()).env("PG_CONFIG", &self.pg_config);
        programs::output(install.env("TARGET", self.root.path())).map(drop)
    }

    /// Adds the install scripts of all released versions, because creating an old version needs its own script.
    pub fn put_released_scripts(&self) -> Result<()> {
        let extension = self.folder("sharedir")?.join("extension");
        for version in released()? {
            let name = format!("snowflake_ids--{version}.sql");
            fs::copy(checkout().join("sql/install").join(&name), extension.join(name))?;
        }
        Ok(())
    }

    /// Adds an extension with this script.
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

/// The `FROM` or `TO` Postgres of `make test-pg-upgrade`, with the present version built for it.
pub fn of_pg_upgrade(which: &str) -> Result<Installation> {
    let variable = |name: &str| {
        let name = format!("PG_UPGRADE_{which}{name}");
        env::var_os(&name).with_context(|| format!("{name} is not set: give make test-pg-upgrade"))
    };
    Installation::of(variable("")?, &Version::Packaged(variable("_PACKAGE")?.into()))
}

/// The release before this version, as `make test-upgrade` built it.
pub fn last_release() -> Result<Version> {
    let folder = env::var_os("SNOWFLAKE_IDS_RELEASED")
        .context("give make test-upgrade: it builds the last release")?;
    Ok(Version::Packaged(folder.into()))
}

/// The released versions: those that have an install script, except the present one.
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
