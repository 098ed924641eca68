//! The generator: a hybrid logical clock that hands out positions (tick and sequence), one atomic step a
//! range, from one cache line that any number of processes share.
//!
//! A position is `tick << sequence_bits | sequence`. The next one is the largest of the position after the
//! last and the first of the present tick. So a repeated tick goes on with the sequence, a used-up sequence
//! borrows the next tick, and a clock that steps back leaves the generator where it was. In all three cases
//! ids stay unique and growing. Only their *drift* changes: how far they run ahead of the wall clock.
//! [`Rules`] bound it. (Kulkarni et al., "Logical Physical Clocks", 2014, with a bounded logical part.)
//!
//! The wall clock is read once a decision, after the last observed reading was loaded. Readings of a
//! system-wide clock are then ordered, so an earlier reading than the observed one means that the clock was
//! stepped back, and not that another process was faster.
//!
//! Positions are handed out below the `limit` only: the high-water mark, which is durable before it is raised
//! here. The node may change: a *term* is the time in which one issues. The node's bits are merged
//! into an id after its position was taken. So a taker proves that both belong to one term: it reads the
//! term's number before and after, and throws the position away if it has changed.

use crate::clock::{Clock, UnixMicros};
use crate::generator::drift::{Cause, Drift, GeneratorError};
use crate::generator::rules::{Rules, SequenceStart};
use crate::generator::safe_position::NextPosition;
use crate::guard::{Guard, holds};
use crate::ids::layout::{Field, Layout, TickError};
use crate::ids::position::{NodeBits, Position, PositionRange, Tick};
use crate::ids::shard::Shard;
use crate::sync::{AtomicU64, Ordering};
use std::num::NonZeroU32;
use std::ops::RangeInclusive;
use std::time::Duration;

/// In place of the next position while no session may take one.
const CLOSED: u64 = u64::MAX;

/// The state of one generator, shared by all that use it. Calls write to one cache line. The other they only read: it
/// changes when the clock is stepped back or the node changes.
#[cfg_attr(not(loom), repr(C, align(64)))]
#[derive(Debug)]
pub struct Generator {
    /// The position after the last one issued; `first` before there is one; or [`CLOSED`].
    next: AtomicU64,
    /// Positions at and above this one may not be issued: the high-water mark.
    limit: AtomicU64,
    /// The tick of the wall clock as last observed; lower than before only after a step back.
    observed: AtomicU64,
    /// The number of the term; odd while it changes or no node issues.
    term: AtomicU64,
    /// The bits of the node that issues, in place.
    node_bits: AtomicU64,
    /// Ticks whose sequence was used up, so that the next one followed at once.
    full_ticks: AtomicU64,
    /// The highest position after the last one that a term ended with.
    furthest: AtomicU64,
    /// Keeps what is only read out of the line that is written.
    rest_of_line: AtomicU64,
    /// Grows with each step back and each change of the term.
    generation: AtomicU64,
    /// The position that the term began with: nothing was issued while `next` is still here.
    first: AtomicU64,
    /// The value of `next` when the generator was closed.
    closed_at: AtomicU64,
    /// Steps back of the wall clock, counted once each.
    steps_back: AtomicU64,
    /// The highest tick that the wall clock showed before a step back; 0 without one.
    highest: AtomicU64,
    /// The largest step back, in ticks.
    largest_step_back: AtomicU64,
    /// The ticks before and after the last step back.
    last_step_back: [AtomicU64; 2],
}

#[cfg(not(loom))]
const _: () = assert!(size_of::<Generator>() == 128 && std::mem::offset_of!(Generator, generation) == 64);

/// Positions, and the bits of the node that they belong to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TakenPositions {
    /// Positions that no other call gets, in ascending order.
    pub positions: PositionRange,
    /// The node's bits.
    pub node_bits: NodeBits,
}

/// A step of the wall clock backwards, in ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StepBack {
    /// The tick that the clock had shown before.
    pub from: Tick,
    /// The tick that it showed next; below `from`.
    pub to: Tick,
}

/// A generator's counters at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// The last position issued in this term, None before the first.
    pub last: Option<Position>,
    /// The bits of the node that issues.
    pub node_bits: NodeBits,
    /// The high-water mark; 0 while closed.
    pub limit: Position,
    /// Ticks whose sequence was used up.
    pub full_ticks: u64,
    /// Steps back of the wall clock.
    pub steps_back: u64,
    /// The largest step back, in ticks.
    pub largest_step_back: u64,
    /// The latest step back; None where there was none since the start.
    pub last_step_back: Option<StepBack>,
}

impl Default for Generator {
    fn default() -> Self {
        Self::new()
    }
}

impl Generator {
    /// A generator that no session may take from before the first [`Generator::begin`].
    pub fn new() -> Self {
        let zero = || AtomicU64::new(0);
        Self {
            next: AtomicU64::new(CLOSED),
            limit: zero(),
            observed: zero(),
            term: AtomicU64::new(1),
            node_bits: zero(),
            full_ticks: zero(),
            furthest: zero(),
            rest_of_line: zero(),
            generation: zero(),
            first: zero(),
            closed_at: zero(),
            steps_back: zero(),
            highest: zero(),
            largest_step_back: zero(),
            last_step_back: [zero(), zero()],
        }
    }

    /// Begins a term: the node of these bits issues from `first` on, below `limit`, which is durable. One
    /// caller at a time.
    pub fn begin(&self, node_bits: NodeBits, first: Position, limit: Position) {
        self.close();
        // Release, all of them: a taker that sees one of these also sees that the term has changed.
        self.node_bits.store(node_bits.0, Ordering::Release);
        self.first.store(first.0, Ordering::Release);
        self.limit.store(limit.0, Ordering::Release);
        self.next.store(first.0, Ordering::Release);
        let before = self.term.fetch_add(1, Ordering::AcqRel);
        debug_assert!(before & 1 == 1, "it was closed");
        self.generation.fetch_add(1, Ordering::AcqRel);
    }

    /// Returns whether all that was issued lies below the high-water mark. For the one caller that changes the mark.
    fn keeps_below_limit(&self) -> bool {
        let next = self.next.load(Ordering::Acquire);
        next == CLOSED || next == self.first.load(Ordering::Acquire) || next <= self.limit().0
    }

    /// Ends the term: from now on no session takes anything, and what sessions hold is stale. Gives the position after the last one issued, exactly.
    /// One caller at a time.
    pub fn close(&self) -> Position {
        debug_assert!(self.keeps_below_limit(), "issued above the mark: {:?}", self.snapshot());
        // Odd: before anything else changes.
        self.term.fetch_or(1, Ordering::AcqRel);
        if holds(Guard::HeldStale) {
            self.generation.fetch_add(1, Ordering::AcqRel);
        }
        self.limit.store(0, Ordering::Release);
        // A session that is about to take finds another position than it saw, and none to go on with.
        match self.next.swap(CLOSED, Ordering::AcqRel) {
            CLOSED => {}
            next => {
                self.closed_at.store(next, Ordering::Release);
                self.furthest.fetch_max(self.issued(next), Ordering::Release);
            }
        }
        Position(self.closed_at.load(Ordering::Acquire))
    }

    /// Raises the high-water mark, which is durable. One caller at a time, with a term begun.
    pub fn raise(&self, limit: Position) {
        let before = self.limit.fetch_max(limit.0, Ordering::Release);
        debug_assert!(
            self.term.load(Ordering::Acquire) & 1 == 0,
            "raised from {before} while no node issues"
        );
        debug_assert!(self.keeps_below_limit(), "issued above the mark: {:?}", self.snapshot());
    }

    /// Returns whether a term has begun and not ended.
    pub fn is_open(&self) -> bool {
        self.term.load(Ordering::Acquire) & 1 == 0
    }

    /// Takes at least one and at most `want` positions in one atomic step. Fewer come where more would run
    /// further ahead of the clock than the rules allow, or past the high-water mark.
    #[inline]
    pub fn take(
        &self,
        layout: &Layout,
        rules: &Rules,
        clock: &impl Clock,
        want: NonZeroU32,
    ) -> Result<TakenPositions, GeneratorError> {
        self.take_chosen(layout, rules, clock, |_, from| (from, from.saturating_add(want.get().into())))
    }

    /// Takes positions of which the first has an id that is the shard's, in one atomic step: as many as hold `want` ids of
    /// the shard on average. Fewer come as in [`Generator::take`]. The positions before the first are used up.
    pub fn take_fitting(
        &self,
        layout: &Layout,
        rules: &Rules,
        clock: &impl Clock,
        want: NonZeroU32,
        shard: &Shard,
    ) -> Result<TakenPositions, GeneratorError> {
        let span = shard.span(want.get());
        // The last scan: of which node's ids, from where, and what it found. What another session takes meanwhile ends below
        // that most of the time, and then nothing is scanned again.
        let mut seen: Option<(NodeBits, RangeInclusive<u64>)> = None;
        loop {
            let choose = |node_bits, from: u64| {
                let known =
                    seen.as_ref().filter(|(whose, range)| *whose == node_bits && range.contains(&from));
                let first = match known {
                    Some((_, range)) => *range.end(),
                    None => match shard.first_from(layout, node_bits, Position(from)) {
                        Some(Position(first)) => first,
                        None => return (shard.scan_end(Position(from)).0, shard.scan_end(Position(from)).0),
                    },
                };
                seen = Some((node_bits, from..=first));
                // Up to the mark none fits: used up, so that the mark is raised from there, however far the first is.
                let limit = self.limit.load(Ordering::Relaxed);
                if from < limit && limit <= first {
                    return (limit, limit);
                }
                (first, first.saturating_add(span))
            };
            let taken = self.take_chosen(layout, rules, clock, choose)?;
            // None: all that one step looks at are unfit. They are used up, and the next ones looked at, up to the drift.
            if taken.positions.count() > 0 {
                return Ok(taken);
            }
        }
    }

    /// Takes the positions that `choose` chooses, of those from the next one on, in the term of a node: from which one, and up
    /// to which; fewer as in [`Generator::take`].
    #[inline(always)]
    #[allow(clippy::inline_always, reason = "the body of two functions")]
    fn take_chosen(
        &self,
        layout: &Layout,
        rules: &Rules,
        clock: &impl Clock,
        mut choose: impl FnMut(NodeBits, u64) -> (u64, u64),
    ) -> Result<TakenPositions, GeneratorError> {
        loop {
            let term = self.term.load(Ordering::Acquire);
            let node_bits = NodeBits(self.node_bits.load(Ordering::Acquire));
            let positions = self.take_positions(layout, rules, clock, |from| choose(node_bits, from))?;
            // Before the term is looked at again: a process that closes the generator takes the mark away.
            let below_limit = !cfg!(debug_assertions) || positions.to <= self.limit();
            let same = self.term.load(Ordering::Acquire) == term && term & 1 == 0;
            if same || !holds(Guard::TermRead) {
                debug_assert!(below_limit || !same, "{positions:?} is taken above the mark");
                return Ok(TakenPositions { positions, node_bits });
            }
            // Another node issues by now: these positions may be no node's. A gap, and once more.
        }
    }

    #[inline(always)]
    #[allow(clippy::inline_always, reason = "the body of a function of two lines")]
    fn take_positions(
        &self,
        layout: &Layout,
        rules: &Rules,
        clock: &impl Clock,
        mut choose: impl FnMut(u64) -> (u64, u64),
    ) -> Result<PositionRange, GeneratorError> {
        // Observe first, read the clock second: see the head of this module.
        let observed = self.observed.load(Ordering::Acquire);
        let at = clock.now();
        let Tick(now) = layout.tick(at).map_err(|error| self.no_tick(observed, error))?;
        let bits = layout.sequence_bits();
        if now != observed {
            // A clock that is beyond what is reserved may have jumped there: nothing is noted of it here.
            if now << bits >= self.limit.load(Ordering::Relaxed) {
                return Err(self.refuse(layout, rules, at, Position(now << bits)));
            }
            self.observe(observed, now);
        }
        let mut next = self.next.load(Ordering::Relaxed);
        loop {
            let (from, fresh) = Self::first_at(layout, rules.start, now, next);
            let (first, mut to) = choose(from);
            // Counted from the beginning of the present tick, so as not to divide; what that finds too far
            // ahead is looked at again from where in the tick we are.
            let ahead = ((to - 1) >> bits).saturating_sub(now).saturating_mul(layout.unit());
            if ahead > rules.max_drift || to > self.limit.load(Ordering::Relaxed) {
                to = to.min(self.ceiling(layout, rules, at).0);
                if to <= first {
                    return Err(self.refuse(layout, rules, at, Position(first)));
                }
            }
            match self.next.compare_exchange_weak(next, to, Ordering::AcqRel, Ordering::Relaxed) {
                Ok(_) => {
                    debug_assert!(next <= from && from < to, "{from}..{to} does not follow {next}");
                    debug_assert!(from <= first && first <= to, "{first}..{to} begins before {from}");
                    debug_assert!(from >= now << bits, "{from} is of a tick before {now}");
                    let begun = fresh || next == self.first.load(Ordering::Relaxed);
                    let full = ((to - 1) >> bits) - (if begun { from } else { next - 1 } >> bits);
                    if full > 0 {
                        self.full_ticks.fetch_add(full, Ordering::Relaxed);
                    }
                    return Ok(PositionRange { from: Position(first), to: Position(to) });
                }
                Err(found) => next = found,
            }
        }
    }

    /// The first position to take at tick `now`, and whether it opens that tick.
    #[inline]
    fn first_at(layout: &Layout, start: SequenceStart, now: u64, next: u64) -> (u64, bool) {
        let base = now << layout.sequence_bits();
        // `next` on the boundary itself: the tick before is full, this one is still fresh. A start may only
        // be chosen there; in a tick that has begun it would leave holes or, worse, look like one.
        if next > base {
            return (next, false);
        }
        (base | Self::start_of(layout, start, now, next), true)
    }

    /// The first sequence of a fresh tick. Out of line: a tick is fresh once, and the optimiser would scatter
    /// its number for every id of it.
    #[inline(never)]
    fn start_of(layout: &Layout, start: SequenceStart, now: u64, next: u64) -> u64 {
        let lower_half = layout.max(Field::Sequence) >> 1;
        match start {
            SequenceStart::Zero => 0,
            SequenceStart::Random => scatter(now) & lower_half,
            SequenceStart::Rotate => next & lower_half,
        }
    }

    #[cold]
    fn ceiling(&self, layout: &Layout, rules: &Rules, at: UnixMicros) -> Position {
        rules.drift_end(layout, at).min(Position(self.limit.load(Ordering::Relaxed)))
    }

    /// Returns the reason why position `from` may not be issued at `at`.
    #[cold]
    fn refuse(&self, layout: &Layout, rules: &Rules, at: UnixMicros, from: Position) -> GeneratorError {
        if from.0 != CLOSED && from >= layout.end_position() {
            return GeneratorError::Exhausted { last: layout.last_instant() };
        }
        if from.0 == CLOSED || from < rules.drift_end(layout, at) {
            return GeneratorError::Unreserved;
        }
        let ahead = |tick| layout.instant(tick).since(at);
        let max_drift = Duration::from_micros(rules.max_drift);
        let cause = if ahead(Tick(self.highest.load(Ordering::Relaxed))) > max_drift {
            Cause::StepBack
        } else if from.0 == self.first.load(Ordering::Relaxed) {
            Cause::Start
        } else {
            Cause::Demand
        };
        let ahead = ahead(layout.tick_of(from));
        GeneratorError::Drift(Drift { cause, ahead, max_drift })
    }

    /// Returns whether a position taken earlier may be handed out now: whether it is still within the drift, and the
    /// clock within the layout.
    pub fn allows(&self, layout: &Layout, rules: &Rules, clock: &impl Clock, position: Position) -> bool {
        let at = clock.now();
        layout.tick(at).is_ok() && position < rules.drift_end(layout, at)
    }

    /// A clock before the epoch was stepped back, if it was within the layout before.
    #[cold]
    fn no_tick(&self, observed: u64, error: TickError) -> GeneratorError {
        if matches!(error, TickError::BeforeEpoch { .. }) && observed > 0 {
            self.step_back(observed, 0);
        }
        error.into()
    }

    /// Notes the tick that the wall clock shows. Of the sessions that see one step back, one counts it.
    #[inline]
    fn observe(&self, observed: u64, now: u64) {
        if now < observed {
            self.step_back(observed, now);
        } else if let Err(found) =
            self.observed.compare_exchange(observed, now, Ordering::AcqRel, Ordering::Relaxed)
            && found < now
        {
            // The other's reading is a little older, or from after a step back. Then this was the high point.
            self.highest.fetch_max(now, Ordering::AcqRel);
        }
    }

    #[cold]
    fn step_back(&self, observed: u64, now: u64) {
        // Before the step becomes visible: a session that sees the lower reading must find why.
        self.highest.fetch_max(observed, Ordering::AcqRel);
        if self.observed.compare_exchange(observed, now, Ordering::AcqRel, Ordering::Relaxed).is_ok() {
            self.count_step_back(observed, now);
        }
    }

    fn count_step_back(&self, from: u64, to: u64) {
        self.largest_step_back.fetch_max(from - to, Ordering::Relaxed);
        self.last_step_back[0].store(from, Ordering::Relaxed);
        self.last_step_back[1].store(to, Ordering::Relaxed);
        // Last: a session that sees the count finds the figures.
        self.steps_back.fetch_add(1, Ordering::Release);
        self.generation.fetch_add(1, Ordering::AcqRel);
    }

    /// Notes what the wall clock showed when a process last looked, before this generator was there: if it shows
    /// less now, it was stepped back meanwhile.
    pub fn resume(&self, Tick(before): Tick, Tick(now): Tick) {
        self.observed.store(now, Ordering::Release);
        if now < before {
            self.highest.fetch_max(before, Ordering::AcqRel);
            self.count_step_back(before, now);
        }
    }

    /// Forgets all that it knows, which is in the ticks of one layout, so that it can issue in another. While it is closed.
    pub fn forget(&self) {
        debug_assert!(!self.is_open(), "a term has begun");
        for of_layout in [
            &self.observed,
            &self.full_ticks,
            &self.furthest,
            &self.first,
            &self.closed_at,
            &self.steps_back,
            &self.highest,
            &self.largest_step_back,
            &self.last_step_back[0],
            &self.last_step_back[1],
        ] {
            of_layout.store(0, Ordering::Release);
        }
        // Sessions may still hold positions of another layout.
        self.generation.fetch_add(1, Ordering::AcqRel);
    }

    /// Takes it for a step back of the clock that it is behind this position, as it must have shown more before this
    /// generator was there.
    pub fn blame_clock(&self, position: Position, layout: &Layout) {
        self.highest.fetch_max(layout.tick_of(position).0, Ordering::AcqRel);
    }

    /// A number that grows with each step back of the wall clock and each change of the term: what was taken
    /// before is not to be handed out without a look at the clock.
    #[inline]
    pub fn generation(&self) -> u64 {
        // Acquire: what is taken after this is at or above the frontier that the generation was changed for.
        self.generation.load(Ordering::Acquire)
    }

    /// Makes all positions stale that sessions hold.
    pub fn make_stale(&self) {
        self.generation.fetch_add(1, Ordering::AcqRel);
    }

    /// The position after the last one issued in this term, whether it is over or not.
    pub fn next(&self) -> Position {
        Position(match self.next.load(Ordering::Acquire) {
            CLOSED => self.closed_at.load(Ordering::Acquire),
            next => next,
        })
    }

    /// The next position, and the bits of the node that will issue it, if a term has begun.
    pub fn next_of_term(&self) -> NextPosition {
        let term = self.term.load(Ordering::Acquire);
        let node_bits = NodeBits(self.node_bits.load(Ordering::Acquire));
        let position = self.next();
        let same = self.term.load(Ordering::Acquire) == term && term & 1 == 0;
        NextPosition { position, node_bits: same.then_some(node_bits) }
    }

    /// The position above all that was issued, in whatever term. Not while one begins or ends.
    pub fn furthest(&self) -> Position {
        let next = self.next.load(Ordering::Acquire);
        let issued = if next == CLOSED { 0 } else { self.issued(next) };
        Position(self.furthest.load(Ordering::Acquire).max(issued))
    }

    /// The position after the last one issued in this term, given the next one; 0 where nothing was issued.
    fn issued(&self, next: u64) -> u64 {
        if next > self.first.load(Ordering::Acquire) { next } else { 0 }
    }

    /// The high-water mark; 0 while closed.
    pub fn limit(&self) -> Position {
        Position(self.limit.load(Ordering::Acquire))
    }

    /// The counters now. Read one after the other: they may belong to neighbouring moments.
    pub fn snapshot(&self) -> Snapshot {
        let steps_back = self.steps_back.load(Ordering::Acquire);
        let [from, to] = self.last_step_back.each_ref().map(|tick| Tick(tick.load(Ordering::Relaxed)));
        let next = self.next();
        Snapshot {
            last: (next.0 > self.first.load(Ordering::Acquire)).then(|| Position(next.0 - 1)),
            node_bits: NodeBits(self.node_bits.load(Ordering::Acquire)),
            limit: self.limit(),
            full_ticks: self.full_ticks.load(Ordering::Relaxed),
            steps_back,
            largest_step_back: self.largest_step_back.load(Ordering::Relaxed),
            last_step_back: (steps_back > 0).then_some(StepBack { from, to }),
        }
    }
}

/// Mixes a number into one that looks random: the finaliser of `SplitMix64` (Steele, Lea, Flood 2014).
pub(crate) const fn scatter(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
