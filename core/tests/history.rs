//! Readings of a server's counters, and the samples between them.

use snowflake_ids_core::report::history::{CounterReading, History, due, samples};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

/// A reading whose fields all follow from `number`.
fn reading(number: u64) -> CounterReading {
    CounterReading {
        at: number.cast_signed() * 1_000_000,
        uptime: number * 1_000_000,
        ids: number * 2,
        tag_ids: number * 3,
        waits: number * 4,
        refills: number * 5,
        steps_back: number * 6,
        steps_forward: number * 7,
        drift: number * 8,
        clock_ahead: number * 9,
    }
}

#[test]
fn the_last_ones_are_kept_in_their_order() {
    let history = History::<4>::default();
    assert_eq!(history.readings(), []);
    for number in 1..=2 {
        history.record(&reading(number));
    }
    assert_eq!(history.readings(), [1, 2].map(reading));
    for number in 3..=9 {
        history.record(&reading(number));
    }
    // The result has one reading fewer than the ring has entries, because the entry that is written next may be half written.
    assert_eq!(history.readings(), [7, 8, 9].map(reading));
}

#[test]
fn what_is_read_while_it_is_overwritten_is_passed_over() {
    let (history, over) = (History::<3>::default(), AtomicBool::new(false));
    thread::scope(|scope| {
        scope.spawn(|| {
            (1..=200_000).for_each(|number| history.record(&reading(number)));
            over.store(true, Relaxed);
        });
        while !over.load(Relaxed) {
            let read = history.readings();
            for one in &read {
                assert_eq!(*one, reading(one.ids / 2), "of two readings");
            }
            assert!(read.windows(2).all(|pair| pair[1].ids == pair[0].ids + 2), "{read:?}");
        }
    });
}

#[test]
fn a_rate_is_by_the_time_that_passed_whatever_the_clock_shows() {
    let before = CounterReading { at: 9_000_000_000, ..reading(10) };
    let after = CounterReading { at: 5_000_000_000, ids: 20 + 100, waits: 40 + 3, ..reading(20) };
    let [sample] = samples(&[before, after])[..] else { panic!("one pair is one sample") };
    assert_eq!((sample.at.0, sample.elapsed), (5_000_000_000, Duration::from_secs(10)));
    assert_eq!((sample.ids, sample.tag_ids, sample.waits), (10.0, 3.0, 3));
    assert_eq!((sample.steps_back, sample.steps_forward), (60, 70));
    assert_eq!(sample.drift, Duration::from_micros(160));
}

#[test]
fn a_count_that_went_down_tells_of_nothing_and_the_others_do() {
    let after = CounterReading { tag_ids: 0, waits: 0, ..reading(20) };
    let [sample] = samples(&[reading(10), after])[..] else { panic!("one pair is one sample") };
    assert_eq!((sample.ids, sample.tag_ids, sample.waits), (2.0, 0.0, 0));
    assert_eq!(sample.refills, 50);
}

#[test]
fn readings_of_one_moment_and_one_alone_say_nothing() {
    assert_eq!(samples(&[]), []);
    assert_eq!(samples(&[reading(1)]), []);
    assert_eq!(samples(&[reading(1), reading(1), reading(1)]), []);
}

#[test]
fn the_next_reading_is_due_when_the_interval_is_over() {
    let seconds = Duration::from_secs;
    let ten = seconds(10);
    assert_eq!(due(None, ten, seconds(5)), Some(Duration::ZERO));
    assert_eq!(due(Some(seconds(5)), ten, seconds(5)), Some(ten));
    assert_eq!(due(Some(seconds(5)), ten, seconds(12)), Some(seconds(3)));
    assert_eq!(due(Some(seconds(5)), ten, seconds(99)), Some(Duration::ZERO));
    assert_eq!(due(Some(seconds(5)), Duration::ZERO, seconds(99)), None);
    // A shorter interval takes effect at once.
    assert_eq!(due(Some(seconds(5)), seconds(1), seconds(7)), Some(Duration::ZERO));
}
