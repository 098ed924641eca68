//! A session's calls for snowflake ids. They come from the block that it holds, or from the generator. Where that gives
//! nothing, the session has the mark raised, a worker id leased or another node issue, or waits for the clock.

use crate::block::Block;
use crate::clock::{Clock, UnixMicros, human};
use crate::drift::{Cause, Drift, GeneratorError};
use crate::error::{Explain, Kind, NotReadyError};
use crate::guard::{Guard, holds};
use crate::issuer::{Host, Issuer, IssuerError, Shared};
use crate::position::{NodeBits, Position};
use crate::rules::{ClockRollback, Rules};
use crate::shard::Shard;
use crate::snowflake::Taken;
use crate::state::Identity;
use crate::wire::LeaseError;
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicI64, Ordering::Relaxed};
use std::time::Duration;

/// How often one call has the mark raised. Each time is a time of `reserve` for all sessions.
const MAX_PROVIDED: u32 = 1_000;

/// How often one call tries to have another node issue: more than once, because other sessions may have been faster. Then
/// it waits for the clock.
const MAX_SWITCHES: u32 = 3;

/// What a call that has to wait touches, beside what its issuer does.
pub trait Caller: Host {
    /// Counts ids that were taken.
    fn count(&self, ids: u64);
    /// Has a worker id leased, or another one where the clock is behind the ids of the present one.
    fn lease(&self, other: bool) -> Result<(), LeaseError>;
    /// Has the launcher keep the mark ahead from now on.
    fn call_launcher(&self);
    /// What to do about a clock that was stepped back.
    fn rollback(&self) -> ClockRollback;
    /// How much longer this call may wait for the clock.
    fn left(&self) -> Duration;
    /// Waits.
    fn sleep(&self, time: Duration);
}

/// Why a session got no id.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    /// The server can't generate ids now.
    #[error(transparent)]
    NotReady(#[from] NotReadyError),
    /// The generator refused; with a way out that it does not know of.
    #[error("{0}")]
    Refused(GeneratorError, Option<String>),
    /// Nothing could be reserved.
    #[error(transparent)]
    Issuer(#[from] IssuerError),
    /// No worker id could be leased.
    #[error("{0}")]
    LeaseError(LeaseError),
}

impl SessionError {
    fn cause(&self) -> &dyn Explain {
        match self {
            Self::NotReady(error) => error,
            Self::Refused(error, _) => error,
            Self::Issuer(error) => error,
            Self::LeaseError(error) => error,
        }
    }
}

impl Explain for SessionError {
    fn kind(&self) -> Kind {
        self.cause().kind()
    }

    fn detail(&self) -> Option<String> {
        self.cause().detail()
    }

    fn hint(&self) -> Option<String> {
        match self {
            Self::Refused(_, Some(hint)) => Some(hint.clone()),
            _ => self.cause().hint(),
        }
    }

    fn for_others(&self) -> Option<(String, String)> {
        self.cause().for_others()
    }
}

impl From<LeaseError> for SessionError {
    fn from(none: LeaseError) -> Self {
        Self::LeaseError(none)
    }
}

/// What one session holds: the ids that it took and has not handed out, and the last one that it did.
#[derive(Debug)]
pub struct Session {
    block: Block,
    /// The last id; negative before the first.
    last: AtomicI64,
}

#[cfg(not(loom))]
impl Default for Session {
    fn default() -> Self {
        Self::new()
    }
}

impl Session {
    /// One that holds nothing.
    #[cfg(not(loom))]
    pub const fn new() -> Self {
        Self { block: Block::empty(), last: AtomicI64::new(-1) }
    }

    /// Forgets the last id.
    pub fn forget_last(&self) {
        self.last.store(-1, Relaxed);
    }

    /// Notes an id that another part of the session was handed as the last one.
    #[inline]
    pub fn note_last(&self, id: i64) {
        self.last.store(id, Relaxed);
    }

    /// The last id handed out to this session.
    pub fn last(&self) -> Option<i64> {
        Some(self.last.load(Relaxed)).filter(|id| *id >= 0)
    }

    /// The next id where the block has one that may be handed out without a look at the clock.
    #[inline]
    pub fn pop(&self, shared: &Shared) -> Option<i64> {
        let position = self.block.pop(shared.generator.era())?;
        Some(self.hand_out(shared, position, self.block.node_bits()))
    }

    /// The next id where the block gave none: it is due for a look at the clock, or has to be filled with as many as are
    /// wanted.
    ///
    /// # Errors
    /// [`GeneratorError`], and nothing is taken.
    #[inline(always)]
    #[allow(clippy::inline_always, reason = "a twentieth of the cost of an id, measured")]
    pub fn refill(
        &self,
        shared: &Shared,
        clock: &impl Clock,
        rules: &Rules,
        want: NonZeroU32,
        count: impl FnOnce(u64),
    ) -> Result<i64, GeneratorError> {
        // Before the clock is read: a step back seen by any session after this, this call included, makes the block
        // stale. That may waste a block, and never hands out one that should have been thrown away.
        let era = shared.generator.era();
        if self.renew(shared, clock, rules, era)
            && let Some(position) = self.block.pop(era)
        {
            return Ok(self.hand_out(shared, position, self.bits(shared)));
        }
        let taken = shared.generator.take(&shared.layout, rules, clock, want)?;
        count(taken.positions.count());
        Ok(self.keep(shared, taken, era))
    }

    /// The node's bits of what is in the block: those that it was taken with.
    #[inline]
    fn bits(&self, shared: &Shared) -> NodeBits {
        if holds(Guard::BlockKeepsBits) {
            self.block.node_bits()
        } else {
            shared.generator.snapshot().node_bits
        }
    }

    /// Looks at the clock for the sake of the block; whether it goes on.
    #[inline]
    fn renew(&self, shared: &Shared, clock: &impl Clock, rules: &Rules, era: u64) -> bool {
        self.block.renew(era, |position| shared.generator.allows(&shared.layout, rules, clock, position))
    }

    /// The next id, however long that takes: for a call that [`Session::refill`] refused.
    #[cold]
    pub fn wait_and_refill<H: Caller>(
        &self,
        issuer: &Issuer<'_, H>,
        want: NonZeroU32,
    ) -> Result<i64, SessionError> {
        let (taken, era) = wait_and_take(issuer, want)?;
        Ok(self.keep(issuer.shared, taken, era))
    }

    /// As [`Session::pop`], of ids of one shard. What the session holds may be of another one, or of all: each id is looked at
    /// as it is handed out.
    #[inline]
    pub fn pop_fitting(&self, shared: &Shared, only: &Shard) -> Option<i64> {
        let node_bits = self.block.node_bits();
        let fits = |position| only.fits_at(&shared.layout, node_bits, position);
        let position = self.block.pop_fitting(shared.generator.era(), fits)?;
        Some(self.hand_out(shared, position, node_bits))
    }

    /// As [`Session::refill`], of ids of one shard.
    ///
    /// # Errors
    /// [`GeneratorError`], and nothing is taken.
    pub fn refill_fitting(
        &self,
        shared: &Shared,
        clock: &impl Clock,
        rules: &Rules,
        want: NonZeroU32,
        only: &Shard,
        count: impl FnOnce(u64),
    ) -> Result<i64, GeneratorError> {
        let era = shared.generator.era();
        // As many looks at the clock as there are spans: the first one that is too far ahead gives the block up.
        while self.renew(shared, clock, rules, era) {
            if let Some(id) = self.pop_fitting(shared, only) {
                return Ok(id);
            }
        }
        let taken = shared.generator.take_fitting(&shared.layout, rules, clock, want, only)?;
        count(taken.positions.count());
        Ok(self.keep(shared, taken, era))
    }

    /// As [`Session::wait_and_refill`], of ids of one shard.
    #[cold]
    pub fn wait_and_refill_fitting<H: Caller>(
        &self,
        issuer: &Issuer<'_, H>,
        want: NonZeroU32,
        only: &Shard,
    ) -> Result<i64, SessionError> {
        let (taken, era) = wait_and_take_fitting(issuer, want, Some(only))?;
        Ok(self.keep(issuer.shared, taken, era))
    }

    /// Up to so many positions that the session holds already. They come first: the ids of a session must keep growing.
    pub fn held(&self, shared: &Shared, clock: &impl Clock, rules: &Rules, want: u64) -> Option<Taken> {
        let era = shared.generator.era();
        let held = self
            .block
            .pop_many(want, era)
            .or_else(|| self.renew(shared, clock, rules, era).then(|| self.block.pop_many(want, era))?);
        Some(Taken { positions: held?, node_bits: self.bits(shared) })
    }

    /// Drops what is held: it was refused, and is older than what was taken since.
    pub fn drop_held(&self) {
        self.block.clear();
    }

    /// Keeps all of what was taken but its first position, which is handed out.
    #[inline]
    fn keep(&self, shared: &Shared, mut taken: Taken, era: u64) -> i64 {
        let first = taken.positions.take_first();
        self.block.fill(taken, era);
        self.hand_out(shared, first, taken.node_bits)
    }

    /// Makes an id of a position, and hands it out.
    #[inline]
    pub fn hand_out(&self, shared: &Shared, position: Position, node_bits: NodeBits) -> i64 {
        let id = shared.layout.id(position, node_bits).cast_signed();
        self.last.store(id, Relaxed);
        id
    }
}

/// The clock that ids follow.
struct Believed<'a, H>(&'a Issuer<'a, H>);

impl<H: Host> Clock for Believed<'_, H> {
    fn now(&self) -> UnixMicros {
        self.0.believed_now()
    }
}

/// Takes ids by the clock that can be believed, until there are some: has the mark raised, a worker id leased, or waits
/// for the clock. Gives the era, too, that was before they were taken.
#[cold]
pub fn wait_and_take<H: Caller>(
    issuer: &Issuer<'_, H>,
    want: NonZeroU32,
) -> Result<(Taken, u64), SessionError> {
    wait_and_take_fitting(issuer, want, None)
}

/// The same; of a shard, the first of the ids is its.
#[cold]
pub fn wait_and_take_fitting<H: Caller>(
    issuer: &Issuer<'_, H>,
    want: NonZeroU32,
    only: Option<&Shard>,
) -> Result<(Taken, u64), SessionError> {
    let (shared, host) = (issuer.shared, &issuer.host);
    let (mut provided, mut switched) = (0, 0);
    loop {
        let era = shared.generator.era();
        let rules = host.settings().rules;
        let (generator, layout, clock) = (&shared.generator, &shared.layout, Believed(issuer));
        let taken = match only {
            Some(only) => generator.take_fitting(layout, &rules, &clock, want, only),
            None => generator.take(layout, &rules, &clock, want),
        };
        let refusal = match taken {
            Ok(taken) => {
                host.count(taken.positions.count());
                return Ok((taken, era));
            }
            Err(refusal) => refusal,
        };
        match refusal {
            // What was provided may have been taken by others; but not again and again.
            GeneratorError::Unreserved if provided < MAX_PROVIDED => {
                provide(issuer)?;
                provided += 1;
            }
            GeneratorError::Drift(drift) if switched < MAX_SWITCHES && may_switch(host, &drift) => {
                switch(issuer, era)?;
                switched += 1;
            }
            GeneratorError::Drift(drift) => {
                let pause = drift.timeout(host.rollback(), host.left());
                host.sleep(pause.ok_or_else(|| refused(issuer, refusal))?);
            }
            GeneratorError::Unreserved
            | GeneratorError::BeforeEpoch { .. }
            | GeneratorError::Exhausted { .. } => {
                return Err(refused(issuer, refusal));
            }
        }
    }
}

fn refused<H: Caller>(issuer: &Issuer<'_, H>, refusal: GeneratorError) -> SessionError {
    let ahead = issuer.host.reading().wall.since(issuer.believed_now());
    let hint = match refusal {
        _ if !ahead.is_zero() => Some(format!(
            "The clock jumped ahead by {} and is not followed. If it is right, SELECT \
             snowflake_ids.clock_accept().",
            human(ahead)
        )),
        GeneratorError::Drift(drift) if may_switch(&issuer.host, &drift) => Some(
            "Check the server's clock: ids go on by themselves once it has caught up. There is no other node to \
             issue as, whose ids the clock has passed."
                .into(),
        ),
        _ => None,
    };
    SessionError::Refused(refusal, hint)
}

/// Has the mark raised, and a worker id leased where there is none.
fn provide<H: Caller>(issuer: &Issuer<'_, H>) -> Result<(), SessionError> {
    match issuer.provide() {
        Err(IssuerError::NoWorkerId | IssuerError::LeaseEnded { .. }) => {
            issuer.host.lease(false)?;
            issuer.provide()?;
        }
        provided => provided?,
    }
    // From now on it is the launcher that raises the mark.
    issuer.host.call_launcher();
    Ok(())
}

fn may_switch(host: &impl Caller, drift: &Drift) -> bool {
    drift.cause == Cause::StepBack && host.rollback() == ClockRollback::Switch
}

/// Has another node issue whose mark the clock has passed, if there is one.
fn switch<H: Caller>(issuer: &Issuer<'_, H>, era: u64) -> Result<(), SessionError> {
    let leased = matches!(issuer.shared.identity, Identity::Leased { .. });
    if !issuer.switch_rollback(era)? && leased {
        // Where none is to be had, the clock is waited for.
        drop(issuer.host.lease(true));
    }
    Ok(())
}
