//! The standing of tags.

use proptest::prelude::*;
use snowflake_ids_core::report::standing::Standing::{self, *};
use snowflake_ids_core::tag::definition::Range;
use snowflake_ids_core::tag::segment::{BufferState, BufferStates, Period};
use std::time::Duration;

fn buffer(used: u32) -> BufferState {
    let range = Range { first: 1, count: 10, increment: 1 };
    BufferState { range, used, period: Period::FOREVER }
}

fn states(current: Option<u32>, next: Option<u32>) -> BufferStates {
    BufferStates { current: current.map(buffer), next: next.map(buffer) }
}

const fn days(days: u64) -> Duration {
    Duration::from_hours(24 * days)
}

#[test]
fn the_worst_reason_decides() {
    let (empty, used_up) = (states(None, None), states(Some(10), None));
    let (last, both) = (states(Some(9), None), states(Some(10), Some(0)));
    let cases = [
        (empty, true, None, WithoutIds),
        (used_up, true, Some(days(1)), WithoutIds),
        (last, true, Some(days(1)), RefillsFail),
        (both, true, None, RefillsFail),
        (used_up, false, Some(days(30)), EndsSoon),
        (used_up, false, Some(days(31)), WaitsForRefill),
        (empty, false, Some(days(365)), EndsThisYear),
        (both, false, Some(days(365)), EndsThisYear),
        (last, false, Some(days(366)), Fine),
        (empty, false, None, Idle),
    ];
    for (buffers, fails, lasts, standing) in cases {
        assert_eq!(Standing::of(&buffers, fails, lasts), standing, "{buffers:?} {fails} {lasts:?}");
    }
}

proptest! {
    /// A tag stands no better with a fault than without, and no better for an earlier end.
    #[test]
    fn a_fault_or_an_earlier_end_never_looks_better(used in 0_u32..11, in_memory: bool, fails: bool, ends in 1_u64..500) {
        let (buffers, ends) = (states(in_memory.then_some(used), None), days(ends));
        let rank = |fails, lasts| Standing::ALL.iter().position(|each| *each == Standing::of(&buffers, fails, lasts));
        prop_assert!(rank(true, Some(ends)) <= rank(fails, Some(ends)));
        prop_assert!(rank(fails, Some(ends)) <= rank(fails, Some(ends + days(1))));
        prop_assert!(rank(fails, Some(ends)) <= rank(fails, None));
    }
}
