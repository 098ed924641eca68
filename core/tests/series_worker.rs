//! Dense series: single rounds of the worker, where nothing goes on besides.
#![cfg(not(loom))]
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

#[path = "series_worker/alone.rs"]
mod alone;
#[path = "series_worker/server.rs"]
mod server;

use server::{DATABASE, Server, counter_key, row};
use snowflake_ids_core::refill_worker::Trouble;
use snowflake_ids_core::series::dense::{Answer, Definition, RoundCounts, Served};

fn number(number: i64) -> Answer {
    Answer::Number { number, day: 0 }
}

#[test]
fn there_is_no_number_above_the_highest_one() {
    for waiting in 1..4 {
        let server = Server::new(4);
        server.define(Definition { start: i64::MAX, max_value: i64::MAX, step: 10, max_step: 20 });
        server.rows.borrow_mut().insert(row(2), i64::MAX - 1);
        for key in [1, 2] {
            (0..waiting).for_each(|session| server.ask(session, key, i64::MAX));
            assert_eq!(server.serve(), Served::All);
            assert_eq!(server.answer(0), Some(number(i64::MAX)));
            for session in 1..waiting {
                assert_eq!(server.answer(session), Some(Answer::Exhausted));
            }
            assert_eq!(server.next(key), Answer::Exhausted);
        }
    }
}

#[test]
fn memory_has_no_number_above_the_highest_one() {
    let server = Server::new(4);
    server.define(Definition { start: 1, max_value: i64::MAX, step: 10, max_step: 20 });
    server.rows.borrow_mut().insert(row(1), i64::MAX - 4);
    let given: Vec<_> = (0..6).map(|_| server.next(1)).collect();
    let mut expected: Vec<_> = (i64::MAX - 3..=i64::MAX).map(number).collect();
    expected.extend([Answer::Exhausted; 2]);
    assert_eq!(given, expected);
    assert_eq!(server.serve(), Served::Nothing);
}

#[test]
fn a_call_gets_no_number_above_what_is_the_highest_for_it() {
    let server = Server::new(4);
    server.rows.borrow_mut().insert(row(1), 5);
    server.ask(0, 1, 5);
    server.ask(1, 1, 6);
    server.ask(2, 1, 6);
    server.ask(3, 1, 7);
    server.serve();
    let answers: Vec<_> = (0..4).map(|session| server.answer(session).unwrap()).collect();
    assert_eq!(answers, [Answer::Exhausted, number(6), Answer::Exhausted, number(7)]);
    assert_eq!(server.next(1), number(8), "none is missing");
}

#[test]
fn a_key_that_is_being_set_is_not_used_up() {
    let server = Server::new(4);
    let mut reached = 0;
    for _ in 0..5 {
        assert_eq!(server.next(1), number(reached + 1));
        // series_set() locks the row, takes the counter away, and commits.
        server.locked.borrow_mut().insert(row(1));
        server.partition.borrow_mut().void(&counter_key(1));
        server.ask(0, 1, 1_000_000);
        assert!(matches!(server.serve(), Served::Failed(_)));
        assert_eq!((server.answer(0), server.trouble(0)), (None, Some(Trouble::RowLocked)));
        reached += 100_000;
        server.rows.borrow_mut().insert(row(1), reached);
        server.locked.borrow_mut().clear();
        assert_eq!(server.serve(), Served::All);
        reached += 1;
        assert_eq!(server.answer(0), Some(number(reached)));
        for _ in 0..25 {
            reached += 1;
            assert_eq!(server.next(1), number(reached));
        }
    }
}

#[test]
fn calls_that_waited_for_a_worker_are_served_together() {
    let server = Server::new(400);
    for session in 0..200 {
        server.ask(session, session.try_into().unwrap(), 1_000);
        server.note_trouble(session, Trouble::NoWorker);
    }
    assert_eq!(server.serve(), Served::All);
    assert_eq!(server.transactions.borrow().len(), 1);
    assert!((0..200).all(|session| server.answer(session) == Some(number(1))));
}

#[test]
fn that_a_worker_was_missing_is_no_trouble_when_it_is_there() {
    for missing in [Trouble::NoWorker, Trouble::OutOfReach(7)] {
        let server = Server::new(4);
        server.ask(0, 1, 1_000);
        server.note_trouble(0, missing);
        server.requests.borrow_mut().take_up(DATABASE + 1);
        assert_eq!(server.trouble(0), Some(missing));
        assert_eq!(server.requests.borrow_mut().take_up(DATABASE).len(), 1);
        assert_eq!(server.trouble(0), None);
        server.note_trouble(0, Trouble::RowLocked);
        server.requests.borrow_mut().take_up(DATABASE);
        assert_eq!(server.trouble(0), Some(Trouble::RowLocked));
    }
}

#[test]
fn keys_that_fail_take_turns() {
    for is_lock_timeout in [false, true] {
        let server = Server::new(64);
        for key in 1..=40 {
            server.ask(usize::try_from(key).unwrap(), key, 1_000);
            server.failing.borrow_mut().insert(row(key), is_lock_timeout);
        }
        // Until each was tried.
        (0..5).for_each(|_| assert!(matches!(server.serve(), Served::Failed(_))));
        server.failing.borrow_mut().retain(|one, _| *one <= row(8));
        (0..2).for_each(|_| assert!(matches!(server.serve(), Served::Failed(_))));
        assert_eq!((1..=40).filter(|session| server.answer(*session) == Some(number(1))).count(), 32);
        server.failing.borrow_mut().clear();
        assert_eq!(server.serve(), Served::All);
        assert_eq!((1..=8).filter(|session| server.answer(*session) == Some(number(1))).count(), 8);
    }
}

#[test]
fn what_is_wanted_ahead_of_demand_is_in_no_calls_way() {
    let server = Server::new(64);
    for key in 1..=8 {
        server.rows.borrow_mut().insert(row(key), 1);
        assert_eq!(server.next(key), number(2));
    }
    for key in 1..=8 {
        (0..8).for_each(|_| assert!(matches!(server.next(key), Answer::Number { .. })));
        server.failing.borrow_mut().insert(row(key), true);
    }
    server.ask(0, 9, 1_000);
    assert!(matches!(server.serve(), Served::Failed(_)));
    assert_eq!(server.answer(0), Some(number(1)));
}

#[test]
fn what_a_round_does_is_counted() {
    let server = Server::new(2);
    let last = |server: &Server| server.counts.borrow().last().copied().unwrap();
    server.ask(0, 1, 1_000);
    server.ask(1, 1, 1_000);
    server.ask(2, 2, 1_000);
    server.serve();
    let new = RoundCounts { rounds: 1, reservations: 2, reserved: 3, ..RoundCounts::default() };
    assert_eq!(last(&server), new);
    // Ten more beside the one that is asked for.
    for key in [1, 2] {
        server.next(key);
        let ahead = RoundCounts { rounds: 1, reservations: 1, reserved: 11, ..RoundCounts::default() };
        assert_eq!(last(&server), ahead);
    }
    let rounds = server.counts.borrow().len();
    for _ in 0..4 {
        server.next(1);
    }
    assert_eq!(server.counts.borrow().len(), rounds, "memory has them");
    // Memory is full: one leaves, which has not been asked for lately, with what it has left.
    server.rows.borrow_mut().insert(row(3), 5);
    server.next(3);
    while last(&server).evictions == 0 {
        server.serve();
    }
    let RoundCounts { evictions, evicted, .. } = last(&server);
    assert!(evictions == 1 && [6, 10].contains(&evicted), "{evicted}");
    server.failing.borrow_mut().insert(row(4), false);
    let before = server.counts.borrow().len();
    server.ask(0, 4, 1_000);
    server.serve();
    assert_eq!(server.counts.borrow().len(), before, "a transaction that fails does nothing");
}
