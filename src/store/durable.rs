//! Files of the data directory that are whole after any crash.

use crate::pg::cluster;
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;

/// Has a file hold a text and nothing else. It is written whole under another name, `new`, synced, and renamed: whenever the
/// machine fails, either the old content or the new one is there.
///
/// # Errors
/// The system's, and the old content is still there, or already the new one: as after a crash.
pub fn replace(name: &str, new: &str, text: &[u8]) -> io::Result<()> {
    fill(create(new)?, text)?;
    fs::rename(new, name)?;
    sync_folder(".")
}

/// Makes a file that holds a text. When it returns, that is durable; after a crash, part of it may be there.
pub fn make(name: &str, folder: &str, text: &[u8]) -> io::Result<()> {
    fill(create(name)?, text)?;
    sync_folder(folder)
}

/// Writes a text behind all that a file holds, in one piece: whatever else does so at the same time writes before or after
/// it. When it returns, that is durable. Nothing where there is no such file.
///
/// # Errors
/// The system's; then a beginning of the text may be there.
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

/// Makes an empty file, which takes the place of one that is there.
pub fn create(path: &str) -> io::Result<File> {
    OpenOptions::new().write(true).create(true).truncate(true).mode(cluster::file_mode()).open(path)
}

fn fill(mut file: File, text: &[u8]) -> io::Result<()> {
    file.write_all(text)?;
    file.sync_all()
}

/// Has the disk take the names in a folder.
pub fn sync_folder(path: &str) -> io::Result<()> {
    File::open(path)?.sync_all()
}
