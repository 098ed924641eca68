//! The files that hold the server's state, one step of reading and writing them each, and what is known of the machine.

use crate::pg::cluster;
use crate::store::durable;
use snowflake_ids_core::server::state::{Birth, DataDirectory, FILE};
use std::fs::{self, File, Metadata};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::UNIX_EPOCH;

// In the data directory, which is where processes of the server are.
const NEW: &str = "snowflake_ids.state.json.new";
const REJECTED: &str = "snowflake_ids.state.json.rejected";
/// Away from the state, that it does not go with it by one slip; and not where the server looks for files of tables.
const WITNESS: &str = "pg_logical/snowflake_ids.witness";
const WITNESS_FOLDER: &str = "pg_logical";
const TESTIMONY: &str = "snowflake_ids has issued ids here. How far is in snowflake_ids.state.json.\n";

/// Returns what the state's file holds, and which file it is; None where there is none.
pub fn read() -> io::Result<Option<(Vec<u8>, Birth)>> {
    let mut file = match File::open(FILE) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        opened => opened?,
    };
    let mut text = Vec::new();
    file.read_to_end(&mut text)?;
    Ok(Some((text, birth(&file.metadata()?))))
}

/// Makes an empty file under another name.
pub fn create() -> io::Result<(File, Birth)> {
    let file = durable::create(NEW)?;
    let birth = birth(&file.metadata()?);
    Ok((file, birth))
}

/// Puts the new file in place of the state's.
pub fn rename() -> io::Result<()> {
    fs::rename(NEW, FILE)
}

/// Has the disk take the names in the data directory.
pub fn sync_directory() -> io::Result<()> {
    durable::sync_folder(".")
}

/// Returns whether there is a witness.
pub fn is_witnessed() -> io::Result<bool> {
    Path::new(WITNESS).try_exists()
}

/// Writes the witness, durably.
pub fn witness() -> io::Result<()> {
    durable::make(WITNESS, WITNESS_FOLDER, TESTIMONY.as_bytes())
}

/// Keeps a copy of a state that can't be trusted, for people, beside those of before.
pub fn keep_rejected() -> io::Result<()> {
    let names = (1..).map(|number| match number {
        1 => REJECTED.to_owned(),
        _ => format!("{REJECTED}.{number}"),
    });
    for name in names {
        if !Path::new(&name).try_exists()? {
            return match fs::copy(FILE, name) {
                Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
                copied => copied.map(drop),
            };
        }
    }
    Ok(())
}

/// The data directory, known by the moment of its birth: a copy has another, and a move leaves it alone. Where the file
/// system does not keep that, by its inode.
pub fn data_directory() -> io::Result<DataDirectory> {
    let Birth { inode, at } = birth(&fs::metadata(".")?);
    let identity = at.map_or_else(|| format!("inode {inode}"), |at| format!("born {at}"));
    let (host, directory) = (line_of("/proc/sys/kernel/hostname"), cluster::data_directory());
    Ok(DataDirectory { identity, file: None, host, directory })
}

/// Returns what tells a file from its copies. Images of file systems that were made from nothing say 1970 of all that
/// they hold.
fn birth(of: &Metadata) -> Birth {
    let born = of.created().ok().and_then(|born| born.duration_since(UNIX_EPOCH).ok());
    let born = born.filter(|born| !born.is_zero());
    let at = born.map(|born| format!("{}.{:09}", born.as_secs(), born.subsec_nanos()));
    Birth { inode: of.ino(), at }
}

/// Returns what a file of the system says in its one line; empty where it can't be read.
pub fn line_of(path: &str) -> String {
    fs::read_to_string(path).map(|text| text.trim().to_owned()).unwrap_or_default()
}
