//! A session's calls for snowflake ids. They come from the block that it holds, or from the generator. Where that gives
//! nothing, the session has the mark raised, a worker id leased or another node issue, or waits for the clock.

use crate::block::Block;
use crate::clock::{Clock, UnixMicros, human};
use crate::drift::{Cause, Drift, GeneratorError};
use crate::error::{Explain, Kind, NotReadyError};
use crate::guard::{Guard, holds};
use crate::issuer::{Host, Issuer, IssuerError, Seat, Seated, Shared, Source};
use crate::layout::Layout;
use crate::position::{Issued, NodeBits, Position};
use crate::rules::{ClockRollback, Rules, SequenceStart};
use crate::shard::Shard;
use crate::snowflake::{Generator, Taken};
use crate::state::Identity;
use crate::uuid::UuidError;
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
    /// Why there was no lease when one was looked after last; None where there was one, or that is not known.
    fn trouble(&self) -> Option<LeaseError>;
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
    /// No UUID can be made of a position.
    #[error(transparent)]
    Uuid(#[from] UuidError),
}

impl SessionError {
    fn cause(&self) -> &dyn Explain {
        match self {
            Self::NotReady(error) => error,
            Self::Refused(error, _) => error,
            Self::Issuer(error) => error,
            Self::LeaseError(error) => error,
            Self::Uuid(error) => error,
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
        self.pop_of(shared)
    }

    /// The same of any layout. What is in the block is of that layout.
    #[inline]
    pub fn pop_of(&self, source: &impl Source) -> Option<i64> {
        Some(self.id_of(source.layout(), self.pop_issued(source)?))
    }

    /// The same before an id is made of it.
    #[inline]
    pub fn pop_issued(&self, source: &impl Source) -> Option<Issued> {
        let position = self.block.pop(source.generator().era())?;
        Some(Issued { position, node_bits: self.block.node_bits() })
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
        self.refill_of(shared, clock, rules, |source| take(source, rules, clock, want), count)
    }

    /// The same of any layout, and however it is taken: by [`take`], unless only some positions will do.
    ///
    /// # Errors
    /// [`GeneratorError`], and nothing is taken.
    #[inline(always)]
    #[allow(clippy::inline_always, reason = "a twentieth of the cost of an id, measured")]
    pub fn refill_of<S: Source>(
        &self,
        source: &S,
        clock: &impl Clock,
        rules: &Rules,
        take: impl FnOnce(&S) -> Result<Taken, GeneratorError>,
        count: impl FnOnce(u64),
    ) -> Result<i64, GeneratorError> {
        self.refill_issued(source, clock, rules, take, count)
            .map(|issued| self.id_of(source.layout(), issued))
    }

    /// The same before an id is made of it.
    ///
    /// # Errors
    /// [`GeneratorError`], and nothing is taken.
    #[inline(always)]
    #[allow(clippy::inline_always, reason = "as above")]
    pub fn refill_issued<S: Source>(
        &self,
        source: &S,
        clock: &impl Clock,
        rules: &Rules,
        take: impl FnOnce(&S) -> Result<Taken, GeneratorError>,
        count: impl FnOnce(u64),
    ) -> Result<Issued, GeneratorError> {
        // Before the clock is read: a step back seen by any session after this, this call included, makes the block
        // stale. That may waste a block, and never hands out one that should have been thrown away.
        let era = source.generator().era();
        if self.renew(source, clock, rules, era)
            && let Some(position) = self.block.pop(era)
        {
            return Ok(Issued { position, node_bits: self.bits(source) });
        }
        let taken = take(source)?;
        count(taken.positions.count());
        Ok(self.keep(taken, era))
    }

    /// The node's bits of what is in the block: those that it was taken with.
    #[inline]
    fn bits(&self, source: &impl Source) -> NodeBits {
        if holds(Guard::BlockKeepsBits) {
            self.block.node_bits()
        } else {
            source.generator().snapshot().node_bits
        }
    }

    /// Looks at the clock for the sake of the block; whether it goes on.
    #[inline]
    fn renew(&self, source: &impl Source, clock: &impl Clock, rules: &Rules, era: u64) -> bool {
        self.block.renew(era, |position| source.generator().allows(source.layout(), rules, clock, position))
    }

    /// The next id, however long that takes: for a call that [`Session::refill`] refused.
    #[cold]
    pub fn wait_and_refill<H: Caller>(
        &self,
        issuer: &Issuer<'_, H>,
        want: NonZeroU32,
    ) -> Result<i64, SessionError> {
        let (taken, era) = wait_and_take(issuer, want)?;
        Ok(self.id_of(&issuer.shared.layout, self.keep(taken, era)))
    }

    /// The same of any layout: for a call that [`Session::refill_of`] refused, or that has no seat yet. Gives the seat, too.
    #[cold]
    pub fn wait_and_refill_of<H: Caller>(
        &self,
        issuer: &Issuer<'_, H>,
        layout: &Layout,
        start: Option<SequenceStart>,
        take: impl Fn(&Seated<'_>, &Rules, &Believed<'_, H>) -> Result<Taken, GeneratorError>,
    ) -> Result<(i64, Seat), SessionError> {
        let (first, seat) = self.wait_and_refill_issued(issuer, layout, start, take)?;
        Ok((self.id_of(layout, first), seat))
    }

    /// The same before an id is made of it.
    #[cold]
    pub fn wait_and_refill_issued<H: Caller>(
        &self,
        issuer: &Issuer<'_, H>,
        layout: &Layout,
        start: Option<SequenceStart>,
        take: impl Fn(&Seated<'_>, &Rules, &Believed<'_, H>) -> Result<Taken, GeneratorError>,
    ) -> Result<(Issued, Seat), SessionError> {
        let Waited { taken, era, seat } = wait_and_take_of(issuer, layout, start, take)?;
        Ok((self.keep(taken, era), seat))
    }

    /// As [`Session::pop_of`], of ids of one shard. What the session holds may be of another one, or of all: each id is looked
    /// at as it is handed out.
    #[inline]
    pub fn pop_fitting(&self, source: &impl Source, only: &Shard) -> Option<i64> {
        let (layout, node_bits) = (source.layout(), self.block.node_bits());
        let fits = |position| only.fits_at(layout, node_bits, position);
        let position = self.block.pop_fitting(source.generator().era(), fits)?;
        Some(self.hand_out_of(layout, position, node_bits))
    }

    /// As [`Session::refill_of`], of ids of one shard.
    ///
    /// # Errors
    /// [`GeneratorError`], and nothing is taken.
    pub fn refill_fitting(
        &self,
        source: &impl Source,
        clock: &impl Clock,
        rules: &Rules,
        want: NonZeroU32,
        only: &Shard,
        count: impl FnOnce(u64),
    ) -> Result<i64, GeneratorError> {
        let era = source.generator().era();
        // A look at the clock for each span; what is left is given up where a span is too far ahead.
        while self.renew(source, clock, rules, era) {
            if let Some(id) = self.pop_fitting(source, only) {
                return Ok(id);
            }
        }
        let taken = take_fitting(source, rules, clock, want, only)?;
        count(taken.positions.count());
        Ok(self.id_of(source.layout(), self.keep(taken, era)))
    }

    /// Up to so many positions that the session holds already. They come first: the ids of a session must keep growing.
    pub fn held(&self, shared: &Shared, clock: &impl Clock, rules: &Rules, want: u64) -> Option<Taken> {
        self.held_of(shared, clock, rules, want)
    }

    /// The same of any layout. What is in the block is of that layout.
    pub fn held_of(
        &self,
        source: &impl Source,
        clock: &impl Clock,
        rules: &Rules,
        want: u64,
    ) -> Option<Taken> {
        let era = source.generator().era();
        let held = self
            .block
            .pop_many(want, era)
            .or_else(|| self.renew(source, clock, rules, era).then(|| self.block.pop_many(want, era))?);
        Some(Taken { positions: held?, node_bits: self.bits(source) })
    }

    /// Drops what is held: it was refused, and is older than what was taken since.
    pub fn drop_held(&self) {
        self.block.clear();
    }

    /// Keeps all of what was taken but its first position, which is handed out.
    #[inline]
    fn keep(&self, mut taken: Taken, era: u64) -> Issued {
        let position = taken.positions.take_first();
        self.block.fill(taken, era);
        Issued { position, node_bits: taken.node_bits }
    }

    #[inline]
    fn id_of(&self, layout: &Layout, issued: Issued) -> i64 {
        self.hand_out_of(layout, issued.position, issued.node_bits)
    }

    /// Makes an id of a position, and hands it out.
    #[inline]
    pub fn hand_out(&self, shared: &Shared, position: Position, node_bits: NodeBits) -> i64 {
        self.hand_out_of(&shared.layout, position, node_bits)
    }

    /// The same of any layout.
    #[inline]
    pub fn hand_out_of(&self, layout: &Layout, position: Position, node_bits: NodeBits) -> i64 {
        let id = layout.id(position, node_bits).cast_signed();
        self.last.store(id, Relaxed);
        id
    }
}

/// Takes positions of a layout. One whose place has become another's in between gives nothing.
///
/// # Errors
/// [`GeneratorError`]; [`GeneratorError::Unreserved`] where the layout has to be given a place again.
#[inline(always)]
#[allow(clippy::inline_always, reason = "of the server's own layout it is but the generator's own take")]
pub fn take(
    source: &impl Source,
    rules: &Rules,
    clock: &impl Clock,
    want: NonZeroU32,
) -> Result<Taken, GeneratorError> {
    take_by(source, |generator| generator.take(source.layout(), rules, clock, want))
}

/// The same of ids of one shard: the first is its.
///
/// # Errors
/// As for [`take`].
pub fn take_fitting(
    source: &impl Source,
    rules: &Rules,
    clock: &impl Clock,
    want: NonZeroU32,
    only: &Shard,
) -> Result<Taken, GeneratorError> {
    take_by(source, |generator| generator.take_fitting(source.layout(), rules, clock, want, only))
}

/// The same, however it is taken from the generator.
///
/// # Errors
/// Those of `take`, and as for [`take`].
#[inline(always)]
#[allow(clippy::inline_always, reason = "as above")]
pub fn take_by<S: Source>(
    source: &S,
    take: impl FnOnce(&Generator) -> Result<Taken, GeneratorError>,
) -> Result<Taken, GeneratorError> {
    if !source.is_held() {
        return Err(GeneratorError::Unreserved);
    }
    let taken = take(source.generator())?;
    // The generator may have become another layout's before it was taken from.
    if source.is_held() || !holds(Guard::PlaceHeld) { Ok(taken) } else { Err(GeneratorError::Unreserved) }
}

/// The clock that ids follow.
#[derive(Debug)]
pub struct Believed<'a, H>(&'a Issuer<'a, H>);

impl<H: Host> Clock for Believed<'_, H> {
    fn now(&self) -> UnixMicros {
        self.0.believed_now()
    }
}

/// What a call got that may have waited.
#[derive(Clone, Copy, Debug)]
pub struct Waited {
    /// The positions.
    pub taken: Taken,
    /// The era that was before they were taken.
    pub era: u64,
    /// Where they are from.
    pub seat: Seat,
}

/// Takes ids by the clock that can be believed, until there are some: has the mark raised, a worker id leased, or waits
/// for the clock. Gives the era, too, that was before they were taken.
#[cold]
pub fn wait_and_take<H: Caller>(
    issuer: &Issuer<'_, H>,
    want: NonZeroU32,
) -> Result<(Taken, u64), SessionError> {
    let layout = &issuer.shared.layout;
    let Waited { taken, era, .. } =
        wait_and_take_of(issuer, layout, None, |source, rules, clock| take(source, rules, clock, want))?;
    Ok((taken, era))
}

/// The same of any layout, which gets a place where it has none. `start` goes before the setting of where sequences start.
/// It is taken by [`take`], unless only some positions will do.
///
/// # Errors
/// [`SessionError`].
#[cold]
pub fn wait_and_take_of<'a, H: Caller>(
    issuer: &'a Issuer<'a, H>,
    layout: &Layout,
    start: Option<SequenceStart>,
    take: impl Fn(&Seated<'_>, &Rules, &Believed<'a, H>) -> Result<Taken, GeneratorError>,
) -> Result<Waited, SessionError> {
    let (shared, host) = (issuer.shared, &issuer.host);
    let (mut provided, mut switched) = (0, 0);
    let mut seat = find_seat(issuer, layout)?;
    loop {
        let source = shared.seated(seat, layout);
        let era = source.generator().era();
        let rules = host.settings().rules;
        let rules = Rules { start: start.unwrap_or(rules.start), ..rules };
        let refusal = match take(&source, &rules, &Believed(issuer)) {
            Ok(taken) => {
                host.count(taken.positions.count());
                return Ok(Waited { taken, era, seat });
            }
            Err(refusal) => refusal,
        };
        match refusal {
            // What was provided may have been taken by others; but not again and again.
            GeneratorError::Unreserved if provided < MAX_PROVIDED => {
                seat = provide(issuer, layout)?;
                provided += 1;
            }
            GeneratorError::Drift(drift) if switched < MAX_SWITCHES && may_switch(host, &drift) => {
                switch(issuer, seat, era)?;
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

/// Finds a place for a layout, with a worker id that fits it.
fn find_seat<H: Caller>(issuer: &Issuer<'_, H>, layout: &Layout) -> Result<Seat, SessionError> {
    with_lease(issuer, || issuer.seat(layout))
}

/// Has the mark raised, and a worker id leased where there is none.
fn provide<H: Caller>(issuer: &Issuer<'_, H>, layout: &Layout) -> Result<Seat, SessionError> {
    let seat = with_lease(issuer, || issuer.provide_in(layout))?;
    // From now on it is the launcher that raises the mark.
    issuer.host.call_launcher();
    Ok(seat)
}

/// How often one call has a worker id leased for a place. The first lease may have been under way before this layout was known to
/// need one that fits, and the next may be another session's.
const MAX_LEASES: u32 = 3;

/// Does something again where there was no worker id, or none that fits, and one was leased.
fn with_lease<H: Caller>(
    issuer: &Issuer<'_, H>,
    work: impl Fn() -> Result<Seat, IssuerError>,
) -> Result<Seat, SessionError> {
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
                shared.note_vain(host.reading().since_boot);
            }
            return Err(error.into());
        }
        done = work();
    }
    if done.as_ref().is_err_and(is_unfit) {
        shared.note_vain(host.reading().since_boot);
    }
    Ok(done?)
}

/// Whether the worker id does not fit the layout, and another may.
fn is_unfit(error: &IssuerError) -> bool {
    matches!(error, IssuerError::NoRoom(no_room) if no_room.may_lease())
}

fn may_switch(host: &impl Caller, drift: &Drift) -> bool {
    drift.cause == Cause::StepBack && host.rollback() == ClockRollback::Switch
}

/// Has another node issue whose mark the clock has passed, if there is one.
fn switch<H: Caller>(issuer: &Issuer<'_, H>, seat: Seat, era: u64) -> Result<(), SessionError> {
    let leased = matches!(issuer.shared.identity, Identity::Leased { .. });
    if !issuer.switch_rollback_at(seat, era)? && leased {
        // Where none is to be had, the clock is waited for.
        drop(issuer.host.lease(true));
    }
    Ok(())
}
