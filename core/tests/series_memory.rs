//! The memory of dense series, and what sessions ask of the worker.
#![cfg(not(loom))]
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

use proptest::collection::vec;
use proptest::prelude::{Strategy, any, prop_assert_eq, proptest};
use snowflake_ids_core::index::index_len;
use snowflake_ids_core::refill_worker::Trouble;
use snowflake_ids_core::series::Key;
use snowflake_ids_core::series::dense::{
    Answer, Asked, Counter, CounterKey, Given, Left, Miss, Partition, Request, Requests, SHORT_TEXT_BYTES,
    ShortKey, Taken,
};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

const SECRET: u64 = 77;
const NOW: Duration = Duration::from_secs(9);

fn key_of(database: u32, key: i64) -> CounterKey {
    CounterKey::new(SECRET, database, 5, 6, ShortKey::Bigint(key))
}

fn key(key: i64) -> CounterKey {
    key_of(1, key)
}

/// Memory for so many counters.
fn with<T>(places: usize, work: impl FnOnce(&mut Partition<'_>) -> T) -> T {
    let (mut counters, mut index) = (vec![Counter::EMPTY; places], vec![0; index_len(places)]);
    work(&mut Partition::new(&mut counters, &mut index))
}

/// A counter with numbers 1 to 10, half of which are ahead.
fn put(partition: &mut Partition<'_>, key: &CounterKey) -> bool {
    let held = partition.hold(key, NOW).is_some();
    partition.put(key, (1, 10), 0, 10, NOW);
    held
}

fn take(partition: &mut Partition<'_>, key: &CounterKey) -> Result<i64, Miss> {
    partition.take(key, 0, i64::MAX).map(|taken| taken.number)
}

#[test]
fn a_counter_gives_its_numbers_and_asks_for_more_once() {
    with(4, |partition| {
        let key = key(1);
        assert_eq!(take(partition, &key), Err(Miss::Unknown));
        assert_eq!(partition.hold(&key, NOW).map(|held| held.step), Some(0));
        assert_eq!(take(partition, &key), Err(Miss::Unknown), "held, and nothing is reserved yet");
        partition.put(&key, (1, 10), 0, 10, NOW);
        let taken: Vec<_> = (1..=10).map(|_| partition.take(&key, 0, 99).unwrap()).collect();
        let expected = (1..=10).map(|number| Taken { number, day: 0, ahead: number == 5 });
        assert_eq!(taken, expected.collect::<Vec<_>>());
        assert_eq!(take(partition, &key), Err(Miss::Dry));
        assert_eq!(partition.wanting(2), []);
        assert_eq!(partition.wanting(1), [(key, 0)]);
        assert_eq!(partition.wanting(1), []);
        assert_eq!(partition.hold(&key, NOW).map(|held| (held.step, held.ago)), Some((10, Duration::ZERO)));
        partition.put(&key, (11, 12), 0, 2, NOW);
        assert_eq!(take(partition, &key), Ok(11));
    });
}

#[test]
fn numbers_above_the_highest_stay() {
    with(4, |partition| {
        put(partition, &key(1));
        assert_eq!(partition.take(&key(1), 0, 1).map(|taken| taken.number), Ok(1));
        assert_eq!(partition.take(&key(1), 0, 1), Err(Miss::Exhausted));
        assert_eq!(take(partition, &key(1)), Ok(2));
    });
}

#[test]
fn what_was_used_lately_stays() {
    with(4, |partition| {
        (1..=4).for_each(|one| assert!(put(partition, &key(one))));
        assert!(!put(partition, &key(5)), "there is no place");
        assert_eq!(partition.evict(1), 1, "all are new, so the first leaves");
        assert_eq!(partition.depart(1).iter().map(|left| left.key).collect::<Vec<_>>(), [key(1)]);
        partition.written_back(&key(1));
        assert_eq!(take(partition, &key(2)), Ok(1));
        partition.evict(1);
        let left = Left { key: key(3), day: 0, given: 0, limit: 10 };
        assert_eq!(partition.depart(2), []);
        assert_eq!(partition.depart(1), [left]);
        assert_eq!(take(partition, &key(3)), Err(Miss::Unknown), "it may be in its row by now");
        assert!(partition.departs(&key(3)) && !partition.departs(&key(2)));
        partition.not_written_back(&key(3));
        assert_eq!(take(partition, &key(3)), Ok(1));
        assert_eq!(partition.len(), 3);
    });
}

#[test]
fn a_look_for_what_can_leave_is_bounded_and_goes_on_where_it_ended() {
    with(5000, |partition| {
        (1..=5000).for_each(|one| {
            put(partition, &key(one));
            assert_eq!(take(partition, &key(one)), Ok(1));
        });
        assert_eq!(partition.evict(1), 0, "all of the first ones were used");
        assert_eq!(partition.evict(1), 1);
    });
}

#[test]
fn what_is_to_leave_and_is_used_stays() {
    with(4, |partition| {
        put(partition, &key(1));
        partition.evict(1);
        assert_eq!(partition.databases().collect::<Vec<_>>(), [1]);
        assert_eq!(take(partition, &key(1)), Ok(1));
        assert_eq!((partition.depart(1), partition.databases().count()), (vec![], 0));
        partition.evict(1);
        partition.stay(2);
        assert_eq!(partition.databases().count(), 1);
        partition.stay(1);
        assert_eq!(partition.databases().count(), 0);
    });
}

#[test]
fn counters_of_a_database_that_no_worker_reaches_are_in_nobodys_way() {
    let until_ahead = |partition: &mut Partition<'_>, key: &CounterKey| {
        (0..9).filter(|_| partition.take(key, 0, 99).is_ok_and(|taken| taken.ahead)).count()
    };
    with(200, |partition| {
        (1..=199).for_each(|one| assert!(put(partition, &key(one))));
        put(partition, &key_of(2, 1));
        assert_eq!((1..=80).map(|one| until_ahead(partition, &key(one))).sum::<usize>(), 64);
        partition.stay(1);
        partition.stay(1);
        assert_eq!(partition.databases().count(), 0, "they want no more");
        assert_eq!((100..=110).map(|one| until_ahead(partition, &key(one))).sum::<usize>(), 0);
        assert_eq!(until_ahead(partition, &key_of(2, 1)), 1);
        assert_eq!(partition.evict(300), 1, "they are not to leave again");
        assert_eq!(partition.depart(2).len(), 1);
        partition.written_back(&key_of(2, 1));
        (2..9).for_each(|database| partition.stay(database));
        assert_eq!(partition.evict(300), 0);
        // A worker is there again.
        partition.sweep(1);
        assert_eq!(partition.evict(300), 64);
        partition.stay(1);
        partition.forget(1);
        assert!(put(partition, &key(1)));
        assert_eq!(partition.evict(1), 1);
    });
}

#[test]
fn what_a_stop_left_over_is_in_no_list_once_it_has_numbers_again() {
    with(2, |partition| {
        let left = Left { key: key(1), day: 0, given: 5, limit: 10 };
        assert!(partition.restore(&left));
        assert_eq!(partition.evict(1), 1);
        assert_eq!(partition.databases().collect::<Vec<_>>(), [1]);
        // Its row is looked at for a call, before it is written back.
        assert_eq!(partition.depart_unproven(&key(1)), Some(left));
        partition.put(&key(1), (6, 10), 0, 5, NOW);
        assert_eq!(take(partition, &key(1)), Ok(6));
        assert_eq!(partition.databases().collect::<Vec<_>>(), [0_u32; 0]);
        assert_eq!(partition.look(&key(1)), Some(Given { number: 6, limit: 10, day: 0 }));
        assert_eq!(partition.look(&key(2)), None);
    });
}

#[test]
fn a_counter_without_numbers_leaves_at_once() {
    with(4, |partition| {
        put(partition, &key(1));
        assert_eq!((0..10).filter_map(|_| take(partition, &key(1)).ok()).last(), Some(10));
        assert_eq!(partition.evict(4), 1);
        assert!(partition.is_empty() && partition.databases().count() == 0);
    });
}

#[test]
fn room_is_made_for_some_and_not_for_all() {
    with(4, |partition| {
        (1..=3).for_each(|one| assert!(put(partition, &key(one))));
        partition.make_room();
        assert_eq!(partition.depart(1), [], "there is a place");
        put(partition, &key(4));
        partition.make_room();
        partition.make_room();
        assert_eq!(partition.depart(1).len(), 1);
    });
}

#[test]
fn what_does_not_fit_into_a_list_is_left_out() {
    with(100, |partition| {
        (1..=100).for_each(|one| assert!(put(partition, &key(one))));
        let ahead = |partition: &mut Partition<'_>, one| {
            let taken = (0..9).filter(|_| partition.take(&key(one), 0, 99).unwrap().ahead);
            taken.count()
        };
        assert_eq!((1..=100).map(|one| ahead(partition, one)).sum::<usize>(), 64);
        assert_eq!(partition.evict(100), 64);
        assert_eq!(partition.depart(1).len(), 64);
        assert_eq!(partition.wanting(1).len(), 0, "what leaves wants no more");
        partition.forget(2);
        assert_eq!(partition.len(), 100);
        partition.forget(1);
        assert_eq!((partition.len(), partition.databases().count()), (0, 0));
    });
}

#[test]
fn a_key_that_is_set_has_no_counter() {
    with(4, |partition| {
        partition.hold(&key(1), NOW);
        assert_eq!(partition.void(&key(1)), None, "nothing was handed out");
        partition.put(&key(1), (1, 10), 0, 10, NOW);
        assert_eq!(take(partition, &key(1)), Err(Miss::Unknown));
        put(partition, &key(1));
        assert_eq!(take(partition, &key(1)), Ok(1));
        let given = partition.void(&key(1)).unwrap();
        assert_eq!(given, Given { number: 1, limit: 10, day: 0 });
        assert_eq!((given.reached(10, 0), given.reached(12, 0), given.reached(10, 3)), (1, 12, 10));
        assert_eq!(partition.void(&key(1)), None);
        assert!(!partition.is_there(&key(1)));
        put(partition, &key(2));
        partition.evict(1);
        assert_eq!(partition.depart(1).len(), 1);
        assert_eq!(partition.void(&key(2)), Some(Given { number: 0, limit: 10, day: 0 }));
        partition.hold(&key(2), NOW);
        assert!(!partition.departs(&key(2)), "what is there now is another one");
    });
}

#[test]
fn what_was_left_over_is_in_its_row_first() {
    with(2, |partition| {
        let left = Left { key: key(1), day: 3, given: 4, limit: 9 };
        assert!(partition.restore(&left) && !partition.restore(&left));
        assert!(!partition.restore(&Left { key: key(2), given: 9, ..left }), "nothing is left");
        assert_eq!(partition.iter().collect::<Vec<_>>(), [left]);
        assert_eq!(take(partition, &key(1)), Err(Miss::Unknown));
        assert_eq!(partition.hold(&key(1), NOW), None);
        partition.evict(1);
        assert_eq!(take(partition, &key(1)), Err(Miss::Unknown));
        assert_eq!(partition.depart_unproven(&key(1)), Some(left));
        partition.not_written_back(&key(1));
        assert_eq!(take(partition, &key(1)), Err(Miss::Unknown));
        assert_eq!(partition.depart_unproven(&key(1)), Some(left));
        partition.put(&key(1), (5, 9), 3, 4, NOW);
        assert_eq!(take(partition, &key(1)), Ok(5));
    });
}

#[test]
fn what_a_dead_worker_held_is_free() {
    with(4, |partition| {
        put(partition, &key(1));
        put(partition, &key(2));
        partition.evict(1);
        assert_eq!(partition.depart(1).len(), 1);
        partition.hold(&key(2), NOW);
        partition.hold(&key(3), NOW);
        partition.sweep(2);
        assert_eq!(partition.len(), 3);
        let departing = Left { key: key(1), day: 0, given: 0, limit: 10 };
        let live = Left { key: key(2), ..departing };
        assert_eq!(partition.iter().collect::<Vec<_>>(), [departing, live], "what a worker was writing back");
        partition.sweep(1);
        assert_eq!(partition.len(), 2);
        assert_eq!(partition.databases().count(), 0);
        assert_eq!(take(partition, &key(1)), Err(Miss::Unknown), "it may be in its row by now");
        assert_eq!(partition.depart_unproven(&key(1)), Some(departing));
        partition.written_back(&key(1));
        assert_eq!(partition.evict(1), 1, "its numbers are not being reserved any more");
    });
}

#[test]
fn memory_that_is_too_small_holds_nothing() {
    let mut partition = Partition::new(&mut [], &mut []);
    assert_eq!(take(&mut partition, &key(1)), Err(Miss::Unknown));
    assert!(!put(&mut partition, &key(1)));
    partition.make_room();
    assert_eq!((partition.evict(3), partition.void(&key(1))), (0, None));
}

#[test]
fn keys_of_each_type_are_apart() {
    let text = |bytes: &[u8]| ShortKey::of(&Key::Text(bytes.into()));
    assert_eq!(text(&[b'x'; SHORT_TEXT_BYTES + 1]), None);
    let keys =
        [ShortKey::of(&Key::Bigint(7)), ShortKey::of(&Key::Uuid(7)), text(b"7"), text(b"7\0"), text(b"")];
    with(64, |partition| {
        for short in keys.into_iter().chain([text(&[b'x'; SHORT_TEXT_BYTES])]).map(Option::unwrap) {
            for (database, source, series) in [(1, 2, 3), (1, 2, 4), (1, 3, 3), (2, 2, 3)] {
                let key = CounterKey::new(SECRET, database, source, series, short);
                assert_eq!(take(partition, &key), Err(Miss::Unknown));
                assert!(put(partition, &key));
                assert_eq!(ShortKey::of(&short.to_key()), Some(short));
            }
        }
        assert_eq!(partition.len(), 24);
    });
}

#[test]
fn keys_are_spread_over_partitions_and_by_the_secret() {
    let parts = |secret: u64| -> Vec<usize> {
        let key = |key| CounterKey::new(secret, 1, 2, 3, ShortKey::Bigint(key));
        (0..1_000).map(|one| key(one * 64).partition(8)).collect()
    };
    let one = parts(1);
    for part in 0..8 {
        let count = one.iter().filter(|of| **of == part).count();
        assert!((60..190).contains(&count), "{count} keys of 1000 are in partition {part}");
    }
    assert_ne!(one, parts(2));
    assert_eq!(key(1).partition(0), 0);
}

/// What is done with a key.
#[derive(Clone, Copy, Debug)]
enum Step {
    Put,
    Take,
    Void,
    Leave,
}

proptest! {
    /// However counters come and go, each is found, and gives its own numbers.
    #[test]
    fn counters_are_found(
        places in 0_usize..9,
        steps in vec((0_i64..24, (0_usize..4).prop_map(|step| [Step::Put, Step::Take, Step::Void, Step::Leave][step])), 0..200),
        secret in any::<u64>(),
    ) {
        let key = |one| CounterKey::new(secret, 1, 2, 3, ShortKey::Bigint(one));
        with(places, |partition| {
            let mut model: BTreeMap<i64, (i64, i64)> = BTreeMap::new();
            for (one, step) in steps {
                match step {
                    Step::Put => {
                        let has_place = model.contains_key(&one) || model.len() < places;
                        prop_assert_eq!(partition.hold(&key(one), NOW).is_some(), has_place);
                        if has_place {
                            let (next, last) = model.get(&one).copied().unwrap_or((1, 0));
                            partition.put(&key(one), (last + 1, last + 4), 0, 4, NOW);
                            model.insert(one, (next, last + 4));
                        }
                    }
                    Step::Take => {
                        let expected = match model.get_mut(&one) {
                            None => Err(Miss::Unknown),
                            Some(&mut (next, last)) if next > last => Err(Miss::Dry),
                            Some((next, _)) => {
                                *next += 1;
                                Ok(*next - 1)
                            }
                        };
                        prop_assert_eq!(take(partition, &key(one)), expected);
                    }
                    Step::Void => {
                        let expected = model.remove(&one).map(|(next, limit)| Given { number: next - 1, limit, day: 0 });
                        prop_assert_eq!(partition.void(&key(one)), expected);
                    }
                    Step::Leave => {
                        partition.evict(1);
                        let gone: BTreeSet<_> = partition.depart(1).into_iter().map(|left| (left.key.key.to_key(), left.given)).collect();
                        model.retain(|one, (next, last)| {
                            let leaves = gone.contains(&(Key::Bigint(*one), *next - 1));
                            if leaves {
                                partition.written_back(&key(*one));
                            }
                            !leaves && (next <= last || partition.is_there(&key(*one)))
                        });
                    }
                }
                prop_assert_eq!(partition.len(), model.len());
            }
            Ok(())
        })?;
    }
}

const LONG: [u8; 512] = [b'k'; 512];

fn asked(key: &Key) -> Asked<'_> {
    Asked { database: 1, source: 2, series: 3, key, day: 4, max_value: 50 }
}

#[test]
fn a_number_goes_to_the_call_that_asked() {
    let mut cells = [Request::EMPTY; 3];
    let mut requests = Requests::new(&mut cells);
    let keys = [Key::Bigint(-1), Key::Text(LONG.as_slice().into()), Key::Uuid(u128::MAX)];
    assert!(requests.is_empty() && requests.pending(1).is_empty());
    let tickets: Vec<_> =
        keys.iter().enumerate().map(|(cell, key)| requests.ask(2 - cell, &asked(key)).unwrap()).collect();
    assert_eq!(requests.ask(3, &asked(&keys[0])), None, "there is no such cell");
    let pending = requests.pending(1);
    assert_eq!(
        pending.iter().map(|pending| &pending.key).collect::<Vec<_>>(),
        keys.iter().collect::<Vec<_>>()
    );
    assert_eq!((pending[0].source, pending[0].series, pending[0].day, pending[0].cell), (2, 3, 4, 2));
    assert_eq!((requests.pending(2).len(), requests.databases().collect::<Vec<_>>()), (0, vec![1, 1, 1]));
    let number = Answer::Number { number: 9, day: 4 };
    assert!(requests.answer(2, tickets[0], number));
    assert!(!requests.answer(2, tickets[0], Answer::Unknown), "it has an answer");
    assert!(!requests.answer(1, tickets[0], number), "it is another call's");
    requests.withdraw(1);
    assert!(!requests.answer(1, tickets[1], number), "it does not wait any more");
    assert_eq!(
        (requests.len(), requests.max_value(0, tickets[2]), requests.max_value(1, tickets[1])),
        (1, Some(50), None)
    );
    assert_eq!(requests.answer_to(2, tickets[0]), Some(number));
    assert_eq!(requests.answer_to(2, tickets[0]), None, "once");
    assert_eq!(requests.answer_to(0, tickets[2]), None);
    let again = requests.ask(0, &asked(&keys[0])).unwrap();
    assert!(!requests.answer(0, tickets[2], number), "what it asked before is withdrawn");
    assert_eq!((requests.len(), requests.waits(0, again)), (1, true));
}

#[test]
fn a_call_that_is_not_answered_knows_why() {
    let mut cells = [Request::EMPTY; 1];
    let mut requests = Requests::new(&mut cells);
    let key = Key::Bigint(1);
    let ticket = requests.ask(0, &asked(&key)).unwrap();
    assert_eq!(requests.trouble(0, ticket), None);
    requests.note_trouble(0, ticket, Trouble::RowLocked);
    assert_eq!((requests.trouble(0, ticket), requests.pending(1)[0].apart), (Some(Trouble::RowLocked), 0));
    requests.set_apart(&[(0, ticket)]);
    requests.note_trouble(0, ticket, Trouble::Failed(7));
    assert_eq!((requests.trouble(0, ticket), requests.pending(1)[0].apart), (Some(Trouble::Failed(7)), 1));
    let next = requests.ask(0, &asked(&key)).unwrap();
    requests.set_apart(&[(0, ticket)]);
    assert_eq!(requests.pending(1)[0].apart, 0, "it is another call");
    requests.note_trouble(0, ticket, Trouble::RowLocked);
    assert_eq!((requests.trouble(0, next), requests.trouble(0, ticket)), (None, None));
    let long = Key::Text([b'k'; 513].as_slice().into());
    assert_eq!(requests.ask(0, &asked(&long)), None);
}
