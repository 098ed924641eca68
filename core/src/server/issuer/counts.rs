//! Counters since the server's start, and present values, for the view.

use crate::clock::UnixMicros;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering::Relaxed};

/// What happened since the server's start, and what is, for the view.
#[derive(Debug, Default)]
#[repr(align(64))]
pub struct Counts {
    /// Number of times that the state was written: each a sync.
    pub reservations: AtomicU64,
    /// Those of them that a call did itself.
    pub by_callers: AtomicU64,
    /// Steps forward of the clock.
    pub steps_forward: AtomicU64,
    /// The last of them, in microseconds.
    pub last_step_forward: AtomicU64,
    /// How far the clock is ahead without being followed, in microseconds.
    pub clock_ahead: AtomicU64,
    /// How far the clock of the registry on another server was behind this server's when it answered last, in microseconds.
    pub registry_behind: AtomicI64,
    /// Number of times that another node was taken because the clock was stepped back.
    pub switches: AtomicU64,
    /// Number of calls for ids that failed: for want of a worker id or of a number of their tag, or by the clock.
    pub failed_calls: AtomicU64,
    /// True if the last attempt to write the state failed.
    pub unwritable: AtomicBool,
    /// The expiry of the lease, in microseconds since 1970; 0 without a lease, or where the server chose its worker id.
    pub expiry: AtomicI64,
    /// The oid of the database by way of which worker ids are leased; 0 without one.
    pub registry: AtomicU64,
    /// True if there is known to be none.
    pub alone: AtomicBool,
    /// The oid of the database that is to be the registry; else 0.
    pub moving_to: AtomicU64,
}

impl Counts {
    /// The expiry of the lease; None without one.
    pub fn expiry(&self) -> Option<UnixMicros> {
        Some(self.expiry.load(Relaxed)).filter(|expiry| *expiry != 0).map(UnixMicros)
    }

    /// The oid of the database by way of which worker ids are leased, if there is one.
    pub fn registry(&self) -> Option<u32> {
        oid(&self.registry)
    }

    /// The oid of the database that is to be the registry, if there is one.
    pub fn moving_to(&self) -> Option<u32> {
        oid(&self.moving_to)
    }
}

fn oid(cell: &AtomicU64) -> Option<u32> {
    u32::try_from(cell.load(Relaxed)).ok().filter(|oid| *oid != 0)
}
