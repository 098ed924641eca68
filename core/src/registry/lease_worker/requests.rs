//! Requests of sessions and the launcher to the lease worker, and its answers, in shared memory.

use crate::clock::{UnixMicros, micros};
use crate::registry::lease::until_renewal;
use crate::sequence::tickets::Tickets;
use std::sync::atomic::{
    AtomicBool, AtomicU32, AtomicU64,
    Ordering::{Relaxed, Release},
};
use std::time::Duration;

/// The requests.
#[derive(Debug, Default)]
pub struct LeaseRequests {
    /// Requests to look after the lease.
    pub request: Tickets,
    /// True if the lease is to be renewed, however far its end is. Stays until it was.
    pub renew: AtomicBool,
    /// The database whose use of registries has changed, by its oid, until the launcher has seen it; else 0.
    pub changed: AtomicU32,
    /// Number of transactions under way that change that.
    pub changing: AtomicU32,
    /// The generator's generation in which a session found the clock behind, and wants another worker id; plus 1, and 0 where
    /// none does.
    behind: AtomicU64,
    /// The length of the lease as the registry granted it last, in microseconds, and the time of that, by uptime; 0 where it is
    /// not known.
    granted: AtomicU64,
    granted_at: AtomicU64,
}

impl LeaseRequests {
    /// Asks for a renewal, however far the end of the lease is. The launcher has to be called then.
    pub fn ask_to_renew(&self) {
        self.renew.store(true, Release);
        self.request.ask();
    }

    /// Notes that a session has found the clock behind the ids of this generation: another worker id is wanted.
    pub fn want_another(&self, generation: u64) {
        self.behind.store(generation + 1, Relaxed);
    }

    /// Returns whether another worker id is wanted in this generation. One that was taken since has begun another.
    pub fn is_another_wanted(&self, generation: u64) -> bool {
        self.behind.load(Relaxed) == generation + 1
    }

    /// Forgets that another worker id is wanted: a session that still wants one asks again.
    pub(super) fn forget_another(&self) {
        self.behind.store(0, Relaxed);
    }

    /// Notes the end of the lease that the registry has just granted.
    pub(super) fn granted(&self, until: UnixMicros, now: UnixMicros, uptime: Duration) {
        self.granted.store(micros(until.since(now)), Relaxed);
        self.granted_at.store(micros(uptime), Relaxed);
    }

    /// The time until a lease has to be renewed that ends at `until`, where leases of the length `asked` are asked for.
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

    /// The length of the lease from one renewal to the next, where leases of the length `asked` are asked for.
    pub fn length(&self, asked: Duration) -> Duration {
        match self.granted.load(Relaxed) {
            0 => asked,
            granted => asked.min(Duration::from_micros(granted)),
        }
    }
}
