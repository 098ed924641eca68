//! The file that holds the server's state, and what is known of the machine it is on.
//!
//! It is written whole under another name, synced, and renamed: whenever the machine fails, either the old content
//! or the new one is there. In it stands what tells this very file from copies of it, so that one that is put back is
//! known. Beside it stands a *witness*, a file that only tells that there is one: a server
//! without either has never issued an id, one that has the witness only has lost its state.

use crate::pg::clock::{SystemClock, since_boot};
use crate::pg::cluster;
use snowflake_ids_core::Clock;
use snowflake_ids_core::anchor::Reading;
use snowflake_ids_core::state::{Birth, DataDirectory, State, StateError};
use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::sync::OnceLock;
use std::time::UNIX_EPOCH;

/// In the data directory, which is where processes of the server are.
pub const FILE: &str = "snowflake_ids.state.json";
const NEW: &str = "snowflake_ids.state.json.new";
const REJECTED: &str = "snowflake_ids.state.json.rejected";
/// Away from the state, that it does not go with it by one slip; and not where the server looks for files of tables.
const WITNESS: &str = "pg_logical/snowflake_ids.witness";
const WITNESS_FOLDER: &str = "pg_logical";
const TESTIMONY: &str = "snowflake_ids has issued ids here. How far is in snowflake_ids.state.json.\n";

/// Why there is no state to go on from.
#[derive(Debug)]
pub enum Unreadable {
    /// It can't be trusted.
    Untrusted(StateError),
    /// It can't be read.
    Io(io::Error),
}

/// A state, and the file that it was found in.
pub struct Stored {
    /// What it says.
    pub state: State,
    /// Which file this is.
    pub file: Birth,
}

/// Reads the state; None where there never was one.
pub fn read() -> Result<Option<Stored>, Unreadable> {
    match read_with_birth() {
        Ok((text, file)) => {
            let state = State::from_text(&text).map_err(Unreadable::Untrusted)?;
            Ok(Some(Stored { state, file }))
        }
        Err(error) if error.kind() == ErrorKind::NotFound => {
            if is_witnessed().map_err(Unreadable::Io)? {
                Err(Unreadable::Untrusted(StateError::Missing))
            } else {
                Ok(None)
            }
        }
        Err(error) => Err(Unreadable::Io(error)),
    }
}

fn read_with_birth() -> io::Result<(Vec<u8>, Birth)> {
    let mut file = File::open(FILE)?;
    let mut text = Vec::new();
    file.read_to_end(&mut text)?;
    Ok((text, birth(&file.metadata()?)))
}

/// Writes the state. When it returns, the state is durable.
///
/// # Errors
/// The system's, and the old state is still there, or already the new one: as after a crash.
pub fn write(state: &State) -> io::Result<()> {
    let file = create(NEW)?;
    let state = state.in_file(birth(&file.metadata()?));
    fill_synced(file, &state.to_text()?)?;
    fs::rename(NEW, FILE)?;
    sync_folder(".")?;
    // Only now: a witness of a state that was never written would stand in the way of a fresh server.
    if !is_witnessed()? {
        fill_synced(create(WITNESS)?, TESTIMONY)?;
        sync_folder(WITNESS_FOLDER)?;
    }
    Ok(())
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

fn is_witnessed() -> io::Result<bool> {
    Path::new(WITNESS).try_exists()
}

fn create(path: &str) -> io::Result<File> {
    OpenOptions::new().write(true).create(true).truncate(true).mode(cluster::file_mode()).open(path)
}

fn fill_synced(mut file: File, text: &str) -> io::Result<()> {
    file.write_all(text.as_bytes())?;
    file.sync_all()
}

fn sync_folder(path: &str) -> io::Result<()> {
    File::open(path)?.sync_all()
}

/// The data directory: told by the moment of its birth, which a copy has another of and a move leaves alone; where the
/// file system does not keep it, by its inode.
pub fn home() -> io::Result<DataDirectory> {
    let Birth { inode, at } = birth(&fs::metadata(".")?);
    let identity = at.map_or_else(|| format!("inode {inode}"), |at| format!("born {at}"));
    let (host, directory) = (line_of("/proc/sys/kernel/hostname"), cluster::data_directory());
    Ok(DataDirectory { identity, file: None, host, directory })
}

/// What tells a file from its copies. Images of file systems that were made from nothing say 1970 of all that they hold.
fn birth(of: &Metadata) -> Birth {
    let born = of.created().ok().and_then(|born| born.duration_since(UNIX_EPOCH).ok());
    let born = born.filter(|born| !born.is_zero());
    let at = born.map(|born| format!("{}.{:09}", born.as_secs(), born.subsec_nanos()));
    Birth { inode: of.ino(), at }
}

/// The clocks of the machine now.
pub fn clocks() -> Reading {
    static BOOT: OnceLock<String> = OnceLock::new();
    let boot = BOOT.get_or_init(|| line_of("/proc/sys/kernel/random/boot_id"));
    Reading { wall: SystemClock.now(), boot: boot.clone(), since_boot: since_boot() }
}

fn line_of(path: &str) -> String {
    fs::read_to_string(path).map(|text| text.trim().to_owned()).unwrap_or_default()
}
