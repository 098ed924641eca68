//! Which worker id a server takes, compared with a plain search; and clocks that must not be given one.
#![cfg(not(loom))]
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

use proptest::prelude::*;
use snowflake_ids_core::UnixMicros;
use snowflake_ids_core::lease::{Choice, Policy, Preferred, Row, Search, Skew, check_clock};

const CAPACITY: u32 = 12;
const NOW: UnixMicros = UnixMicros(50);

prop_compose! {
    /// Rows of some worker ids, in their order.
    fn rows()(rows in prop::collection::btree_map(0..CAPACITY, (prop::option::of(0_i64..6), 0_i64..100), 0..12)) -> Vec<Row> {
        let row = |(worker, (token, horizon))| {
            Row { worker, token, horizon: UnixMicros(horizon), leased: UnixMicros(0) }
        };
        rows.into_iter().map(row).collect()
    }
}

/// What may be taken, most wanted first: without a thought for how much work that is.
fn wanted(search: &Search<'_>, rows: &[Row]) -> Option<Choice> {
    let ours = |row: &&Row| {
        row.token.is_some() && search.own.contains(&row.token) && !search.except.contains(&row.worker)
    };
    if let Some(row) = rows.iter().find(ours) {
        return Some(Choice::Own(*row));
    }
    let Preferred { worker: from, share, only } = search.preferred;
    let mut order: Vec<u32> = (0..search.capacity).filter(|worker| !search.except.contains(worker)).collect();
    // Those of the share first, from the preferred one on and around; then the others, from the end of it on and around.
    let first = from / share * share;
    let outside = |worker: u32| worker / share != from / share;
    order.retain(|worker| !only || !outside(*worker));
    order.sort_by_key(|worker| {
        let begin = if outside(*worker) { first + share } else { from };
        (outside(*worker), (worker + 2 * search.capacity - begin) % search.capacity)
    });
    let choices = order.into_iter().filter_map(|worker| match rows.iter().find(|row| row.worker == worker) {
        None => Some(Choice::New { worker }),
        Some(row) => (row.horizon <= search.now).then_some(Choice::Free(*row)),
    });
    let choices: Vec<Choice> = choices.collect();
    let fresh = choices.iter().find(|choice| matches!(choice, Choice::New { .. })).copied();
    match search.policy {
        Policy::Reuse => choices.first().copied(),
        Policy::Disposable => fresh,
        Policy::Queue => {
            let free = rows.iter().filter(|row| choices.contains(&Choice::Free(**row)));
            fresh.or_else(|| free.min_by_key(|row| (row.horizon, row.worker)).copied().map(Choice::Free))
        }
    }
}

proptest! {
    #[test]
    fn the_search_finds_what_is_wanted(
        rows in rows(),
        policy in prop::sample::select(&[Policy::Reuse, Policy::Disposable, Policy::Queue][..]),
        own in prop::array::uniform2(prop::option::of(0_i64..6)),
        except in prop::collection::vec(0..CAPACITY, 0..4),
        worker in 0..CAPACITY,
        share in prop::sample::select(&[1_u32, 2, 3, 4, 6, 12][..]),
        only: bool,
    ) {
        let preferred = Preferred { worker, share, only };
        let search = Search { policy, own, except: &except, preferred, capacity: CAPACITY, now: NOW };
        prop_assert_eq!(search.choose(&rows), wanted(&search, &rows));
    }

    /// Whatever is chosen: nobody else may hold it.
    #[test]
    fn nothing_is_chosen_that_somebody_holds(rows in rows(), own in prop::option::of(0_i64..6), worker in 0..CAPACITY) {
        let preferred = Preferred { worker, share: CAPACITY, only: false };
        let search = Search { policy: Policy::Reuse, own: [own, None], except: &[], preferred, capacity: CAPACITY, now: NOW };
        match search.choose(&rows) {
            Some(Choice::Own(row)) => prop_assert!(row.token.is_some() && row.token == own),
            Some(Choice::Free(row)) => prop_assert!(row.horizon <= NOW),
            Some(Choice::New { worker }) => prop_assert!(rows.iter().all(|row| row.worker != worker)),
            None => prop_assert!(rows.len() == CAPACITY as usize && rows.iter().all(|row| row.horizon > NOW)),
        }
    }

    /// A server and its next seven successors keep apart.
    #[test]
    fn timelines_share_no_worker_id(system_identifier: u64, homes in prop::array::uniform8("[a-z]{1,8}"), bits in 5_u32..12) {
        let capacity = 1 << bits;
        let mut taken = vec![false; capacity as usize];
        for (timeline, home) in (1..).zip(&homes) {
            let Preferred { worker, share, only } = Preferred::alone(system_identifier, timeline, home, capacity);
            prop_assert!(only);
            let first = worker - worker % share;
            for worker in first..first + share {
                prop_assert!(!std::mem::replace(&mut taken[worker as usize], true), "{worker} of timeline {timeline}");
            }
        }
    }
}

#[test]
fn a_row_that_was_given_back_is_nobodys_own() {
    let row = Row { worker: 0, token: None, horizon: UnixMicros(90), leased: UnixMicros(0) };
    let preferred = Preferred { worker: 0, share: 1, only: false };
    let search =
        Search { policy: Policy::Reuse, own: [None; 2], except: &[], preferred, capacity: 1, now: NOW };
    assert_eq!(search.choose(&[row]), None, "its horizon has not passed");
}

#[test]
fn a_clock_may_differ_up_to_the_limit() {
    let check = |local, latest: Option<i64>| {
        check_clock(UnixMicros(local), UnixMicros(100), latest.map(UnixMicros), 5)
    };
    assert_eq!([95, 100, 105].map(|local| check(local, None)), [Ok(()); 3]);
    assert_eq!(check(94, None), Err(Skew::Registry { by: -6, max: 5 }));
    assert_eq!(check(106, None), Err(Skew::Registry { by: 6, max: 5 }));
    assert_eq!(check(100, Some(105)), Ok(()));
    assert_eq!(check(100, Some(106)), Err(Skew::Peers { by: 6, max: 5 }));
    assert_eq!(check(100, Some(i64::MIN)), Ok(()), "others may be behind");
}
