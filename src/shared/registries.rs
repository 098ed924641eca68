//! The health of the registries of all databases, in shared memory. The status view reads this data. Processes also read
//! this data before they send a request to a registry.

use crate::pg::clock::{SystemClock, uptime};
use crate::pg::server;
use crate::pg::shmem::Shmem;
use crate::shared::slot::SharedText;
use snowflake_ids_core::clock::{human, micros};
use snowflake_ids_core::registry::error::Complaint;
use snowflake_ids_core::registry::failover::{self, Health};
use snowflake_ids_core::registry::link::EndpointStatus;
use snowflake_ids_core::{Clock, UnixMicros};
use std::collections::BTreeSet;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64};
use std::time::Duration;

/// The highest number of registries with an entry. The server keeps no history of further registries.
const MOST: usize = 64;

/// The history, since server start, of one registry of one database. Several workers may write to the entry concurrently.
#[derive(Default)]
pub struct RegistryEntry {
    /// The OID of the database in the low half, and the position of the registry plus 1 in the high half. The key of a free
    /// entry is 0.
    key: AtomicU64,
    /// The number of all requests (`calls`), of failed requests (`failures`), and of failed requests since the last response
    /// (`in_a_row`).
    pub calls: AtomicU64,
    pub failures: AtomicU64,
    in_a_row: AtomicU64,
    /// The start of the request in progress, in microseconds of uptime; 0 if there is none.
    asked_at: AtomicU64,
    /// The time of the last failure, in microseconds of uptime.
    failed_at: AtomicU64,
    /// The wall-clock times of the last failure and the last response; 0 for never.
    pub last_failure: AtomicI64,
    pub last_answer: AtomicI64,
    /// The duration of the last answered request, in microseconds.
    pub last_duration: AtomicU64,
    writing: AtomicBool,
    server: SharedText<8>,
    error: SharedText<64>,
    /// True if the error text reveals the registry's address. Users without `pg_read_all_stats` then see the text in
    /// `briefly` instead.
    private: AtomicBool,
    briefly: SharedText<16>,
    hint: SharedText<32>,
}

/// The hint for users who may not see the whole error.
const FOR_OTHERS: &str = "Ask a member of pg_read_all_stats to look at snowflake_ids.registry_status.";

/// The entry of a registry; None if there was no free entry.
pub struct SharedEndpointStatus(pub Option<&'static RegistryEntry>);

impl EndpointStatus for SharedEndpointStatus {
    fn health(&self) -> Health {
        self.0.map(RegistryEntry::health).unwrap_or_default()
    }

    fn asked(&self) {
        let Some(entry) = self.0 else { return };
        entry.asked_at.store(micros(uptime()), Relaxed);
    }

    fn given_up(&self) {
        let Some(entry) = self.0 else { return };
        entry.asked_at.store(0, Relaxed);
    }

    fn answered(&self, took: Duration) {
        let Some(entry) = self.0 else { return };
        entry.asked_at.store(0, Relaxed);
        entry.calls.fetch_add(1, Relaxed);
        if entry.in_a_row.swap(0, Relaxed) > 0 {
            self.clear_complaint();
        }
        entry.last_answer.store(SystemClock.now().0, Relaxed);
        entry.last_duration.store(micros(took), Relaxed);
    }

    fn failed(&self, complaint: &Complaint) {
        let Some(entry) = self.0 else { return };
        entry.asked_at.store(0, Relaxed);
        for count in [&entry.calls, &entry.failures, &entry.in_a_row] {
            count.fetch_add(1, Relaxed);
        }
        entry.failed_at.store(micros(uptime()), Relaxed);
        entry.last_failure.store(SystemClock.now().0, Relaxed);
        self.complain(complaint);
    }

    fn complain(&self, complaint: &Complaint) {
        let Some(entry) = self.0 else { return };
        // `private` is true while the texts change, so that no user sees a secret text.
        entry.private.store(true, Release);
        entry.write(&entry.briefly, complaint.briefly.as_deref().unwrap_or_default());
        entry.write(&entry.error, &complaint.why);
        entry.write(&entry.hint, &complaint.hint);
        entry.private.store(complaint.briefly.is_some(), Release);
    }

    fn is_news(&self, complaint: &Complaint) -> bool {
        self.0.is_none_or(|entry| entry.error.read().1 != complaint.why)
    }

    fn clear_complaint(&self) {
        self.complain(&Complaint::new("", ""));
    }
}

impl RegistryEntry {
    /// Returns the registry's fault, as the session's user may see it. A pending request without an answer also counts as a
    /// fault.
    fn complaint(&self) -> Option<String> {
        let error = self.error();
        let since = self.asked_at.load(Relaxed);
        if error.is_empty() && since != 0 {
            let waited = Duration::from_millis(micros(uptime()).saturating_sub(since) / 1_000);
            return Some(format!("it was asked {} ago, and has not answered yet", human(waited)));
        }
        Some(error).filter(|error| !error.is_empty())
    }

    /// Returns the name of the foreign server.
    pub fn server(&self) -> String {
        self.server.read().1
    }

    /// Returns the time of the last failure, and the number of failures since the last response.
    pub fn health(&self) -> Health {
        Health {
            failures: u32::try_from(self.in_a_row.load(Relaxed)).unwrap_or(u32::MAX),
            failed_at: Duration::from_micros(self.failed_at.load(Relaxed)),
        }
    }

    /// Returns the last error, as the session's user may see it; empty if there is none. Some users may not see addresses
    /// and tags.
    pub fn error(&self) -> String {
        if self.is_brief() { self.briefly.read().1 } else { self.error.read().1 }
    }

    /// Returns the hint, as the session's user may see it.
    fn shown_hint(&self) -> String {
        if self.is_brief() { FOR_OTHERS.to_owned() } else { self.hint.read().1 }
    }

    fn is_brief(&self) -> bool {
        self.private.load(Acquire) && !server::may_see_all_activity()
    }

    /// Returns the time of the next attempt; None if the registry answers.
    pub fn retry_at(&self) -> Option<UnixMicros> {
        let health = self.health();
        let pause = health.retry_at().checked_sub(health.failed_at)?;
        (health.failures > 0).then(|| UnixMicros(self.last_failure.load(Relaxed)).plus(pause))
    }

    /// Writes a text. If another process is writing at the same time, the other process's text stays, because that text is
    /// just as recent.
    fn write<const WORDS: usize>(&self, shared_text: &SharedText<WORDS>, text: &str) {
        if !self.writing.swap(true, AcqRel) {
            shared_text.write(text);
            self.writing.store(false, Release);
        }
    }

    /// Resets the entry if another foreign server is now at the registry's position.
    fn is_for(&self, server: &str) {
        if self.server.read().1 != server {
            for count in [&self.calls, &self.failures, &self.in_a_row, &self.last_duration] {
                count.store(0, Relaxed);
            }
            self.last_failure.store(0, Relaxed);
            self.last_answer.store(0, Relaxed);
            self.write(&self.error, "");
            self.write(&self.server, server);
        }
    }
}

pub static REGISTRIES: Shmem<&[RegistryEntry]> =
    Shmem::new(c"snowflake_ids registries", |rest| Some(rest.array(MOST, RegistryEntry::default)));

/// Returns the entry of a registry, and creates the entry if needed. Returns None if all entries are taken, or if there is no
/// shared memory.
pub fn entry(database: u32, position: u32, server: &str) -> Option<&'static RegistryEntry> {
    let key = key(database, position);
    let ours = |entry: &&RegistryEntry| entry.key.load(Acquire) == key;
    let found = all().iter().find(ours).or_else(|| all().iter().find(|entry| take_entry(&entry.key, key)))?;
    found.is_for(server);
    Some(found)
}

/// Returns the entry of a registry, if it exists.
pub fn find(database: u32, position: u32) -> Option<&'static RegistryEntry> {
    let key = key(database, position);
    all().iter().find(|entry| entry.key.load(Acquire) == key)
}

/// Returns the failing registries of a database: their names, errors and hints.
pub fn complaints(database: u32) -> Vec<(String, String, String)> {
    let each = (0..).map_while(|position| find(database, position));
    each.filter_map(|entry| Some((entry.server(), entry.complaint()?, entry.shown_hint()))).collect()
}

/// Returns the name of a database's first registry, if the database uses registries.
pub fn first(database: u32) -> Option<String> {
    find(database, 0).map(RegistryEntry::server)
}

/// Frees the entries of a database. Concurrent writes of the database's workers are lost.
pub fn forget(database: u32) {
    for entry in of_database(database) {
        entry.write(&entry.server, "");
        entry.key.store(0, Release);
    }
}

/// Resets the counts of a database's registries. The data about their health stays.
pub fn reset_counts(database: u32) {
    for entry in of_database(database) {
        entry.calls.store(0, Relaxed);
        entry.failures.store(0, Relaxed);
    }
}

fn of_database(database: u32) -> impl Iterator<Item = &'static RegistryEntry> {
    all().iter().filter(move |entry| database_of(entry.key.load(Acquire)) == database)
}

/// Returns the databases that have a failed registry which is due for another request.
pub fn to_be_probed() -> BTreeSet<u32> {
    let now = uptime();
    let failing = all().iter().filter(|entry| failover::is_to_be_probed(entry.health(), now));
    failing.map(|entry| database_of(entry.key.load(Acquire))).filter(|database| *database != 0).collect()
}

/// Returns whether a database has a failed registry that is not yet due for another request.
pub fn is_pausing(database: u32) -> bool {
    let mut entries = (0..).map_while(|position| find(database, position));
    entries.any(|entry| entry.retry_at().is_some() && !failover::is_to_be_probed(entry.health(), uptime()))
}

/// Returns whether a database uses registries, and none of them answered its last request.
pub fn is_down(database: u32) -> bool {
    let mut entries = (0..).map_while(|position| find(database, position)).peekable();
    entries.peek().is_some() && entries.all(|entry| entry.retry_at().is_some())
}

/// Returns the databases that have entries.
pub fn databases() -> BTreeSet<u32> {
    let keys = all().iter().map(|entry| entry.key.load(Acquire));
    keys.filter(|key| *key != 0).map(database_of).collect()
}

#[allow(clippy::cast_possible_truncation, reason = "the half that holds it")]
fn database_of(key: u64) -> u32 {
    key as u32
}

fn all() -> &'static [RegistryEntry] {
    REGISTRIES.get().copied().unwrap_or_default()
}

fn key(database: u32, position: u32) -> u64 {
    (u64::from(position) + 1) << 32 | u64::from(database)
}

/// Takes an entry for `key`. Returns whether `key` has the entry now; another process may have taken the entry for the same
/// key.
fn take_entry(entry: &AtomicU64, key: u64) -> bool {
    entry.compare_exchange(0, key, AcqRel, Acquire).is_ok() || entry.load(Acquire) == key
}
