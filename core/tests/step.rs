//! Sizes of segments: Leaf's rule, the multiplier, and limits that change.

use proptest::prelude::*;
use snowflake_ids_core::tag::step::{Bounds, Pace, SlowStart, WAITED_LATELY};
use std::time::Duration;

const TARGET: Duration = Duration::from_mins(15);
const BOUNDS: Bounds = Bounds { min: 100, max: 10_000 };

const fn pace(step: u32, multiplier: u32) -> Pace {
    Pace { step, multiplier }
}

fn after(lasted: Duration) -> Pace {
    pace(1_000, 1).next(BOUNDS, Some(lasted), TARGET, false)
}

#[test]
fn the_first_segment_is_one_smallest_step() {
    for waited_lately in [false, true] {
        let first = Pace::default().next(BOUNDS, None, TARGET, waited_lately);
        assert_eq!(first, pace(100, 1));
        assert_eq!(first.ids(BOUNDS), 100);
    }
}

#[test]
fn steps_double_stay_and_halve_exactly_at_the_limits() {
    let before = |limit: Duration| limit.saturating_sub(Duration::from_nanos(1));
    assert_eq!(after(Duration::ZERO).step, 2_000);
    assert_eq!(after(before(TARGET)).step, 2_000);
    assert_eq!(after(TARGET).step, 1_000);
    assert_eq!(after(before(2 * TARGET)).step, 1_000);
    assert_eq!(after(2 * TARGET).step, 500);
    assert_eq!(after(Duration::MAX).step, 500);
}

#[test]
fn a_step_stays_where_nothing_is_known_of_the_last_segment() {
    assert_eq!(pace(700, 1).next(BOUNDS, None, TARGET, false), pace(700, 1));
}

#[test]
fn steps_reach_their_bounds() {
    let fast = |step| pace(step, 1).next(BOUNDS, Some(Duration::ZERO), TARGET, false).step;
    let slow = |step| pace(step, 1).next(BOUNDS, Some(Duration::MAX), TARGET, false).step;
    assert_eq!((fast(6_000), fast(10_000)), (10_000, 10_000));
    assert_eq!((slow(150), slow(100)), (100, 100));
}

#[test]
fn changed_bounds_hold_at_once() {
    let next = |min, max| pace(1_000, 1).next(Bounds { min, max }, Some(TARGET), TARGET, false).step;
    assert_eq!(next(3_000, 10_000), 3_000);
    assert_eq!(next(1, 50), 50);
    assert_eq!(pace(1_000, 4).ids(Bounds { min: 1, max: 50 }), 50);
    assert_eq!(pace(1_000, 1).ids(Bounds { min: 3_000, max: 10_000 }), 3_000);
}

#[test]
fn hunger_doubles_the_depth_and_it_goes_back_by_halves() {
    let step = |pace: Pace, waited_lately| pace.next(BOUNDS, Some(TARGET), TARGET, waited_lately);
    let (mut now, mut depths) = (pace(100, 1), Vec::new());
    for waited_lately in [true, true, true, false, false, false, false] {
        now = step(now, waited_lately);
        depths.push(now.multiplier);
    }
    assert_eq!(depths, [2, 4, 8, 4, 2, 1, 1]);
    assert_eq!(now.step, 100);
}

#[test]
fn a_busy_tag_reserves_at_most_the_largest_segment() {
    let waited_lately = |from| pace(from, 64).next(BOUNDS, Some(TARGET), TARGET, true);
    assert_eq!(waited_lately(3_000), pace(3_000, 4));
    assert_eq!(waited_lately(3_000).ids(BOUNDS), 10_000);
    assert_eq!(waited_lately(10_000), pace(10_000, 1));
}

#[test]
fn a_cold_hot_tag_is_at_its_largest_segment_after_a_few() {
    let bounds = Bounds { min: 100, max: 1_000_000 };
    let mut now = Pace::default();
    let sizes: Vec<_> = (0..8)
        .map(|_| {
            now = now.next(bounds, Some(Duration::from_millis(1)), TARGET, true);
            now.ids(bounds)
        })
        .collect();
    assert_eq!(sizes, [100, 400, 1_600, 6_400, 25_600, 102_400, 409_600, 1_000_000]);
}

#[test]
fn the_next_segment_is_fetched_after_its_share_of_this_one() {
    assert_eq!(Pace::prefetch_at(false, 10, 1_000), 100);
    assert_eq!(Pace::prefetch_at(false, 10, 1_001), 101);
    assert_eq!(Pace::prefetch_at(false, 10, 1), 1);
    assert_eq!(Pace::prefetch_at(false, 0, 1_000), 0);
    assert_eq!(Pace::prefetch_at(false, 100, 1_000), 1_000);
    assert_eq!(Pace::prefetch_at(false, u8::MAX, 1_000), 1_000);
    assert_eq!(Pace::prefetch_at(true, 100, 1_000), 0);
}

#[test]
fn hunger_lasts_as_long_as_in_cosid() {
    assert_eq!(WAITED_LATELY.as_secs(), 5);
}

#[test]
fn a_slow_start_gives_what_is_wanted_then_twice_as_many_up_to_the_step() {
    let (mut slow_start, mut grants) = (Some(SlowStart::default()), Vec::new());
    while let Some(slow) = slow_start {
        grants.push(slow.most(3).min(100));
        slow_start = slow.after(slow.most(3).min(100), 100);
    }
    assert_eq!(grants, [3, 6, 12, 24, 48, 96, 100]);
    assert_eq!(SlowStart::default().most(0), 1);
    assert_eq!(SlowStart { granted: u32::MAX }.most(1), u32::MAX);
}

fn bounds() -> impl Strategy<Value = Bounds> {
    (1_u32..=1_000_000_000, any::<prop::sample::Index>())
        .prop_map(|(max, index)| Bounds { min: 1 + u32::try_from(index.index(max as usize)).unwrap(), max })
}

/// Zero, and durations around a target of a few seconds.
fn lengths() -> impl Strategy<Value = Duration> {
    (0_u64..20_000).prop_map(Duration::from_millis)
}

proptest! {
    #[test]
    fn no_segment_is_ever_outside_its_bounds(
        refills in prop::collection::vec((bounds(), prop::option::of(lengths()), any::<bool>()), 1..100),
    ) {
        let mut now = Pace::default();
        for (bounds, lasted, waited_lately) in refills {
            now = now.next(bounds, lasted, Duration::from_secs(5), waited_lately);
            prop_assert!((bounds.min..=bounds.max).contains(&now.step));
            prop_assert!((bounds.min..=bounds.max).contains(&now.ids(bounds)));
            let shallower = u64::from(now.step) * u64::from(now.multiplier - 1);
            prop_assert!(shallower < u64::from(bounds.max), "{now:?} is deeper than {bounds:?} need");
        }
    }

    #[test]
    fn depth_grows_only_by_hunger(from in any::<u32>(), multiplier in 1_u32..1 << 20, bounds in bounds(), lasted in lengths()) {
        let next = |waited_lately| pace(from, multiplier).next(bounds, Some(lasted), Duration::from_secs(5), waited_lately);
        prop_assert!(next(false).multiplier <= (multiplier / 2).max(1));
        prop_assert!(next(true).multiplier <= multiplier * 2);
        prop_assert!(next(false).ids(bounds) <= next(true).ids(bounds));
    }

    /// A segment that lasts longer never makes the next segment larger.
    #[test]
    fn the_size_falls_with_the_time_a_segment_lasted(
        from in any::<u32>(), multiplier in 1_u32..1 << 20, bounds in bounds(), one in lengths(), other in lengths(), waited_lately in any::<bool>(),
    ) {
        let next = |lasted| pace(from, multiplier).next(bounds, Some(lasted), Duration::from_secs(5), waited_lately);
        let (short, long) = (next(one.min(other)), next(one.max(other)));
        prop_assert!(short.step >= long.step);
        prop_assert!(short.ids(bounds) >= long.ids(bounds));
    }

    #[test]
    fn any_values_give_a_segment(step in any::<u32>(), multiplier in any::<u32>(), min in any::<u32>(), max in any::<u32>(), waited_lately in any::<bool>()) {
        let bounds = Bounds { min, max };
        for now in [pace(step, multiplier), pace(step, multiplier).next(bounds, Some(Duration::MAX), Duration::MAX, waited_lately)] {
            prop_assert!((1..=max.max(1)).contains(&now.ids(bounds)));
        }
    }

    #[test]
    fn prefetch_is_within_the_segment_and_grows_with_its_share(ids in any::<u32>(), percent in 0_u8..=99) {
        let at = Pace::prefetch_at(false, percent, ids);
        let later = Pace::prefetch_at(false, percent + 1, ids);
        prop_assert!(at <= later && later <= ids);
        // The number is rounded up to reach the percentage. One id less does not reach it.
        prop_assert!(u64::from(at) * 100 >= u64::from(ids) * u64::from(percent));
        prop_assert!(at == 0 || (u64::from(at) - 1) * 100 < u64::from(ids) * u64::from(percent));
    }
}
