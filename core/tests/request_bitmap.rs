//! Slots with requests: a search finds all of these slots and no others. It looks at each slot without a request at most once.

use proptest::prelude::*;
use snowflake_ids_core::tag::request_bitmap::{RequestBitmap, words};
use snowflake_ids_core::tag::tickets::{Answer, Tickets};
use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::thread;

const SLOTS: usize = 200;

#[derive(Clone, Copy, Debug)]
enum Act {
    RequestBody(usize),
    Answer(usize),
    Look,
}

fn acts() -> impl Strategy<Value = Act> {
    prop_oneof![(0..SLOTS).prop_map(Act::RequestBody), (0..SLOTS).prop_map(Act::Answer), Just(Act::Look)]
}

proptest! {
    #[test]
    fn those_that_ask_are_found_and_the_others_forgotten(acts in prop::collection::vec(acts(), 0..400)) {
        let bits: Vec<AtomicU64> = (0..words(SLOTS)).map(|_| AtomicU64::new(0)).collect();
        let (asked, requests) = (RequestBitmap::new(&bits), (0..SLOTS).map(|_| Tickets::default()).collect::<Vec<_>>());
        let answer = |slot_index: usize| {
            if let Some(ticket) = requests[slot_index].pending() {
                requests[slot_index].answer(ticket, Answer::Supplied);
            }
        };
        for act in acts {
            match act {
                Act::RequestBody(slot_index) => {
                    requests[slot_index].ask();
                    asked.record(slot_index);
                }
                Act::Answer(slot_index) => answer(slot_index),
                Act::Look => {
                    let looks = Cell::new(0);
                    let is_asked = |slot_index: usize| {
                        looks.set(looks.get() + 1);
                        requests[slot_index].pending().is_some()
                    };
                    let expected: Vec<usize> = (0..SLOTS).filter(|slot_index| requests[*slot_index].pending().is_some()).collect();
                    prop_assert_eq!(&asked.slots_with_requests(is_asked), &expected);
                    looks.set(0);
                    asked.slots_with_requests(is_asked);
                    prop_assert_eq!(looks.get(), expected.len(), "those without a request are not looked at again");
                }
            }
        }
    }
}

/// A search finds every request that was recorded before it, whatever is requested and answered during the search.
#[test]
fn no_request_is_missed_while_another_is_answered() {
    const CALLS: usize = 20_000;
    let bits: Vec<AtomicU64> = (0..words(2)).map(|_| AtomicU64::new(0)).collect();
    let (asked, requests) = (RequestBitmap::new(&bits), [Tickets::default(), Tickets::default()]);
    let recorded = [AtomicUsize::new(0), AtomicUsize::new(0)];
    let missed = AtomicBool::new(false);
    thread::scope(|scope| {
        let callers = [0, 1].map(|slot_index| {
            let (request, recorded, missed) = (&requests[slot_index], &recorded[slot_index], &missed);
            scope.spawn(move || {
                for call in 1..=CALLS {
                    let ticket = request.ask();
                    asked.record(slot_index);
                    recorded.store(call, Ordering::Release);
                    while request.answer_to(ticket).is_none() && !missed.load(Ordering::Relaxed) {
                        std::hint::spin_loop();
                    }
                }
            })
        });
        let mut answered = [0; 2];
        while callers.iter().any(|caller| !caller.is_finished()) {
            let before = [0, 1].map(|slot_index| recorded[slot_index].load(Ordering::Acquire));
            let found = asked.slots_with_requests(|slot_index| requests[slot_index].pending().is_some());
            if [0, 1]
                .iter()
                .any(|slot_index| before[*slot_index] > answered[*slot_index] && !found.contains(slot_index))
            {
                missed.store(true, Ordering::Relaxed);
            }
            for slot_index in found {
                if let Some(ticket) = requests[slot_index].pending() {
                    requests[slot_index].answer(ticket, Answer::Supplied);
                    answered[slot_index] += 1;
                }
            }
        }
    });
    assert!(!missed.into_inner(), "a request was missed");
}

#[test]
fn an_answer_counts_for_those_who_asked_before_it() {
    let request = Tickets::default();
    assert_eq!(request.pending(), None);
    let first = request.ask();
    let seen = request.pending();
    let second = request.ask();
    request.answer(seen.unwrap_or(0), Answer::Unknown);
    assert_eq!((request.answer_to(first), request.answer_to(second)), (Some(Answer::Unknown), None));
    assert_eq!(request.pending(), Some(second), "asked while the worker was busy");
    request.answer(second, Answer::Supplied);
    assert_eq!((request.answer_to(second), request.pending()), (Some(Answer::Supplied), None));
}

/// Once a request to create a tag was answered, it has no effect on later requests.
#[test]
fn a_tag_is_made_for_who_wants_that_and_is_not_answered() {
    let request = Tickets::default();
    request.ask();
    assert!(!request.creates());
    let creating = request.ask_to_create();
    let seen = request.ask();
    assert_eq!((creating, seen, request.creates()), (2, 3, true));
    request.answer(creating - 1, Answer::Unknown);
    assert!(request.creates());
    request.answer(seen, Answer::Supplied);
    request.ask();
    assert!(!request.creates());
    request.ask_to_create();
    assert!(request.creates());
}

#[test]
fn a_late_answer_does_not_undo_a_newer_one() {
    let request = Tickets::default();
    let (first, second) = (request.ask(), request.ask());
    request.answer(second, Answer::Supplied);
    request.answer(first, Answer::Exhausted);
    assert_eq!(request.answer_to(second), Some(Answer::Supplied));
    assert_eq!(request.pending(), None);
}
