//! The server's generator of snowflake ids in shared memory.

use crate::pg::clock::{SystemClock, since_boot};
use crate::pg::cluster;
use crate::pg::lock::{For, LwLock};
use crate::pg::server;
use crate::pg::shmem::{Rest, Shmem};
use crate::settings;
use parking_lot::lock_api::RwLock;
use snowflake_ids_core::error::NotReadyError;
use snowflake_ids_core::generator::safe_position::{
    EndedTransactions, NextRecord, OpenTransaction, RECORDED, Record,
};
use snowflake_ids_core::server::issuer::{self, GeneratorSlot, Issuing, Occupancy};
use snowflake_ids_core::{CacheLine, Clock, UnixMicros};
use std::ops::Deref;
use std::sync::atomic::{AtomicU64, Ordering};

/// The memory of the core's issuer, and shared data that the core does not define.
#[repr(C)]
pub struct Shared {
    issuing: issuer::IssuerMemory,
    /// The counts of ids taken by the processes that have had each process number, one process after another. Only the
    /// process that has the number now writes its count, so no atomic addition is needed.
    tallies: &'static [CacheLine<AtomicU64>],
    /// The number of committed transactions that changed named generators, in any database.
    pub named_changes: AtomicU64,
    /// The announcements of all processes' transactions.
    pub open: &'static [CacheLine<OpenTransaction>],
    /// The transactions that ended last. Readers take no lock.
    pub ended: EndedTransactions,
    /// The record of `ended` that the next commit writes. Only commits take this lock.
    pub next_record: RwLock<LwLock, NextRecord>,
    /// The state lock, and the data that it guards.
    pub state_lock: RwLock<LwLock, Issuing>,
}

impl Deref for Shared {
    type Target = issuer::IssuerMemory;

    #[inline]
    fn deref(&self) -> &issuer::IssuerMemory {
        &self.issuing
    }
}

pub static SHARED: Shmem<Shared> = Shmem::new(c"snowflake_ids generator", make);

fn make(rest: &mut Rest) -> Option<Shared> {
    let config = settings::config()?;
    let (now, checkpoint) = (SystemClock.now(), cluster::checkpoint_time());
    let slots = rest.array(config.max_generators, GeneratorSlot::default);
    let occupancies = rest.array(config.max_generators, Occupancy::default);
    let (layout, identity) = (config.layout, config.identity);
    Some(Shared {
        issuing: issuer::IssuerMemory::new(layout, identity, now, since_boot(), checkpoint, slots),
        tallies: rest.array(server::max_processes(), CacheLine::default),
        named_changes: AtomicU64::new(0),
        open: rest.array(server::max_processes(), CacheLine::default),
        ended: EndedTransactions::new(rest.array(RECORDED, Record::default)),
        next_record: RwLock::from_raw(rest.lock(For::NextRecord), NextRecord::default()),
        state_lock: RwLock::from_raw(rest.lock(For::State), Issuing::new(occupancies)),
    })
}

/// Returns the server's shared state, for a function that issues ids or changes the issuer.
///
/// # Errors
/// Returns a [`NotReadyError`] if the library was not preloaded, or if the server is a standby.
#[inline]
pub fn on_primary(function: &'static str) -> Result<&'static Shared, NotReadyError> {
    let shared = SHARED.get().ok_or(NotReadyError::NotPreloaded(function))?;
    if server::in_recovery() { Err(NotReadyError::InRecovery(function)) } else { Ok(shared) }
}

impl Shared {
    /// Counts a failed call for ids.
    #[cold]
    pub fn count_failure(&self) {
        self.counts.failed_calls.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts ids that this process has taken.
    #[inline]
    pub fn count(&self, ids: u64) {
        if let Some(tally) = self.tallies.get(server::process_number()) {
            tally.store(tally.load(Ordering::Relaxed) + ids, Ordering::Relaxed);
        }
    }

    /// Returns the announcement of the transaction that this process works for.
    pub fn own_transaction(&self) -> Option<&OpenTransaction> {
        self.open.get(server::leader_number()).map(Deref::deref)
    }

    /// Returns the wall clock. If the wall clock has jumped too far ahead, returns the time by the clock reference.
    pub fn now(&self) -> UnixMicros {
        self.believed(SystemClock.now(), since_boot(), settings::max_clock_jump())
    }

    /// Returns the number of ids that all processes have taken since server start.
    pub fn counted(&self) -> u64 {
        self.tallies.iter().map(|tally| tally.load(Ordering::Relaxed)).sum()
    }
}
