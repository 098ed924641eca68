//! The core's issuer, over this server's files, clocks, lock and settings.

use crate::pg::clock::{SystemClock, since_boot};
use crate::pg::cluster;
use crate::pg::lock::LwLock;
use crate::pg::random;
use crate::pg::server;
use crate::pg::wait::{self, Event};
use crate::settings;
use crate::shared::generator::Shared;
use crate::shared::leases::leases;
use crate::shared::segments;
use crate::store::state as file;
use parking_lot::lock_api::RwLockWriteGuard;
use pgrx::check_for_interrupts;
use snowflake_ids_core::generator::session::Caller;
use snowflake_ids_core::registry::wire::LeaseError;
use snowflake_ids_core::server::anchor::Reading;
use snowflake_ids_core::server::issuer::{
    Clocks, Cluster, Host, Issuer, IssuerError, Issuing, Settings, StateLock, StateStore,
};
use snowflake_ids_core::server::state::{Birth, DataDirectory, Here, State};
use snowflake_ids_core::{Clock, ClockRollback, Layout, UnixMicros};
use std::fs::File;
use std::io;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// How soon a process that found the state lock taken looks again.
const RETRY: Duration = Duration::from_millis(1);

/// The longest that a call waits for a worker id to be leased.
pub const LEASE_WAIT: Duration = Duration::from_secs(5);

/// What the issuer touches on this server, for one call.
pub struct Server<'a> {
    shared: &'a Shared,
    started: Instant,
}

/// The issuer of this server.
pub fn issuer(shared: &Shared) -> Issuer<'_, Server<'_>> {
    Issuer { shared, host: Server { shared, started: Instant::now() } }
}

/// Changes the state, durably. A term of a node that is not to issue any more is ended.
///
/// # Errors
/// [`IssuerError`], and nothing was changed.
pub fn change<T>(shared: &Shared, change: impl FnOnce(&mut State, &Here) -> T) -> Result<T, IssuerError> {
    issuer(shared).change(change)
}

/// Returns which place a layout has at the moment, where it is not the server's own.
pub fn place_of(shared: &Shared, layout: &Layout) -> Option<usize> {
    let issuer = issuer(shared);
    let issuing = issuer.host.lock();
    issuing.place_of(layout)
}

/// The wall clock, or the time by the anchor where it has jumped too far ahead.
pub fn believed_now(shared: &Shared) -> UnixMicros {
    shared.now()
}

impl StateStore for Server<'_> {
    type NewFile = File;

    fn read(&self) -> io::Result<Option<(Vec<u8>, Birth)>> {
        file::read()
    }

    fn is_witnessed(&self) -> io::Result<bool> {
        file::is_witnessed()
    }

    fn create(&self) -> io::Result<(File, Birth)> {
        file::create()
    }

    fn fill(&self, file: &mut File, text: &str) -> io::Result<()> {
        io::Write::write_all(file, text.as_bytes())
    }

    fn sync(&self, file: File) -> io::Result<()> {
        file.sync_all()
    }

    fn rename(&self) -> io::Result<()> {
        file::rename()
    }

    fn sync_directory(&self) -> io::Result<()> {
        file::sync_directory()
    }

    fn witness(&self) -> io::Result<()> {
        file::witness()
    }

    fn keep_rejected(&self) -> io::Result<()> {
        file::keep_rejected()
    }

    fn data_directory(&self) -> io::Result<DataDirectory> {
        static HOME: OnceLock<DataDirectory> = OnceLock::new();
        if let Some(home) = HOME.get() {
            return Ok(home.clone());
        }
        let home = file::data_directory()?;
        Ok(HOME.get_or_init(|| home).clone())
    }
}

impl Clocks for Server<'_> {
    fn reading(&self) -> Reading {
        static BOOT: OnceLock<String> = OnceLock::new();
        let boot = BOOT.get_or_init(|| file::line_of("/proc/sys/kernel/random/boot_id"));
        Reading { wall: SystemClock.now(), boot: boot.clone(), since_boot: since_boot() }
    }
}

impl StateLock for Server<'_> {
    type Held<'b>
        = RwLockWriteGuard<'b, LwLock, Issuing>
    where
        Self: 'b;

    fn lock(&self) -> Self::Held<'_> {
        loop {
            check_for_interrupts!();
            if let Some(held) = self.shared.state_lock.try_write() {
                return held;
            }
            wait::pause(Event::State, RETRY);
        }
    }
}

impl Host for Server<'_> {
    fn cluster(&self) -> Cluster {
        Cluster {
            system_identifier: cluster::system_identifier(),
            timeline: cluster::timeline(),
            replayed: cluster::last_replayed(),
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
        if let Some(leases) = leases() {
            leases.origin.write(server);
        }
    }
}

impl Caller for Server<'_> {
    fn count(&self, ids: u64) {
        self.shared.count(ids);
    }

    fn lease(&self, other: bool) -> Result<(), LeaseError> {
        crate::lease::ask(self.shared, other, LEASE_WAIT)
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
