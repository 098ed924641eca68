//! The generator on one thread, with a clock that the test sets.

use snowflake_ids_core::{
    Block, Cause, ClockRollback, Drift, Explain, Field, Generator, GeneratorError, Kind, Layout, NodeBits,
    Position, PositionRange, Rules, SequenceStart, StepBack, TakenPositions, Tick, UnixMicros,
};
use std::num::NonZeroU32;
use std::time::Duration;

const SECOND: u64 = 1_000_000;
/// A generator in its first term, with all positions reserved, and the layout and rules for its takes.
struct Bench {
    layout: Layout,
    generator: Generator,
    rules: Rules,
}

impl Bench {
    fn new(layout: &str, max_drift: u64, start: SequenceStart) -> Self {
        let layout: Layout = layout.parse().unwrap();
        let generator = Generator::default();
        generator.begin(NodeBits(0), Position(0), layout.end_position());
        Self { generator, rules: Rules { max_drift, start }, layout }
    }

    fn at(&self, tick: u64) -> UnixMicros {
        self.layout.instant(Tick(tick))
    }

    /// Takes up to `want` positions at a tick. Returns tick and sequence of the first, and the number of positions.
    fn take(&self, tick: u64, want: u32) -> Result<(u64, u64, u64), GeneratorError> {
        let want = NonZeroU32::new(want).unwrap();
        let positions = self.generator.take(&self.layout, &self.rules, &self.at(tick), want)?.positions;
        let sequence = positions.from.0 & self.layout.max(Field::Sequence);
        Ok((self.layout.tick_of(positions.from).0, sequence, positions.count()))
    }

    fn drift(&self, tick: u64, want: u32) -> Drift {
        match self.take(tick, want) {
            Err(GeneratorError::Drift(drift)) => drift,
            other => panic!("expected a drift, got {other:?}"),
        }
    }
}

fn default(max_drift: u64) -> Bench {
    Bench::new("41/5/5/12", max_drift, SequenceStart::Zero)
}

#[test]
fn a_tick_goes_on_with_its_sequence_and_a_fresh_one_starts_at_zero() {
    let bench = default(0);
    assert_eq!(bench.take(100, 1), Ok((100, 0, 1)));
    assert_eq!(bench.take(100, 1), Ok((100, 1, 1)));
    assert_eq!(bench.take(101, 1), Ok((101, 0, 1)));
    assert_eq!(bench.take(101, 5), Ok((101, 1, 5)));
    assert_eq!(bench.take(101, 1), Ok((101, 6, 1)));
}

#[test]
fn a_full_tick_borrows_the_next_within_the_drift_and_is_counted() {
    let bench = default(SECOND);
    assert_eq!(bench.take(100, 4096), Ok((100, 0, 4096)));
    assert_eq!(bench.generator.snapshot().full_ticks, 0, "the tick is full, but nothing was borrowed yet");
    assert_eq!(bench.take(100, 1), Ok((101, 0, 1)));
    assert_eq!(bench.generator.snapshot().full_ticks, 1);
    assert_eq!(bench.take(100, 3 * 4096), Ok((101, 1, 3 * 4096)));
    assert_eq!(bench.generator.snapshot().full_ticks, 4);
    assert_eq!(bench.take(200, 1), Ok((200, 0, 1)), "once the clock is past it, ids follow the clock again");
}

#[test]
fn a_full_tick_without_drift_waits_for_the_clock() {
    let bench = default(0);
    assert_eq!(bench.take(100, 5000), Ok((100, 0, 4096)), "a range ends where the drift does");
    let drift = bench.drift(100, 1);
    assert_eq!((drift.cause, drift.ahead), (Cause::Demand, Duration::from_millis(1)));
    assert_eq!(drift.pause(ClockRollback::Error, Duration::from_secs(1)), Some(Duration::from_millis(1)));
    assert_eq!(drift.pause(ClockRollback::Wait, Duration::ZERO), None);
    assert_eq!(GeneratorError::Drift(drift).kind(), Kind::WaitedTooLong);
    assert_eq!(bench.take(101, 1), Ok((101, 0, 1)));
}

#[test]
fn a_range_never_ends_beyond_the_drift() {
    let bench = default(2_000);
    assert_eq!(bench.take(100, 1_000_000), Ok((100, 0, 3 * 4096)));
    assert_eq!(bench.drift(100, 1).ahead, Duration::from_millis(3));
}

#[test]
fn a_step_back_within_the_drift_goes_on_growing() {
    let bench = default(10 * SECOND);
    assert_eq!(bench.take(20_000, 1), Ok((20_000, 0, 1)));
    assert_eq!(bench.take(15_000, 1), Ok((20_000, 1, 1)));
    assert_eq!(bench.take(15_001, 1), Ok((20_000, 2, 1)));
    assert_eq!(bench.take(20_001, 1), Ok((20_001, 0, 1)));
    let seen = bench.generator.snapshot();
    assert_eq!((seen.steps_back, seen.largest_step_back), (1, 5_000), "one event, however many calls met it");
}

#[test]
fn a_step_back_beyond_the_drift_is_refused_and_ends_when_the_clock_has_caught_up() {
    let bench = default(SECOND);
    bench.take(20_000, 1).unwrap();
    let drift = bench.drift(15_000, 1);
    assert_eq!(
        (drift.cause, drift.ahead, drift.max_drift),
        (Cause::StepBack, Duration::from_secs(5), Duration::from_secs(1))
    );
    assert_eq!(drift.pause(ClockRollback::Error, Duration::from_secs(9)), None);
    assert_eq!(drift.pause(ClockRollback::Wait, Duration::from_secs(9)), Some(Duration::from_secs(4)));
    assert_eq!(drift.pause(ClockRollback::Wait, Duration::from_secs(1)), Some(Duration::from_secs(1)));
    assert_eq!(GeneratorError::Drift(drift).kind(), Kind::ClockBehind);
    assert!(bench.take(18_999, 1).is_err());
    assert_eq!(bench.take(19_000, 1), Ok((20_000, 1, 1)));
    assert_eq!(bench.generator.snapshot().steps_back, 1, "a refused call saw the same step");
}

#[test]
fn every_step_back_is_counted_with_the_largest() {
    let bench = default(3600 * SECOND);
    for tick in [50_000, 49_000, 60_000, 40_000, 40_001, 41_000, 40_500] {
        bench.take(tick, 1).unwrap();
    }
    let seen = bench.generator.snapshot();
    assert_eq!((seen.steps_back, seen.largest_step_back), (3, 20_000));
}

/// An operator set the clock to 2060 for a moment.
#[test]
fn a_moment_in_the_future_ends_in_a_bounded_error_and_not_in_a_stream_of_such_ids() {
    let bench = default(60 * SECOND);
    let (now, future) = (200_000_000_000, 1_262_304_000_000);
    bench.take(now, 1).unwrap();
    bench.take(future, 1).unwrap();
    for later in 1..1000 {
        let error = bench.take(now + later, 1).unwrap_err();
        assert_eq!(error.kind(), Kind::ClockBehind);
        assert!(error.detail().is_some_and(|detail| detail.contains("years")), "{:?}", error.detail());
        assert!(error.hint().is_some_and(|hint| hint.contains("switch")));
    }
    assert_eq!(bench.generator.snapshot().last.map(|position| position.0 >> 12), Some(future));
}

#[test]
fn the_last_tick_is_used_to_its_end_and_nothing_comes_after_it() {
    let bench = Bench::new("3/0/0/2 epoch=2020-01-01", 60 * SECOND, SequenceStart::Zero);
    assert_eq!(bench.take(7, 3), Ok((7, 0, 3)));
    assert_eq!(bench.take(7, 3), Ok((7, 3, 1)), "the range ends with the layout");
    let error = bench.take(7, 1).unwrap_err();
    assert!(matches!(error, GeneratorError::Exhausted { .. }));
    assert_eq!(error.kind(), Kind::Exhausted);
    let after = UnixMicros(bench.layout.last_instant().0 + 1);
    let gone = bench.generator.take(&bench.layout, &bench.rules, &after, NonZeroU32::MIN);
    assert!(matches!(gone, Err(GeneratorError::Exhausted { .. })), "{gone:?}");
}

#[test]
fn borrowing_stops_at_the_end_of_the_layout() {
    let bench = Bench::new("3/0/0/2 epoch=2020-01-01", 60 * SECOND, SequenceStart::Zero);
    assert_eq!(bench.take(0, 1000), Ok((0, 0, 32)));
    assert!(matches!(bench.take(0, 1), Err(GeneratorError::Exhausted { .. })));
}

#[test]
fn a_clock_before_the_epoch_is_an_error_of_its_own() {
    let bench = default(60 * SECOND);
    let before = UnixMicros(bench.layout.epoch().0 - 1);
    let refusal = bench.generator.take(&bench.layout, &bench.rules, &before, NonZeroU32::MIN).unwrap_err();
    assert!(matches!(refusal, GeneratorError::BeforeEpoch { .. }));
    assert_eq!(refusal.kind(), Kind::ClockBehind);
    assert_eq!(bench.generator.snapshot().last, None);
}

#[test]
fn rotate_starts_each_tick_one_further() {
    let bench = Bench::new("41/5/5/12", 0, SequenceStart::Rotate);
    let starts: Vec<u64> = (100..110).map(|tick| bench.take(tick, 1).unwrap().1).collect();
    assert_eq!(starts, (0..10).collect::<Vec<_>>());
}

#[test]
fn random_starts_leave_half_the_tick() {
    let bench = Bench::new("41/5/5/12", 0, SequenceStart::Random);
    assert!((1000..17_000).all(|tick| bench.take(tick, 1).unwrap().1 < 2048));
}

/// A first sequence number is chosen only for a fresh tick. In a used tick, a new choice could lie above the last number taken and
/// waste the ids between. A new choice at each call would use up a tick in a few calls.
#[test]
fn a_chosen_start_never_skips_ids_of_a_tick_that_has_begun() {
    for start in [SequenceStart::Random, SequenceStart::Rotate] {
        let bench = Bench::new("41/5/5/12", 0, start);
        for tick in 500..600 {
            let (_, first, _) = bench.take(tick, 1).unwrap();
            for next in 1..100 {
                assert_eq!(bench.take(tick, 1), Ok((tick, first + next, 1)));
            }
        }
    }
}

/// The server was down while its clock was set back.
#[test]
fn a_clock_that_was_ahead_before_the_start_is_a_step_back() {
    let bench = default(60 * SECOND);
    bench.generator.begin(NodeBits(0), Position(7_200_000 << 12), bench.layout.end_position());
    bench.generator.resume(Tick(7_200_000), Tick(3_600_000));
    assert_eq!(bench.drift(3_600_000, 1).cause, Cause::StepBack);
    let seen = bench.generator.snapshot();
    assert_eq!((seen.steps_back, seen.largest_step_back, seen.last), (1, 3_600_000, None));
    assert_eq!(seen.last_step_back, Some(StepBack { from: Tick(7_200_000), to: Tick(3_600_000) }));
}

#[test]
fn a_clock_that_went_on_before_the_start_is_no_step_back() {
    let bench = default(SECOND);
    bench.generator.resume(Tick(1_000), Tick(2_000));
    assert_eq!(bench.take(2_000, 1), Ok((2_000, 0, 1)));
    assert_eq!(bench.generator.snapshot().last_step_back, None);
}

/// After a kill, the high-water mark is ahead of the clock by the reserved time. Sessions wait if the reserved time exceeds the
/// maximum drift.
#[test]
fn what_was_reserved_before_the_start_is_waited_out_and_named() {
    let bench = default(SECOND);
    bench.generator.begin(NodeBits(0), Position(503_000 << 12), bench.layout.end_position());
    bench.generator.resume(Tick(500_000), Tick(500_000));
    let drift = bench.drift(500_000, 1);
    assert_eq!((drift.cause, drift.ahead), (Cause::Start, Duration::from_secs(3)));
    assert_eq!(drift.pause(ClockRollback::Error, Duration::from_secs(9)), Some(Duration::from_secs(2)));
    assert_eq!(bench.take(502_000, 1), Ok((503_000, 0, 1)));
    assert_eq!(bench.generator.snapshot().full_ticks, 0, "nothing was issued in the tick of the start");
}

/// After a small step back, errors name demand as the cause of the drift, once a burst's ids are above all ids from before the step.
#[test]
fn demand_is_not_blamed_on_a_step_back_within_the_drift() {
    let bench = default(SECOND);
    bench.take(20_000, 1).unwrap();
    bench.take(19_500, 1).unwrap();
    let full = NonZeroU32::new(10_000_000).unwrap();
    bench.generator.take(&bench.layout, &bench.rules, &bench.at(19_600), full).unwrap();
    assert_eq!(bench.drift(19_600, 1).cause, Cause::Demand);
}

#[test]
fn no_session_takes_before_the_first_term() {
    let bench = default(SECOND);
    let generator = Generator::default();
    let refused = generator.take(&bench.layout, &bench.rules, &bench.at(100), NonZeroU32::MIN);
    assert_eq!(refused, Err(GeneratorError::Unreserved));
    assert_eq!((generator.snapshot().last, generator.limit()), (None, Position(0)));
}

#[test]
fn nothing_is_issued_at_or_above_the_high_water_mark() {
    let bench = default(60 * SECOND);
    bench.generator.begin(NodeBits(0), Position(100 << 12), Position(102 << 12 | 5));
    assert_eq!(bench.take(101, 4096), Ok((101, 0, 4096)));
    assert_eq!(bench.take(101, 4096), Ok((102, 0, 5)), "a range ends at the mark");
    assert_eq!(bench.take(101, 1), Err(GeneratorError::Unreserved));
    assert_eq!(bench.take(103, 1), Err(GeneratorError::Unreserved), "a fresh tick above the mark");
    assert_eq!(bench.generator.next(), Position(102 << 12 | 5));
    bench.generator.raise(Position(110 << 12));
    assert_eq!(bench.take(101, 1), Ok((102, 5, 1)));
    bench.generator.raise(Position(104 << 12));
    assert_eq!(bench.generator.limit(), Position(110 << 12), "a mark never falls");
}

/// A clock beyond the high-water mark may be wrong. Its reading is recorded only after the high-water mark was raised above it.
#[test]
fn a_clock_beyond_the_high_water_mark_leaves_no_trace() {
    let bench = default(SECOND);
    bench.generator.begin(NodeBits(0), Position(100 << 12), Position(200 << 12));
    bench.take(100, 1).unwrap();
    assert_eq!(bench.take(1_000_000, 1), Err(GeneratorError::Unreserved));
    assert_eq!(bench.take(101, 1), Ok((101, 0, 1)));
    assert_eq!(bench.generator.snapshot().steps_back, 0);
}

#[test]
fn a_term_ends_exactly_where_its_last_id_was() {
    let bench = default(SECOND);
    bench.take(100, 10).unwrap();
    assert_eq!(bench.generator.close(), Position((100 << 12) + 10));
    assert_eq!(bench.take(100, 1), Err(GeneratorError::Unreserved));
    assert_eq!(bench.take(200, 1), Err(GeneratorError::Unreserved));
    assert_eq!(bench.generator.close(), Position((100 << 12) + 10), "closed twice, it still knows");
    assert_eq!(bench.generator.next(), Position((100 << 12) + 10));
}

#[test]
fn ids_carry_the_bits_of_the_term_they_were_taken_in() {
    let bench = default(SECOND);
    let take = |tick| bench.generator.take(&bench.layout, &bench.rules, &bench.at(tick), NonZeroU32::MIN);
    let [one, other] = [1, 2].map(|worker_id| NodeBits(worker_id << 12));
    bench.generator.begin(one, Position(500 << 12), Position(600 << 12));
    assert_eq!(take(500).unwrap().node_bits, one);
    bench.generator.begin(other, Position(400 << 12), Position(450 << 12));
    let taken = take(400).unwrap();
    assert_eq!(
        (taken.node_bits, taken.positions.from),
        (other, Position(400 << 12)),
        "another node has its own mark"
    );
    assert_eq!(bench.generator.snapshot().last, Some(Position(400 << 12)));
}

#[test]
fn nothing_is_taken_by_a_refused_call() {
    let bench = default(0);
    bench.take(100, 4096).unwrap();
    let before = bench.generator.snapshot();
    bench.drift(100, 1);
    assert_eq!(bench.generator.snapshot(), before);
}

/// `furthest` counts issued ids, and not the start of a term. An operator may therefore begin a new state below the start of a term
/// in which nothing was issued.
#[test]
fn a_term_in_which_nothing_was_issued_came_nowhere() {
    let bench = default(SECOND);
    bench.generator.begin(NodeBits(0), Position(500 << 12), Position(600 << 12));
    assert_eq!(bench.generator.furthest(), Position(0));
    bench.generator.begin(NodeBits(0), Position(100 << 12), Position(600 << 12));
    assert_eq!(bench.generator.furthest(), Position(0));
    bench.take(100, 3).unwrap();
    assert_eq!(bench.generator.furthest(), Position((100 << 12) + 3));
    bench.generator.begin(NodeBits(0), Position(50 << 12), Position(60 << 12));
    assert_eq!(bench.generator.furthest(), Position((100 << 12) + 3), "sessions may hold some of these");
}

/// Positions of the node whose bits are 7.
fn taken(from: u64, to: u64) -> TakenPositions {
    TakenPositions {
        positions: PositionRange { from: Position(from), to: Position(to) },
        node_bits: NodeBits(7 << 12),
    }
}

#[test]
fn a_block_is_worth_nothing_in_another_generation_and_keeps_its_bits() {
    let block = Block::empty();
    block.fill(taken(10, 20), 0);
    assert_eq!(block.node_bits(), NodeBits(7 << 12));
    assert_eq!(block.pop(0), Some(Position(10)));
    assert_eq!(block.pop(1), None);
    assert_eq!(block.pop_many(5, 1), None);
    block.fill(taken(30, 40), 1);
    assert_eq!(block.pop(1), Some(Position(30)));
    assert_eq!(block.pop_many(5, 1), Some(PositionRange { from: Position(31), to: Position(36) }));
}

#[test]
fn a_block_looks_at_the_clock_now_and_then() {
    let bench = default(SECOND);
    let allowed =
        |tick| bench.generator.allows(&bench.layout, &bench.rules, &bench.at(tick), Position(20_000 << 12));
    assert!(allowed(20_000) && allowed(19_000) && !allowed(18_999));
    let before = UnixMicros(bench.layout.epoch().0 - 10_000_000);
    assert!(
        !bench.generator.allows(&bench.layout, &bench.rules, &before, Position(20_000 << 12)),
        "before the epoch"
    );

    let block = Block::empty();
    block.fill(taken(0, 2 * Block::SPAN + 5), 0);
    let popped = |from: u64, to: u64| (from..to).all(|position| block.pop(0) == Some(Position(position)));
    assert!(popped(0, Block::SPAN));
    assert_eq!(block.pop(0), None, "due for a look at the clock");
    assert!(!block.renew(0, |_| false), "the clock said no");
    assert_eq!(block.pop(0), None);
    assert!(!block.renew(1, |_| true), "stale");
    assert!(block.renew(0, |position| position == Position(2 * Block::SPAN - 1)));
    assert!(popped(Block::SPAN, 2 * Block::SPAN));
    assert!(block.renew(0, |position| position == Position(2 * Block::SPAN + 4)));
    assert!(popped(2 * Block::SPAN, 2 * Block::SPAN + 5));
    assert!(!block.renew(0, |_| true), "used up");
    block.fill(taken(500, 600), 0);
    block.clear();
    assert!(block.pop(0).is_none() && !block.renew(0, |_| true));
}
