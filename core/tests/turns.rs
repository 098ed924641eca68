//! Taking turns where there is more to be served than can be at once.
#![cfg(not(loom))]
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

use proptest::prelude::*;
use snowflake_ids_core::turns::{TURN, Turns};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

const fn at(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

#[test]
fn the_longest_waiting_is_first_however_often_one_looks() {
    let mut turns: Turns<u32, u32> = Turns::default();
    turns.note([7], [], at(0));
    turns.note([3, 7], [], at(5));
    turns.note([9, 3, 7, 1], [], at(6));
    assert_eq!(turns.queue(), [7, 3, 1, 9]);
    turns.note([9, 3], [], at(7));
    turns.note([9, 3, 7], [], at(8));
    assert_eq!(turns.queue(), [3, 9, 7], "who was served waits anew");
}

#[test]
fn the_longest_serving_leaves_once_its_turn_is_over() {
    let mut turns: Turns<u32, u32> = Turns::default();
    turns.note([], [5], at(0));
    turns.note([], [5, 4], at(10));
    assert_eq!(turns.leavers(2, TURN.saturating_sub(at(1))), [0; 0]);
    assert_eq!(turns.leavers(2, TURN), [5]);
    assert_eq!(turns.leavers(1, TURN + at(50)), [0; 0], "one is leaving already");
    assert_eq!(turns.leavers(2, TURN + at(50)), [4]);
    assert_eq!(turns.leavers(5, at(9_999)), [0; 0], "each is asked once");
}

#[test]
fn nobody_leaves_where_nobody_is_short() {
    let mut turns: Turns<u32, u32> = Turns::default();
    turns.note([], [1, 2], at(0));
    assert_eq!(turns.leavers(0, at(9_999)), [0; 0]);
}

#[test]
fn who_comes_again_begins_another_turn() {
    let mut turns: Turns<u32, u32> = Turns::default();
    turns.note([], [1, 2], at(0));
    assert_eq!(turns.leavers(1, at(200)), [1]);
    turns.note([1], [2], at(210));
    turns.note([], [1, 2], at(220));
    assert_eq!(turns.leavers(1, at(220)), [2]);
    assert_eq!(turns.leavers(2, at(319)), [0; 0]);
    assert_eq!(turns.leavers(2, at(320)), [1]);
}

proptest! {
    /// Databases that always have work take turns on fewer places, each served within a round of all.
    #[test]
    fn everybody_is_served(databases in 1_u32..15, places in 1_usize..6) {
        let mut turns: Turns<u32, (usize, u32)> = Turns::default();
        let mut desks: BTreeMap<usize, u32> = BTreeMap::new();
        let mut last: BTreeMap<u32, u64> = BTreeMap::new();
        let round = u64::from(databases) * 200;
        for now in (0..4 * round).step_by(50) {
            let served: BTreeSet<u32> = desks.values().copied().collect();
            for database in &served {
                last.insert(*database, now);
            }
            let waiting = (0..databases).filter(|database| !served.contains(database));
            turns.note(waiting, desks.iter().map(|(desk, database)| (*desk, *database)), at(now));
            let mut short = 0;
            for database in turns.queue() {
                match (0..places).find(|desk| !desks.contains_key(desk)) {
                    Some(desk) => {
                        desks.insert(desk, database);
                    }
                    None => short += 1,
                }
            }
            for (desk, _) in turns.leavers(short, at(now)) {
                desks.remove(&desk);
            }
            for database in 0..databases {
                let waited = now - last.get(&database).copied().unwrap_or(0);
                prop_assert!(waited <= round, "database {database} waited {waited} ms");
            }
        }
    }
}
