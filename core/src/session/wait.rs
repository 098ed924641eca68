//! A call that may wait for ids. [`Drift`] decides how long.

use super::buffered::take;
use super::error::SessionError;
use crate::clock::{Clock, UnixMicros, human};
use crate::generator::drift::{Cause, Drift, GeneratorError};
use crate::generator::rules::{ClockRollback, Rules, SequenceStart};
use crate::generator::snowflake::TakenPositions;
use crate::ids::layout::Layout;
use crate::ids::shard::Shard;
use crate::server::issuer::{Host, Issuer, IssuerError, PositionSource as _, SlotRef};
use crate::server::lease::LeaseError;
use crate::server::state::Identity;
use std::num::NonZeroU32;
use std::time::Duration;

/// The largest number of raises of the high-water mark in one call. A call may need several raises, because other
/// sessions may use up the reserved positions first.
const MAX_PROVIDED: u32 = 1_000;

/// The largest number of switches to another node in one call. After that, the call waits for the clock. A call may need
/// several switches, because other sessions may take the new node's ids first.
const MAX_SWITCHES: u32 = 3;

/// The server's services for a waiting call.
pub trait Caller: Host {
    /// Adds `ids` to the server's count of ids.
    fn count(&self, ids: u64);
    /// Requests a worker id. With `other`, requests another worker id because the clock is behind the ids of the current
    /// worker id.
    fn lease(&self, other: bool) -> Result<(), LeaseError>;
    /// Returns the error of the last lease attempt. Returns None if the attempt succeeded or the attempt's error is
    /// unknown.
    fn trouble(&self) -> Option<LeaseError>;
    /// Asks the launcher to keep the high-water mark ahead of the clock from now on.
    fn call_launcher(&self);
    /// Returns the configured reaction to a clock that stepped back.
    fn rollback(&self) -> ClockRollback;
    /// Returns the time that this call may still wait for the clock.
    fn left(&self) -> Duration;
    /// Sleeps for `time`.
    fn sleep(&self, time: Duration);
}

/// The clock that ids follow: the wall clock, unless the wall clock jumped too far ahead.
impl<H: Host> Clock for Issuer<'_, H> {
    fn now(&self) -> UnixMicros {
        self.believed_now()
    }
}

/// The result of a call that may have waited.
#[derive(Clone, Copy, Debug)]
pub struct Waited {
    /// The positions.
    pub taken: TakenPositions,
    /// The generator's generation before the positions were taken.
    pub generation: u64,
    /// The source of the positions: a slot, or the server's own generator.
    pub slot_ref: SlotRef,
}

/// Takes up to `want` positions of the layout. If `only` names a shard, the first position's id belongs to the shard.
/// Between attempts the call assigns a slot, raises the high-water mark, requests a worker id, switches to another node,
/// or waits for the clock. `start` overrides the setting of the sequence start.
#[cold]
pub fn wait_and_take<H: Caller>(
    issuer: &Issuer<'_, H>,
    layout: &Layout,
    start: Option<SequenceStart>,
    want: NonZeroU32,
    only: Option<&Shard>,
) -> Result<Waited, SessionError> {
    let (shared, host) = (issuer.shared, &issuer.host);
    let (mut provided, mut switched) = (0, 0);
    let mut slot_ref = with_lease(issuer, || issuer.assign_slot(layout))?;
    loop {
        let source = shared.assigned_at(slot_ref, layout);
        let generation = source.generator().generation();
        let rules = host.settings().rules;
        let rules = Rules { start: start.unwrap_or(rules.start), ..rules };
        match take(&source, &rules, issuer, want, only) {
            Ok(taken) => {
                host.count(taken.positions.count());
                return Ok(Waited { taken, generation, slot_ref });
            }
            // Other sessions may take the newly reserved positions first, so the high-water mark is raised up to
            // `MAX_PROVIDED` times.
            Err(GeneratorError::Unreserved) if provided < MAX_PROVIDED => {
                slot_ref = with_lease(issuer, || issuer.provide_in(layout))?;
                // The launcher raises the high-water mark from now on.
                host.call_launcher();
                provided += 1;
            }
            Err(GeneratorError::Drift(drift)) if switched < MAX_SWITCHES && may_switch(host, &drift) => {
                switch(issuer, slot_ref, generation)?;
                switched += 1;
            }
            Err(refusal @ GeneratorError::Drift(drift)) => {
                let pause = drift.pause(host.rollback(), host.left());
                host.sleep(pause.ok_or_else(|| refused(issuer, refusal))?);
            }
            Err(refusal) => return Err(refused(issuer, refusal)),
        }
    }
}

fn refused<H: Caller>(issuer: &Issuer<'_, H>, refusal: GeneratorError) -> SessionError {
    let ahead = issuer.host.reading().wall.since(issuer.believed_now());
    let hint = match refusal {
        _ if !ahead.is_zero() => Some(format!(
            "The clock jumped ahead by {}, and ids do not follow it. Set the clock back, or, if the clock is right, SELECT \
             snowflake_ids.clock_accept().",
            human(ahead)
        )),
        GeneratorError::Drift(drift) if may_switch(&issuer.host, &drift) => Some(
            "Check the server's clock. Ids continue once the clock has caught up. The server could not \
             switch: no node is free whose ids are behind the clock."
                .into(),
        ),
        _ => None,
    };
    SessionError::Refused(refusal, hint)
}

/// The largest number of lease requests in one call. Even after two requests, the server may have no worker id that
/// fits the layout of this call. The first request may have begun before the server knew that this layout needs a
/// smaller worker id. The second request may serve another session.
const MAX_LEASES: u32 = 3;

/// Runs `work`. Requests a lease and repeats `work` if the server has no worker id, or if the server's worker id does
/// not fit the layout.
fn with_lease<H: Caller>(
    issuer: &Issuer<'_, H>,
    work: impl Fn() -> Result<SlotRef, IssuerError>,
) -> Result<SlotRef, SessionError> {
    let (shared, host) = (issuer.shared, &issuer.host);
    let mut done = work();
    for _ in 0..MAX_LEASES {
        let fits = match &done {
            Err(IssuerError::NoWorkerId | IssuerError::LeaseEnded { .. }) => true,
            Err(error) if is_unfit(error) => false,
            _ => return Ok(done?),
        };
        // Any role may repeat this call. A recent failure is remembered, so that repeated calls do not keep the registry
        // busy.
        if !fits && shared.is_vain(host.reading().since_boot) {
            return host.trouble().map_or_else(|| Ok(done?), |trouble| Err(trouble.into()));
        }
        if let Err(error) = host.lease(false) {
            if !fits {
                shared.record_vain(host.reading().since_boot);
            }
            return Err(error.into());
        }
        done = work();
    }
    if done.as_ref().is_err_and(is_unfit) {
        shared.record_vain(host.reading().since_boot);
    }
    Ok(done?)
}

/// Returns true if the worker id does not fit the layout, and another worker id may fit.
fn is_unfit(error: &IssuerError) -> bool {
    matches!(error, IssuerError::NoRoom(no_room) if no_room.leased)
}

fn may_switch(host: &impl Caller, drift: &Drift) -> bool {
    drift.cause == Cause::StepBack && host.rollback() == ClockRollback::Switch
}

/// Switches to another node whose high-water mark the clock has passed, if one exists.
fn switch<H: Caller>(issuer: &Issuer<'_, H>, slot_ref: SlotRef, generation: u64) -> Result<(), SessionError> {
    let leased = matches!(issuer.shared.identity, Identity::Leased { .. });
    // An error of the lease request is ignored, because the call can still wait for the clock.
    if !issuer.switch_rollback_at(slot_ref, generation)?
        && leased
        && issuer.take_another(slot_ref, generation)?.is_none()
    {
        drop(issuer.host.lease(true));
    }
    Ok(())
}
