//! Implements the traits through which the core's [`Issuer`] reaches the files, the clocks, the state lock and the settings
//! of this server.

use crate::pg::clock::{SystemClock, since_boot};
use crate::pg::cluster;
use crate::pg::file_system;
use crate::pg::random;
use crate::pg::server;
use crate::pg::wait::{self, Event};
use crate::settings;
use crate::shared::generator::{SHARED, Shared};
use crate::shared::leases::LEASES;
use crate::shared::segments;
use crate::store::{durable, replayed};
use pgrx::check_for_interrupts;
use snowflake_ids_core::server::clock_reference::Reading;
use snowflake_ids_core::server::issuer::{Cluster, Host, Issuer, IssuerError, Issuing, Settings};
use snowflake_ids_core::server::lease::LeaseError;
use snowflake_ids_core::server::state::{Copied, DataDirectory, FILE, FileIdentity, Here, Machine, State};
use snowflake_ids_core::session::Caller;
use snowflake_ids_core::{Clock, ClockRollback, UnixMicros};
use std::fs::{self, File, Metadata};
use std::io::{self, ErrorKind, Read, Write};
use std::ops::DerefMut;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::OnceLock;
use std::time::{Duration, Instant, UNIX_EPOCH};

// These paths are relative to the data directory, which is the working directory of all server processes.
const NEW: &str = "snowflake_ids.state.json.new";
const REJECTED: &str = "snowflake_ids.state.json.rejected";
/// The marker file shows that a state file was written. The marker file is in another folder than the state file, so that one
/// mistake does not delete both files. Postgres keeps no table files in `pg_logical`.
const MARKER_FILE: &str = "pg_logical/snowflake_ids.marker";
const MARKER_FOLDER: &str = "pg_logical";
const TESTIMONY: &[u8] = b"snowflake_ids has issued ids here. How far is in snowflake_ids.state.json.\n";

/// The largest number of bytes that are read from a file of the system.
const MAX_TEXT: u64 = 1 << 20;

/// The pause between two attempts to take the state lock.
const RETRY: Duration = Duration::from_millis(1);

/// This server as the [`Host`] of the issuer during one call.
pub struct Server<'a> {
    shared: &'a Shared,
    started: Instant,
    /// The last time that recovery replayed, which is read before the state lock is taken.
    replayed: Option<UnixMicros>,
}

pub fn issuer(shared: &Shared) -> Issuer<'_, Server<'_>> {
    Issuer { shared, host: Server { shared, started: Instant::now(), replayed: replayed::last(shared) } }
}

/// Changes the server's state, and makes the change durable. Ends each term whose node may no longer issue ids.
pub fn change<T>(shared: &Shared, change: impl FnOnce(&mut State, &Here) -> T) -> Result<T, IssuerError> {
    issuer(shared).change(change)
}

/// Returns the last event that may have set this server's tables back. A standby's tables are its primary's.
pub fn copied() -> Option<Copied> {
    static COPIED: OnceLock<Option<Copied>> = OnceLock::new();
    if COPIED.get().is_none() && !server::in_recovery() {
        let found = issuer(SHARED.get()?).copied().ok()?;
        return *COPIED.get_or_init(|| found);
    }
    COPIED.get().copied().flatten()
}

/// Records that this server gives ids of tags, so that a copy of its directory is not an unused image. Tags do not depend on
/// the state file, so an error is no reason to fail.
pub fn record_reserved() {
    static RECORDED: OnceLock<bool> = OnceLock::new();
    RECORDED.get_or_init(|| {
        SHARED.get().is_some_and(|shared| change(shared, |state, _| state.has_reserved = true).is_ok())
    });
}

/// Identifies the data directory by its creation time. A copy has a different creation time, but a moved directory keeps
/// its creation time. If the file system stores no creation time, the inode identifies the directory, together with the
/// machine if copies can have the same inode. The postmaster asks first, so all processes agree, even if an administrator
/// renames the host later.
pub fn identify_data_directory() -> io::Result<&'static DataDirectory> {
    static HOME: OnceLock<DataDirectory> = OnceLock::new();
    if let Some(home) = HOME.get() {
        return Ok(home);
    }
    let FileIdentity { inode, at } = file_identity(&fs::metadata(".")?);
    let machine = file_system::of_working_directory().filter(|_| at.is_none()).and_then(|file_system| {
        Machine::of(file_system, &text_of("/etc/machine-id"), &text_of("/proc/self/mountinfo"))
    });
    let identity = at.map_or_else(|| format!("inode {inode}"), |at| format!("born {at}"));
    let (host, directory) = (text_of("/proc/sys/kernel/hostname"), cluster::data_directory());
    Ok(HOME.get_or_init(|| DataDirectory { identity, file: None, machine, host, directory }))
}

/// Returns the inode and the creation time of a file. A copy of the file has a different inode and creation time. In a
/// file-system image, all files may have the creation time 0 (the start of 1970). This creation time is ignored.
fn file_identity(of: &Metadata) -> FileIdentity {
    let born = of.created().ok().and_then(|born| born.duration_since(UNIX_EPOCH).ok());
    let born = born.filter(|born| !born.is_zero());
    let at = born.map(|born| format!("{}.{:09}", born.as_secs(), born.subsec_nanos()));
    FileIdentity { inode: of.ino(), at }
}

/// Returns the text of a system file, up to a limit. Returns an empty text if the file cannot be read.
fn text_of(path: &str) -> String {
    let mut text = Vec::new();
    let read = File::open(path).and_then(|file| file.take(MAX_TEXT).read_to_end(&mut text));
    let text = read.map(|_| String::from_utf8_lossy(&text));
    text.map(|text| text.trim().to_owned()).unwrap_or_default()
}

impl Host for Server<'_> {
    type NewFile = File;

    fn read(&self) -> io::Result<Option<(Vec<u8>, FileIdentity)>> {
        let mut file = match File::open(FILE) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            opened => opened?,
        };
        let mut text = Vec::new();
        file.read_to_end(&mut text)?;
        Ok(Some((text, file_identity(&file.metadata()?))))
    }

    fn has_marker_file(&self) -> io::Result<bool> {
        Path::new(MARKER_FILE).try_exists()
    }

    fn create(&self) -> io::Result<(File, FileIdentity)> {
        let file = durable::create(NEW)?;
        let file_identity = file_identity(&file.metadata()?);
        Ok((file, file_identity))
    }

    fn fill(&self, file: &mut File, text: &str) -> io::Result<()> {
        file.write_all(text.as_bytes())
    }

    fn sync(&self, file: File) -> io::Result<()> {
        file.sync_all()
    }

    fn rename(&self) -> io::Result<()> {
        fs::rename(NEW, FILE)
    }

    fn sync_directory(&self) -> io::Result<()> {
        durable::sync_folder(".")
    }

    fn marker_file(&self) -> io::Result<()> {
        durable::make(MARKER_FILE, MARKER_FOLDER, TESTIMONY)
    }

    fn keep_rejected(&self) -> io::Result<()> {
        for number in 1.. {
            let name = if number == 1 { REJECTED.to_owned() } else { format!("{REJECTED}.{number}") };
            if !Path::new(&name).try_exists()? {
                return match fs::copy(FILE, name) {
                    Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
                    copied => copied.map(drop),
                };
            }
        }
        Ok(())
    }

    fn data_directory(&self) -> io::Result<DataDirectory> {
        identify_data_directory().cloned()
    }

    fn reading(&self) -> Reading {
        static BOOT: OnceLock<String> = OnceLock::new();
        let boot = BOOT.get_or_init(|| text_of("/proc/sys/kernel/random/boot_id"));
        Reading { wall: SystemClock.now(), boot: boot.clone(), since_boot: since_boot() }
    }

    fn lock(&self) -> impl DerefMut<Target = Issuing> {
        loop {
            check_for_interrupts!();
            if let Some(held) = self.shared.state_lock.try_write() {
                return held;
            }
            wait::pause(Event::State, RETRY);
        }
    }

    fn cluster(&self) -> Cluster {
        Cluster {
            system_identifier: cluster::system_identifier(),
            timeline: cluster::timeline(),
            replayed: self.replayed,
        }
    }

    fn settings(&self) -> Settings {
        Settings {
            rules: settings::rules(),
            reserve: settings::reserve(),
            max_clock_jump: settings::max_clock_jump(),
            max_clock_skew: settings::max_clock_skew(),
            policy: settings::worker_id_policy(),
        }
    }

    fn token(&self) -> i64 {
        random::token()
    }

    fn database(&self) -> u32 {
        server::database()
    }

    fn show_origin(&self, server: &str) {
        if let Some(leases) = LEASES.get() {
            leases.origin.write(server);
        }
    }
}

impl Caller for Server<'_> {
    fn count(&self, ids: u64) {
        self.shared.count(ids);
    }

    fn lease(&self, other: bool) -> Result<(), LeaseError> {
        crate::lease::ask(self.shared, other)
    }

    fn trouble(&self) -> Option<LeaseError> {
        crate::lease::trouble()
    }

    fn call_launcher(&self) {
        segments::wake_launcher();
    }

    fn rollback(&self) -> ClockRollback {
        settings::rollback()
    }

    fn left(&self) -> Duration {
        settings::clock_wait_timeout().saturating_sub(self.started.elapsed())
    }

    fn sleep(&self, time: Duration) {
        wait::sleep(time);
    }
}
