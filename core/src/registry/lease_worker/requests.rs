//! Requests to the lease worker, and properties of the granted lease, in shared memory.

use crate::clock::{UnixMicros, micros};
use crate::server::lease::until_renewal;
use crate::tag::tickets::Tickets;
use std::sync::atomic::{
    AtomicBool, AtomicU32, AtomicU64,
    Ordering::{Relaxed, Release},
};
use std::time::Duration;

/// Requests of sessions and the launcher to the lease worker.
#[derive(Debug, Default)]
pub struct LeaseRequests {
    /// Requests to acquire or renew the lease, if necessary.
    pub request: Tickets,
    /// True if the lease must be renewed immediately. The lease worker sets this field to false after the renewal.
    pub renew: AtomicBool,
    /// The oid of a database that started or stopped using registries. The launcher resets the field to 0.
    pub changed: AtomicU32,
    /// The number of running transactions that start or stop the use of registries.
    pub changing: AtomicU32,
    /// The generator's generation in which a session found the clock behind the generator's ids, plus 1; 0 if no
    /// session needs another worker id.
    behind: AtomicU64,
    /// The length of the last granted lease, in microseconds, and the uptime of the grant. Both fields are 0 if no
    /// grant is known.
    granted: AtomicU64,
    granted_at: AtomicU64,
}

impl LeaseRequests {
    /// Requests an immediate renewal. The caller must wake the launcher.
    pub fn ask_to_renew(&self) {
        self.renew.store(true, Release);
        self.request.ask();
    }

    /// Requests another worker id, because the clock is behind the ids that were issued in the generation `generation`.
    pub fn want_another(&self, generation: u64) {
        self.behind.store(generation + 1, Relaxed);
    }

    /// Returns whether a session requested another worker id in this generation. A new worker id begins a new generation, so
    /// old requests do not count.
    pub fn is_another_wanted(&self, generation: u64) -> bool {
        self.behind.load(Relaxed) == generation + 1
    }

    /// Clears the request for another worker id. A session that still needs another worker id asks again.
    pub(super) fn forget_another(&self) {
        self.behind.store(0, Relaxed);
    }

    /// Records the lease that the registry has just granted.
    pub(super) fn granted(&self, until: UnixMicros, now: UnixMicros, uptime: Duration) {
        self.granted.store(micros(until.since(now)), Relaxed);
        self.granted_at.store(micros(uptime), Relaxed);
    }

    /// Returns the time until a lease has to be renewed. `until` is the end of the lease, and `asked` is the requested
    /// length of leases.
    pub fn until_renewal(
        &self,
        until: UnixMicros,
        now: UnixMicros,
        asked: Duration,
        uptime: Duration,
    ) -> Duration {
        let known = |at: &AtomicU64| Some(at.load(Relaxed)).filter(|at| *at != 0).map(Duration::from_micros);
        let renewed = known(&self.granted_at).map(|at| uptime.saturating_sub(at));
        until_renewal(until.since(now), asked, known(&self.granted), renewed)
    }

    /// Returns the length of the present lease: at most `asked`, the requested length of leases.
    pub fn length(&self, asked: Duration) -> Duration {
        match self.granted.load(Relaxed) {
            0 => asked,
            granted => asked.min(Duration::from_micros(granted)),
        }
    }
}
