//! One session's ids: those that it took and has not handed out, and the last one that it did.
//!
//! A process of the server serves one session at a time and has one thread, so a plain static holds them. Functions that take
//! an optional generator serve the server's own layout where there is none.

use crate::issuer::issuer;
use crate::named::{self, CachedGenerator};
use crate::pg::clock::SystemClock;
use crate::pg::process::PerProcess;
use crate::pg::{random, server};
use crate::registry::join;
use crate::safe_position;
use crate::settings;
use crate::shared::generator::{self, Shared};
use pgrx::check_for_interrupts;
use snowflake_ids_core::error::NotReadyError;
use snowflake_ids_core::generator::named::{Named, NamedError};
use snowflake_ids_core::generator::session::{self, Session, SessionError, Waited};
use snowflake_ids_core::sequence::bound_sequence::{BoundSequenceError, Increment};
use snowflake_ids_core::server::issuer::{self as core_issuer, LayoutGenerator, SlotRef};
use snowflake_ids_core::{
    Clock, Filler, GeneratorError, Issued, Layout, NodeBits, Position, PositionRange, Rules, Shard,
    ShardError, TakenPositions, Uuid, UuidError,
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
    let shared = announced()?;
    Some(SESSION.hand_out(&shared.layout, at_once(shared)?))
}

/// The next id of a named generator where nothing stands in its way; None where [`next`] has more to do. Calls nothing of
/// the server's, so no error comes out of it.
#[inline]
pub fn next_of_at_once(cached: &CachedGenerator) -> Option<i64> {
    let shared = announced().filter(|_| cached.is_current())?;
    let issued = match only_of(cached.named()).ok()? {
        Some(only) => at_once_of(shared, cached, Some(&only)),
        None => at_once_of(shared, cached, None),
    };
    let id = cached.session.hand_out(&cached.named().layout, issued?);
    // An id by terms that were changed meanwhile is thrown away.
    if !cached.is_still_current(shared) {
        return None;
    }
    SESSION.record_last(id);
    Some(id)
}

/// The next UUID of this session where nothing stands in its way; None where [`uuid`] has more to do. No error of the server's
/// comes out of it. UUIDs take from the same block and generator as ids do, and leave the last id as it was.
#[inline]
pub fn uuid_at_once() -> Option<Uuid> {
    let shared = announced()?;
    made(&shared.layout, at_once(shared)?).ok()
}

/// The next UUID of a named generator where nothing stands in its way; None where [`uuid`] has more to do. No error of the
/// server's comes out of it. The shard of its ids says nothing of UUIDs: they take positions as they come.
#[inline]
pub fn uuid_of_at_once(cached: &CachedGenerator) -> Option<Uuid> {
    let shared = announced().filter(|_| cached.is_current())?;
    made(&cached.named().layout, at_once_of(shared, cached, None)?).ok()
}

/// The next id.
pub fn next(function: &'static str, of: Option<&'static CachedGenerator>) -> Result<i64, SessionError> {
    let (issued, layout) = issue(function, of, |cached| only_of(cached.named()))?;
    Ok(hand_out(of, &layout, issued))
}

/// The next UUID.
pub fn uuid(function: &'static str, of: Option<&'static CachedGenerator>) -> Result<Uuid, SessionError> {
    let (issued, layout) = issue(function, of, |_| Ok(None))?;
    Ok(made(&layout, issued)?)
}

/// The next position, however long that takes, of the shard that `only` gives of a named generator; with the layout in which
/// it was taken.
fn issue(
    function: &'static str,
    of: Option<&'static CachedGenerator>,
    only: impl Fn(&CachedGenerator) -> Result<Option<Shard>, ShardError>,
) -> Result<(Issued, Layout), SessionError> {
    let shared = ready(function)?;
    loop {
        // A call that waits may find the generator changed.
        let layout = layout_of(shared, of);
        let only = of.map(&only).transpose()?.flatten();
        let found = match of {
            None => SESSION.pop(&**shared).or_else(|| refill(shared).ok()),
            Some(cached) => at_once_of(shared, cached, only.as_ref()),
        };
        let issued = if let Some(issued) = found {
            issued
        } else {
            let cache = of.map_or_else(settings::cache, |cached| cache_of(cached.named()));
            let Waited { taken, generation, .. } = wait_and_take(shared, of, only.as_ref(), cache)?;
            session_of(of).keep(taken, generation)
        };
        if is_current(of)? {
            return Ok((issued, layout));
        }
    }
}

fn layout_of(shared: &Shared, of: Option<&CachedGenerator>) -> Layout {
    of.map_or(shared.layout, |cached| cached.named().layout)
}

fn session_of(of: Option<&'static CachedGenerator>) -> &'static Session {
    of.map_or(&SESSION, |cached| &cached.session)
}

fn rules_of(of: Option<&CachedGenerator>) -> Rules {
    let rules = settings::rules();
    of.map_or(rules, |cached| cached.named().rules(rules))
}

/// The source of a layout's ids: a slot, or the server's own generator; None where that has to be found first.
fn slot_ref_of(of: Option<&CachedGenerator>) -> Option<SlotRef> {
    of.map_or(Some(SlotRef::Own), CachedGenerator::slot_ref)
}

/// Returns whether a generator is what it was as a call began; else takes over what it is by now.
fn is_current(of: Option<&CachedGenerator>) -> Result<bool, NamedError> {
    let Some(cached) = of.filter(|cached| !cached.is_current()) else { return Ok(true) };
    check_for_interrupts!();
    named::look_up(cached.name())?;
    Ok(false)
}

/// Hands an id out, which is the last one of the session from now on.
fn hand_out(of: Option<&'static CachedGenerator>, layout: &Layout, issued: Issued) -> i64 {
    let id = session_of(of).hand_out(layout, issued);
    SESSION.record_last(id);
    id
}

/// The next position of this session, where nothing stands in its way.
#[inline(always)]
#[allow(clippy::inline_always, reason = "the body of two functions")]
fn at_once(shared: &Shared) -> Option<Issued> {
    match SESSION.pop(&**shared) {
        None if join::has_looked() => refill(shared).ok(),
        issued => issued,
    }
}

/// The next position when the block gave none: it is due for a look at the clock, or has to be filled.
#[inline(always)]
#[allow(clippy::inline_always, reason = "a twentieth of the cost of an id, measured")]
fn refill(shared: &Shared) -> Result<Issued, GeneratorError> {
    let rules = settings::rules();
    let take =
        |source: &core_issuer::IssuerMemory| session::take(source, &rules, &SystemClock, settings::cache());
    SESSION.refill(&**shared, &SystemClock, &rules, take, |ids| shared.count(ids))
}

/// The next position of a named generator, out of the session's block or taken where the layout has its ids from; of a shard's
/// ids where there is one.
#[inline(always)]
#[allow(clippy::inline_always, reason = "most calls have no shard, which is known where they are made")]
fn at_once_of(shared: &Shared, cached: &CachedGenerator, only: Option<&Shard>) -> Option<Issued> {
    let (session, named) = (&cached.session, cached.named());
    let source = shared.assigned_at(cached.slot_ref()?, &named.layout);
    let popped = only.map_or_else(|| session.pop(&source), |only| session.pop_fitting(&source, only));
    if popped.is_some() {
        return popped;
    }
    let (rules, cache) = (named.rules(settings::rules()), cache_of(named));
    let count = |ids| shared.count(ids);
    if let Some(only) = only {
        return session.refill_fitting(&source, &SystemClock, &rules, cache, only, count).ok();
    }
    let take = |source: &LayoutGenerator<'_>| session::take(source, &rules, &SystemClock, cache);
    session.refill(&source, &SystemClock, &rules, take, count).ok()
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

#[inline]
fn cache_of(named: &Named) -> NonZeroU32 {
    named.cache.unwrap_or_else(settings::cache)
}

/// Takes positions; of a shard, the first is its.
fn take_as(
    only: Option<&Shard>,
    source: &LayoutGenerator<'_>,
    rules: &Rules,
    clock: &impl Clock,
    want: NonZeroU32,
) -> Result<TakenPositions, GeneratorError> {
    match only {
        Some(only) => session::take_fitting(source, rules, clock, want, only),
        None => session::take(source, rules, clock, want),
    }
}

/// Takes positions, however long that takes, where the server has its worker id from where it must. Counts the call if it fails.
#[cold]
fn wait_and_take(
    shared: &'static Shared,
    of: Option<&CachedGenerator>,
    only: Option<&Shard>,
    want: NonZeroU32,
) -> Result<Waited, SessionError> {
    let (layout, start) = (layout_of(shared, of), of.and_then(|cached| cached.named().sequence_start));
    let found = join::leave_alone(shared).map_err(SessionError::from).and_then(|()| {
        session::wait_and_take(&issuer(shared), &layout, start, |source, rules, clock| {
            take_as(only, source, rules, clock, want)
        })
    });
    let waited = found.inspect_err(|_| shared.count_failure())?;
    if let Some(cached) = of {
        cached.set_slot_ref(waited.slot_ref);
    }
    Ok(waited)
}

#[inline]
fn made(layout: &Layout, issued: Issued) -> Result<Uuid, UuidError> {
    let filler = FILLER.get_or_init(|| Filler::new(random::token().cast_unsigned()));
    layout.uuid(issued, filler.draw())
}

/// Number of times that a call throws positions away whose ids are not in a row: the rest of a tick is too short for
/// them, or was another session's.
const MAX_TRIES: u32 = 100;

/// The next number of a sequence that is bound to snowflake ids.
pub fn next_of_sequence(
    function: &'static str,
    of: Option<&'static CachedGenerator>,
    increment: Increment,
) -> Result<i64, SessionError> {
    if increment.is_one() {
        let at_once = of.map_or_else(next_at_once, next_of_at_once);
        return at_once.map_or_else(|| next(function, of), Ok);
    }
    let shared = ready(function)?;
    if let Some(only) = of.map(|cached| only_of(cached.named())).transpose()?.flatten() {
        return Err(SessionError::InRow(only));
    }
    increment.check_layout(&layout_of(shared, of))?;
    for _ in 0..MAX_TRIES {
        let (taken, layout) = take_several(shared, of, None, increment.ids())?;
        if let Some(number) = increment.number_of(&layout, &taken) {
            return Ok(number);
        }
    }
    Err(BoundSequenceError::Interrupted(increment).into())
}

/// The last id handed out to this session, by whichever function.
pub fn last() -> Option<i64> {
    SESSION.last()
}

/// Forgets it.
pub fn forget_last() {
    SESSION.forget_last();
}

/// The server's generator, if nothing stands in the way of an id; the transaction is announced to readers.
#[inline]
fn announced() -> Option<&'static Shared> {
    generator::shared()
        .filter(|_| server::out_of_recovery())
        .inspect(|shared| safe_position::announce(shared))
}

/// The server's generator, if this session may use it now; the transaction is announced to readers.
#[inline]
pub fn ready(function: &'static str) -> Result<&'static Shared, SessionError> {
    match generator::shared() {
        Some(shared) if !server::in_recovery() => {
            safe_position::announce(shared);
            join::leave_alone_first(shared)?;
            Ok(shared)
        }
        Some(_) => Err(NotReadyError::InRecovery(function).into()),
        None => Err(NotReadyError::NotPreloaded(function).into()),
    }
}

/// Several ids in growing order, taken a range at a time while they are asked for.
pub fn several(
    function: &'static str,
    of: Option<&'static CachedGenerator>,
    count: u32,
) -> Result<Several, SessionError> {
    let shared = ready(function)?;
    let only = of.map(|cached| only_of(cached.named())).transpose()?.flatten();
    let current = TakenPositions { positions: PositionRange::EMPTY, node_bits: NodeBits(0) };
    Ok(Several { shared, of, only, current, layout: shared.layout, wanted: count })
}

/// Ids of one call of `snowflake_nextvals`.
pub struct Several {
    shared: &'static Shared,
    /// The named generator whose they are, if they are one's.
    of: Option<&'static CachedGenerator>,
    /// The shard whose they are, if they are one's.
    only: Option<Shard>,
    current: TakenPositions,
    /// The layout in which that was taken, which may not be the generator's any more.
    layout: Layout,
    wanted: u32,
}

impl Several {
    /// The next id, None after the last one wanted.
    pub fn next(&mut self) -> Result<Option<i64>, SessionError> {
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
                let issued = Issued { position, node_bits: self.current.node_bits };
                return Ok(Some(hand_out(self.of, &self.layout, issued)));
            }
        }
    }

    /// The most ids to take at once.
    fn most(&self) -> u32 {
        let moduli = self.only.map_or(1, |only| u32::try_from(only.modulus()).unwrap_or(MAX_RANGE));
        (MAX_RANGE / moduli).max(1)
    }

    /// The next of the positions that were taken; of a shard none where no more of them fits. The number that fits is
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

    /// Returns what the session holds already.
    fn held(&self, want: u64) -> Option<(TakenPositions, Layout)> {
        let layout = layout_of(self.shared, self.of);
        let source = self.shared.assigned_at(slot_ref_of(self.of)?, &layout);
        let held = session_of(self.of).held(&source, &SystemClock, &rules_of(self.of), want)?;
        self.of.is_none_or(CachedGenerator::is_current).then_some((held, layout))
    }
}

/// Takes a position of the server's own layout that nothing is to have.
pub fn skip_one(shared: &'static Shared) -> Result<(), SessionError> {
    take_several(shared, None, None, NonZeroU32::MIN).map(|_| ())
}

/// Takes up to so many positions past the block. Gives their layout, too.
fn take_several(
    shared: &'static Shared,
    of: Option<&'static CachedGenerator>,
    only: Option<&Shard>,
    want: NonZeroU32,
) -> Result<(TakenPositions, Layout), SessionError> {
    loop {
        let layout = layout_of(shared, of);
        let take = |slot_ref| {
            take_as(only, &shared.assigned_at(slot_ref, &layout), &rules_of(of), &SystemClock, want).ok()
        };
        let taken = match slot_ref_of(of).and_then(take) {
            Some(taken) => {
                shared.count(taken.positions.count());
                taken
            }
            None => wait_and_take(shared, of, only, want)?.taken,
        };
        // Whatever the session still holds was refused, and is older than this.
        session_of(of).drop_held();
        // Positions by terms that were changed meanwhile are thrown away.
        if is_current(of)? {
            return Ok((taken, layout));
        }
    }
}
