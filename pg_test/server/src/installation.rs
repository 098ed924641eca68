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
        let mut install = Command::new(checkout().join("devtools/build/install.sh"));
        install.arg(package).env("DESTDIR", self.root.path()).env("PG_CONFIG", &self.pg_config);
        programs::output(install.env("TARGET", self.root.path())).map(drop)
    }

    /// A script of the extension, by the part of its name that says for which versions it is.
    pub fn script(&self, versions: &str) -> Result<String> {
        let file = self.file_of_script(versions)?;
        fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))
    }

    /// Adds a script of the extension.
    pub fn put_script(&self, versions: &str, script: &str) -> Result<()> {
        let file = self.file_of_script(versions)?;
        // Files of the copy are links to those of the original.
        if file.is_symlink() {
            fs::remove_file(&file)?;
        }
        Ok(fs::write(file, script)?)
    }

    fn file_of_script(&self, versions: &str) -> Result<PathBuf> {
        Ok(self.folder("sharedir")?.join(format!("extension/snowflake_ids--{versions}.sql")))
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

/// The released versions before this one, and their install scripts.
pub fn released() -> Result<Vec<(String, String)>> {
    let mut versions = Vec::new();
    let Ok(files) = fs::read_dir(checkout().join("sql/install")) else { return Ok(versions) };
    for file in files {
        let file = file?.path();
        let name = file.file_stem().and_then(|name| name.to_str()?.strip_prefix("snowflake_ids--"));
        if let Some(version) = name.filter(|version| *version != env!("CARGO_PKG_VERSION")) {
            versions.push((version.to_owned(), fs::read_to_string(&file)?));
        }
    }
    versions.sort();
    Ok(versions)
}

fn checkout() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..")
}
