//! Crash-safe files in the data directory.

use crate::pg::cluster;
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;

/// Replaces the content of a file: writes the text to the file `new`, syncs `new` and renames it to `name`. After a crash or
/// an error the file has either the old or the new content.
pub fn replace(name: &str, new: &str, text: &[u8]) -> io::Result<()> {
    fill(create(new)?, text)?;
    fs::rename(new, name)?;
    sync_folder(".")
}

/// Creates a file with a text and syncs the file. After a crash the file may hold only a part of the text.
pub fn make(name: &str, folder: &str, text: &[u8]) -> io::Result<()> {
    fill(create(name)?, text)?;
    sync_folder(folder)
}

/// Appends a text to a file and syncs the file. Uses one write call, so that concurrent appends do not mix. Does nothing if
/// the file does not exist.
///
/// # Errors
/// Returns the system's error. The file may then end with only the beginning of the text.
pub fn append(name: &str, text: &[u8]) -> io::Result<()> {
    let file = match OpenOptions::new().append(true).open(name) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        file => file?,
    };
    let written = (&file).write(text)?;
    if written < text.len() {
        return Err(io::Error::from(ErrorKind::WriteZero));
    }
    file.sync_data()
}

/// Creates an empty file, or empties an existing file.
pub fn create(path: &str) -> io::Result<File> {
    OpenOptions::new().write(true).create(true).truncate(true).mode(cluster::file_mode()).open(path)
}

fn fill(mut file: File, text: &[u8]) -> io::Result<()> {
    file.write_all(text)?;
    file.sync_all()
}

/// Syncs a folder, so that the names of its files survive a crash.
pub fn sync_folder(path: &str) -> io::Result<()> {
    File::open(path)?.sync_all()
}
