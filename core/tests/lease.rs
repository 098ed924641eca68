//! The worker id that a server takes, compared with a plain search; and clocks that must get no lease.

use proptest::prelude::*;
use snowflake_ids_core::UnixMicros;
use snowflake_ids_core::registry::forks::{Fork, Forks};
use snowflake_ids_core::server::lease::{
    Choice, LeaseRow, Policy, Preferred, RENEWAL_PAUSE, Search, Skew, check_clock, until_renewal,
};
use std::collections::BTreeSet;
use std::time::Duration;

const CAPACITY: u32 = 12;
const NOW: UnixMicros = UnixMicros(50);

prop_compose! {
    /// Rows of some worker ids, in ascending order.
    fn rows()(rows in prop::collection::btree_map(0..CAPACITY, (prop::option::of(0_i64..6), 0_i64..100), 0..12)) -> Vec<LeaseRow> {
        let row = |(worker_id, (token, expiry))| {
            LeaseRow { worker_id, token, expiry: UnixMicros(expiry), leased: UnixMicros(0) }
        };
        rows.into_iter().map(row).collect()
    }
}

/// The choice of a plain search, which saves no work.
fn wanted(search: &Search<'_>, rows: &[LeaseRow]) -> Option<Choice> {
    let ours = |row: &&LeaseRow| {
        row.token.is_some()
            && search.own.contains(&row.token)
            && !search.except.contains(&row.worker_id)
            && row.worker_id < search.capacity
    };
    if let Some(row) = rows.iter().find(ours) {
        return Some(Choice::Own(*row));
    }
    let Preferred { worker_id, shares, only, first: _ } = search.preferred;
    let is_of_share = |other: &u32| other % shares == worker_id % shares;
    let of_share: Vec<u32> = (0..search.capacity).filter(is_of_share).collect();
    // The worker ids of the share come first: they start at the preferred worker id and wrap around. All others follow in the
    // same order.
    let from = of_share.get(worker_id as usize / shares as usize % of_share.len().max(1));
    let from = from.copied().unwrap_or(search.capacity);
    let mut order: Vec<u32> =
        (0..search.capacity).filter(|worker_id| !search.except.contains(worker_id)).collect();
    order.retain(|worker_id| is_of_share(worker_id) || !only && shares > 1);
    order.sort_by_key(|worker_id| (!is_of_share(worker_id), *worker_id < from, *worker_id));
    let choices =
        order.into_iter().filter_map(|worker_id| match rows.iter().find(|row| row.worker_id == worker_id) {
            None => Some(Choice::New { worker_id }),
            Some(row) => (row.expiry <= search.now).then_some(Choice::Free(*row)),
        });
    let choices: Vec<Choice> = choices.collect();
    let fresh = choices.iter().find(|choice| matches!(choice, Choice::New { .. })).copied();
    match search.policy {
        Policy::Reuse => choices.first().copied(),
        Policy::Disposable => fresh,
        Policy::Queue => {
            let free = choices.iter().filter_map(|choice| match choice {
                Choice::Free(row) => Some(*row),
                _ => None,
            });
            fresh.or_else(|| free.min_by_key(|row| row.expiry).map(Choice::Free))
        }
    }
}

proptest! {
    #[test]
    fn the_search_finds_what_is_wanted(
        rows in rows(),
        policy in prop::sample::select(&[Policy::Reuse, Policy::Disposable, Policy::Queue][..]),
        own in prop::array::uniform2(prop::option::of(0_i64..6)),
        except in prop::collection::vec(0..CAPACITY, 0..14),
        worker_id in 0..2 * CAPACITY,
        shares in 1..2 * CAPACITY,
        only: bool,
        capacity in 1..=CAPACITY,
    ) {
        let preferred = Preferred { worker_id, shares, only, first: None };
        let search = Search { policy, own, except: &except, preferred, capacity, now: NOW, former_leases: None };
        prop_assert_eq!(search.choose(&rows), wanted(&search, &rows));
    }

    /// No other server holds the chosen worker id.
    #[test]
    fn nothing_is_chosen_that_a_server_holds(rows in rows(), own in prop::option::of(0_i64..6), worker_id in 0..CAPACITY) {
        let preferred = Preferred::from(worker_id);
        let search = Search { policy: Policy::Reuse, own: [own, None], except: &[], preferred, capacity: CAPACITY, now: NOW, former_leases: None };
        match search.choose(&rows) {
            Some(Choice::Own(row)) => prop_assert!(row.token.is_some() && row.token == own),
            Some(Choice::Free(row)) => prop_assert!(row.expiry <= NOW),
            Some(Choice::New { worker_id }) => prop_assert!(rows.iter().all(|row| row.worker_id != worker_id)),
            None => prop_assert!(rows.len() == CAPACITY as usize && rows.iter().all(|row| row.expiry > NOW)),
        }
    }

    /// A server and its next seven successors never share a worker id, even if each can choose from only a few.
    #[test]
    fn timelines_share_no_worker_id(
        system_identifier: u64,
        homes in prop::array::uniform8("[a-z]{1,8}"),
        bits in prop::array::uniform8(0_u32..12),
        own_bits in prop::array::uniform8(5_u32..12),
        policy in prop::sample::select(&[Policy::Reuse, Policy::Queue][..]),
    ) {
        let mut taken = std::collections::BTreeMap::new();
        for (timeline, home) in (0..8).zip(&homes) {
            let own_capacity = 1 << own_bits[timeline];
            let capacity = own_capacity.min(1 << bits[timeline]);
            let number = u32::try_from(timeline).unwrap() + 1;
            let preferred = Preferred::alone(system_identifier, number, home, own_capacity);
            prop_assert!(preferred.only && preferred.worker_id < own_capacity);
            // The server takes all worker ids that it may take.
            let mut rows: Vec<LeaseRow> = Vec::new();
            let search = |rows: &[LeaseRow]| {
                Search { policy, own: [None; 2], except: &[], preferred, capacity, now: NOW, former_leases: None }.choose(rows)
            };
            while let Some(choice) = search(&rows) {
                let worker_id = choice.worker_id();
                prop_assert!(worker_id < capacity);
                prop_assert_eq!(taken.insert(worker_id, number), None, "worker {} of timeline {}", worker_id, number);
                let row = LeaseRow { worker_id, token: Some(1), expiry: UnixMicros(90), leased: UnixMicros(0) };
                rows.insert(rows.partition_point(|row| row.worker_id < worker_id), row);
            }
            let share: Vec<u32> = preferred.of_share(capacity).collect();
            prop_assert_eq!(rows.iter().map(|row| row.worker_id).collect::<Vec<_>>(), share);
        }
    }
}

#[test]
fn a_server_without_a_worker_id_up_to_the_limit_takes_none() {
    let preferred = Preferred { worker_id: 1_021, shares: 8, only: true, first: None };
    let choose = |capacity, preferred| {
        let search = Search {
            policy: Policy::Reuse,
            own: [None; 2],
            except: &[],
            preferred,
            capacity,
            now: NOW,
            former_leases: None,
        };
        search.choose(&[])
    };
    assert_eq!(choose(1_024, preferred), Some(Choice::New { worker_id: 1_021 }));
    assert_eq!(choose(8, preferred), Some(Choice::New { worker_id: 5 }));
    assert_eq!(choose(4, preferred), None, "it leaves its share");
    assert_eq!(choose(4, Preferred { only: false, ..preferred }), Some(Choice::New { worker_id: 0 }));
}

#[test]
fn a_row_that_was_given_back_is_no_servers_own() {
    let row = LeaseRow { worker_id: 0, token: None, expiry: UnixMicros(90), leased: UnixMicros(0) };
    let preferred = Preferred::from(0);
    let search = Search {
        policy: Policy::Reuse,
        own: [None; 2],
        except: &[],
        preferred,
        capacity: 1,
        now: NOW,
        former_leases: None,
    };
    assert_eq!(search.choose(&[row]), None, "its expiry has not passed");
}

/// The search looks at each exception and each worker id only a few times. A slower search would not end here.
#[test]
fn a_search_among_very_many_takes_no_longer_than_reading_them() {
    const MANY: u32 = 1_000_000;
    let except: Vec<u32> = (0..MANY).rev().chain(0..MANY).collect();
    let preferred = Preferred { worker_id: 7, shares: 100, only: false, first: None };
    for policy in [Policy::Reuse, Policy::Disposable, Policy::Queue] {
        let search = Search {
            policy,
            own: [Some(1), None],
            except: &except,
            preferred,
            capacity: i32::MAX.cast_unsigned(),
            now: NOW,
            former_leases: None,
        };
        let above = Search { preferred: Preferred::from(7), ..search };
        assert_eq!(search.choose(&[]), Some(Choice::New { worker_id: MANY + 7 }), "{policy:?}");
        assert_eq!(above.choose(&[]), Some(Choice::New { worker_id: MANY }), "{policy:?}");
        let rows: Vec<LeaseRow> = (0..2 * MANY)
            .map(|worker_id| LeaseRow {
                worker_id,
                token: Some(5),
                expiry: UnixMicros(90),
                leased: UnixMicros(0),
            })
            .collect();
        assert_eq!(search.choose(&rows), Some(Choice::New { worker_id: 2 * MANY + 7 }), "{policy:?}");
        assert_eq!(above.choose(&rows), Some(Choice::New { worker_id: 2 * MANY }), "{policy:?}");
        let none = Search { capacity: MANY, ..search };
        assert_eq!(none.choose(&rows), None, "{policy:?}");
    }
}

#[test]
fn a_clock_may_differ_up_to_the_limit() {
    const FIVE: Duration = Duration::from_micros(5);
    const SIX: Duration = Duration::from_micros(6);
    let check = |local, latest: Option<i64>| {
        check_clock(UnixMicros(local), UnixMicros(100), latest.map(UnixMicros), FIVE)
    };
    assert_eq!([95, 100, 105].map(|local| check(local, None)), [Ok(()); 3]);
    assert_eq!(check(94, None), Err(Skew::Registry { by: SIX, is_ahead: false, max: FIVE }));
    assert_eq!(check(106, None), Err(Skew::Registry { by: SIX, is_ahead: true, max: FIVE }));
    assert_eq!(check(100, Some(105)), Ok(()));
    assert_eq!(check(100, Some(106)), Err(Skew::Peers { by: SIX, max: FIVE }));
    assert_eq!(check(100, Some(i64::MIN)), Ok(()), "others may be behind");
}

/// The worker id at which the search in a shared registry begins, for a random number.
fn shared(fork: Option<i64>, capacity: u32, random: u32) -> u32 {
    let preferred = Preferred::shared(fork, capacity, random);
    assert!(!preferred.only, "others may be had when these are taken");
    preferred.worker_id
}

#[test]
fn a_shared_registry_begins_anywhere_in_the_eighth_of_its_fork() {
    let begins = |fork, random: [u32; 3]| random.map(|random| shared(fork, 1_024, random));
    assert_eq!(begins(None, [0, 1, 127]), [0, 1, 127]);
    assert_eq!(begins(Some(17), [0, 1, u32::MAX]), [128, 129, 255]);
    assert_eq!([7, 8, -1].map(|fork| shared(Some(fork), 1_024, 0)), [896, 0, 896]);
    assert_eq!([shared(None, 31, 30), shared(Some(1), 31, 31)], [30, 0], "too few to begin apart");
    assert_eq!([shared(None, 0, 5), shared(Some(5), 1, 5)], [0, 0]);
}

/// The row of a worker id that another server holds.
fn held(worker_id: u32) -> LeaseRow {
    LeaseRow { worker_id, token: Some(1), expiry: UnixMicros(90), leased: UnixMicros(0) }
}

/// The choice for a server that has no lease, under the policy reuse.
fn newcomer(preferred: Preferred, capacity: u32, rows: &[LeaseRow]) -> Option<Choice> {
    let (policy, own, except) = (Policy::Reuse, [None; 2], &[]);
    Search { policy, own, except, preferred, capacity, now: NOW, former_leases: None }.choose(rows)
}

/// After a promotion, new servers get worker ids from another eighth of the worker ids, because the standby may have missed the
/// former primary's last leases.
#[test]
fn after_a_promotion_one_of_another_eighth_is_leased() {
    let choose = |fork, rows: &[LeaseRow]| newcomer(Preferred::shared(fork, 1_024, 127), 1_024, rows);
    assert_eq!(choose(None, &[held(127)]), Some(Choice::New { worker_id: 0 }), "around within the eighth");
    assert_eq!(choose(Some(1), &[held(0), held(255)]), Some(Choice::New { worker_id: 128 }));
    let full: Vec<LeaseRow> = (128..256).map(held).collect();
    assert_eq!(
        choose(Some(1), &full),
        Some(Choice::New { worker_id: 256 }),
        "those of other eighths come last"
    );
}

/// A recreated registry leases to a server only the server's former worker id, or a worker id that the server already has in the
/// registry.
#[test]
fn a_registry_that_was_made_anew_leases_what_a_server_has() {
    let held = |worker_id, expiry| LeaseRow {
        worker_id,
        token: Some(1),
        expiry: UnixMicros(expiry),
        leased: UnixMicros(0),
    };
    let rows = [held(3, 90), held(4, 5), LeaseRow { token: Some(7), ..held(9, 90) }];
    let choose = |own, except: &[u32], former_leases| {
        let preferred = Preferred::shared(None, 1_024, 0);
        Search {
            policy: Policy::Reuse,
            own: [own, None],
            except,
            preferred,
            capacity: 1_024,
            now: NOW,
            former_leases: Some(former_leases),
        }
        .choose(&rows)
    };
    assert_eq!(choose(None, &[], None), None, "it has none");
    assert_eq!(choose(None, &[], Some(5)), Some(Choice::New { worker_id: 5 }));
    assert_eq!(choose(None, &[], Some(4)), Some(Choice::Free(rows[1])));
    assert_eq!(choose(None, &[], Some(3)), None, "it is another's");
    assert_eq!(choose(None, &[5], Some(5)), None, "the clock is behind it");
    assert_eq!(choose(None, &[], Some(1_024)), None, "there is no room for it");
    assert_eq!(choose(Some(7), &[], None), Some(Choice::Own(rows[2])));
}

proptest! {
    /// The searches of eight consecutive timelines each begin in a different eighth of the worker ids. If possible, so do those
    /// of promoted servers that only nodes saw.
    #[test]
    fn forks_of_a_shared_registry_begin_apart(
        numbers in prop::collection::vec(any::<i64>(), 30),
        named in prop::collection::vec(any::<i64>(), 0..3),
        capacity in 32_u32..1 << 22,
        random: u32,
    ) {
        let eighth = |fork: Option<i64>| shared(fork, capacity, random) / (capacity / 8);
        let mut forks = Forks::default();
        let mut eighths = vec![eighth(None)];
        for (timeline, random) in (2..).zip(numbers) {
            let number = forks.draw(timeline, named.iter().copied(), random);
            forks.0.push(Fork { number, timeline: Some(timeline) });
            eighths.push(eighth(Some(number)));
            let late: BTreeSet<_> = eighths.iter().rev().take(8).collect();
            prop_assert_eq!(late.len(), eighths.len().min(8), "{:?}", eighths);
            let is_apart = |named: &i64| !late.contains(&&eighth(Some(*named))) || eighth(Some(*named)) == 0;
            prop_assert!(timeline > 5 || named.iter().all(is_apart), "{:?}", eighths);
        }
    }

    #[test]
    fn any_fork_of_a_shared_registry_is_safe(fork: Option<i64>, capacity: u32, random: u32) {
        prop_assert!(shared(fork, capacity, random) < capacity.max(1));
    }
}

/// A server keeps its worker id from a former registry, unless the former primary may have leased that id to another server.
#[test]
fn a_worker_id_from_elsewhere_is_kept() {
    let kept = |worker_id, fork| Preferred::kept(worker_id, fork, 1_024);
    assert_eq!(kept(700, None), Some(Preferred::from(700)));
    let promoted = [130, 127, 256].map(|worker_id| kept(worker_id, Some(1)));
    let of_eighth = Preferred { first: Some((128, 256)), ..Preferred::from(130) };
    assert_eq!(promoted, [Some(of_eighth), None, None]);
    assert_eq!(kept(1_024, None), None, "there is no such worker id");
}

/// Where the worker id that a server has is leased to another one, a promoted registry leases one of the same eighth.
#[test]
fn a_worker_id_that_cannot_be_kept_is_replaced_within_the_eighth() {
    let rows = [3, 11, 19].map(held);
    let kept = |worker_id, fork| newcomer(Preferred::kept(worker_id, fork, 32)?, 32, &rows);
    assert_eq!(kept(11, Some(2)), Some(Choice::New { worker_id: 8 }));
    assert_eq!(kept(3, None), Some(Choice::New { worker_id: 0 }));
}

/// Under the policy disposable, a promoted registry stays in its eighth, too: a worker id above all rows may have a holder that the
/// registry does not know.
#[test]
fn a_promoted_registry_leases_an_unused_worker_id_of_its_eighth() {
    let unused = |above, fork| Preferred::unused(above, fork, 32).map(|preferred| preferred.worker_id);
    assert_eq!(
        [0, 5, 31, 32, u32::MAX].map(|above| unused(above, None)),
        [Some(0), Some(5), Some(31), None, None]
    );
    assert_eq!([5, 8, 11, 12].map(|above| unused(above, Some(2))), [Some(8), Some(8), Some(11), None]);
}

/// The longest lease that the setting allows, in seconds.
const LONGEST: u64 = i32::MAX.cast_unsigned() as u64;

/// The pauses between renewals, and the granted length of each lease. Each renewal requests `asked`, and the registry grants at most
/// `most`.
fn renewals(asked: Duration, most: Duration, count: usize) -> (Vec<Duration>, Duration) {
    let granted = asked.min(most);
    // The lease was renewed at this instant, so all of it is left.
    let first = until_renewal(granted, asked, Some(granted), Some(Duration::ZERO));
    let next = |pause: &Duration| {
        // The launcher may check at any time; here it checks half way through the pause.
        let half = *pause / 2;
        let left = until_renewal(granted.saturating_sub(half), asked, Some(granted), Some(half));
        Some(half + left)
    };
    (std::iter::successors(Some(first), next).take(count).collect(), granted)
}

proptest! {
    /// At least a quarter of a lease passes before the next renewal, however short the lease and whatever was requested.
    #[test]
    fn a_registry_that_grants_less_is_not_asked_all_the_time(asked in 60..=LONGEST, most in 1..=LONGEST) {
        let (pauses, granted) = renewals(Duration::from_secs(asked), Duration::from_secs(most), 20);
        for pause in pauses {
            prop_assert!(pause >= RENEWAL_PAUSE, "{pause:?}");
            prop_assert!(pause >= granted / 4, "renewed after {pause:?} of {granted:?}");
            // The renewal comes when three quarters of the lease are left, or after the shortest pause if that is later.
            prop_assert!(pause <= granted.saturating_sub(granted / 4 * 3).max(RENEWAL_PAUSE), "{pause:?} of {granted:?}");
        }
    }
}

#[test]
fn what_was_granted_counts_where_it_is_known_and_no_more_than_was_asked_for() {
    let hours = |hours: u64| Duration::from_secs(hours * 3_600);
    let due = |left, granted| until_renewal(hours(left), hours(24), granted, None);
    assert_eq!(due(24, None), hours(6));
    assert_eq!(due(18, None), Duration::ZERO);
    // The server asked for 24 hours and was granted 8.
    assert_eq!(due(8, None), Duration::ZERO);
    assert_eq!(due(8, Some(hours(8))), hours(2));
    assert_eq!(due(6, Some(hours(8))), Duration::ZERO);
    // An earlier request, for 48 hours, set the expiry. The registry never shortens a lease.
    assert_eq!(due(48, Some(hours(48))), hours(30));
    assert_eq!(
        until_renewal(hours(1), hours(24), None, Some(Duration::from_secs(4))),
        Duration::from_secs(6)
    );
}
