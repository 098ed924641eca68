//! The wait of a call for ids.

use super::error::SessionError;
use crate::clock::{Clock, UnixMicros, human};
use crate::generator::drift::{Cause, Drift, GeneratorError};
use crate::generator::rules::{ClockRollback, Rules, SequenceStart};
use crate::generator::snowflake::TakenPositions;
use crate::ids::layout::Layout;
use crate::registry::wire::LeaseError;
use crate::server::issuer::{Host, Issuer, IssuerError, LayoutGenerator, PositionSource as _, SlotRef};
use crate::server::state::Identity;
use std::time::Duration;

/// Number of times that one call has the mark raised. Each time is a time of `reserve` for all sessions.
const MAX_PROVIDED: u32 = 1_000;

/// Number of times that one call tries to have another node issue: more than once, because other sessions may have been
/// faster. Then it waits for the clock.
const MAX_SWITCHES: u32 = 3;

/// The server as a waiting call uses it, beside its issuer.
pub trait Caller: Host {
    /// Counts ids that were taken.
    fn count(&self, ids: u64);
    /// Has a worker id leased, or another one where the clock is behind the ids of the present one.
    fn lease(&self, other: bool) -> Result<(), LeaseError>;
    /// Why the last attempt got no lease; None where it got one, or where the reason is not known.
    fn trouble(&self) -> Option<LeaseError>;
    /// Has the launcher keep the mark ahead from now on.
    fn call_launcher(&self);
    /// Returns what to do about a clock that was stepped back.
    fn rollback(&self) -> ClockRollback;
    /// Returns how much longer this call may wait for the clock.
    fn left(&self) -> Duration;
    /// Waits.
    fn sleep(&self, time: Duration);
}

/// The clock that ids follow.
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
    /// The era that was before they were taken.
    pub generation: u64,
    /// Their source: a slot, or the server's own generator.
    pub slot_ref: SlotRef,
}

/// Takes positions of a layout by the clock that can be believed, until there are some: gives it a place where it has none, has
/// the mark raised, a worker id leased, or waits for the clock. `start` takes precedence over the setting.
#[cold]
pub fn wait_and_take<H: Caller>(
    issuer: &Issuer<'_, H>,
    layout: &Layout,
    start: Option<SequenceStart>,
    take: impl Fn(&LayoutGenerator<'_>, &Rules, &Issuer<'_, H>) -> Result<TakenPositions, GeneratorError>,
) -> Result<Waited, SessionError> {
    let (shared, host) = (issuer.shared, &issuer.host);
    let (mut provided, mut switched) = (0, 0);
    let mut slot_ref = with_lease(issuer, || issuer.assign_slot(layout))?;
    loop {
        let source = shared.assigned_at(slot_ref, layout);
        let generation = source.generator().generation();
        let rules = host.settings().rules;
        let rules = Rules { start: start.unwrap_or(rules.start), ..rules };
        match take(&source, &rules, issuer) {
            Ok(taken) => {
                host.count(taken.positions.count());
                return Ok(Waited { taken, generation, slot_ref });
            }
            // Others may have taken it; but not again and again.
            Err(GeneratorError::Unreserved) if provided < MAX_PROVIDED => {
                slot_ref = with_lease(issuer, || issuer.provide_in(layout))?;
                // From now on it is the launcher that raises the mark.
                host.call_launcher();
                provided += 1;
            }
            Err(GeneratorError::Drift(drift)) if switched < MAX_SWITCHES && may_switch(host, &drift) => {
                switch(issuer, slot_ref, generation)?;
                switched += 1;
            }
            Err(refusal @ GeneratorError::Drift(drift)) => {
                let pause = drift.timeout(host.rollback(), host.left());
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
            "The clock jumped ahead by {} and is not followed. Set it back, or, if it is right, SELECT \
             snowflake_ids.clock_accept().",
            human(ahead)
        )),
        GeneratorError::Drift(drift) if may_switch(&issuer.host, &drift) => Some(
            "Check the server's clock: ids go on by themselves once it has caught up. No node is free \
             whose ids the clock has passed."
                .into(),
        ),
        _ => None,
    };
    SessionError::Refused(refusal, hint)
}

/// Number of times that one call has a worker id leased for a place. The first lease may have been under way before
/// this layout was known to need one that fits, and the next may be another session's.
const MAX_LEASES: u32 = 3;

/// Does something again where there was no worker id, or none that fits, and one was leased.
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
        // Any role may call again and again: what others have their ids from is not to be kept busy by that.
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

/// Returns whether the worker id does not fit the layout, and another may.
fn is_unfit(error: &IssuerError) -> bool {
    matches!(error, IssuerError::NoRoom(no_room) if no_room.may_lease())
}

fn may_switch(host: &impl Caller, drift: &Drift) -> bool {
    drift.cause == Cause::StepBack && host.rollback() == ClockRollback::Switch
}

/// Has another node issue whose mark the clock has passed, if there is one.
fn switch<H: Caller>(issuer: &Issuer<'_, H>, slot_ref: SlotRef, generation: u64) -> Result<(), SessionError> {
    let leased = matches!(issuer.shared.identity, Identity::Leased { .. });
    // The clock is waited for where there is no other lease.
    if !issuer.switch_rollback_at(slot_ref, generation)?
        && leased
        && issuer.take_another(slot_ref, generation)?.is_none()
    {
        drop(issuer.host.lease(true));
    }
    Ok(())
}
