//! The generator: a hybrid logical clock that hands out positions (a tick and a sequence number each). One atomic step
//! takes a range of positions. Any number of processes share the generator, and write to the same cache line.
//!
//! `docs/architecture.md` describes the path of an id, the clock, and why terms are numbered. The *drift* is the distance
//! by which ids are ahead of the wall clock. [`Rules`] bound the drift.

use crate::clock::{Clock, UnixMicros};
use crate::generator::drift::{Cause, Drift, GeneratorError};
use crate::generator::rules::{Rules, SequenceStart};
use crate::guard::{Guard, holds};
use crate::ids::layout::{Field, Layout, TickError};
use crate::ids::position::{NodeBits, Position, PositionRange, Tick};
use crate::ids::scatter::scatter;
use crate::ids::shard::Shard;
use crate::sync::{AtomicU64, CacheLine, Ordering};
use std::num::NonZeroU32;
use std::ops::RangeInclusive;
use std::time::Duration;

/// The value of `next` while no session may take a position.
const CLOSED: u64 = u64::MAX;

/// The state of one generator, shared by all its callers. Calls write to the first cache line, and only read the second
/// line.
#[cfg_attr(not(loom), repr(C))]
#[derive(Debug)]
pub struct Generator {
    /// The position after the last issued position; `first` if the term has issued no position yet; or [`CLOSED`].
    next: AtomicU64,
    /// The high-water mark: positions at and above it may not be issued.
    limit: AtomicU64,
    /// The last observed tick of the wall clock. This tick falls only after a step back.
    observed: AtomicU64,
    /// The number of the term; odd while the term changes, and while no node may issue ids.
    term: AtomicU64,
    /// The bits of the node that issues ids, shifted to their place in an id.
    node_bits: AtomicU64,
    /// The number of ticks whose sequence numbers were used up, so that calls took positions of the next tick.
    full_ticks: AtomicU64,
    /// The highest value of `next` at the end of any term.
    furthest: AtomicU64,
    mostly_read: CacheLine<MostlyRead>,
}

/// The fields that change when the clock is stepped back, the node changes, or the frontier of safe positions moves.
#[derive(Debug, Default)]
struct MostlyRead {
    /// A number that grows with each step back of the clock, each change of the term and each move of the frontier.
    generation: AtomicU64,
    /// The position at which the term began. The term has issued nothing while `next` equals this position.
    first: AtomicU64,
    /// The value of `next` when the generator was closed.
    closed_at: AtomicU64,
    /// The number of steps back of the wall clock. Each step is counted once.
    steps_back: AtomicU64,
    /// The highest tick that the wall clock showed before a step back; 0 without a step back.
    highest: AtomicU64,
    largest_step_back: AtomicU64,
    /// The ticks before and after the last step back.
    last_step_back: [AtomicU64; 2],
}

#[cfg(not(loom))]
const _: () = {
    let line = size_of::<CacheLine<MostlyRead>>();
    assert!(size_of::<Generator>() == 2 * line && std::mem::offset_of!(Generator, mostly_read) == line);
};

/// Positions, and the bits of the node that issues them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TakenPositions {
    /// The positions, in ascending order. No other call gets these positions.
    pub positions: PositionRange,
    /// The node's bits.
    pub node_bits: NodeBits,
}

/// The next position of a generator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NextPosition {
    /// The position.
    pub position: Position,
    /// The first position of the open term, and the bits of its node; None if no term is open.
    pub term: Option<(Position, NodeBits)>,
}

impl NextPosition {
    /// Returns the lowest id that a position at or above `safe` can have. The node is known only for positions of the
    /// open term. Only the tick is known for positions of earlier terms.
    pub fn least_id(&self, layout: &Layout, safe: Position) -> u64 {
        let safe = safe.min(Position(layout.end_position().0 - 1));
        match self.term.filter(|(first, _)| safe >= *first) {
            Some((_, node_bits)) => layout.id(safe, node_bits),
            None => layout.id(layout.first_of(layout.tick_of(safe)), NodeBits(0)),
        }
    }
}

/// A step of the wall clock backwards, in ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StepBack {
    /// The tick that the clock showed before the step.
    pub from: Tick,
    /// The tick that the clock showed after the step.
    pub to: Tick,
}

/// A copy of a generator's counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// The last position issued in this term; None before the first position.
    pub last: Option<Position>,
    /// The bits of the node that issues ids.
    pub node_bits: NodeBits,
    /// The high-water mark; 0 while the generator is closed.
    pub limit: Position,
    /// The number of ticks whose sequence numbers were used up.
    pub full_ticks: u64,
    /// The number of steps back of the wall clock.
    pub steps_back: u64,
    /// The largest step back, in ticks.
    pub largest_step_back: u64,
    /// The last step back; None if no step back was observed since the server's start.
    pub last_step_back: Option<StepBack>,
}

/// A closed generator, which opens with [`Generator::begin`].
impl Default for Generator {
    fn default() -> Self {
        let zero = || AtomicU64::new(0);
        Self {
            next: AtomicU64::new(CLOSED),
            limit: zero(),
            observed: zero(),
            term: AtomicU64::new(1),
            node_bits: zero(),
            full_ticks: zero(),
            furthest: zero(),
            mostly_read: CacheLine::default(),
        }
    }
}

impl Generator {
    /// Begins a term: the node with these bits issues positions from `first` on, below `limit`. The limit must be
    /// durable before this call. Only one process may call this function at a time.
    pub fn begin(&self, node_bits: NodeBits, first: Position, limit: Position) {
        self.close();
        // All stores are Release stores: a session that sees one of the values stored below also sees that the term was
        // closed.
        self.node_bits.store(node_bits.0, Ordering::Release);
        self.mostly_read.first.store(first.0, Ordering::Release);
        self.limit.store(limit.0, Ordering::Release);
        self.next.store(first.0, Ordering::Release);
        let before = self.term.fetch_add(1, Ordering::AcqRel);
        debug_assert!(before & 1 == 1, "it was closed");
        self.mostly_read.generation.fetch_add(1, Ordering::AcqRel);
    }

    /// Returns true if all issued positions are below the high-water mark. Only the process that changes the mark may
    /// call this function.
    fn keeps_below_limit(&self) -> bool {
        let next = self.next.load(Ordering::Acquire);
        next == CLOSED || next == self.mostly_read.first.load(Ordering::Acquire) || next <= self.limit().0
    }

    /// Ends the term. No session takes positions from now on, and the positions that sessions hold become stale.
    /// Returns the position after the last issued position. Only one process may call this function at a time.
    pub fn close(&self) -> Position {
        debug_assert!(self.keeps_below_limit(), "issued above the mark: {:?}", self.snapshot());
        // The term becomes odd before other fields change, so that a session that sees a change below discards its
        // positions.
        self.term.fetch_or(1, Ordering::AcqRel);
        if holds(Guard::HeldStale) {
            self.mostly_read.generation.fetch_add(1, Ordering::AcqRel);
        }
        self.limit.store(0, Ordering::Release);
        // A session that is about to take a position then finds that `next` has changed and that the limit is 0.
        match self.next.swap(CLOSED, Ordering::AcqRel) {
            CLOSED => {}
            next => {
                self.mostly_read.closed_at.store(next, Ordering::Release);
                self.furthest.fetch_max(self.issued(next), Ordering::Release);
            }
        }
        Position(self.mostly_read.closed_at.load(Ordering::Acquire))
    }

    /// Raises the high-water mark. The new mark must be durable before this call, and a term must be open. Only one
    /// process may call this function at a time.
    pub fn raise(&self, limit: Position) {
        let before = self.limit.fetch_max(limit.0, Ordering::Release);
        debug_assert!(
            self.term.load(Ordering::Acquire) & 1 == 0,
            "raised from {before} while no node issues"
        );
        debug_assert!(self.keeps_below_limit(), "issued above the mark: {:?}", self.snapshot());
    }

    /// Returns true if a term is open.
    pub fn is_open(&self) -> bool {
        self.term.load(Ordering::Acquire) & 1 == 0
    }

    /// Takes 1 to `want` positions in one atomic step. The call takes fewer than `want` if more would exceed the allowed
    /// drift or the high-water mark.
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

    /// Takes a range of positions. The first position's id belongs to the shard. The range is long enough for `want`
    /// ids of the shard on average. The allowed drift or the high-water mark can shorten the range. The positions that
    /// the call skips before the range are used up.
    pub fn take_fitting(
        &self,
        layout: &Layout,
        rules: &Rules,
        clock: &impl Clock,
        want: NonZeroU32,
        shard: &Shard,
    ) -> Result<TakenPositions, GeneratorError> {
        let span = shard.span(want.get());
        // The last scan: the node's bits, and the range from the scan's start to the position found. If other sessions
        // take positions meanwhile, the next position is usually still in this range, so the scan need not be repeated.
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
                // If no position below the limit fits, the call uses up all positions below the limit. The limit is
                // then raised, even if the first fitting position is far ahead.
                let limit = self.limit.load(Ordering::Relaxed);
                if from < limit && limit <= first {
                    return (limit, limit);
                }
                (first, first.saturating_add(span))
            };
            let taken = self.take_chosen(layout, rules, clock, choose)?;
            // An empty range means that no scanned position fits, and that these positions are used up. The next pass
            // scans the positions above them, up to the allowed drift.
            if taken.positions.count() > 0 {
                return Ok(taken);
            }
        }
    }

    /// Takes positions in one term. `choose` gets the node's bits and the next position, and returns the range to take.
    /// The allowed drift or the high-water mark can shorten the range.
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
            // The limit is read before the term, because a process that closes the generator changes the term before it
            // lowers the limit.
            let below_limit = !cfg!(debug_assertions) || positions.to <= self.limit();
            let same = self.term.load(Ordering::Acquire) == term && term & 1 == 0;
            if same || !holds(Guard::TermRead) {
                debug_assert!(below_limit || !same, "{positions:?} is taken above the mark");
                return Ok(TakenPositions { positions, node_bits });
            }
            // The node has changed, so these positions may belong to neither node. The loop discards these positions
            // and takes other positions.
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
        // The observed tick is loaded before the clock is read: a reading below the observed tick then proves a step
        // back.
        let observed = self.observed.load(Ordering::Acquire);
        let at = clock.now();
        let Tick(now) = layout.tick(at).map_err(|error| self.no_tick(observed, error))?;
        let bits = layout.sequence_bits();
        if now != observed {
            // A clock that shows a tick at or above the high-water mark may have jumped ahead, so this tick is not
            // recorded.
            if now << bits >= self.limit.load(Ordering::Relaxed) {
                return Err(self.refuse(layout, rules, at, Position(now << bits)));
            }
            self.observe(observed, now);
        }
        let mut next = self.next.load(Ordering::Relaxed);
        loop {
            let (from, fresh) = Self::first_at(layout, rules.start, now, next);
            let (first, mut to) = choose(from);
            // `ahead` is counted from the beginning of the current tick, which needs no division. If the result is too
            // far ahead, `ceiling` checks again at the exact time.
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
                    let begun = fresh || next == self.mostly_read.first.load(Ordering::Relaxed);
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

    /// Returns the first position to take at tick `now`, and true if this position opens the tick.
    #[inline]
    fn first_at(layout: &Layout, start: SequenceStart, now: u64, next: u64) -> (u64, bool) {
        let base = now << layout.sequence_bits();
        // If `next` is the first position of tick `now`, the previous tick is full and this tick is still fresh. The
        // first sequence number may be chosen only in a fresh tick. A choice later in the tick would skip or repeat
        // positions.
        if next > base {
            return (next, false);
        }
        (base | Self::start_of(layout, start, now, next), true)
    }

    /// Returns the first sequence number of a fresh tick. The function is not inlined, because the optimiser would
    /// otherwise compute the random start for every id.
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
        let cause = if ahead(Tick(self.mostly_read.highest.load(Ordering::Relaxed))) > max_drift {
            Cause::StepBack
        } else if from.0 == self.mostly_read.first.load(Ordering::Relaxed) {
            Cause::Start
        } else {
            Cause::Demand
        };
        let ahead = ahead(layout.tick_of(from));
        GeneratorError::Drift(Drift { cause, ahead, max_drift })
    }

    /// Returns true if a position that was taken earlier may be handed out now. The position must be within the allowed
    /// drift, and the clock within the layout.
    pub fn allows(&self, layout: &Layout, rules: &Rules, clock: &impl Clock, position: Position) -> bool {
        let at = clock.now();
        layout.tick(at).is_ok() && position < rules.drift_end(layout, at)
    }

    /// Returns the error for a clock outside the layout. A clock before the epoch counts as stepped back if an earlier
    /// reading was within the layout.
    #[cold]
    fn no_tick(&self, observed: u64, error: TickError) -> GeneratorError {
        if matches!(error, TickError::BeforeEpoch { .. }) && observed > 0 {
            self.step_back(observed, 0);
        }
        error.into()
    }

    /// Records the wall clock's tick. Only one session counts a step back that several sessions see.
    #[inline]
    fn observe(&self, observed: u64, now: u64) {
        if now < observed {
            self.step_back(observed, now);
        } else if let Err(found) =
            self.observed.compare_exchange(observed, now, Ordering::AcqRel, Ordering::Relaxed)
            && found < now
        {
            // Another session recorded a slightly older reading, or a reading after a step back. If the clock stepped
            // back, `now` was the highest tick before the step.
            self.mostly_read.highest.fetch_max(now, Ordering::AcqRel);
        }
    }

    #[cold]
    fn step_back(&self, observed: u64, now: u64) {
        // `highest` is stored before the step becomes visible, because a session that sees the step reads `highest` to
        // find the cause of its drift.
        self.mostly_read.highest.fetch_max(observed, Ordering::AcqRel);
        if self.observed.compare_exchange(observed, now, Ordering::AcqRel, Ordering::Relaxed).is_ok() {
            self.count_step_back(observed, now);
        }
    }

    fn count_step_back(&self, from: u64, to: u64) {
        self.mostly_read.largest_step_back.fetch_max(from - to, Ordering::Relaxed);
        self.mostly_read.last_step_back[0].store(from, Ordering::Relaxed);
        self.mostly_read.last_step_back[1].store(to, Ordering::Relaxed);
        // The count is stored last: a session that sees the new count also sees the new figures.
        self.mostly_read.steps_back.fetch_add(1, Ordering::Release);
        self.mostly_read.generation.fetch_add(1, Ordering::AcqRel);
    }

    /// Records the current tick. `before` is the last tick that a process observed before this generator existed. A
    /// current tick below `before` counts as a step back.
    pub fn resume(&self, Tick(before): Tick, Tick(now): Tick) {
        self.observed.store(now, Ordering::Release);
        if now < before {
            self.mostly_read.highest.fetch_max(before, Ordering::AcqRel);
            self.count_step_back(before, now);
        }
    }

    /// Clears all figures, which are in ticks of one layout, so that the generator can issue ids of another layout. The
    /// generator must be closed.
    pub fn forget(&self) {
        debug_assert!(!self.is_open(), "a term has begun");
        for of_layout in [
            &self.observed,
            &self.full_ticks,
            &self.furthest,
            &self.mostly_read.first,
            &self.mostly_read.closed_at,
            &self.mostly_read.steps_back,
            &self.mostly_read.highest,
            &self.mostly_read.largest_step_back,
            &self.mostly_read.last_step_back[0],
            &self.mostly_read.last_step_back[1],
        ] {
            of_layout.store(0, Ordering::Release);
        }
        // Sessions may still hold positions of the other layout.
        self.mostly_read.generation.fetch_add(1, Ordering::AcqRel);
    }

    /// Records a step back that happened before this generator existed. The clock is behind `position`, which was
    /// issued or reserved earlier, so the clock has stepped back since.
    pub fn blame_clock(&self, position: Position, layout: &Layout) {
        self.mostly_read.highest.fetch_max(layout.tick_of(position).0, Ordering::AcqRel);
    }

    /// Returns the generation: a number that grows with each step back of the wall clock, each change of the term and
    /// each move of the frontier. Positions that a session took in another generation are stale.
    #[inline]
    pub fn generation(&self) -> u64 {
        // Acquire: positions taken after this load are at or above the frontier for which the generation was changed.
        self.mostly_read.generation.load(Ordering::Acquire)
    }

    /// Makes all positions that sessions hold stale.
    pub fn make_stale(&self) {
        self.mostly_read.generation.fetch_add(1, Ordering::AcqRel);
    }

    /// Returns the position after the last issued position of the open term, or of the last term if no term is open.
    pub fn next(&self) -> Position {
        Position(match self.next.load(Ordering::Acquire) {
            CLOSED => self.mostly_read.closed_at.load(Ordering::Acquire),
            next => next,
        })
    }

    /// Returns the next position, with the term that it belongs to.
    pub fn next_of_term(&self) -> NextPosition {
        let term = self.term.load(Ordering::Acquire);
        let first = Position(self.mostly_read.first.load(Ordering::Acquire));
        let node_bits = NodeBits(self.node_bits.load(Ordering::Acquire));
        let position = self.next();
        let same = self.term.load(Ordering::Acquire) == term && term & 1 == 0;
        NextPosition { position, term: same.then_some((first, node_bits)) }
    }

    /// Returns the lowest position above all positions issued in any term. Must not be called while a term begins or
    /// ends.
    pub fn furthest(&self) -> Position {
        let next = self.next.load(Ordering::Acquire);
        let issued = if next == CLOSED { 0 } else { self.issued(next) };
        Position(self.furthest.load(Ordering::Acquire).max(issued))
    }

    /// Returns `next` if this term has issued a position; else 0.
    fn issued(&self, next: u64) -> u64 {
        if next > self.mostly_read.first.load(Ordering::Acquire) { next } else { 0 }
    }

    /// Returns the high-water mark; 0 while closed.
    pub fn limit(&self) -> Position {
        Position(self.limit.load(Ordering::Acquire))
    }

    /// Returns a copy of the counters. The counters are read one after the other, so they may belong to slightly
    /// different moments.
    pub fn snapshot(&self) -> Snapshot {
        let steps_back = self.mostly_read.steps_back.load(Ordering::Acquire);
        let [from, to] =
            self.mostly_read.last_step_back.each_ref().map(|tick| Tick(tick.load(Ordering::Relaxed)));
        let next = self.next();
        Snapshot {
            last: (next.0 > self.mostly_read.first.load(Ordering::Acquire)).then(|| Position(next.0 - 1)),
            node_bits: NodeBits(self.node_bits.load(Ordering::Acquire)),
            limit: self.limit(),
            full_ticks: self.full_ticks.load(Ordering::Relaxed),
            steps_back,
            largest_step_back: self.mostly_read.largest_step_back.load(Ordering::Relaxed),
            last_step_back: (steps_back > 0).then_some(StepBack { from, to }),
        }
    }
}
