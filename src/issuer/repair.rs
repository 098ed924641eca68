//! What an operator can decide that the server must not decide by itself; or the clock of a registry.

use super::clock::{believe, believed_now};
use super::state_lock::{here, lock, open, publish, write};
use super::{By, IssuerError, advance};
use crate::pg::clock::SystemClock;
use crate::settings;
use crate::shared::generator::{Shared, StateLock};
use crate::store::state::{self as file, Stored, Unreadable};
use snowflake_ids_core::lease::check_clock;
use snowflake_ids_core::state::{State, StateError};
use snowflake_ids_core::{Clock, Explain, UnixMicros};
use std::sync::atomic::Ordering::Relaxed;

/// Begins a new state in place of one that can't be trusted. Every node begins above `above`: who gives it says that no
/// later id was kept of those from before the server's start. By default, above all that is known or could have been
/// issued up to now. Gives the instant up to which ids may have been issued, if that is later.
///
/// # Errors
/// [`IssuerError`].
pub fn reset(shared: &Shared, above: Option<UnixMicros>) -> Result<Option<UnixMicros>, IssuerError> {
    let mut state_lock = lock(shared);
    let here = here(shared, &state_lock)?;
    let (here, former) = match former()? {
        Some(Stored { state, file }) => (here.with_file(file), Some(state)),
        None => (here, None),
    };
    // Before anything can fail: a generator that is closed has no node.
    if state_lock.node.take().is_some() {
        shared.generator.close();
    }
    let known = former.as_ref().map_or(0, |former| former.highest_mark(&here));
    let now = believed_now(shared).plus(here.max_drift);
    let position = shared.layout.position_after(above.unwrap_or(now));
    let position = if above.is_some() { position } else { position.max(known) };
    // Sessions may hold ids of terms since the server's start, whatever an operator knows of them.
    let position = position.max(shared.generator.furthest());
    file::keep_rejected().map_err(IssuerError::Unwritable)?;
    let mut state = State::anew(&here, position, former.as_ref());
    believe(shared, &mut state);
    write(shared, &state)?;
    *state_lock = StateLock { opened: true, ..StateLock::default() };
    publish(shared, &state);
    Ok((known > position).then(|| shared.layout.instant_of(known)))
}

/// The state that there is, as far as it can be read. One of a newer release is nothing to begin anew for.
fn former() -> Result<Option<Stored>, StateError> {
    match file::read() {
        Err(Unreadable::Untrusted(error @ StateError::Newer(_))) => Err(error),
        read => Ok(read.ok().flatten()),
    }
}

/// Goes on in a copied data directory with the worker id of the one that it was copied from, which is gone for good.
///
/// # Errors
/// [`IssuerError`].
pub fn adopt(shared: &Shared) -> Result<(), IssuerError> {
    let mut state_lock = lock(shared);
    let here = here(shared, &state_lock)?;
    let Some(Stored { state: stored, file }) = file::read()? else { return Ok(()) };
    let here = here.with_file(file);
    if !stored.is_copy(&here) {
        return Ok(());
    }
    let state = stored.adopt(&here)?;
    write(shared, &state)?;
    state_lock.opened = true;
    publish(shared, &state);
    Ok(())
}

/// Follows the clock, however far it has jumped.
///
/// # Errors
/// [`IssuerError`].
pub fn accept_clock(shared: &Shared) -> Result<(), IssuerError> {
    let mut state_lock = lock(shared);
    let now = file::clocks();
    shared.set_anchor(now.wall, now.since_boot);
    shared.counts.clock_ahead.store(0, Relaxed);
    let mut state = open(shared, &mut state_lock)?;
    state.seen = now.wall;
    state.clock = now;
    if state.node.is_some() {
        advance(shared, &mut state_lock, &mut state, By::Caller)
    } else {
        write(shared, &state)
    }
}

/// Compares the clock with a registry's. One that has jumped ahead is followed where the registry's agrees.
pub fn compare(shared: &Shared, registry: UnixMicros) {
    let skew = check_clock(SystemClock.now(), registry, None, settings::max_clock_skew());
    let jumped = shared.counts.clock_ahead.load(Relaxed) > 0;
    match skew {
        Ok(()) if jumped => match accept_clock(shared) {
            Ok(()) => pgrx::log!("the clock has jumped, and is followed: the registry's agrees"),
            Err(error) => pgrx::log!("snowflake_ids could not follow the clock: {error}"),
        },
        Err(skew) if !jumped => pgrx::warning!("{skew}. {}", skew.detail().unwrap_or_default()),
        _ => {}
    }
}
