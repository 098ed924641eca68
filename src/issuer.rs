//! Who issues on this server, and up to where: the state of the server, kept in its file and acted on in shared
//! memory.
//!
//! All changes go the same way, one at a time, under the *state lock*: read the file, take the state up as
//! what it is here and now, change it, write it durably, and only then let sessions have what was reserved. The
//! rules are the core's; this is where they meet the file, the clocks and the generator.

mod clock;
mod error;
mod repair;
mod state_lock;

pub use clock::{believed_now, watch};
pub use error::IssuerError;
pub use repair::{accept_clock, adopt, compare, reset};

use crate::settings;
use crate::shared::generator::{Shared, StateLock};
use crate::store::state::{self as file, Stored};
use snowflake_ids_core::Refusal;
use snowflake_ids_core::state::{Here, State};
use state_lock::{here, lock, open, publish, write};
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

/// By how much more than `reserve` the mark is raised, and how long before it is met: the time in which the launcher
/// wakes up and the disk takes it.
pub const LEAD: u64 = 100_000;

/// The least time between two looks at the mark.
const BREATH: Duration = Duration::from_millis(20);

/// On whose behalf the mark is raised.
#[derive(Clone, Copy, PartialEq, Eq)]
enum By {
    Caller,
    Launcher,
}

/// Sees to it that the next call finds something to take: raises the mark, or begins a term. For a session that found
/// nothing.
///
/// # Errors
/// [`IssuerError`].
pub fn provide(shared: &Shared) -> Result<(), IssuerError> {
    let mut state_lock = lock(shared);
    let at = believed_now(shared);
    if state_lock.node.is_some()
        && reserved_until(shared) > shared.layout.position_at(at).max(shared.generator.next())
    {
        return Ok(());
    }
    let mut state = open(shared, &mut state_lock)?;
    advance(shared, &mut state_lock, &mut state, By::Caller)
}

/// Raises the mark before it is met, where ids flow: for the launcher. Gives the time until that is due again.
///
/// # Errors
/// [`IssuerError`].
pub fn keep_ahead(shared: &Shared) -> Result<Option<Duration>, IssuerError> {
    let mut state_lock = lock(shared);
    if state_lock.node.is_none() || reserved_until(shared) >= shared.layout.end_position() {
        return Ok(None);
    }
    if until_due(shared).is_zero() {
        let mut state = open(shared, &mut state_lock)?;
        advance(shared, &mut state_lock, &mut state, By::Launcher)?;
    }
    // Not far enough where the expiry of a lease is near.
    Ok(Some(until_due(shared).max(BREATH)))
}

/// The time until the mark has to be raised, if ids keep pace with the clock.
fn until_due(shared: &Shared) -> Duration {
    let layout = &shared.layout;
    let at = believed_now(shared).max(layout.instant_of(shared.generator.next()));
    let left = layout.instant_of(reserved_until(shared)).since(at);
    Duration::from_micros(left.saturating_sub(LEAD))
}

fn reserved_until(shared: &Shared) -> u64 {
    shared.generator.limit()
}

/// Takes up a stored state as soon as the server runs: what it says of a promotion is known best now, and errors are in
/// the log before anybody needs an id.
///
/// # Errors
/// [`IssuerError`].
pub fn begin(shared: &Shared) -> Result<(), IssuerError> {
    let mut state_lock = lock(shared);
    if file::read()?.is_some() {
        open(shared, &mut state_lock)?;
    }
    Ok(())
}

/// Ends the term, and notes exactly how far ids were issued. A session that goes on after that, because it is the
/// launcher that ends and not the server, begins another.
///
/// # Errors
/// [`IssuerError`]: the next start begins at the mark, as after a crash.
pub fn stop(shared: &Shared) -> Result<(), IssuerError> {
    let mut state_lock = lock(shared);
    if state_lock.node.is_none() {
        return Ok(());
    }
    let mut state = open(shared, &mut state_lock)?;
    end(shared, &mut state_lock, &mut state);
    clock::believe(shared, &mut state);
    write(shared, &state)
}

/// Has another rollback value issue, because the clock was stepped back behind the present one's ids; whether there
/// was one whose mark the clock has passed. `era` is the generator's as it was before the clock was found behind: where
/// it has changed, somebody else was faster.
///
/// # Errors
/// [`IssuerError`].
pub fn switch_rollback(shared: &Shared, era: u64) -> Result<bool, IssuerError> {
    let mut state_lock = lock(shared);
    if shared.generator.era() != era {
        return Ok(true);
    }
    let mut state = open(shared, &mut state_lock)?;
    let at = believed_now(shared);
    if !state.clone().switch_rollback(&shared.layout, at) {
        return Ok(false);
    }
    end(shared, &mut state_lock, &mut state);
    state.switch_rollback(&shared.layout, at);
    advance(shared, &mut state_lock, &mut state, By::Caller)?;
    shared.counts.switches.fetch_add(1, Relaxed);
    Ok(true)
}

/// Changes the state, durably. A term of somebody who is not to issue any more is ended.
///
/// # Errors
/// [`IssuerError`], and nothing was changed.
pub fn change<T>(shared: &Shared, change: impl FnOnce(&mut State, &Here) -> T) -> Result<T, IssuerError> {
    let mut state_lock = lock(shared);
    let mut state = open(shared, &mut state_lock)?;
    let before = state.clone();
    let done = change(&mut state, &here(shared, &state_lock)?);
    if state.node != state_lock.node {
        end(shared, &mut state_lock, &mut state);
    }
    if state != before {
        write(shared, &state)?;
    }
    publish(shared, &state);
    Ok(done)
}

/// What keeps ids from being issued, in a few words, as far as that is known without trying; None where nothing does.
pub fn obstacle(shared: &Shared) -> Option<String> {
    match next_position(shared) {
        Err(error) => Some(error.to_string()),
        Ok(_) if shared.counts.unwritable.load(Relaxed) => Some(error::UNWRITABLE.into()),
        Ok(_) if shared.counts.expiry().is_some_and(|expiry| expiry <= believed_now(shared)) => {
            Some("the lease of the worker id has ended".into())
        }
        Ok(next) => out_of_time(shared, next),
    }
}

/// What of the clock keeps a position from being issued.
fn out_of_time(shared: &Shared, next: u64) -> Option<String> {
    let now = believed_now(shared);
    if let Err(error) = shared.layout.tick(now) {
        return Some(Refusal::from(error).to_string());
    }
    let too_far = next >= settings::rules().drift_end(&shared.layout, now);
    too_far.then(|| "ids are further ahead of the clock than max_drift".into())
}

/// The position that would be issued next; 0 where nobody issues.
fn next_position(shared: &Shared) -> Result<u64, IssuerError> {
    let here = here(shared, &StateLock { opened: true, ..StateLock::default() })?;
    let open = |Stored { state, file }| State::open(state, &here.with_file(file));
    let state = file::read()?.map(open).transpose()?;
    if reserved_until(shared) > 0 {
        return Ok(shared.generator.next());
    }
    Ok(state.and_then(|state| Some(state.mark(state.node?))).unwrap_or(0))
}

/// Raises the mark of the node that is to issue, writes it, and lets sessions have what is below; begins the node's
/// term where it has not.
fn advance(
    shared: &Shared,
    state_lock: &mut StateLock,
    state: &mut State,
    by: By,
) -> Result<(), IssuerError> {
    let node = state.node.ok_or(IssuerError::NoWorkerId)?;
    let node_bits = shared.layout.place(node).map_err(IssuerError::Misfit)?;
    let at = clock::believe(shared, state);
    let begun = state_lock.node == Some(node);
    let end = shared.layout.end_position();
    let next = if begun { shared.generator.next() } else { state.mark(node).min(end) };
    let ahead = settings::reserve() + LEAD;
    if !begun && next >= settings::rules().drift_end(&shared.layout, at) {
        // Nothing may be issued, so there is nothing to reserve.
        let by_itself = ahead + settings::rules().max_drift;
        if shared.layout.instant_of(next) > at.plus(by_itself) {
            shared.generator.blame_clock(next, &shared.layout);
        }
        shared.generator.begin(node_bits, next, next);
        state_lock.node = Some(node);
        return Ok(());
    }
    let limit = state.reserve(&shared.layout, at, next, ahead).ok_or(IssuerError::NoWorkerId)?;
    let first = next.max(shared.layout.position_at(at));
    if limit <= first && first < end {
        return Err(IssuerError::expired(state));
    } else if begun && limit <= reserved_until(shared) {
        return Ok(());
    }
    write(shared, state)?;
    if by == By::Caller {
        shared.counts.by_callers.fetch_add(1, Relaxed);
    }
    if begun {
        shared.generator.raise(limit);
    } else {
        shared.generator.begin(node_bits, next, limit);
        state_lock.node = Some(node);
    }
    publish(shared, state);
    Ok(())
}

/// Ends the term that the generator is in, and notes how far it came.
fn end(shared: &Shared, state_lock: &mut StateLock, state: &mut State) {
    let next = shared.generator.close();
    if let Some(node) = state_lock.node.take() {
        state.settle(node, next);
    }
}
