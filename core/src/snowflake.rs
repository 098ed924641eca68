//! The generator: a hybrid logical clock that hands out positions (tick and sequence), one atomic step a
//! stretch, from one cache line that any number of processes share.
//!
//! A position is `tick << sequence_bits | sequence`. The next one is the largest of the position after the
//! last and the first of the present tick. So a repeated tick goes on with the sequence, a used-up sequence
//! borrows the next tick, and a clock that steps back leaves the generator where it was: in all three cases
//! ids stay unique and growing, and only their *drift*, how far they run ahead of the wall clock, changes.
//! [`Rules`] bound it. (Kulkarni et al., "Logical Physical Clocks", 2014, with a bounded logical part.)
//!
//! The wall clock is read once a decision, after the last observed reading was loaded. Readings of a
//! system-wide clock are then ordered, so an earlier reading than the observed one means that the clock was
//! stepped back, and not that another process was faster.

use crate::clock::{Clock, UnixMicros};
use crate::drift::{Cause, Drift, Refusal};
use crate::layout::{Field, Layout};
use crate::rules::{Rules, SequenceStart};
use crate::sync::{AtomicU64, Ordering};
use std::num::NonZeroU32;

/// The state of one generator, shared by all who use it. One cache line.
#[cfg_attr(not(loom), repr(C, align(64)))]
#[derive(Debug)]
pub struct Generator {
    /// The position after the last one issued; `first` before there is one.
    next: AtomicU64,
    /// Positions at and above this one may not be issued: the end of the layout.
    limit: AtomicU64,
    /// The tick of the wall clock as last observed; lower than before only after a step back.
    observed: AtomicU64,
    /// The highest tick that the wall clock showed before a step back; 0 without one.
    highest: AtomicU64,
    /// Ticks whose sequence was used up, so that the next one followed at once.
    full_ticks: AtomicU64,
    /// Steps back of the wall clock, counted once each.
    steps_back: AtomicU64,
    /// The largest step back, in ticks.
    largest_step_back: AtomicU64,
    /// The position to begin with: nothing was issued while `next` is still here.
    first: u64,
}

#[cfg(not(loom))]
const _: () = assert!(size_of::<Generator>() == 64 && align_of::<Generator>() == 64);

/// Positions from `from` up to but not including `to`, all the caller's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stretch {
    /// The first position.
    pub from: u64,
    /// The position after the last; above `from`.
    pub to: u64,
}

impl Stretch {
    /// How many positions there are.
    pub const fn count(self) -> u64 {
        self.to - self.from
    }
}

/// A generator's counters at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// The last position issued, None before the first.
    pub last: Option<u64>,
    /// Ticks whose sequence was used up.
    pub full_ticks: u64,
    /// Steps back of the wall clock.
    pub steps_back: u64,
    /// The largest step back, in ticks.
    pub largest_step_back: u64,
}

impl Generator {
    /// A generator that has issued nothing since it `started`. It begins with the tick after that: in the tick
    /// of its start a generator before it may have issued ids, and where ticks are seconds a server restarts
    /// within one.
    pub fn new(layout: &Layout, started: UnixMicros) -> Self {
        let tick = layout.tick(started).ok();
        let first = tick.map_or(0, |tick| (tick + 1) << layout.sequence_bits());
        Self {
            next: AtomicU64::new(first),
            first,
            limit: AtomicU64::new(layout.end_position()),
            observed: AtomicU64::new(tick.unwrap_or(0)),
            highest: AtomicU64::new(0),
            full_ticks: AtomicU64::new(0),
            steps_back: AtomicU64::new(0),
            largest_step_back: AtomicU64::new(0),
        }
    }

    /// Takes at least one and at most `want` positions in one atomic step. Fewer come where more would run
    /// further ahead of the clock than the rules allow, or past the end of the layout.
    ///
    /// # Errors
    /// [`Refusal`], and nothing is taken.
    #[inline]
    pub fn take(
        &self,
        layout: &Layout,
        rules: &Rules,
        clock: &impl Clock,
        want: NonZeroU32,
    ) -> Result<Stretch, Refusal> {
        // Observe first, read the clock second: see the head of this module.
        let observed = self.observed.load(Ordering::Acquire);
        let at = clock.now();
        let now = layout.tick(at).map_err(Refusal::from)?;
        if now != observed {
            self.observe(observed, now);
        }
        let bits = layout.sequence_bits();
        let mut next = self.next.load(Ordering::Relaxed);
        loop {
            let (from, fresh) = Self::first_at(layout, rules.start, now, next);
            let mut to = from.saturating_add(want.get().into());
            // Counted from the beginning of the present tick, so as not to divide; what that finds too far
            // ahead is looked at again from where in the tick we are.
            let ahead = ((to - 1) >> bits).saturating_sub(now).saturating_mul(layout.unit());
            if ahead > rules.max_drift || to > self.limit.load(Ordering::Relaxed) {
                to = to.min(self.ceiling(layout, rules, at));
                if to <= from {
                    return Err(self.refuse(layout, rules, at, from));
                }
            }
            match self.next.compare_exchange_weak(next, to, Ordering::AcqRel, Ordering::Relaxed) {
                Ok(_) => {
                    let before = if fresh || next == self.first { from } else { next - 1 };
                    let full = ((to - 1) >> bits) - (before >> bits);
                    if full > 0 {
                        self.full_ticks.fetch_add(full, Ordering::Relaxed);
                    }
                    return Ok(Stretch { from, to });
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

    /// The position that the present drift must stay below.
    #[cold]
    fn ceiling(&self, layout: &Layout, rules: &Rules, at: UnixMicros) -> u64 {
        let horizon = UnixMicros(at.0.saturating_add_unsigned(rules.max_drift));
        let limit = self.limit.load(Ordering::Relaxed);
        match layout.tick(horizon) {
            Ok(tick) => ((tick + 1) << layout.sequence_bits()).min(limit),
            Err(_) => limit,
        }
    }

    /// Why position `from` may not be issued at `at`.
    #[cold]
    fn refuse(&self, layout: &Layout, rules: &Rules, at: UnixMicros, from: u64) -> Refusal {
        if from >= self.limit.load(Ordering::Relaxed) {
            return Refusal::Exhausted { last: layout.last_instant() };
        }
        let ahead = |tick| layout.instant(tick).0.saturating_sub(at.0).max(0).cast_unsigned();
        let cause = if ahead(self.highest.load(Ordering::Relaxed)) > rules.max_drift {
            Cause::StepBack
        } else if from == self.first {
            Cause::Start
        } else {
            Cause::Demand
        };
        let ahead = ahead(from >> layout.sequence_bits());
        Refusal::Drift(Drift { cause, ahead, max_drift: rules.max_drift })
    }

    /// Whether a position taken earlier may be handed out now: whether it is still within the drift, and the
    /// clock within the layout.
    pub fn allows(&self, layout: &Layout, rules: &Rules, clock: &impl Clock, position: u64) -> bool {
        let at = clock.now();
        layout.tick(at).is_ok() && position < self.ceiling(layout, rules, at)
    }

    /// Notes the tick that the wall clock shows. Of those who see one step back, one counts it.
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
        // Before the step becomes visible: whoever sees the lower reading must find why.
        self.highest.fetch_max(observed, Ordering::AcqRel);
        if self.observed.compare_exchange(observed, now, Ordering::AcqRel, Ordering::Relaxed).is_ok() {
            self.steps_back.fetch_add(1, Ordering::Relaxed);
            self.largest_step_back.fetch_max(observed - now, Ordering::Relaxed);
        }
    }

    /// Steps back of the wall clock so far.
    #[inline]
    pub fn steps_back(&self) -> u64 {
        self.steps_back.load(Ordering::Relaxed)
    }

    /// The counters now. Read one after the other: they may belong to neighbouring moments.
    pub fn snapshot(&self) -> Snapshot {
        Snapshot {
            last: Some(self.next.load(Ordering::Acquire))
                .filter(|next| *next != self.first)
                .map(|next| next - 1),
            full_ticks: self.full_ticks.load(Ordering::Relaxed),
            steps_back: self.steps_back(),
            largest_step_back: self.largest_step_back.load(Ordering::Relaxed),
        }
    }
}

/// Mixes a number into one that looks random: the finaliser of `SplitMix64` (Steele, Lea, Flood 2014).
const fn scatter(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
