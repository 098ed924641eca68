//! A tag's buffers, one step at a time and under threads. Interleavings are in `loom/segment.rs`.
#![allow(clippy::disallowed_types, reason = "threads of one process, which is what the lock is for")]

use parking_lot::Mutex;
use snowflake_ids_core::tag::definition::Range;
use snowflake_ids_core::tag::segment::{Miss, Period, Segment, Stamp, Supply};
use snowflake_ids_core::{Clock, UnixMicros};
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

const ONE: NonZeroU32 = NonZeroU32::MIN;
const NOW: UnixMicros = UnixMicros(1_000);

/// A clock that fails the test when it is read.
struct NoClock;

impl Clock for NoClock {
    fn now(&self) -> UnixMicros {
        panic!("the clock was read");
    }
}

fn supply(first: i64, count: u32) -> Supply {
    Supply { range: Range { first, count, increment: 1 }, period: Period::FOREVER, prefetch_at: count }
}

fn publish(segment: &Segment, supply: &Supply) -> bool {
    segment.publish(supply, segment.stamp())
}

fn of_day(day: i32, until: i64, count: u32) -> Supply {
    Supply { period: Period { day, until: UnixMicros(until) }, ..supply(1, count) }
}

fn want(ids: u32) -> NonZeroU32 {
    NonZeroU32::new(ids).unwrap()
}

#[test]
fn a_new_segment_is_dry_until_a_range_is_published() {
    let segment = Segment::default();
    assert_eq!(segment.take(0, ONE, &NoClock), Err(Miss::Empty));
    assert!(publish(&segment, &supply(7, 2)));
    let ids = [(); 2].map(|()| segment.take(0, ONE, &NoClock).unwrap().range.first);
    assert_eq!(ids, [7, 8]);
    assert_eq!(segment.take(0, ONE, &NoClock), Err(Miss::Empty));
}

/// Fails if a range may be published over one that no session has used yet.
#[test]
fn there_is_room_for_one_range_beside_the_present_one() {
    let segment = Segment::default();
    assert!(publish(&segment, &supply(1, 1)));
    assert!(!publish(&segment, &supply(11, 1)), "the first is not in use yet");
    assert_eq!(segment.take(0, ONE, &NOW).unwrap().range.first, 1);
    assert!(segment.buffer_states().have_room());
    assert!(publish(&segment, &supply(21, 1)));
    assert!(!segment.buffer_states().have_room());
    assert!(!publish(&segment, &supply(31, 1)));
    assert_eq!(segment.take(0, ONE, &NOW).unwrap().range.first, 21);
}

/// Fails if a range may be published that was reserved before the buffers were cleared. Since then, other sessions may have
/// received ids of the range.
#[test]
fn what_was_reserved_before_a_clearing_is_not_published_after_it() {
    let segment = Segment::default();
    let before = segment.stamp();
    segment.clear();
    assert!(!segment.publish(&supply(1, 5), before));
    assert!(segment.publish(&supply(1, 5), segment.stamp()));
}

#[test]
fn what_was_reserved_for_one_tag_is_not_published_for_another() {
    let segment = Segment::default();
    let before = segment.stamp();
    segment.hand_over(7);
    let between = Stamp { clearings: segment.stamp().clearings, ..before };
    assert!(!segment.publish(&supply(1, 5), before) && !segment.publish(&supply(1, 5), between));
    assert_eq!(segment.take(7, ONE, &NOW), Err(Miss::Empty));
}

#[test]
fn a_take_of_several_ends_with_the_range() {
    let segment = Segment::default();
    let range = Range { first: 5, count: 3, increment: 10 };
    assert!(publish(&segment, &Supply { range, ..supply(0, 3) }));
    assert_eq!(segment.take(0, want(2), &NOW).unwrap().range, Range { first: 5, count: 2, increment: 10 });
    assert!(publish(&segment, &supply(100, 5)));
    assert_eq!(segment.take(0, want(9), &NOW).unwrap().range, Range { first: 25, count: 1, increment: 10 });
    assert_eq!(segment.take(0, want(9), &NOW).unwrap().range, Range { first: 100, count: 5, increment: 1 });
}

#[test]
fn the_next_range_is_asked_for_once_where_the_share_is_reached() {
    let segment = Segment::default();
    assert!(publish(&segment, &Supply { prefetch_at: 3, ..supply(1, 5) }));
    let asked = [(); 5].map(|()| segment.take(0, ONE, &NOW).unwrap().prefetch);
    assert_eq!(asked, [false, false, true, false, false]);
    assert!(publish(&segment, &Supply { prefetch_at: 0, ..supply(11, 3) }));
    let asked = [(); 3].map(|()| segment.take(0, ONE, &NOW).unwrap().prefetch);
    assert_eq!(asked, [true, false, false], "0: with the first");
    assert!(publish(&segment, &Supply { prefetch_at: 2, ..supply(21, 9) }));
    assert!(segment.take(0, want(5), &NOW).unwrap().prefetch, "stepped over");
}

#[test]
fn ids_of_a_day_are_given_until_it_is_over() {
    let segment = Segment::default();
    assert!(publish(&segment, &of_day(10, 2_000, 5)));
    let taken = segment.take(0, ONE, &UnixMicros(1_999)).unwrap();
    assert_eq!((taken.range.first, taken.day), (1, 10));
    assert_eq!(segment.take(0, ONE, &UnixMicros(2_000)), Err(Miss::Empty));
    assert!(segment.buffer_states().is_over(&UnixMicros(2_000)) && segment.buffer_states().is_dated());
    assert!(!segment.buffer_states().is_over(&UnixMicros(1_999)));
    assert_eq!(segment.clear().left(), 4);
    assert!(publish(&segment, &of_day(11, 3_000, 5)));
    let taken = segment.take(0, ONE, &UnixMicros(2_000)).unwrap();
    assert_eq!((taken.range.first, taken.day), (1, 11));
}

#[test]
fn the_shelves_tell_what_is_used() {
    let segment = Segment::default();
    assert_eq!(segment.buffer_states().current, None);
    assert!(publish(&segment, &supply(1, 3)));
    let next = segment.buffer_states().next.unwrap();
    assert_eq!((next.used, next.left(), next.last_used()), (0, 3, None));
    segment.take(0, want(2), &NOW).unwrap();
    let current = segment.buffer_states().current.unwrap();
    assert_eq!((current.used, current.left(), current.last_used()), (2, 1, Some(2)));
    assert!(publish(&segment, &supply(4, 3)));
    assert_eq!(segment.buffer_states().left(), 4);
    assert_eq!(segment.hand_over(9).left(), 4);
    assert_eq!((segment.buffer_states().left(), segment.slot_generation()), (0, 9));
    assert_eq!(segment.take(0, ONE, &NOW), Err(Miss::Gone));
    assert_eq!(segment.take(9, ONE, &NOW), Err(Miss::Empty));
}

/// Eight takers, and a publisher that also clears at times. No id comes twice, and each id was published. Each published id is
/// either taken or reported as left.
#[test]
fn threads_share_ranges_without_a_duplicate_or_a_loss() {
    const RANGES: i64 = if cfg!(miri) { 20 } else { 20_000 };
    const SIZE: u32 = 7;
    let (segment, all, done) = (Segment::default(), Mutex::new(Vec::new()), AtomicBool::new(false));
    let mut left = 0;
    thread::scope(|scope| {
        for thread in 0..8 {
            let (segment, all, done) = (&segment, &all, &done);
            scope.spawn(move || {
                let (mut mine, ids) = (Vec::new(), want([1, 1, 2, 5][thread % 4]));
                loop {
                    let finished = done.load(Ordering::Acquire);
                    match segment.take(0, ids, &NoClock) {
                        Ok(taken) => mine.extend((0..taken.range.count).map(|offset| taken.range.at(offset))),
                        Err(_) if finished => break,
                        Err(_) => thread::yield_now(),
                    }
                }
                all.lock().extend(mine);
            });
        }
        for range in 0..RANGES {
            let supply = supply(range * i64::from(SIZE), SIZE);
            while !publish(&segment, &supply) {
                thread::yield_now();
            }
            if range % 17 == 0 {
                left += segment.clear().left();
            }
        }
        done.store(true, Ordering::Release);
    });
    let mut all = all.into_inner();
    all.sort_unstable();
    assert!(all.is_sorted_by(|a, b| a < b), "issued twice");
    assert!(all.iter().all(|id| (0..RANGES * i64::from(SIZE)).contains(id)));
    assert_eq!(all.len() as u64 + left, RANGES.unsigned_abs() * u64::from(SIZE));
}
