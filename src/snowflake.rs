//! What one session knows: the ids it took and has not handed out, and the last one it did.
//!
//! A process of the server serves one session at a time and has one thread, so a plain static holds it.

use crate::issuer::issuer;
use crate::pg::clock::SystemClock;
use crate::pg::process::PerProcess;
use crate::pg::{random, server};
use crate::settings;
use crate::shared::generator::{self, Shared};
use crate::worker::first_lease;
use snowflake_ids_core::bound_sequence::{BoundSequenceError, Increment};
use snowflake_ids_core::error::NotReadyError;
use snowflake_ids_core::session::{self, Session, SessionError};
use snowflake_ids_core::{Filler, GeneratorError, Issued, NodeBits, PositionRange, Taken, Uuid, UuidError};
use std::cell::OnceCell;
use std::num::NonZeroU32;

/// The most ids that one step takes for `snowflake_nextvals`: a call that is cancelled wastes no more, and does
/// not push all sessions' ids seconds ahead of the clock at once.
const MAX_RANGE: u32 = 8_192;

static SESSION: Session = Session::new();
static FILLER: PerProcess<OnceCell<Filler>> = PerProcess::new(OnceCell::new());

/// The next id of this session where nothing stands in its way; None where [`next`] has more to do. Calls
/// nothing of the server's, so no error comes out of it.
#[inline]
pub fn next_at_once() -> Option<i64> {
    let shared = generator::shared().filter(|_| server::out_of_recovery())?;
    match SESSION.pop(shared) {
        None => refill(shared).ok(),
        next => next,
    }
}

/// The next id of this session.
pub fn next(function: &'static str) -> Result<i64, SessionError> {
    let shared = ready(function)?;
    match SESSION.pop(shared) {
        Some(id) => Ok(id),
        None => refill(shared).or_else(|_| wait_and_refill(shared)),
    }
}

/// The next UUID of this session where nothing stands in its way; None where [`uuid`] has more to do. No error of the server's
/// comes out of it. UUIDs take from the same block and generator as ids do, and leave the last id as it was.
#[inline]
pub fn uuid_at_once() -> Option<Uuid> {
    let shared = generator::shared().filter(|_| server::out_of_recovery())?;
    let issued = match SESSION.pop_issued(shared) {
        None => refill_issued(shared).ok(),
        issued => issued,
    };
    uuid_of(shared, issued?).ok()
}

/// The next UUID of this session.
pub fn uuid(function: &'static str) -> Result<Uuid, SessionError> {
    let shared = ready(function)?;
    let issued = match SESSION.pop_issued(shared) {
        Some(issued) => issued,
        None => refill_issued(shared).or_else(|_| wait_and_refill_issued(shared))?,
    };
    Ok(uuid_of(shared, issued)?)
}

#[inline]
fn uuid_of(shared: &Shared, issued: Issued) -> Result<Uuid, UuidError> {
    let filler = FILLER.get_or_init(|| Filler::new(random::token().cast_unsigned()));
    shared.layout.uuid(issued, filler.draw())
}

/// Several ids in growing order, taken a range at a time while they are asked for.
pub fn several(function: &'static str, count: u32) -> Result<Several, SessionError> {
    let none = Taken { positions: PositionRange::EMPTY, node_bits: NodeBits(0) };
    Ok(Several { shared: ready(function)?, current: none, wanted: count })
}

/// How often a call throws positions away whose ids are not in a row: the rest of a tick is too short for them, or was
/// another session's.
const MAX_TRIES: u32 = 100;

/// The next number of a sequence that is bound to snowflake ids.
pub fn next_of_sequence(
    function: &'static str,
    increment: Increment,
) -> Result<Result<i64, SessionError>, BoundSequenceError> {
    if increment.is_one() {
        return Ok(next_at_once().map_or_else(|| next(function), Ok));
    }
    let shared = match ready(function) {
        Ok(shared) => shared,
        Err(error) => return Ok(Err(error)),
    };
    increment.check_layout(&shared.layout)?;
    for _ in 0..MAX_TRIES {
        let taken = match take_several(shared, increment.ids()) {
            Ok(taken) => taken,
            Err(error) => return Ok(Err(error)),
        };
        if let Some(number) = increment.number_of(&shared.layout, &taken) {
            return Ok(Ok(number));
        }
    }
    Err(BoundSequenceError::Interrupted(increment))
}

/// The last id handed out to this session, by whichever function.
pub fn last() -> Option<i64> {
    SESSION.last()
}

/// Forgets it.
pub fn forget_last() {
    SESSION.forget_last();
}

/// The server's generator, if this session may use it now.
#[inline]
fn ready(function: &'static str) -> Result<&'static Shared, SessionError> {
    match generator::shared() {
        Some(shared) if !server::in_recovery() => Ok(shared),
        Some(_) => Err(NotReadyError::InRecovery(function).into()),
        None => Err(NotReadyError::NotPreloaded(function).into()),
    }
}

/// The next id when the block gave none: it is due for a look at the clock, or has to be filled.
#[inline(always)]
#[allow(clippy::inline_always, reason = "a twentieth of the cost of an id, measured")]
fn refill(shared: &Shared) -> Result<i64, GeneratorError> {
    SESSION.refill(shared, &SystemClock, &settings::rules(), settings::cache(), |ids| shared.count(ids))
}

/// The same for a UUID.
#[inline(always)]
#[allow(clippy::inline_always, reason = "as above")]
fn refill_issued(shared: &Shared) -> Result<Issued, GeneratorError> {
    SESSION
        .refill_issued(shared, &SystemClock, &settings::rules(), settings::cache(), |ids| shared.count(ids))
}

#[cold]
fn wait_and_refill_issued(shared: &'static Shared) -> Result<Issued, SessionError> {
    or_with_first_lease(shared, || SESSION.wait_and_refill_issued(&issuer(shared), settings::cache()))
}

#[cold]
fn wait_and_refill(shared: &'static Shared) -> Result<i64, SessionError> {
    or_with_first_lease(shared, || SESSION.wait_and_refill(&issuer(shared), settings::cache()))
}

/// Does it again where there was no worker id, and the transaction that creates the extension leases one.
fn or_with_first_lease<T>(
    shared: &'static Shared,
    work: impl Fn() -> Result<T, SessionError>,
) -> Result<T, SessionError> {
    match work() {
        Err(SessionError::LeaseError(_)) if first_lease::take(shared) => work(),
        done => done,
    }
}

/// Ids of one call of `snowflake_nextvals`.
pub struct Several {
    shared: &'static Shared,
    current: Taken,
    wanted: u32,
}

impl Several {
    /// The next id, None after the last one wanted.
    pub fn next(&mut self) -> Result<Option<i64>, SessionError> {
        if self.current.positions.count() == 0 {
            let Some(want) = NonZeroU32::new(self.wanted.min(MAX_RANGE)) else { return Ok(None) };
            let rules = settings::rules();
            self.current = match SESSION.held(self.shared, &SystemClock, &rules, want.get().into()) {
                Some(held) => held,
                None => self.taken(want)?,
            };
            self.wanted -= u32::try_from(self.current.positions.count()).unwrap_or(self.wanted);
        }
        let position = self.current.positions.take_first();
        Ok(Some(SESSION.hand_out(self.shared, position, self.current.node_bits)))
    }

    fn taken(&self, want: NonZeroU32) -> Result<Taken, SessionError> {
        take_several(self.shared, want)
    }
}

/// Takes up to so many positions past the block.
fn take_several(shared: &'static Shared, want: NonZeroU32) -> Result<Taken, SessionError> {
    let taken = match shared.generator.take(&shared.layout, &settings::rules(), &SystemClock, want) {
        Ok(taken) => {
            shared.count(taken.positions.count());
            taken
        }
        Err(_) => or_with_first_lease(shared, || session::wait_and_take(&issuer(shared), want))?.0,
    };
    // Whatever the session still holds was refused, and is older than this.
    SESSION.drop_held();
    Ok(taken)
}
