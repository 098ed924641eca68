//! The session's snowflake ids: the ids that the session took but has not handed out, and the last id that it handed out.
//!
//! A server process serves one session at a time, in one thread, so statics hold the ids.

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
use snowflake_ids_core::server::issuer::PositionSource;
use snowflake_ids_core::session::{self, Session, SessionError, Waited};
use snowflake_ids_core::{
    Filler, Issued, Layout, NodeBits, Position, PositionRange, Rules, Shard, ShardError, TakenPositions,
    Uuid, UuidError,
};
use std::cell::{Cell, OnceCell};
use std::num::NonZeroU32;

/// The most ids that `snowflake_nextvals` takes in one step. The limit bounds the number of ids that a cancelled call wastes,
/// and keeps the ids of all sessions from running seconds ahead of the clock.
const MAX_RANGE: u32 = 8_192;

static LAST: PerProcess<Cell<Option<i64>>> = PerProcess::new(Cell::new(None));
static FILLER: PerProcess<OnceCell<Filler>> = PerProcess::new(OnceCell::new());

/// Returns the next id of the server's own generator on the fast path; None if [`next`] is needed. Calls no server function,
/// so it raises no error.
#[inline]
pub fn next_at_once() -> Option<i64> {
    let shared = announced()?;
    Some(hand_out(&shared.layout, own_at_once(shared)?))
}

/// Returns a generator's next id on the fast path; None if [`next`] is needed. Calls no server function, so it raises no
/// error.
#[inline]
pub fn next_of_at_once(of: &CachedGenerator) -> Option<i64> {
    let shared = announced().filter(|_| of.is_current())?;
    let issued = match only_of(of.named()).ok()? {
        Some(only) => at_once_of(shared, of, Some(&only), join::has_looked()),
        None => at_once_of(shared, of, None, join::has_looked()),
    }?;
    // If the generator's definition has changed meanwhile, the id is discarded.
    of.is_still_current(shared).then(|| hand_out(&of.named().layout, issued))
}

/// Returns the next UUID of the server's own generator on the fast path; None if [`uuid`] is needed. Raises no server error.
/// UUIDs and ids come from the same block and generator, but UUIDs do not change the session's last id.
#[inline]
pub fn uuid_at_once() -> Option<Uuid> {
    let shared = announced()?;
    made(&shared.layout, own_at_once(shared)?).ok()
}

/// Returns a generator's next UUID on the fast path; None if [`uuid`] is needed. Raises no server error. A generator's shard
/// restricts its ids only, not its UUIDs.
#[inline]
pub fn uuid_of_at_once(of: &CachedGenerator) -> Option<Uuid> {
    let shared = announced().filter(|_| of.is_current())?;
    made(&of.named().layout, at_once_of(shared, of, None, join::has_looked())?).ok()
}

pub fn next(function: &'static str, of: &CachedGenerator) -> Result<i64, SessionError> {
    let (issued, layout) = issue(function, of, only_of)?;
    Ok(hand_out(&layout, issued))
}

pub fn uuid(function: &'static str, of: &CachedGenerator) -> Result<Uuid, SessionError> {
    let (issued, layout) = issue(function, of, |_| Ok(None))?;
    Ok(made(&layout, issued)?)
}

/// Returns the next position and the layout under which it was taken; waits as long as necessary. `only` returns the shard
/// that restricts the generator's ids.
fn issue(
    function: &'static str,
    of: &CachedGenerator,
    only: impl Fn(&Named) -> Result<Option<Shard>, ShardError>,
) -> Result<(Issued, Layout), SessionError> {
    let shared = ready(function)?;
    loop {
        // The generator's definition may have changed while the previous pass waited.
        let named = of.named();
        let only = only(named)?;
        let issued = if let Some(issued) = at_once_of(shared, of, only.as_ref(), true) {
            issued
        } else {
            let Waited { taken, generation, .. } = wait_and_take(shared, of, cache_of(named), only.as_ref())?;
            of.session.keep(taken, generation)
        };
        if is_current(of)? {
            return Ok((issued, named.layout));
        }
    }
}

/// Returns whether the generator's definition is unchanged since the call began. Reads a changed definition again.
fn is_current(of: &CachedGenerator) -> Result<bool, NamedError> {
    if of.is_current() {
        return Ok(true);
    }
    check_for_interrupts!();
    named::look_up(of.name())?;
    Ok(false)
}

/// Hands an id out, and stores it as the session's last id.
#[inline]
fn hand_out(layout: &Layout, issued: Issued) -> i64 {
    let id = layout.id_of(issued);
    LAST.set(Some(id));
    id
}

/// Returns the next position of the server's own generator on the fast path. Does the same as [`at_once_of`] without reading
/// a definition, because most calls use this generator.
#[inline]
fn own_at_once(shared: &Shared) -> Option<Issued> {
    let session = &named::own_at_once()?.session;
    at_once(shared, session, &**shared, None, join::has_looked(), || (settings::rules(), settings::cache()))
}

/// Returns a generator's next position on the fast path, from its layout's source.
#[inline(always)]
#[allow(clippy::inline_always, reason = "most calls have no shard, which is known where they are made")]
fn at_once_of(shared: &Shared, of: &CachedGenerator, only: Option<&Shard>, refills: bool) -> Option<Issued> {
    let named = of.named();
    let source = shared.assigned_at(of.slot_ref.get()?, &named.layout);
    at_once(shared, &of.session, &source, only, refills, || (rules_of(named), cache_of(named)))
}

/// Returns the next position without waiting, from the session's block or, if `refills` is true, from the source. If `only`
/// names a shard, the position's id belongs to that shard.
#[inline(always)]
#[allow(clippy::inline_always, reason = "a twentieth of the cost of an id, measured")]
fn at_once(
    shared: &Shared,
    session: &Session,
    source: &impl PositionSource,
    only: Option<&Shard>,
    refills: bool,
    how: impl FnOnce() -> (Rules, NonZeroU32),
) -> Option<Issued> {
    let popped = session.pop(source, only);
    if popped.is_some() || !refills {
        return popped;
    }
    let (rules, cache) = how();
    session.refill(source, &SystemClock, &rules, cache, only, |ids| shared.count(ids)).ok()
}

/// Returns the shard that restricts a generator's ids, if there is one.
#[inline]
fn only_of(named: &Named) -> Result<Option<Shard>, ShardError> {
    if let Some(own) = named.shard {
        return Ok(Some(own).filter(|own| !own.is_whole()));
    }
    let Some(set) = settings::shard().filter(|set| !set.is_whole()) else { return Ok(None) };
    // The setting applies to all named generators, so this layout may have too few sequence bits for the shard.
    set.check_layout(&named.layout)?;
    Ok(Some(set))
}

#[inline]
fn rules_of(named: &Named) -> Rules {
    named.rules(settings::rules())
}

#[inline]
fn cache_of(named: &Named) -> NonZeroU32 {
    named.cache.unwrap_or_else(settings::cache)
}

/// Takes positions. Waits as long as necessary, also for a worker id. An error counts as a failed call.
#[cold]
fn wait_and_take(
    shared: &'static Shared,
    of: &CachedGenerator,
    want: NonZeroU32,
    only: Option<&Shard>,
) -> Result<Waited, SessionError> {
    let Named { layout, sequence_start, .. } = of.named();
    let found = join::leave_alone(shared)
        .map_err(SessionError::from)
        .and_then(|()| session::wait_and_take(&issuer(shared), layout, *sequence_start, want, only));
    let waited = found.inspect_err(|_| shared.count_failure())?;
    of.slot_ref.set(Some(waited.slot_ref));
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
    of: &CachedGenerator,
    increment: Increment,
) -> Result<i64, SessionError> {
    if increment.is_one() {
        let at_once = if of.is_own() { next_at_once() } else { next_of_at_once(of) };
        return at_once.map_or_else(|| next(function, of), Ok);
    }
    let shared = ready(function)?;
    if let Some(only) = only_of(of.named())? {
        return Err(SessionError::InRow(only));
    }
    increment.check_layout(&of.named().layout)?;
    for _ in 0..MAX_TRIES {
        let (taken, layout) = take_several(shared, of, increment.ids(), None)?;
        if let Some(number) = increment.number_of(&layout, &taken) {
            return Ok(number);
        }
    }
    Err(BoundSequenceError::Interrupted(increment).into())
}

/// Returns the last id that any function handed out to this session.
pub fn last() -> Option<i64> {
    LAST.get()
}

pub fn forget_last() {
    LAST.set(None);
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
    of: &'static CachedGenerator,
    count: u32,
) -> Result<Several, SessionError> {
    let shared = ready(function)?;
    let only = only_of(of.named())?;
    let current = TakenPositions { positions: PositionRange::EMPTY, node_bits: NodeBits(0) };
    Ok(Several { shared, of, only, current, layout: shared.layout, wanted: count })
}

pub struct Several {
    shared: &'static Shared,
    of: &'static CachedGenerator,
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
                return Ok(Some(hand_out(&self.layout, issued)));
            }
            let Some(want) = NonZeroU32::new(self.wanted.min(self.most())) else { return Ok(None) };
            (self.current, self.layout) = match self.held(want.get().into()) {
                Some(held) => held,
                None => take_several(self.shared, self.of, want, self.only.as_ref())?,
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
        let named = self.of.named();
        let source = self.shared.assigned_at(self.of.slot_ref.get()?, &named.layout);
        let held = self.of.session.held(&source, &SystemClock, &rules_of(named), want)?;
        self.of.is_current().then_some((held, named.layout))
    }
}

/// Takes a position of the server's own layout, and leaves the position unused.
pub fn skip_one(shared: &'static Shared) -> Result<(), SessionError> {
    take_several(shared, named::own(), NonZeroU32::MIN, None).map(drop)
}

/// Takes a position of the server's own layout, and leaves the position unused. Does nothing if a position would need a
/// wait.
pub fn skip_at_once(shared: &Shared) {
    let _ = session::take(&**shared, &settings::rules(), &SystemClock, NonZeroU32::MIN, None);
}

/// Takes up to `want` positions from the generator, not from the session's block. Returns the positions with their layout.
fn take_several(
    shared: &'static Shared,
    of: &CachedGenerator,
    want: NonZeroU32,
    only: Option<&Shard>,
) -> Result<(TakenPositions, Layout), SessionError> {
    loop {
        let named = of.named();
        let take = |slot_ref| {
            let source = shared.assigned_at(slot_ref, &named.layout);
            session::take(&source, &rules_of(named), &SystemClock, want, only).ok()
        };
        let taken = match of.slot_ref.get().and_then(take) {
            Some(taken) => {
                shared.count(taken.positions.count());
                taken
            }
            None => wait_and_take(shared, of, want, only)?.taken,
        };
        // The positions that the session still holds are lower than the new positions, so the held positions are discarded.
        of.session.drop_held();
        // If the generator's definition has changed meanwhile, the positions are discarded.
        if is_current(of)? {
            return Ok((taken, named.layout));
        }
    }
}
