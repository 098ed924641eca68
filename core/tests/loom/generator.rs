//! The generator under every interleaving that loom finds, with clocks that jump forward and back.
//!
//! Run by `make loom`.

use super::model::{model, model_with};
use loom::sync::Arc;
use loom::sync::atomic::{AtomicI64, Ordering};
use loom::thread;
use snowflake_ids_core::server::issuer::{GeneratorSlot, LayoutGenerator};
use snowflake_ids_core::session::take;
use snowflake_ids_core::{
    Clock, Generator, GeneratorError, Layout, NodeBits, Position, Rules, SequenceStart, TakenPositions, Tick,
    UnixMicros,
};
use std::num::NonZeroU32;

const ONE: NonZeroU32 = NonZeroU32::MIN;

fn layout() -> Layout {
    "20/0/4/2 epoch=2020-01-01".parse().unwrap()
}

fn rules() -> Rules {
    Rules { max_drift: 1_000_000, start: SequenceStart::Zero }
}

fn at(tick: u64) -> UnixMicros {
    layout().instant(Tick(tick))
}

/// A generator in its first term, with all positions reserved.
fn begun() -> Arc<Generator> {
    let generator = Generator::default();
    generator.begin(NodeBits(0), Position(0), layout().end_position());
    Arc::new(generator)
}

/// Runs one thread per list of ticks. Each thread takes `want` positions at each tick of its list. Returns each thread's positions.
fn run(schedule: [&'static [u64]; 2], want: u32) -> (Arc<Generator>, Vec<Vec<u64>>) {
    let generator = begun();
    let threads = schedule.map(|ticks| {
        let generator = Arc::clone(&generator);
        thread::spawn(move || {
            let mut got = Vec::new();
            for &tick in ticks {
                let want = NonZeroU32::new(want).unwrap();
                let positions = generator.take(&layout(), &rules(), &at(tick), want).unwrap().positions;
                got.extend(positions.from.0..positions.to.0);
            }
            got
        })
    });
    let got = threads.map(|thread| thread.join().unwrap()).into();
    (generator, got)
}

fn assert_unique_and_growing(got: &[Vec<u64>]) {
    assert!(got.iter().all(|mine| mine.is_sorted_by(|a, b| a < b)), "{got:?}");
    let mut all = got.concat();
    all.sort_unstable();
    assert!(all.is_sorted_by(|a, b| a < b), "issued twice: {got:?}");
}

#[test]
fn one_tick_is_shared_without_a_duplicate_or_a_gap() {
    loom::model(|| {
        let (generator, got) = run([&[5, 5], &[5]], 1);
        assert_unique_and_growing(&got);
        assert_eq!(generator.snapshot().last, Some(Position(5 << 2 | 2)));
    });
}

#[test]
fn clocks_that_jump_both_ways_give_no_duplicate() {
    model(|| {
        let (_, got) = run([&[5, 3], &[4, 6]], 1);
        assert_unique_and_growing(&got);
    });
}

#[test]
fn ranges_that_borrow_ticks_give_no_duplicate() {
    loom::model(|| {
        let (generator, got) = run([&[5, 4], &[5]], 3);
        assert_unique_and_growing(&got);
        assert_eq!(generator.snapshot().full_ticks, 2, "nine ids at four a tick");
    });
}

/// A clock that only advances, like a server's clock that nobody sets. All threads share it.
struct Steady(Arc<AtomicI64>);

impl Clock for Steady {
    fn now(&self) -> UnixMicros {
        at(self.0.fetch_add(1, Ordering::SeqCst).cast_unsigned())
    }
}

/// Fails if the clock is read before the last observation is loaded. A slow thread's old reading then looks like a step back.
#[test]
fn a_steady_clock_never_looks_like_a_step_back() {
    loom::model(|| {
        let generator = begun();
        let ticks = Arc::new(AtomicI64::new(5));
        let threads = [1, 2].map(|calls| {
            let (generator, clock) = (Arc::clone(&generator), Steady(Arc::clone(&ticks)));
            thread::spawn(move || {
                for _ in 0..calls {
                    generator.take(&layout(), &rules(), &clock, ONE).unwrap();
                }
            })
        });
        for thread in threads {
            thread.join().unwrap();
        }
        assert_eq!(generator.snapshot().steps_back, 0);
    });
}

#[test]
fn of_all_who_see_a_step_back_one_counts_it() {
    loom::model(|| {
        let generator = begun();
        generator.take(&layout(), &rules(), &at(9), ONE).unwrap();
        let threads = [(); 2].map(|()| {
            let generator = Arc::clone(&generator);
            thread::spawn(move || generator.take(&layout(), &rules(), &at(4), ONE).unwrap())
        });
        for thread in threads {
            thread.join().unwrap();
        }
        let seen = generator.snapshot();
        assert_eq!((seen.steps_back, seen.largest_step_back), (1, 5));
    });
}

/// A clock that a test sets while others read it.
struct Set(Arc<AtomicI64>);

impl Clock for Set {
    fn now(&self) -> UnixMicros {
        at(self.0.load(Ordering::SeqCst).cast_unsigned())
    }
}

/// Fails if a later reading is recorded by a plain store. A slow thread may then store its reading from before the step after
/// the step, so that the next reading looks like another step.
#[test]
fn a_reading_from_before_a_step_back_does_not_hide_it() {
    loom::model(|| {
        let generator = begun();
        let clock = Arc::new(AtomicI64::new(5));
        let take = |generator: &Generator, clock: &Arc<AtomicI64>| {
            generator.take(&layout(), &rules(), &Set(Arc::clone(clock)), ONE).unwrap();
        };
        take(&generator, &clock);
        clock.store(6, Ordering::SeqCst);
        let threads = [None, Some(3)].map(|step| {
            let (generator, clock) = (Arc::clone(&generator), Arc::clone(&clock));
            thread::spawn(move || {
                if let Some(tick) = step {
                    clock.store(tick, Ordering::SeqCst);
                }
                take(&generator, &clock);
            })
        });
        for thread in threads {
            thread.join().unwrap();
        }
        take(&generator, &clock);
        assert_eq!(generator.snapshot().steps_back, 1);
    });
}

/// The bits of two nodes.
const A: NodeBits = NodeBits(1 << 2);
const B: NodeBits = NodeBits(2 << 2);

/// Takes one position at tick 2. None if nothing is reserved.
fn try_one(generator: &Generator) -> Option<TakenPositions> {
    match generator.take(&layout(), &rules(), &at(2), ONE) {
        Ok(taken) => Some(taken),
        Err(GeneratorError::Unreserved) => None,
        Err(other) => panic!("{other:?}"),
    }
}

/// Lets another thread take a position during `act`, and then takes a position on this thread. Returns both positions.
fn while_one_takes(generator: &Arc<Generator>, act: impl FnOnce(&Generator)) -> Vec<TakenPositions> {
    let taker = {
        let generator = Arc::clone(generator);
        thread::spawn(move || try_one(&generator))
    };
    act(generator);
    let mine = try_one(generator);
    taker.join().unwrap().into_iter().chain(mine).collect()
}

/// Fails if a taker does not read the term's number again after the take, or if the number is not made odd before the term changes.
#[test]
fn a_position_is_made_with_the_bits_of_its_own_term() {
    model(|| {
        let generator = Arc::new(Generator::default());
        generator.begin(A, Position(20), Position(24));
        for TakenPositions { positions, node_bits } in
            while_one_takes(&generator, |generator| generator.begin(B, Position(8), Position(12)))
        {
            let own = if node_bits == A { 20..24 } else { 8..12 };
            assert!(own.contains(&positions.from.0), "{positions:?} of {node_bits:?}");
        }
    });
}

/// Fails in the two cases of the test above. Also fails if the end of a term is not read and closed in one step. The two terms
/// have the same positions, so that a confusion of terms repeats an id.
#[test]
fn two_terms_over_the_same_positions_share_no_id() {
    model(|| {
        let generator = Arc::new(Generator::default());
        generator.begin(A, Position(8), Position(10));
        let first = try_one(&generator);
        let mut ids: Vec<_> =
            while_one_takes(&generator, |generator| generator.begin(B, Position(8), Position(10)))
                .into_iter()
                .chain(first)
                .map(|taken| layout().id(taken.positions.from, taken.node_bits))
                .collect();
        let issued = ids.len();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), issued, "{ids:?}");
    });
}

/// Fails if `close` uses two steps to read the end and to keep takers out.
#[test]
fn nothing_is_handed_out_at_or_above_what_close_said() {
    model(|| {
        let generator = Arc::new(Generator::default());
        generator.begin(A, Position(8), Position(16));
        let mut end = Position(0);
        let taken = while_one_takes(&generator, |generator| end = generator.close());
        assert!(taken.iter().all(|taken| taken.positions.to <= end), "{taken:?} beyond {end:?}");
    });
}

#[test]
fn nothing_is_handed_out_at_or_above_the_high_water_mark_before_it_is_raised() {
    model(|| {
        let generator = Arc::new(Generator::default());
        generator.begin(A, Position(8), Position(9));
        generator.take(&layout(), &rules(), &at(2), ONE).unwrap();
        let durable = Arc::new(AtomicI64::new(9));
        let raiser = {
            let (generator, durable) = (Arc::clone(&generator), Arc::clone(&durable));
            thread::spawn(move || {
                durable.store(12, Ordering::SeqCst);
                generator.raise(Position(12));
            })
        };
        if let Some(taken) = try_one(&generator) {
            // A read-modify-write reads the newest value, as a server would read it after a crash.
            assert!(taken.positions.to.0 <= durable.fetch_add(0, Ordering::SeqCst).cast_unsigned());
        }
        raiser.join().unwrap();
        assert!(try_one(&generator).is_some(), "the new mark is there for every session");
    });
}

/// The second layout replaces the first layout in a slot, and each session gets positions of its own layout. Fails if the
/// generation is not read again after the take. Also fails if the generation changes only after the generator has begun for the
/// second layout. Allows one preemption fewer than other tests, because the reuse of a slot takes many steps.
#[test]
fn a_position_is_of_the_layout_that_has_the_slot() {
    model_with(2, || {
        let slot = Arc::new(GeneratorSlot::default());
        slot.generator.begin(A, Position(20), Position(24));
        let taker = {
            let slot = Arc::clone(&slot);
            thread::spawn(move || take_at(&slot, 0))
        };
        slot.generator.close();
        slot.reuse();
        slot.generator.begin(A, Position(8), Position(12));
        let mine = take_at(&slot, 1);
        if let Some(taken) = taker.join().unwrap() {
            assert!((20..24).contains(&taken.positions.from.0), "{taken:?} is of the second");
        }
        if let Some(taken) = mine {
            assert!((8..12).contains(&taken.positions.from.0), "{taken:?} is of the first");
        }
    });
}

fn take_at(slot: &GeneratorSlot, slot_generation: u64) -> Option<TakenPositions> {
    let layout = layout();
    match take(&LayoutGenerator::at(slot, slot_generation, &layout), &rules(), &at(2), ONE, None) {
        Ok(taken) => Some(taken),
        Err(GeneratorError::Unreserved) => None,
        Err(other) => panic!("{other:?}"),
    }
}
