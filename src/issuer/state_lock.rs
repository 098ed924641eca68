//! Who writes the state: one process at a time, under the state lock.

use super::{IssuerError, clock};
use crate::pg::cluster;
use crate::pg::lock::LwLock;
use crate::pg::wait::{self, Event};
use crate::settings;
use crate::shared::generator::{Shared, StateLock};
use crate::shared::leases::leases;
use crate::store::state::{self as file, Stored};
use parking_lot::lock_api::RwLockWriteGuard;
use pgrx::check_for_interrupts;
use snowflake_ids_core::lease::Policy;
use snowflake_ids_core::state::{DataDirectory, Here, Identity, State};
use std::sync::OnceLock;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

/// How soon a process that found the state lock taken tries again.
const RETRY: Duration = Duration::from_millis(1);

/// The lock, held.
pub type Keeping<'a> = RwLockWriteGuard<'a, LwLock, StateLock>;

/// The lock. Whoever has it may be waiting for the disk: cancel and shutdown end this.
pub fn lock(shared: &Shared) -> Keeping<'_> {
    loop {
        check_for_interrupts!();
        if let Some(keeping) = shared.state_lock.try_write() {
            return keeping;
        }
        wait::pause(Event::State, RETRY);
    }
}

/// Reads the state and takes it up. What that changes is written at once when it is the first time.
pub fn open(shared: &Shared, state_lock: &mut StateLock) -> Result<State, IssuerError> {
    let here = here(shared, state_lock)?;
    let Some(Stored { state: stored, file }) = file::read()? else {
        state_lock.opened = true;
        return Ok(State::fresh(&here));
    };
    let here = here.with_file(file);
    let state = stored.clone().open(&here)?;
    if !state_lock.opened {
        if state != stored {
            write(shared, &state)?;
        }
        clock::resume(shared, &state, &here.clock);
        state_lock.opened = true;
        publish(shared, &state);
    }
    Ok(state)
}

/// Writes the state, durably.
pub fn write(shared: &Shared, state: &State) -> Result<(), IssuerError> {
    shared.counts.reservations.fetch_add(1, Relaxed);
    let written = file::write(state);
    shared.counts.unwritable.store(written.is_err(), Relaxed);
    written.map_err(IssuerError::Unwritable)
}

/// Makes known what the view shows.
pub fn publish(shared: &Shared, state: &State) {
    let expiry = state.lease.as_ref().map_or(0, |lease| lease.expiry.0);
    shared.counts.expiry.store(expiry, Relaxed);
    shared.counts.registry.store(state.registry.unwrap_or(0).into(), Relaxed);
    shared.counts.moving_to.store(state.moving_to.unwrap_or(0).into(), Relaxed);
    if let Some(leases) = leases() {
        let origin = state.lease.as_ref().and_then(|lease| lease.origin.as_ref());
        leases.origin.write(origin.map_or("", |origin| &origin.server));
    }
}

/// What there is to know before a state can be taken up.
pub fn here(shared: &Shared, state_lock: &StateLock) -> Result<Here, IssuerError> {
    static HOME: OnceLock<DataDirectory> = OnceLock::new();
    let home = if let Some(home) = HOME.get() {
        home.clone()
    } else {
        let home = file::home().map_err(IssuerError::Unreadable)?;
        HOME.get_or_init(|| home).clone()
    };
    let leased = matches!(shared.identity, Identity::Leased { .. });
    Ok(Here {
        system_identifier: cluster::system_identifier(),
        timeline: cluster::timeline(),
        home,
        layout: shared.layout,
        identity: shared.identity,
        clock: file::clocks(),
        replayed: cluster::last_replayed().max(shared.checkpoint),
        max_drift: settings::rules().max_drift,
        max_clock_jump: settings::max_clock_jump(),
        disposable: leased && !state_lock.opened && settings::worker_id_policy() == Policy::Disposable,
    })
}
