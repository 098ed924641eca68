//! One session's memory: the ids it took and has not handed out, and the last one it did.
//!
//! A process of the server serves one session at a time and has one thread, so a plain static holds it.

use crate::issuer::issuer;
use crate::named::error::NoIdError;
use crate::named::{self, Known};
use crate::pg::clock::SystemClock;
use crate::pg::process::PerProcess;
use crate::pg::{random, server};
use crate::registry::join;
use crate::settings;
use crate::shared::generator::{self, Shared};
use pgrx::check_for_interrupts;
use snowflake_ids_core::error::NotReadyError;
use snowflake_ids_core::generator::named::{Named, NamedError};
use snowflake_ids_core::generator::session::{self, Session, SessionError};
use snowflake_ids_core::sequence::bound_sequence::{BoundSequenceError, Increment};
use snowflake_ids_core::server::issuer::{self as core_issuer, Seated};
use snowflake_ids_core::{
    Clock, Filler, GeneratorError, Issued, Layout, NodeBits, Position, PositionRange, Rules, Shard,
    ShardError, Taken, Uuid, UuidError,
};
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
    let issued = match SESSION.pop(&**shared) {
        None if join::has_looked() => refill(shared).ok(),
        issued => issued,
    };
    Some(SESSION.hand_out(&shared.layout, issued?))
}

/// The next id of this session.
pub fn next(function: &'static str) -> Result<i64, SessionError> {
    let shared = ready(function)?;
    Ok(SESSION.hand_out(&shared.layout, issued(shared)?))
}

/// The next id of a named generator where nothing stands in its way; None where [`next_of`] has more to do. Calls nothing of
/// the server's, so no error comes out of it.
#[inline]
pub fn next_of_at_once(known: &Known) -> Option<i64> {
    let shared = generator::shared().filter(|_| server::out_of_recovery() && known.is_current())?;
    let id = next_from(shared, known)?;
    // An id by terms that were changed meanwhile is thrown away.
    if !known.is_still_current(shared) {
        return None;
    }
    SESSION.note_last(id);
    Some(id)
}

/// The next id of a named generator.
pub fn next_of(function: &'static str, known: &Known) -> Result<i64, NoIdError> {
    let shared = ready(function)?;
    loop {
        let id = match next_from(shared, known) {
            Some(id) => id,
            None => id_of(known, wait_and_issue_of(shared, known, only_of(known.named())?.as_ref())?),
        };
        if known.is_current() {
            SESSION.note_last(id);
            return Ok(id);
        }
        look_up_again(known)?;
    }
}

/// Takes over what a generator is by now.
#[cold]
fn look_up_again(known: &Known) -> Result<(), NamedError> {
    check_for_interrupts!();
    named::look_up(known.name()).map(drop)
}

/// The next id of a named generator, out of the session's block or taken where the layout has its ids from.
#[inline]
fn next_from(shared: &Shared, known: &Known) -> Option<i64> {
    let issued = match only_of(known.named()).ok()? {
        Some(only) => next_fitting(shared, known, &only),
        None => issued_from(shared, known),
    };
    Some(id_of(known, issued?))
}

#[inline]
fn id_of(known: &Known, issued: Issued) -> i64 {
    known.session.hand_out(&known.named().layout, issued)
}

/// The same of one shard's ids.
fn next_fitting(shared: &Shared, known: &Known, only: &Shard) -> Option<Issued> {
    let (session, named) = (&known.session, known.named());
    let source = shared.seated(known.seat()?, &named.layout);
    if let Some(issued) = session.pop_fitting(&source, only) {
        return Some(issued);
    }
    let (rules, cache) = (named.rules(settings::rules()), cache_of(named));
    session.refill_fitting(&source, &SystemClock, &rules, cache, only, |ids| shared.count(ids)).ok()
}

/// The shard whose ids a generator gives, where it does not give every id.
#[inline]
fn only_of(named: &Named) -> Result<Option<Shard>, ShardError> {
    if let Some(own) = named.shard {
        return Ok(Some(own).filter(|own| !own.is_whole()));
    }
    let Some(set) = settings::shard().filter(|set| !set.is_whole()) else { return Ok(None) };
    // It was set for all generators, whatever room their layouts have.
    set.check_layout(&named.layout)?;
    Ok(Some(set))
}

/// Takes positions; of a shard, the first is its.
#[inline]
fn take_as(
    only: Option<&Shard>,
    source: &Seated<'_>,
    rules: &Rules,
    clock: &impl Clock,
    want: NonZeroU32,
) -> Result<Taken, GeneratorError> {
    match only {
        Some(only) => session::take_fitting(source, rules, clock, want, only),
        None => session::take(source, rules, clock, want),
    }
}

#[inline]
fn cache_of(named: &Named) -> NonZeroU32 {
    named.cache.unwrap_or_else(settings::cache)
}

/// The next UUID of this session where nothing stands in its way; None where [`uuid`] has more to do. No error of the server's
/// comes out of it. UUIDs take from the same block and generator as ids do, and leave the last id as it was.
#[inline]
pub fn uuid_at_once() -> Option<Uuid> {
    let shared = generator::shared().filter(|_| server::out_of_recovery())?;
    let issued = match SESSION.pop(&**shared) {
        None if join::has_looked() => refill(shared).ok(),
        issued => issued,
    };
    made(&shared.layout, issued?).ok()
}

/// The next UUID of this session.
pub fn uuid(function: &'static str) -> Result<Uuid, SessionError> {
    let shared = ready(function)?;
    Ok(made(&shared.layout, issued(shared)?)?)
}

/// The next UUID of a named generator where nothing stands in its way; None where [`uuid_of`] has more to do. No error of the
/// server's comes out of it. Which ids fit a shard says nothing of UUIDs: they take positions as they come.
#[inline]
pub fn uuid_of_at_once(known: &Known) -> Option<Uuid> {
    let shared = generator::shared().filter(|_| server::out_of_recovery() && known.is_current())?;
    made(&known.named().layout, issued_from(shared, known)?).ok()
}

/// The next UUID of a named generator.
pub fn uuid_of(function: &'static str, known: &Known) -> Result<Uuid, NoIdError> {
    let shared = ready(function)?;
    loop {
        // That it was taken in: a call that waits may find the generator changed.
        let layout = known.named().layout;
        let issued = match issued_from(shared, known) {
            Some(issued) => issued,
            None => wait_and_issue_of(shared, known, None)?,
        };
        if known.is_current() {
            return Ok(made(&layout, issued).map_err(SessionError::from)?);
        }
        look_up_again(known)?;
    }
}

/// The next position of a named generator, out of the session's block or taken where the layout has its ids from.
#[inline]
fn issued_from(shared: &Shared, known: &Known) -> Option<Issued> {
    let (seat, named) = (known.seat()?, known.named());
    let source = shared.seated(seat, &named.layout);
    if let Some(issued) = known.session.pop(&source) {
        return Some(issued);
    }
    let rules = named.rules(settings::rules());
    let take = |source: &Seated<'_>| session::take(source, &rules, &SystemClock, cache_of(named));
    known.session.refill(&source, &SystemClock, &rules, take, |ids| shared.count(ids)).ok()
}

#[cold]
fn wait_and_issue_of(
    shared: &'static Shared,
    known: &Known,
    only: Option<&Shard>,
) -> Result<Issued, SessionError> {
    let named = known.named();
    let (first, seat) = where_registered(shared, || {
        known.session.wait_and_refill(
            &issuer(shared),
            &named.layout,
            named.sequence_start,
            |source, rules, clock| take_as(only, source, rules, clock, cache_of(named)),
        )
    })?;
    known.set_seat(seat);
    Ok(first)
}

#[inline]
fn made(layout: &Layout, issued: Issued) -> Result<Uuid, UuidError> {
    let filler = FILLER.get_or_init(|| Filler::new(random::token().cast_unsigned()));
    layout.uuid(issued, filler.draw())
}

/// Several ids in growing order, taken a range at a time while they are asked for.
pub fn several(function: &'static str, count: u32) -> Result<Several, SessionError> {
    let shared = ready(function)?;
    Ok(Several { shared, of: None, only: None, current: NONE, layout: shared.layout, wanted: count })
}

/// The same of a named generator.
pub fn several_of(function: &'static str, known: &'static Known, count: u32) -> Result<Several, NoIdError> {
    let (shared, only) = (ready(function)?, only_of(known.named())?);
    Ok(Several { shared, of: Some(known), only, current: NONE, layout: shared.layout, wanted: count })
}

const NONE: Taken = Taken { positions: PositionRange::EMPTY, node_bits: NodeBits(0) };

/// Number of times that a call throws positions away whose ids are not in a row: the rest of a tick is too short for
/// them, or was another session's.
const MAX_TRIES: u32 = 100;

/// The next number of a sequence that is bound to snowflake ids.
pub fn next_of_sequence(
    function: &'static str,
    of: Option<&'static Known>,
    increment: Increment,
) -> Result<Result<i64, NoIdError>, BoundSequenceError> {
    if increment.is_one() {
        let next = || next(function).map_err(NoIdError::from);
        return Ok(of.map_or_else(
            || next_at_once().map_or_else(next, Ok),
            |known| next_of_at_once(known).map_or_else(|| next_of(function, known), Ok),
        ));
    }
    let shared = match ready(function) {
        Ok(shared) => shared,
        Err(error) => return Ok(Err(error.into())),
    };
    let layout = of.map_or(shared.layout, |known| known.named().layout);
    match of.map(|known| only_of(known.named())).transpose() {
        Ok(None | Some(None)) => {}
        Ok(Some(Some(only))) => return Ok(Err(NoIdError::InRow(only))),
        Err(error) => return Ok(Err(error.into())),
    }
    increment.check_layout(&layout)?;
    for _ in 0..MAX_TRIES {
        let (taken, layout) = match take_several(shared, of, None, increment.ids()) {
            Ok(taken) => taken,
            Err(error) => return Ok(Err(error)),
        };
        if let Some(number) = increment.number_of(&layout, &taken) {
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
        Some(shared) if !server::in_recovery() => {
            join::leave_alone_first(shared)?;
            Ok(shared)
        }
        Some(_) => Err(NotReadyError::InRecovery(function).into()),
        None => Err(NotReadyError::NotPreloaded(function).into()),
    }
}

/// The next position of this session, however long that takes.
#[inline]
fn issued(shared: &'static Shared) -> Result<Issued, SessionError> {
    match SESSION.pop(&**shared) {
        Some(issued) => Ok(issued),
        None => refill(shared).or_else(|_| wait_and_refill(shared)),
    }
}

/// The next position when the block gave none: it is due for a look at the clock, or has to be filled.
#[inline(always)]
#[allow(clippy::inline_always, reason = "a twentieth of the cost of an id, measured")]
fn refill(shared: &Shared) -> Result<Issued, GeneratorError> {
    let rules = settings::rules();
    let take = |source: &core_issuer::Shared| session::take(source, &rules, &SystemClock, settings::cache());
    SESSION.refill(&**shared, &SystemClock, &rules, take, |ids| shared.count(ids))
}

#[cold]
fn wait_and_refill(shared: &'static Shared) -> Result<Issued, SessionError> {
    let waited = where_registered(shared, || {
        SESSION.wait_and_refill(&issuer(shared), &shared.layout, None, |source, rules, clock| {
            session::take(source, rules, clock, settings::cache())
        })
    });
    waited.map(|(first, _)| first)
}

/// Does something on the way to ids, where the server has its worker id from where it must. Counts the call if it fails.
fn where_registered<T>(
    shared: &'static Shared,
    work: impl FnOnce() -> Result<T, SessionError>,
) -> Result<T, SessionError> {
    let found = join::leave_alone(shared).map_err(SessionError::from).and_then(|()| work());
    found.inspect_err(|_| shared.count_failure())
}

/// Ids of one call of `snowflake_nextvals`.
pub struct Several {
    shared: &'static Shared,
    /// The named generator whose they are, if they are one's.
    of: Option<&'static Known>,
    /// The shard whose they are, if they are one's.
    only: Option<Shard>,
    current: Taken,
    /// The layout in which that was taken, which may not be the generator's any more.
    layout: Layout,
    wanted: u32,
}

impl Several {
    /// The next id, None after the last one wanted.
    pub fn next(&mut self) -> Result<Option<i64>, NoIdError> {
        loop {
            if self.current.positions.count() == 0 {
                let Some(want) = NonZeroU32::new(self.wanted.min(self.most())) else { return Ok(None) };
                (self.current, self.layout) = match self.held(want.get().into()) {
                    Some(held) => held,
                    None => take_several(self.shared, self.of, self.only.as_ref(), want)?,
                };
                if self.only.is_none() {
                    self.wanted -= u32::try_from(self.current.positions.count()).unwrap_or(self.wanted);
                }
            }
            if let Some(position) = self.take_first() {
                return Ok(Some(self.hand_out(position)));
            }
        }
    }

    /// The most ids to take at once.
    fn most(&self) -> u32 {
        let moduli = self.only.map_or(1, |only| u32::try_from(only.modulus()).unwrap_or(MAX_RANGE));
        (MAX_RANGE / moduli).max(1)
    }

    /// The next of the positions that were taken; of a shard none where what is left of them does not fit. How many fit is
    /// seen only here.
    fn take_first(&mut self) -> Option<Position> {
        let Some(only) = &self.only else {
            return Some(self.current.positions.take_first());
        };
        let node_bits = self.current.node_bits;
        let position = self.current.positions.take_first_fitting(&self.layout, node_bits, only)?;
        self.wanted -= 1;
        if self.wanted == 0 {
            self.current.positions = PositionRange::EMPTY;
        }
        Some(position)
    }

    fn hand_out(&self, position: Position) -> i64 {
        let issued = Issued { position, node_bits: self.current.node_bits };
        match self.of {
            None => SESSION.hand_out(&self.layout, issued),
            Some(known) => {
                let id = known.session.hand_out(&self.layout, issued);
                SESSION.note_last(id);
                id
            }
        }
    }

    /// Returns what the session holds already.
    fn held(&self, want: u64) -> Option<(Taken, Layout)> {
        let (shared, rules) = (self.shared, settings::rules());
        let Some(known) = self.of else {
            return Some((SESSION.held(&**shared, &SystemClock, &rules, want)?, shared.layout));
        };
        let (seat, named) = (known.seat()?, known.named());
        let source = shared.seated(seat, &named.layout);
        let held = known.session.held(&source, &SystemClock, &named.rules(rules), want)?;
        known.is_current().then_some((held, named.layout))
    }
}

/// Takes up to so many positions past the block. Gives their layout, too.
fn take_several(
    shared: &'static Shared,
    of: Option<&'static Known>,
    only: Option<&Shard>,
    want: NonZeroU32,
) -> Result<(Taken, Layout), NoIdError> {
    let (taken, session) = match of {
        None => ((take_own(shared, want)?, shared.layout), &SESSION),
        Some(known) => (take_named(shared, known, only, want)?, &known.session),
    };
    // Whatever the session still holds was refused, and is older than this.
    session.drop_held();
    Ok(taken)
}

fn take_own(shared: &'static Shared, want: NonZeroU32) -> Result<Taken, SessionError> {
    if let Ok(taken) = shared.generator.take(&shared.layout, &settings::rules(), &SystemClock, want) {
        shared.count(taken.positions.count());
        return Ok(taken);
    }
    let waited = where_registered(shared, || {
        session::wait_and_take(&issuer(shared), &shared.layout, None, |source, rules, clock| {
            session::take(source, rules, clock, want)
        })
    });
    Ok(waited?.taken)
}

fn take_named(
    shared: &'static Shared,
    known: &Known,
    only: Option<&Shard>,
    want: NonZeroU32,
) -> Result<(Taken, Layout), NoIdError> {
    loop {
        let named = known.named();
        let taken = take_of(shared, known, named, only, want)?;
        // Those by terms that were changed meanwhile are thrown away.
        if known.is_current() {
            return Ok((taken, named.layout));
        }
        look_up_again(known)?;
    }
}

fn take_of(
    shared: &'static Shared,
    known: &Known,
    named: &Named,
    only: Option<&Shard>,
    want: NonZeroU32,
) -> Result<Taken, SessionError> {
    let rules = named.rules(settings::rules());
    let at_once = known
        .seat()
        .map(|seat| take_as(only, &shared.seated(seat, &named.layout), &rules, &SystemClock, want));
    if let Some(Ok(taken)) = at_once {
        shared.count(taken.positions.count());
        return Ok(taken);
    }
    let waited = where_registered(shared, || {
        session::wait_and_take(
            &issuer(shared),
            &named.layout,
            named.sequence_start,
            |source, rules, clock| take_as(only, source, rules, clock, want),
        )
    })?;
    known.set_seat(waited.seat);
    Ok(waited.taken)
}
