//! The session's snowflake ids: the ids that the session took but has not handed out, and the last id that it handed out.
//!
//! A server process serves one session at a time, in one thread, so a static holds the ids. If a function's optional
//! generator is None, the function uses the server's own layout.

use crate::issuer::issuer;
use crate::named::{self, CachedGenerator};
use crate::open_transaction;
use crate::pg::clock::SystemClock;
use crate::pg::per_process::PerProcess;
use crate::pg::{random, server};
use crate::registry::join;
use crate::settings;
use crate::shared::generator::{self, SHARED, Shared};
use pgrx::check_for_interrupts;
use snowflake_ids_core::bound::{BoundSequenceError, Increment};
use snowflake_ids_core::generator::named::{Named, NamedError};
use snowflake_ids_core::server::issuer::{self as core_issuer, LayoutGenerator, SlotRef};
use snowflake_ids_core::session::{self, Session, SessionError, Waited};
use snowflake_ids_core::{
    Clock, Filler, GeneratorError, Issued, Layout, NodeBits, Position, PositionRange, Rules, Shard,
    ShardError, TakenPositions, Uuid, UuidError,
};
use std::cell::OnceCell;
use std::num::NonZeroU32;

/// The most ids that `snowflake_nextvals` takes in one step. The limit bounds the number of ids that a cancelled call wastes,
/// and keeps the ids of all sessions from running seconds ahead of the clock.
const MAX_RANGE: u32 = 8_192;

static SESSION: Session = Session::new();
static FILLER: PerProcess<OnceCell<Filler>> = PerProcess::new(OnceCell::new());

/// Returns the session's next id on the fast path; None if [`next`] is needed. Calls no server function, so it raises no
/// error.
#[inline]
pub fn next_at_once() -> Option<i64> {
    let shared = announced()?;
    Some(SESSION.hand_out(&shared.layout, at_once(shared)?))
}

/// Returns a named generator's next id on the fast path; None if [`next`] is needed. Calls no server function, so it raises
/// no error.
#[inline]
pub fn next_of_at_once(cached: &CachedGenerator) -> Option<i64> {
    let shared = announced().filter(|_| cached.is_current())?;
    let issued = match only_of(cached.named()).ok()? {
        Some(only) => at_once_of(shared, cached, Some(&only)),
        None => at_once_of(shared, cached, None),
    };
    let id = cached.session.hand_out(&cached.named().layout, issued?);
    // If the generator's definition has changed meanwhile, the id is discarded.
    if !cached.is_still_current(shared) {
        return None;
    }
    SESSION.record_last(id);
    Some(id)
}

/// Returns the session's next UUID on the fast path; None if [`uuid`] is needed. Raises no server error. UUIDs and ids come
/// from the same block and generator, but UUIDs do not change the session's last id.
#[inline]
pub fn uuid_at_once() -> Option<Uuid> {
    let shared = announced()?;
    made(&shared.layout, at_once(shared)?).ok()
}

/// Returns a named generator's next UUID on the fast path; None if [`uuid`] is needed. Raises no server error. A generator's
/// shard restricts its ids only, not its UUIDs.
#[inline]
pub fn uuid_of_at_once(cached: &CachedGenerator) -> Option<Uuid> {
    let shared = announced().filter(|_| cached.is_current())?;
    made(&cached.named().layout, at_once_of(shared, cached, None)?).ok()
}

pub fn next(function: &'static str, of: Option<&'static CachedGenerator>) -> Result<i64, SessionError> {
    let (issued, layout) = issue(function, of, |cached| only_of(cached.named()))?;
    Ok(hand_out(of, &layout, issued))
}

pub fn uuid(function: &'static str, of: Option<&'static CachedGenerator>) -> Result<Uuid, SessionError> {
    let (issued, layout) = issue(function, of, |_| Ok(None))?;
    Ok(made(&layout, issued)?)
}

/// Returns the next position and the layout under which it was taken; waits as long as necessary. `only` returns the shard
/// that restricts the ids of a named generator.
fn issue(
    function: &'static str,
    of: Option<&'static CachedGenerator>,
    only: impl Fn(&CachedGenerator) -> Result<Option<Shard>, ShardError>,
) -> Result<(Issued, Layout), SessionError> {
    let shared = ready(function)?;
    loop {
        // The generator's definition may have changed while the previous pass waited.
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

/// Returns the source of a layout's ids: a slot, or the server's own generator; None if the source is not known yet.
fn slot_ref_of(of: Option<&CachedGenerator>) -> Option<SlotRef> {
    of.map_or(Some(SlotRef::Own), |cached| cached.slot_ref.get())
}

/// Returns whether the generator's definition is unchanged since the call began. Reads a changed definition again.
fn is_current(of: Option<&CachedGenerator>) -> Result<bool, NamedError> {
    let Some(cached) = of.filter(|cached| !cached.is_current()) else { return Ok(true) };
    check_for_interrupts!();
    named::look_up(cached.name())?;
    Ok(false)
}

/// Hands an id out, and stores it as the session's last id.
fn hand_out(of: Option<&'static CachedGenerator>, layout: &Layout, issued: Issued) -> i64 {
    let id = session_of(of).hand_out(layout, issued);
    SESSION.record_last(id);
    id
}

/// Returns the session's next position on the fast path.
#[inline(always)]
#[allow(clippy::inline_always, reason = "the body of two functions")]
fn at_once(shared: &Shared) -> Option<Issued> {
    match SESSION.pop(&**shared) {
        None if join::has_looked() => refill(shared).ok(),
        issued => issued,
    }
}

/// Returns the next position when [`Session::pop`] has returned None: the session's block is empty, or the clock must be
/// checked.
#[inline(always)]
#[allow(clippy::inline_always, reason = "a twentieth of the cost of an id, measured")]
fn refill(shared: &Shared) -> Result<Issued, GeneratorError> {
    let rules = settings::rules();
    let take =
        |source: &core_issuer::IssuerMemory| session::take(source, &rules, &SystemClock, settings::cache());
    SESSION.refill(&**shared, &SystemClock, &rules, take, |ids| shared.count(ids))
}

/// Returns a named generator's next position on the fast path, from the session's block or from the layout's source. If
/// `only` names a shard, the position's id belongs to that shard.
#[inline(always)]
#[allow(clippy::inline_always, reason = "most calls have no shard, which is known where they are made")]
fn at_once_of(shared: &Shared, cached: &CachedGenerator, only: Option<&Shard>) -> Option<Issued> {
    let (session, named) = (&cached.session, cached.named());
    let source = shared.assigned_at(cached.slot_ref.get()?, &named.layout);
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

/// Returns the shard that restricts a generator's ids, if there is one.
#[inline]
fn only_of(named: &Named) -> Result<Option<Shard>, ShardError> {
    if let Some(own) = named.shard {
        return Ok(Some(own).filter(|own| !own.is_whole()));
    }
    let Some(set) = settings::shard().filter(|set| !set.is_whole()) else { return Ok(None) };
    // The setting applies to all generators, so this layout may have too few sequence bits for the shard.
    set.check_layout(&named.layout)?;
    Ok(Some(set))
}

#[inline]
fn cache_of(named: &Named) -> NonZeroU32 {
    named.cache.unwrap_or_else(settings::cache)
}

/// Takes positions. If a shard is given, the id of the first position belongs to that shard.
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

/// Takes positions. Waits as long as necessary, also for a worker id. An error counts as a failed call.
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
        cached.slot_ref.set(Some(waited.slot_ref));
    }
    Ok(waited)
}

#[inline]
fn made(layout: &Layout, issued: Issued) -> Result<Uuid, UuidError> {
    let filler = FILLER.get_or_init(|| Filler::new(random::token().cast_unsigned()));
    layout.uuid(issued, filler.draw())
}

/// The most attempts that one call makes to get consecutive ids. An attempt discards its positions if the rest of the tick
/// is too short, or if other sessions took ids in between.
const MAX_TRIES: u32 = 100;

/// Returns the next number of a sequence that is bound to snowflake ids.
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

/// Returns the last id that any function handed out to this session.
pub fn last() -> Option<i64> {
    SESSION.last()
}

pub fn forget_last() {
    SESSION.forget_last();
}

/// Returns the server's generator on the fast path, and announces the transaction to readers of a safe position. Returns None
/// if the server is not known to be a primary.
#[inline]
fn announced() -> Option<&'static Shared> {
    // Only a primary announces transactions.
    let is_primary = || open_transaction::is_announced() || server::out_of_recovery();
    SHARED.get().filter(|_| is_primary()).inspect(|shared| open_transaction::announce(shared))
}

/// Returns the server's generator if this session may use it now. Announces the transaction to readers of a safe position.
#[inline]
fn ready(function: &'static str) -> Result<&'static Shared, SessionError> {
    let shared = generator::on_primary(function)?;
    open_transaction::announce(shared);
    join::leave_alone_first(shared)?;
    Ok(shared)
}

/// Returns an iterator over several ids in ascending order. The iterator takes one range after another, as needed.
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

pub struct Several {
    shared: &'static Shared,
    /// The named generator; None for the server's own generator.
    of: Option<&'static CachedGenerator>,
    /// The shard that restricts the ids, if there is one.
    only: Option<Shard>,
    current: TakenPositions,
    /// The layout under which `current` was taken. The generator's layout may have changed since.
    layout: Layout,
    wanted: u32,
}

impl Several {
    /// Returns the next id; None after the last one.
    pub fn next(&mut self) -> Result<Option<i64>, SessionError> {
        loop {
            if self.wanted > 0
                && let Some(position) = self.take_first()
            {
                self.wanted -= 1;
                let issued = Issued { position, node_bits: self.current.node_bits };
                return Ok(Some(hand_out(self.of, &self.layout, issued)));
            }
            let Some(want) = NonZeroU32::new(self.wanted.min(self.most())) else { return Ok(None) };
            (self.current, self.layout) = match self.held(want.get().into()) {
                Some(held) => held,
                None => take_several(self.shared, self.of, self.only.as_ref(), want)?,
            };
        }
    }

    fn most(&self) -> u32 {
        let moduli = self.only.map_or(1, |only| u32::try_from(only.modulus()).unwrap_or(MAX_RANGE));
        (MAX_RANGE / moduli).max(1)
    }

    /// Takes the next position of the current range. With a shard, takes the next position whose id belongs to the shard.
    fn take_first(&mut self) -> Option<Position> {
        let TakenPositions { positions, node_bits } = &mut self.current;
        match &self.only {
            Some(only) => positions.take_first_fitting(&self.layout, *node_bits, only),
            None => (positions.count() > 0).then(|| positions.take_first()),
        }
    }

    /// Takes positions that the session already holds.
    fn held(&self, want: u64) -> Option<(TakenPositions, Layout)> {
        let layout = layout_of(self.shared, self.of);
        let source = self.shared.assigned_at(slot_ref_of(self.of)?, &layout);
        let held = session_of(self.of).held(&source, &SystemClock, &rules_of(self.of), want)?;
        self.of.is_none_or(CachedGenerator::is_current).then_some((held, layout))
    }
}

/// Takes a position of the server's own layout, and leaves the position unused.
pub fn skip_one(shared: &'static Shared) -> Result<(), SessionError> {
    take_several(shared, None, None, NonZeroU32::MIN).map(|_| ())
}

/// Takes a position of the server's own layout, and leaves the position unused. Does nothing if a position would need a
/// wait.
pub fn skip_at_once(shared: &Shared) {
    let _ = session::take(&**shared, &settings::rules(), &SystemClock, NonZeroU32::MIN);
}

/// Takes up to `want` positions from the generator, not from the session's block. Returns the positions with their layout.
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
        // The positions that the session still holds are lower than the new positions, so the held positions are discarded.
        session_of(of).drop_held();
        // If the generator's definition has changed meanwhile, the positions are discarded.
        if is_current(of)? {
            return Ok((taken, layout));
        }
    }
}
