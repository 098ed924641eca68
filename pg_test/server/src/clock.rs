//! A server whose wall clock a test steps, by libfaketime. Monotonic time stays true.

use crate::folder::Folder;
use crate::programs;
use anyhow::{Context, Result};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Up to 15, Postgres starts background workers from a signal handler, in the middle of `select`. libfaketime
/// turns itself off during that call, and in a process forked there for good; so it must not see the call.
const SELECT: &str = "int __select(int, void *, void *, void *, void *);
int select(int n, void *r, void *w, void *e, void *t) { return __select(n, r, w, e, t); }
";

/// The variables that give a postmaster a false clock, which shows true time for now.
pub(crate) fn environment(folder: &Folder) -> Result<Vec<(String, String)>> {
    set(folder, "+0")?;
    let file = file(folder.path());
    let libraries = format!("{}:{}", select(folder.path())?.display(), library()?.display());
    let variables = [
        ("LD_PRELOAD", libraries.into()),
        ("FAKETIME_TIMESTAMP_FILE", file),
        ("FAKETIME_NO_CACHE", "1".into()),
        ("FAKETIME_DONT_FAKE_MONOTONIC", "1".into()),
    ];
    Ok(variables.map(|(name, value)| (name.into(), value.to_string_lossy().into_owned())).into())
}

fn library() -> Result<PathBuf> {
    let folders = fs::read_dir("/usr/lib")?.flatten().map(|entry| entry.path());
    folders
        .chain([PathBuf::from("/usr/lib")])
        .map(|folder| folder.join("faketime/libfaketime.so.1"))
        .find(|library| library.is_file())
        .context("libfaketime.so.1 is missing: install the package libfaketime")
}

fn select(folder: &Path) -> Result<PathBuf> {
    let (source, library) = (folder.join("select.c"), folder.join("select.so"));
    fs::write(&source, SELECT)?;
    let mut compiler = Command::new("cc");
    programs::output(compiler.args(["-shared", "-fPIC", "-o"]).args([&library, &source]))?;
    Ok(library)
}

fn file(folder: &Path) -> PathBuf {
    folder.join("clock")
}

/// Steps the clock. The file is renamed into place, so that no process ever reads half an offset.
pub(crate) fn set(folder: &Folder, offset: &str) -> Result<()> {
    let new = folder.path().join("clock.new");
    fs::write(&new, format!("{offset}\n"))?;
    Ok(fs::rename(new, file(folder.path()))?)
}
