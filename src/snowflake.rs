//! What one session knows: the ids it took and has not handed out, and the last one it did.
//!
//! A process of the server serves one session at a time and has one thread, so plain statics hold it; they
//! are atomics only so that this is safe code. Relaxed loads and stores cost what plain ones do.

mod error;

pub use error::Failure;

use crate::issuer::IssuerError;
use crate::lease;
use crate::pg::clock::SystemClock;
use crate::pg::report::NotReady;
use crate::pg::{server, wait};
use crate::shared::generator::{self, Shared};
use crate::shared::segments;
use crate::{issuer, settings};
use snowflake_ids_core::clock::human;
use snowflake_ids_core::drift::Cause;
use snowflake_ids_core::state::Identity;
use snowflake_ids_core::{Block, Clock, ClockRollback, Drift, PositionRange, Refusal, Taken};
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant};

/// The longest that a call waits for a worker id to be leased.
const LEASE_WAIT: Duration = Duration::from_secs(5);

/// The most ids that one step takes for `snowflake_nextvals`: a call that is cancelled wastes no more, and does
/// not push everybody's ids seconds ahead of the clock at once.
const MAX_STRETCH: u32 = 8_192;

/// How often one call has the mark raised. Each time is a stretch of `reserve` for all sessions.
const MAX_PROVIDED: u32 = 1_000;

/// How often one call tries to have somebody else issue: more than once, because others may have been faster. Then it
/// waits for the clock.
const MAX_SWITCHES: u32 = 3;

static BLOCK: Block = Block::empty();
/// The last id handed out; negative before the first.
static LAST: AtomicI64 = AtomicI64::new(-1);

/// The next id of this session where nothing stands in its way; None where [`next`] has more to do. Calls
/// nothing of the server's, so no error comes out of it.
#[inline]
pub fn next_at_once() -> Option<i64> {
    let shared = generator::shared().filter(|_| server::out_of_recovery())?;
    match BLOCK.pop(shared.generator.era()) {
        Some(position) => Some(hand_out(shared, position, BLOCK.node_bits())),
        None => refill(shared).ok(),
    }
}

/// The next id of this session.
pub fn next(function: &'static str) -> Result<i64, Failure> {
    let shared = ready(function)?;
    match BLOCK.pop(shared.generator.era()) {
        Some(position) => Ok(hand_out(shared, position, BLOCK.node_bits())),
        None => refill(shared).or_else(|_| wait_and_refill(shared)),
    }
}

/// Several ids in growing order, taken a stretch at a time while they are asked for.
pub fn several(function: &'static str, count: u32) -> Result<Several, Failure> {
    let none = Taken { stretch: PositionRange { from: 0, to: 0 }, node_bits: 0 };
    Ok(Several { shared: ready(function)?, current: none, wanted: count })
}

/// The last id handed out to this session, by whichever function.
pub fn last() -> Option<i64> {
    Some(LAST.load(Ordering::Relaxed)).filter(|id| *id >= 0)
}

/// The server's generator, if this session may use it now.
#[inline]
fn ready(function: &'static str) -> Result<&'static Shared, Failure> {
    match generator::shared() {
        Some(shared) if !server::in_recovery() => Ok(shared),
        Some(_) => Err(Failure::NotReady(NotReady::InRecovery, function)),
        None => Err(Failure::NotReady(NotReady::NotPreloaded, function)),
    }
}

/// The next id when the block gave none: it is due for a look at the clock, or has to be filled.
#[inline(always)]
#[allow(clippy::inline_always, reason = "a twentieth of the cost of an id, measured")]
fn refill(shared: &Shared) -> Result<i64, Refusal> {
    // Before the clock is read: a step back seen by anybody after this, this call included, makes the block
    // stale. That may waste a block, and never hands out one that should have been thrown away.
    let era = shared.generator.era();
    if renew(shared, era)
        && let Some(position) = BLOCK.pop(era)
    {
        return Ok(hand_out(shared, position, BLOCK.node_bits()));
    }
    take(shared, &SystemClock, settings::cache()).map(|taken| keep(shared, taken, era))
}

/// Looks at the clock for the sake of the block; whether it goes on.
#[inline]
fn renew(shared: &Shared, era: u64) -> bool {
    BLOCK.renew(era, |position| {
        shared.generator.allows(&shared.layout, &settings::rules(), &SystemClock, position)
    })
}

#[cold]
fn wait_and_refill(shared: &Shared) -> Result<i64, Failure> {
    wait_and_take(shared, settings::cache()).map(|(taken, era)| keep(shared, taken, era))
}

/// Keeps all of what was taken but its first position, which is handed out.
#[inline]
fn keep(shared: &Shared, Taken { stretch: PositionRange { from, to }, node_bits }: Taken, era: u64) -> i64 {
    BLOCK.fill(Taken { stretch: PositionRange { from: from + 1, to }, node_bits }, era);
    hand_out(shared, from, node_bits)
}

#[inline]
fn hand_out(shared: &Shared, position: u64, node_bits: u64) -> i64 {
    let id = shared.layout.id(position, node_bits).cast_signed();
    LAST.store(id, Ordering::Relaxed);
    id
}

/// Takes ids from the server's generator, and counts them.
#[inline(always)]
#[allow(clippy::inline_always, reason = "a tenth of the cost of an id, measured")]
fn take(shared: &Shared, clock: &impl Clock, want: NonZeroU32) -> Result<Taken, Refusal> {
    let taken = shared.generator.take(&shared.layout, &settings::rules(), clock, want)?;
    shared.count(taken.stretch.count());
    Ok(taken)
}

/// Takes ids by the clock that can be believed, until there are some: has the mark raised, a worker id leased, or waits
/// for the clock. Gives the era, too, that was before they were taken.
#[cold]
fn wait_and_take(shared: &Shared, want: NonZeroU32) -> Result<(Taken, u64), Failure> {
    let started = Instant::now();
    let (mut provided, mut switched) = (0, 0);
    loop {
        let era = shared.generator.era();
        let refusal = match take(shared, shared, want) {
            Ok(taken) => return Ok((taken, era)),
            Err(refusal) => refusal,
        };
        match refusal {
            // What was provided may have been taken by others; but not again and again.
            Refusal::Unreserved if provided < MAX_PROVIDED => {
                provide(shared)?;
                provided += 1;
            }
            Refusal::Drift(drift) if switched < MAX_SWITCHES && may_switch(&drift) => {
                switch(shared, era)?;
                switched += 1;
            }
            Refusal::Drift(drift) => {
                let left = settings::clock_wait_timeout().saturating_sub(started.elapsed());
                let pause = drift.timeout(settings::rollback(), left);
                wait::sleep(pause.ok_or_else(|| refused(shared, refusal))?);
            }
            Refusal::Unreserved | Refusal::BeforeEpoch { .. } | Refusal::Exhausted { .. } => {
                return Err(refused(shared, refusal));
            }
        }
    }
}

fn refused(shared: &Shared, refusal: Refusal) -> Failure {
    let ahead = SystemClock.now().since(shared.now());
    let hint = match refusal {
        _ if ahead > 0 => Some(format!(
            "The clock jumped ahead by {} and is not followed. If it is right, SELECT \
             snowflake_ids.clock_accept().",
            human(ahead)
        )),
        Refusal::Drift(drift) if may_switch(&drift) => Some(
            "Check the server's clock: ids go on by themselves once it has caught up. There is nobody else to issue \
             as, whose ids the clock has passed."
                .into(),
        ),
        _ => None,
    };
    Failure::Refused(refusal, hint)
}

/// Has the mark raised, and a worker id leased where there is none.
fn provide(shared: &Shared) -> Result<(), Failure> {
    match issuer::provide(shared) {
        Err(IssuerError::NoWorkerId | IssuerError::LeaseEnded { .. }) => {
            lease::ask(shared, false, LEASE_WAIT)?;
            issuer::provide(shared)?;
        }
        provided => provided?,
    }
    // From now on it is the launcher that raises the mark.
    segments::wake_launcher();
    Ok(())
}

fn may_switch(drift: &Drift) -> bool {
    drift.cause == Cause::StepBack && settings::rollback() == ClockRollback::Switch
}

/// Has somebody else issue, whose mark the clock has passed, if there is one.
fn switch(shared: &Shared, era: u64) -> Result<(), Failure> {
    let leased = matches!(shared.identity, Identity::Leased { .. });
    if !issuer::switch_rollback(shared, era)? && leased {
        // Where none is to be had, the clock is waited for.
        drop(lease::ask(shared, true, LEASE_WAIT));
    }
    Ok(())
}

/// Ids of one call of `snowflake_nextvals`.
pub struct Several {
    shared: &'static Shared,
    current: Taken,
    wanted: u32,
}

impl Several {
    /// The next id, None after the last one wanted.
    pub fn next(&mut self) -> Result<Option<i64>, Failure> {
        if self.current.stretch.count() == 0 {
            let Some(want) = NonZeroU32::new(self.wanted.min(MAX_STRETCH)) else { return Ok(None) };
            self.current = match self.held(want.get().into()) {
                Some(held) => held,
                None => self.taken(want)?,
            };
            self.wanted -= u32::try_from(self.current.stretch.count()).unwrap_or(self.wanted);
        }
        let position = self.current.stretch.from;
        self.current.stretch.from += 1;
        Ok(Some(hand_out(self.shared, position, self.current.node_bits)))
    }

    /// What the session holds already. It comes first: the ids of a session must keep growing.
    fn held(&self, want: u64) -> Option<Taken> {
        let era = self.shared.generator.era();
        let held = BLOCK
            .pop_many(want, era)
            .or_else(|| renew(self.shared, era).then(|| BLOCK.pop_many(want, era))?);
        Some(Taken { stretch: held?, node_bits: BLOCK.node_bits() })
    }

    fn taken(&self, want: NonZeroU32) -> Result<Taken, Failure> {
        let taken = take(self.shared, &SystemClock, want)
            .or_else(|_| wait_and_take(self.shared, want).map(|(taken, _)| taken))?;
        // Whatever the block still has was refused, and is older than this.
        BLOCK.clear();
        Ok(taken)
    }
}
