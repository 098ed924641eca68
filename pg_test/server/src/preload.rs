//! Libraries that take the place of functions of the C library in a server's processes.

use crate::folder::Folder;
use crate::programs;
use anyhow::Result;
use std::path::Path;
use std::process::Command;

/// Compiles a library from `source`, a C file of this folder. Returns the variable that preloads the library. The library's macro
/// `SHARED` is `file`, which the library and the test both use.
pub(crate) fn variable(folder: &Folder, source: &str, file: &Path) -> Result<(String, String)> {
    let library = folder.path().join(source).with_extension("so");
    let mut compiler = Command::new("cc");
    compiler.args(["-shared", "-fPIC", "-o"]).arg(&library).arg(format!("-DSHARED=\"{}\"", file.display()));
    programs::output(compiler.arg(Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/src")).join(source)))?;
    Ok(("LD_PRELOAD".into(), library.to_string_lossy().into_owned()))
}
