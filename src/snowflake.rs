//! What one session knows: the ids it took and has not handed out, and the last one it did.
//!
//! A process of the server serves one session at a time and has one thread, so a plain static holds it.

use crate::issuer::issuer;
use crate::named::Known;
use crate::named::error::NoIdError;
use crate::pg::clock::SystemClock;
use crate::pg::server;
use crate::settings;
use crate::shared::generator::{self, Shared};
use crate::worker::first_lease;
use snowflake_ids_core::bound_sequence::{BoundSequenceError, Increment};
use snowflake_ids_core::error::NotReadyError;
use snowflake_ids_core::session::{self, Session, SessionError};
use snowflake_ids_core::{
    GeneratorError, NodeBits, Position, PositionRange, Rules, Shard, ShardError, Taken,
};
use std::num::NonZeroU32;

/// The most ids that one step takes for `snowflake_nextvals`: a call that is cancelled wastes no more, and does
/// not push all sessions' ids seconds ahead of the clock at once.
const MAX_RANGE: u32 = 8_192;

static SESSION: Session = Session::new();

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

/// The next id of a named generator where nothing stands in its way; None where [`next_of`] has more to do. Calls nothing of
/// the server's, so no error comes out of it.
#[inline]
pub fn next_of_at_once(known: &Known) -> Option<i64> {
    let shared = generator::shared().filter(|_| server::out_of_recovery() && known.is_current())?;
    source(shared, known).ok()?;
    let id = match shard_of(shared, known).ok()? {
        None => match known.session.pop(shared) {
            None => refill_of(shared, known).ok()?,
            Some(id) => id,
        },
        Some(only) => fitting_at_once(shared, known, &only).ok()?,
    };
    SESSION.note_last(id);
    Some(id)
}

/// The next id of a named generator.
pub fn next_of(function: &'static str, known: &Known) -> Result<i64, NoIdError> {
    let shared = ready(function)?;
    source(shared, known)?;
    let id = match shard_of(shared, known)? {
        None => match known.session.pop(shared) {
            Some(id) => id,
            None => refill_of(shared, known).or_else(|_| wait_and_refill_of(shared, known))?,
        },
        Some(only) => fitting_at_once(shared, known, &only)
            .or_else(|_| wait_and_refill_fitting(shared, known, &only))?,
    };
    SESSION.note_last(id);
    Ok(id)
}

/// Fails where the server has no counter of the generator's layout.
#[inline]
fn source(shared: &Shared, known: &Known) -> Result<(), NoIdError> {
    let layout = known.named().layout;
    if layout == shared.layout { Ok(()) } else { Err(NoIdError::Elsewhere(layout)) }
}

/// The shard whose ids a generator gives, where it gives not all.
#[inline]
fn shard_of(shared: &Shared, known: &Known) -> Result<Option<Shard>, ShardError> {
    if let Some(own) = known.named().shard {
        return Ok(Some(own).filter(|own| !own.is_whole()));
    }
    // The layout has room for its own, but what is set was set for all.
    let Some(set) = settings::shard().filter(|set| !set.is_whole()) else { return Ok(None) };
    set.check_layout(&shared.layout)?;
    Ok(Some(set))
}

fn fitting_at_once(shared: &Shared, known: &Known, only: &Shard) -> Result<i64, GeneratorError> {
    if let Some(id) = known.session.pop_fitting(shared, only) {
        return Ok(id);
    }
    let (rules, cache) = (rules_of(Some(known)), cache_of(known));
    known.session.refill_fitting(shared, &SystemClock, &rules, cache, only, |ids| shared.count(ids))
}

#[cold]
fn wait_and_refill_fitting(
    shared: &'static Shared,
    known: &Known,
    only: &Shard,
) -> Result<i64, SessionError> {
    or_with_first_lease(shared, || {
        known.session.wait_and_refill_fitting(&issuer(shared), cache_of(known), only)
    })
}

#[inline]
fn cache_of(known: &Known) -> NonZeroU32 {
    known.named().cache.unwrap_or_else(settings::cache)
}

#[inline]
fn refill_of(shared: &Shared, known: &Known) -> Result<i64, GeneratorError> {
    known
        .session
        .refill(shared, &SystemClock, &rules_of(Some(known)), cache_of(known), |ids| shared.count(ids))
}

#[cold]
fn wait_and_refill_of(shared: &'static Shared, known: &Known) -> Result<i64, SessionError> {
    or_with_first_lease(shared, || known.session.wait_and_refill(&issuer(shared), cache_of(known)))
}

/// Several ids in growing order, taken a range at a time while they are asked for.
pub fn several(function: &'static str, count: u32) -> Result<Several, SessionError> {
    Ok(Several { shared: ready(function)?, of: None, only: None, current: NONE, wanted: count })
}

/// The same of a named generator.
pub fn several_of(function: &'static str, known: &'static Known, count: u32) -> Result<Several, NoIdError> {
    let shared = ready(function)?;
    source(shared, known)?;
    Ok(Several { shared, of: Some(known), only: shard_of(shared, known)?, current: NONE, wanted: count })
}

const NONE: Taken = Taken { positions: PositionRange::EMPTY, node_bits: NodeBits(0) };

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
        let taken = match take_several(shared, None, None, increment.ids()) {
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
    /// The named generator whose they are, if they are one's.
    of: Option<&'static Known>,
    /// The shard whose they are, if they are one's.
    only: Option<Shard>,
    current: Taken,
    wanted: u32,
}

impl Several {
    /// The next id, None after the last one wanted.
    pub fn next(&mut self) -> Result<Option<i64>, SessionError> {
        loop {
            if self.current.positions.count() == 0 {
                let Some(want) = NonZeroU32::new(self.wanted.min(self.most())) else { return Ok(None) };
                self.current = self.take(want)?;
                if self.only.is_none() {
                    self.wanted -= u32::try_from(self.current.positions.count()).unwrap_or(self.wanted);
                }
            }
            if let Some(position) = self.take_first() {
                let id = self.session().hand_out(self.shared, position, self.current.node_bits);
                SESSION.note_last(id);
                return Ok(Some(id));
            }
        }
    }

    /// The most ids to take at once.
    fn most(&self) -> u32 {
        let moduli = self.only.map_or(1, |only| u32::try_from(only.modulus()).unwrap_or(MAX_RANGE));
        (MAX_RANGE / moduli).max(1)
    }

    /// Takes some more positions.
    fn take(&self, want: NonZeroU32) -> Result<Taken, SessionError> {
        let (session, rules) = (self.session(), rules_of(self.of));
        match session.held(self.shared, &SystemClock, &rules, want.get().into()) {
            Some(held) => Ok(held),
            None => take_several(self.shared, self.of, self.only.as_ref(), want),
        }
    }

    /// The next of the positions that were taken; of a shard none where what is left of them does not fit. How many fit is
    /// seen only here.
    fn take_first(&mut self) -> Option<Position> {
        let Some(only) = &self.only else { return Some(self.current.positions.take_first()) };
        let (layout, node_bits) = (&self.shared.layout, self.current.node_bits);
        let position = self.current.positions.take_first_fitting(layout, node_bits, only)?;
        self.wanted -= 1;
        if self.wanted == 0 {
            self.current.positions = PositionRange::EMPTY;
        }
        Some(position)
    }

    fn session(&self) -> &'static Session {
        self.of.map_or(&SESSION, |known| &known.session)
    }
}

/// What the generator may do for this session, for a named generator or without.
fn rules_of(of: Option<&Known>) -> Rules {
    of.map_or_else(settings::rules, |known| known.named().rules(settings::rules()))
}

/// Takes up to so many positions past the block.
fn take_several(
    shared: &'static Shared,
    of: Option<&'static Known>,
    only: Option<&Shard>,
    want: NonZeroU32,
) -> Result<Taken, SessionError> {
    let (layout, rules) = (&shared.layout, rules_of(of));
    let taken = match only {
        Some(only) => shared.generator.take_fitting(layout, &rules, &SystemClock, want, only),
        None => shared.generator.take(layout, &rules, &SystemClock, want),
    };
    let taken = match taken {
        Ok(taken) => {
            shared.count(taken.positions.count());
            taken
        }
        Err(_) => {
            or_with_first_lease(shared, || session::wait_and_take_fitting(&issuer(shared), want, only))?.0
        }
    };
    // Whatever the session still holds was refused, and is older than this.
    of.map_or(&SESSION, |known| &known.session).drop_held();
    Ok(taken)
}
