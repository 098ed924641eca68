//! What one session knows: the ids it took and has not handed out, and the last one it did.
//!
//! A process of the server serves one session at a time and has one thread, so plain statics hold it; they
//! are atomics only so that this is safe code. Relaxed loads and stores cost what plain ones do.

use crate::error::{Failure, Need, Unready};
use crate::pg::clock::SystemClock;
use crate::pg::shmem::generator::{self, Shared};
use crate::pg::{server, wait};
use crate::settings;
use snowflake_ids_core::{Block, Refusal, Stretch};
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Instant;

/// The most ids that one step takes for `snowflake_nextvals`: a call that is cancelled wastes no more, and does
/// not push everybody's ids seconds ahead of the clock at once.
const MAX_STRETCH: u32 = 8_192;

static BLOCK: Block = Block::empty();
/// The last id handed out; negative before the first.
static LAST: AtomicI64 = AtomicI64::new(-1);

/// The next id of this session where nothing stands in its way; None where [`next`] has more to do. Calls
/// nothing of the server's, so no error comes out of it.
#[inline]
pub fn next_at_once() -> Option<i64> {
    let shared = generator::shared().filter(|shared| shared.node.is_some() && server::out_of_recovery())?;
    let position = match BLOCK.pop(shared.steps_back()) {
        Some(position) => position,
        None => refill(shared).ok()?,
    };
    Some(hand_out(shared, position))
}

/// The next id of this session.
pub fn next(function: &'static str) -> Result<i64, Failure> {
    let shared = ready(function)?;
    let position = match BLOCK.pop(shared.steps_back()) {
        Some(position) => position,
        None => refill(shared).or_else(|refusal| wait_and_refill(shared, refusal))?,
    };
    Ok(hand_out(shared, position))
}

/// Several ids in growing order, taken a stretch at a time while they are asked for.
pub fn several(function: &'static str, count: u32) -> Result<Several, Failure> {
    Ok(Several { shared: ready(function)?, current: Stretch { from: 0, to: 0 }, wanted: count })
}

/// The last id handed out to this session, by whichever function.
pub fn last() -> Option<i64> {
    Some(LAST.load(Ordering::Relaxed)).filter(|id| *id >= 0)
}

/// The server's generator, if this session may use it now.
#[inline]
fn ready(function: &'static str) -> Result<&'static Shared, Failure> {
    match generator::shared() {
        Some(shared) if shared.node.is_some() && !server::in_recovery() => Ok(shared),
        shared => Err(Failure::Unready(unready(shared), function)),
    }
}

#[cold]
fn unready(shared: Option<&Shared>) -> Unready {
    match shared {
        None => Unready::NotPreloaded(Need::Generator),
        Some(_) if server::in_recovery() => Unready::InRecovery,
        Some(_) => Unready::NoWorkerId,
    }
}

/// The next position when the block gave none: it is due for a look at the clock, or has to be filled.
#[inline(always)]
#[allow(clippy::inline_always, reason = "a twentieth of the cost of an id, measured")]
fn refill(shared: &Shared) -> Result<u64, Refusal> {
    // Before the clock is read: a step back seen by anybody after this, this call included, makes the block
    // stale. That may waste a block, and never hands out one that should have been thrown away.
    let steps_back = shared.steps_back();
    if renew(shared, steps_back)
        && let Some(position) = BLOCK.pop(steps_back)
    {
        return Ok(position);
    }
    take(shared, settings::cache()).map(|stretch| keep(stretch, steps_back))
}

/// Looks at the clock for the sake of the block; whether it goes on.
#[inline]
fn renew(shared: &Shared, steps_back: u64) -> bool {
    BLOCK.renew(steps_back, |position| {
        shared.generator.allows(&shared.layout, &settings::rules(), &SystemClock, position)
    })
}

#[cold]
fn wait_and_refill(shared: &Shared, refusal: Refusal) -> Result<u64, Failure> {
    let steps_back = shared.steps_back();
    wait_and_take(shared, settings::cache(), refusal).map(|stretch| keep(stretch, steps_back))
}

/// Keeps all of a stretch but its first position.
#[inline]
fn keep(Stretch { from, to }: Stretch, steps_back: u64) -> u64 {
    BLOCK.fill(Stretch { from: from + 1, to }, steps_back);
    from
}

#[inline]
fn hand_out(shared: &Shared, position: u64) -> i64 {
    let id = shared.layout.id(position, shared.placed).cast_signed();
    LAST.store(id, Ordering::Relaxed);
    id
}

/// Takes ids from the server's generator, and counts them.
#[inline(always)]
#[allow(clippy::inline_always, reason = "a tenth of the cost of an id, measured")]
fn take(shared: &Shared, want: NonZeroU32) -> Result<Stretch, Refusal> {
    let taken = shared.generator.take(&shared.layout, &settings::rules(), &SystemClock, want);
    // Refused or not, this call may be the one that met a step back.
    shared.announce_steps_back();
    let stretch = taken?;
    shared.count(stretch.count());
    Ok(stretch)
}

/// Waits for the clock, where the settings say so, until there is something to take.
#[cold]
fn wait_and_take(shared: &Shared, want: NonZeroU32, mut refusal: Refusal) -> Result<Stretch, Failure> {
    let started = Instant::now();
    loop {
        let left = settings::max_wait().saturating_sub(started.elapsed());
        let pause = match refusal {
            Refusal::Drift(drift) => drift.patience(settings::rollback(), left),
            Refusal::BeforeEpoch { .. } | Refusal::Exhausted { .. } => None,
        };
        wait::sleep(pause.ok_or(Failure::Refused(refusal))?);
        match take(shared, want) {
            Ok(stretch) => return Ok(stretch),
            Err(again) => refusal = again,
        }
    }
}

/// Ids of one call of `snowflake_nextvals`.
pub struct Several {
    shared: &'static Shared,
    current: Stretch,
    wanted: u32,
}

impl Several {
    /// The next id, None after the last one wanted.
    pub fn next(&mut self) -> Result<Option<i64>, Failure> {
        if self.current.from == self.current.to {
            let Some(want) = NonZeroU32::new(self.wanted.min(MAX_STRETCH)) else { return Ok(None) };
            self.current = match self.held(want.get().into()) {
                Some(held) => held,
                None => self.taken(want)?,
            };
            self.wanted -= u32::try_from(self.current.count()).unwrap_or(self.wanted);
        }
        let position = self.current.from;
        self.current.from += 1;
        Ok(Some(hand_out(self.shared, position)))
    }

    /// What the session holds already. It comes first: the ids of a session must keep growing.
    fn held(&self, want: u64) -> Option<Stretch> {
        let steps_back = self.shared.steps_back();
        BLOCK
            .pop_many(want, steps_back)
            .or_else(|| renew(self.shared, steps_back).then(|| BLOCK.pop_many(want, steps_back))?)
    }

    fn taken(&self, want: NonZeroU32) -> Result<Stretch, Failure> {
        let stretch = take(self.shared, want).or_else(|refusal| wait_and_take(self.shared, want, refusal))?;
        // Whatever the block still has was refused, and is older than this.
        BLOCK.clear();
        Ok(stretch)
    }
}
