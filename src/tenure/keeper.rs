//! Who writes the state: one process at a time, under the keeper's lock.

use super::{Hindrance, clock};
use crate::pg::cluster;
use crate::pg::lock::LwLock;
use crate::pg::shmem::generator::Shared;
use crate::pg::shmem::leases::leases;
use crate::pg::wait::{self, Event};
use crate::settings;
use crate::store::state::{self as file, Stored};
use lock_api::RwLockWriteGuard;
use pgrx::check_for_interrupts;
use snowflake_ids_core::Node;
use snowflake_ids_core::lease::Policy;
use snowflake_ids_core::state::{Here, Home, Identity, State};
use std::sync::OnceLock;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

/// How soon somebody who found the keeper at work looks again.
const RETRY: Duration = Duration::from_millis(1);

/// What whoever holds the lock knows.
#[derive(Default)]
pub struct Keeper {
    /// Who issues: whose tenure the generator has begun; None while it is closed.
    pub node: Option<Node>,
    /// Whether the state was taken up since the server's start.
    pub opened: bool,
}

/// The lock, held.
pub type Keeping<'a> = RwLockWriteGuard<'a, LwLock, Keeper>;

/// The lock. Whoever has it may be waiting for the disk: cancel and shutdown end this.
pub fn lock(shared: &Shared) -> Keeping<'_> {
    loop {
        check_for_interrupts!();
        if let Some(keeping) = shared.keeper.try_write() {
            return keeping;
        }
        wait::pause(Event::State, RETRY);
    }
}

/// Reads the state and takes it up. What that changes is written at once when it is the first time.
pub fn open(shared: &Shared, keeper: &mut Keeper) -> Result<State, Hindrance> {
    let here = here(shared, keeper)?;
    let Some(Stored { state: stored, file }) = file::read()? else {
        keeper.opened = true;
        return Ok(State::fresh(&here));
    };
    let here = here.with_file(file);
    let state = stored.clone().open(&here)?;
    if !keeper.opened {
        if state != stored {
            write(shared, &state)?;
        }
        clock::resume(shared, &state, &here.clock);
        keeper.opened = true;
        publish(shared, &state);
    }
    Ok(state)
}

/// Writes the state, durably.
pub fn write(shared: &Shared, state: &State) -> Result<(), Hindrance> {
    shared.counts.reservations.fetch_add(1, Relaxed);
    let written = file::write(state);
    shared.counts.unwritable.store(written.is_err(), Relaxed);
    written.map_err(Hindrance::Unwritable)
}

/// Makes known what the view shows.
pub fn publish(shared: &Shared, state: &State) {
    let horizon = state.lease.as_ref().map_or(0, |lease| lease.horizon.0);
    shared.counts.horizon.store(horizon, Relaxed);
    shared.counts.registry.store(state.registry.unwrap_or(0).into(), Relaxed);
    shared.counts.moving_to.store(state.moving_to.unwrap_or(0).into(), Relaxed);
    if let Some(leases) = leases() {
        let origin = state.lease.as_ref().and_then(|lease| lease.origin.as_ref());
        leases.origin.write(origin.map_or("", |origin| &origin.server));
    }
}

/// What there is to know before a state can be taken up.
pub fn here(shared: &Shared, keeper: &Keeper) -> Result<Here, Hindrance> {
    static HOME: OnceLock<Home> = OnceLock::new();
    let home = if let Some(home) = HOME.get() {
        home.clone()
    } else {
        let home = file::home().map_err(Hindrance::Unreadable)?;
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
        disposable: leased && !keeper.opened && settings::worker_id_policy() == Policy::Disposable,
    })
}
