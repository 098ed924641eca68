//! The registry that is asked next, and the time when a failed registry is asked again.

use proptest::prelude::*;
use snowflake_ids_core::registry::failover::{BACKOFF, Health, order, until_due};
use std::time::Duration;

const WELL: Health = Health { failures: 0, failed_at: Duration::ZERO };

fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn failed(failures: u32, seconds: u64) -> Health {
    Health { failures, failed_at: secs(seconds) }
}

#[test]
fn the_pause_doubles_up_to_the_longest() {
    let pauses = [1, 2, 3, 4, 5, 6, 7, 8, 40, u32::MAX].map(|failures| failed(failures, 100).retry_at());
    assert_eq!(pauses, [101, 102, 104, 108, 115, 115, 115, 115, 115, 115].map(secs));
    assert_eq!(WELL.retry_at(), Duration::ZERO);
    let late = Health { failures: 3, failed_at: Duration::MAX };
    assert_eq!(late.retry_at(), Duration::MAX);
}

#[test]
fn those_that_are_well_take_turns() {
    let all = [WELL; 3];
    assert_eq!(order(&all, 0, secs(9), true), [1, 2, 0]);
    assert_eq!(order(&all, 1, secs(9), false), [2, 0, 1]);
    assert_eq!(order(&all, 2, secs(9), false), [0, 1, 2]);
    assert_eq!(order(&[WELL], 0, secs(9), true), [0]);
}

#[test]
fn one_that_failed_is_left_out_until_its_time() {
    let all = [WELL, failed(3, 10), WELL];
    assert_eq!(order(&all, 0, secs(13), false), [2, 0]);
    assert_eq!(order(&all, 0, secs(14), false), [1, 2, 0], "no session waits: now is the time to try it");
    assert_eq!(until_due(&all, secs(13), false), Some(secs(1)));
    assert_eq!(until_due(&all, secs(15), false), Some(Duration::ZERO));
}

#[test]
fn who_waits_is_not_kept_by_one_that_failed() {
    let all = [WELL, failed(7, 10), WELL];
    assert_eq!(order(&all, 0, secs(11), true), [2, 0, 1]);
    assert_eq!(order(&all, 0, secs(10), true), [2, 0]);
}

#[test]
fn where_all_failed_a_session_that_waits_has_them_asked_every_second() {
    let all = [failed(7, 10), failed(9, 11)];
    assert!(order(&all, 0, secs(10), true).is_empty());
    assert_eq!(until_due(&all, secs(10), true), Some(secs(1)));
    assert_eq!(order(&all, 0, secs(11), true), [0]);
    assert_eq!(order(&all, 0, secs(12), true), [1, 0]);
    assert!(order(&all, 0, secs(24), false).is_empty());
    assert_eq!(until_due(&all, secs(10), false), Some(secs(15)));
}

#[test]
fn none_is_asked_where_there_is_none() {
    assert!(order(&[], 0, secs(1), true).is_empty());
    assert!(order(&[], usize::MAX, secs(1), false).is_empty());
    assert_eq!(until_due(&[], secs(1), true), None);
    assert_eq!(until_due(&[WELL], secs(1), true), None);
}

/// The earliest time when a registry may be asked, according to the documentation.
fn due(health: Health, waited_for: bool) -> Duration {
    let doublings = health.failures.saturating_sub(1).min(6);
    let pause = if waited_for { secs(1) } else { secs(1 << doublings).min(secs(15)) };
    if health.failures == 0 { Duration::ZERO } else { health.failed_at + pause }
}

fn healths(most: usize) -> impl Strategy<Value = Vec<Health>> {
    let health = (prop_oneof![Just(0_u32), 1_u32..10, any::<u32>()], 0_u64..100);
    prop::collection::vec(health.prop_map(|(failures, at)| failed(failures, at)), 0..most)
}

proptest! {
    /// The order contains exactly once each registry that may be asked, and no other registry. For a waiting session, healthy
    /// registries come first.
    #[test]
    fn an_order_is_of_all_that_may_be_asked(all in healths(6), after: usize, now in 0_u64..200, waited_for: bool) {
        let order = order(&all, after, secs(now), waited_for);
        let mut sorted = order.clone();
        sorted.sort_unstable();
        let may: Vec<usize> = (0..all.len()).filter(|one| secs(now) >= due(all[*one], waited_for)).collect();
        prop_assert_eq!(sorted, may);
        let well = |one: &usize| all[*one].failures == 0;
        prop_assert!(order.is_sorted_by_key(|one| well(one) != waited_for));
        // Among the healthy registries, and among the failed ones, the order begins after the registry that was asked last.
        for kind in [true, false] {
            let begin = after.checked_rem(all.len()).unwrap_or(0) + 1;
            let of_kind = order.iter().filter(|one| well(one) == kind);
            prop_assert!(of_kind.is_sorted_by_key(|one| (*one + all.len() - begin) % all.len()));
        }
    }

    /// In as many rounds as there are healthy registries, each healthy registry is first in exactly one round.
    #[test]
    fn each_that_is_well_has_its_turn(all in healths(6), after in 0_usize..6, waited_for: bool) {
        let well: Vec<usize> = (0..all.len()).filter(|one| all[*one].failures == 0).collect();
        let (mut asked, mut firsts) = (after, Vec::new());
        for _ in &well {
            // Failed registries are not due for a long time.
            let all: Vec<Health> = all.iter().map(|health| Health { failed_at: secs(1_000), ..*health }).collect();
            asked = order(&all, asked, secs(0), waited_for)[0];
            firsts.push(asked);
        }
        firsts.sort_unstable();
        prop_assert_eq!(firsts, well);
    }

    /// A registry that keeps failing is asked again after the shortest pause at the earliest, and after the longest pause at
    /// the latest.
    #[test]
    fn one_that_fails_is_asked_again(failures in 1_u32.., at in 0_u64..1 << 40, waited_for: bool) {
        let all = [failed(failures, at)];
        let asked = |now: Duration| !order(&all, 0, now, waited_for).is_empty();
        prop_assert!(asked(secs(at) + BACKOFF.most));
        prop_assert!(!asked((secs(at) + BACKOFF.first).saturating_sub(Duration::from_nanos(1))));
        prop_assert_eq!(asked(secs(at) + BACKOFF.first), waited_for || failures == 1);
    }

    /// The pause until a registry is due is neither too long nor too short.
    #[test]
    fn the_next_is_due_when_that_was_said(all in healths(6), now in 0_u64..200, waited_for: bool) {
        let failing: Vec<Health> = all.into_iter().filter(|health| health.failures > 0).collect();
        let Some(pause) = until_due(&failing, secs(now), waited_for) else {
            prop_assert!(failing.is_empty());
            return Ok(());
        };
        let then = secs(now) + pause;
        prop_assert!(!order(&failing, 0, then, waited_for).is_empty());
        let before = then.saturating_sub(Duration::from_nanos(1));
        prop_assert!(pause.is_zero() || order(&failing, 0, before, waited_for).is_empty());
    }

    #[test]
    fn any_times_are_safe(failures: u32, failed_at: Duration, now: Duration, after: usize, waited_for: bool) {
        let all = [Health { failures, failed_at }, WELL];
        prop_assert!(order(&all, after, now, waited_for).contains(&1));
        prop_assert_eq!(until_due(&all, now, waited_for).is_some(), failures > 0);
    }
}
