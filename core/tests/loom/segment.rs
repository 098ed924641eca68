//! A tag's buffers under every interleaving that loom finds.
//!
//! Run by `make loom`.

use super::model::model;
use loom::sync::Arc;
use loom::sync::atomic::AtomicU64;
use loom::thread;
use snowflake_ids_core::UnixMicros;
use snowflake_ids_core::tag::definition::Range;
use snowflake_ids_core::tag::request_bitmap::RequestBitmap;
use snowflake_ids_core::tag::segment::{Miss, Period, Segment, Supply};
use snowflake_ids_core::tag::tickets::{Answer, Tickets};
use std::num::NonZeroU32;

const ONE: NonZeroU32 = NonZeroU32::MIN;
const NOW: UnixMicros = UnixMicros(0);

fn supply(first: i64, count: u32) -> Supply {
    Supply { range: Range { first, count, increment: 1 }, period: Period::FOREVER, prefetch_at: count }
}

fn publish(segment: &Segment, supply: &Supply) -> bool {
    segment.publish(supply, segment.stamp())
}

/// Takes an id up to `calls` times. Returns the ids.
fn drain(segment: &Segment, slot_generation: u64, calls: usize) -> Vec<i64> {
    let take = |_| segment.take(slot_generation, ONE, &NOW).ok();
    (0..calls).filter_map(take).map(|taken| taken.range.first).collect()
}

fn sorted(lists: impl IntoIterator<Item = Vec<i64>>) -> Vec<i64> {
    let mut all: Vec<i64> = lists.into_iter().flatten().collect();
    all.sort_unstable();
    all
}

/// Fails if a take compares only a part of the generation. The third range uses the first range's buffer. A delayed taker may
/// still have the first range's cursor. Its take would succeed as soon as the third range's cursor shows the same number of
/// taken ids.
#[test]
fn an_old_cursor_is_never_accepted_against_a_new_range() {
    model(|| {
        let segment = Arc::new(Segment::default());
        assert!(publish(&segment, &supply(1, 2)));
        let mut got = drain(&segment, 0, 1);
        let other = {
            let segment = Arc::clone(&segment);
            thread::spawn(move || drain(&segment, 0, 1))
        };
        for first in [101, 201] {
            publish(&segment, &supply(first, 2));
            got.extend(drain(&segment, 0, 2));
        }
        let all = sorted([got, other.join().unwrap()]);
        assert!(all.is_sorted_by(|a, b| a < b), "issued twice: {all:?}");
        assert!(all.iter().all(|id| [1, 2, 101, 102, 201, 202].contains(id)), "never reserved: {all:?}");
    });
}

#[test]
fn takers_cross_from_one_buffer_to_the_next_without_a_gap() {
    model(|| {
        let segment = Arc::new(Segment::default());
        assert!(publish(&segment, &supply(1, 2)));
        let first = drain(&segment, 0, 1);
        let others = [(); 2].map(|()| {
            let segment = Arc::clone(&segment);
            thread::spawn(move || drain(&segment, 0, 1))
        });
        assert!(publish(&segment, &supply(3, 2)), "the first range is in use");
        let others = others.map(|other| other.join().unwrap());
        let rest = drain(&segment, 0, 4);
        assert_eq!(sorted(others.into_iter().chain([first, rest])), [1, 2, 3, 4]);
    });
}

/// For each range, exactly one taker learns that it has to request the next range.
#[test]
fn one_taker_asks_for_the_next_range() {
    model(|| {
        let segment = Arc::new(Segment::default());
        assert!(publish(&segment, &Supply { prefetch_at: 1, ..supply(1, 2) }));
        let threads = [(); 2].map(|()| {
            let segment = Arc::clone(&segment);
            thread::spawn(move || segment.take(0, ONE, &NOW).unwrap().prefetch)
        });
        let asked = threads.map(|thread| thread.join().unwrap());
        assert_eq!(asked.iter().filter(|asked| **asked).count(), 1);
    });
}

/// Fails if the cursor stays the same when the slot changes its owner, or if the generation is read before the cursor. A session
/// that knows the old owner would then get an id of the new owner.
#[test]
fn who_knows_the_old_owner_gets_nothing_of_the_new_one() {
    model(|| {
        let segment = Arc::new(Segment::default());
        assert!(publish(&segment, &supply(1, 2)));
        let old = {
            let segment = Arc::clone(&segment);
            thread::spawn(move || drain(&segment, 0, 2))
        };
        let left = segment.hand_over(1);
        assert!(publish(&segment, &supply(1_001, 2)));
        let new = drain(&segment, 1, 2);
        let old = old.join().unwrap();
        assert!(old.iter().all(|id| *id < 1_000), "{old:?}");
        assert_eq!(new, [1_001, 1_002]);
        assert_eq!(old.len() as u64 + left.left(), 2, "each id is either used or left");
        assert_eq!(segment.take(0, ONE, &NOW), Err(Miss::Gone));
    });
}

#[test]
fn what_is_cleared_away_was_not_taken_and_never_will_be() {
    model(|| {
        let segment = Arc::new(Segment::default());
        assert!(publish(&segment, &supply(1, 2)));
        let taker = {
            let segment = Arc::clone(&segment);
            thread::spawn(move || drain(&segment, 0, 3))
        };
        let left = segment.clear();
        // The cleared buffer is filled again at once.
        assert!(publish(&segment, &supply(11, 1)));
        let rest = drain(&segment, 0, 2);
        let got = sorted([taker.join().unwrap(), rest]);
        let (before, after): (Vec<_>, Vec<_>) = got.into_iter().partition(|id| *id < 10);
        assert_eq!(before.len() as u64 + left.left(), 2);
        assert!(after.is_sorted_by(|a, b| a < b), "{after:?}");
    });
}

/// Fails if the answer is published before the ids that it announces.
#[test]
fn who_is_told_of_a_supply_finds_it() {
    model(|| {
        let shared = Arc::new((Segment::default(), Tickets::default()));
        let ticket = shared.1.ask();
        let worker_id = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || {
                let pending = shared.1.pending().unwrap();
                assert!(publish(&shared.0, &supply(1, 1)));
                shared.1.answer(pending, Answer::Supplied);
            })
        };
        if shared.1.answer_to(ticket).is_some() {
            assert!(shared.0.take(0, ONE, &NOW).is_ok());
        }
        worker_id.join().unwrap();
    });
}

/// Fails if the request to create a tag is recorded after its ticket.
#[test]
fn who_wants_a_tag_made_is_not_told_that_there_is_none() {
    model(|| {
        let request = Arc::new(Tickets::default());
        let other = {
            let request = Arc::clone(&request);
            thread::spawn(move || request.ask())
        };
        let worker_id = {
            let request = Arc::clone(&request);
            thread::spawn(move || {
                let pending = request.pending();
                if let Some(pending) = pending.filter(|_| !request.creates()) {
                    request.answer(pending, Answer::Unknown);
                }
            })
        };
        let ticket = request.ask_to_create();
        worker_id.join().unwrap();
        other.join().unwrap();
        assert_ne!(request.answer_to(ticket), Some(Answer::Unknown));
    });
}

/// A caller requests ids while the worker searches for requests. The earlier request is already answered. The worker's next search
/// finds the new request.
#[test]
fn a_request_is_found_whenever_it_comes() {
    model(|| {
        let shared = Arc::new(([AtomicU64::new(0)], Tickets::default()));
        let ticket = shared.1.ask();
        RequestBitmap::new(&shared.0).record(0);
        shared.1.answer(ticket, Answer::Supplied);
        let caller = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || {
                shared.1.ask();
                RequestBitmap::new(&shared.0).record(0);
            })
        };
        let look = || RequestBitmap::new(&shared.0).slots_with_requests(|_| shared.1.pending().is_some());
        look();
        caller.join().unwrap();
        assert_eq!(look(), [0]);
    });
}
