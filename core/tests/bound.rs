//! The ids that one call of a bound sequence uses. The numbers that applications derive from the ids of two calls never overlap.

use proptest::prelude::*;
use snowflake_ids_core::bound::{BoundRun, BoundSequenceError, Increment, MAX_INCREMENT};
use snowflake_ids_core::generator::snowflake::TakenPositions;
use snowflake_ids_core::tag::definition::Range;
use snowflake_ids_core::{Layout, NodeBits, Position, PositionRange};

fn range(first: i64, count: u32) -> Range {
    Range { first, count, increment: 1 }
}

#[test]
fn increments_from_one_to_the_largest_are_taken() {
    for wrong in [i64::MIN, -1, 0, i64::from(MAX_INCREMENT) + 1, i64::MAX] {
        assert_eq!(Increment::new(wrong), Err(BoundSequenceError::Increment(wrong)));
    }
    for right in [1, 2, 50, i64::from(MAX_INCREMENT)] {
        assert!(Increment::new(right).is_ok());
    }
}

#[test]
fn a_sequence_that_counts_in_ones_gives_single_ids() {
    let one = Increment::new(1).unwrap();
    assert_eq!(one.ids().get(), 1);
    assert_eq!(BoundRun::new(one).add(Range { first: 7, count: 1, increment: 3 }), Ok(Some(7)));
    assert_eq!((one.reach(9), one.resume_above(9)), (9, 9));
}

#[test]
fn ids_that_others_broke_are_thrown_away() {
    let mut run = BoundRun::new(Increment::new(5).unwrap());
    assert_eq!(run.missing().get(), 10);
    assert_eq!(run.add(range(1, 4)), Ok(None));
    assert_eq!(run.missing().get(), 6);
    // Another session took id 5.
    assert_eq!(run.add(range(6, 6)), Ok(None));
    assert_eq!(run.missing().get(), 10);
    assert_eq!(run.add(range(20, 10)), Ok(Some(25)));
}

#[test]
fn ids_over_the_end_of_a_buffer_count_as_one_row() {
    let mut run = BoundRun::new(Increment::new(5).unwrap());
    assert_eq!(run.add(range(1, 4)), Ok(None));
    assert_eq!(run.add(range(5, 6)), Ok(Some(6)));
}

#[test]
fn a_tag_with_gaps_gives_no_blocks() {
    let mut run = BoundRun::new(Increment::new(5).unwrap());
    let taken = Range { first: 1, count: 10, increment: 2 };
    assert_eq!(run.add(taken), Err(BoundSequenceError::Apart { increment: 5, step: 2 }));
}

#[test]
fn a_tag_with_the_increment_of_its_sequence_gives_single_ids() {
    let ten = Increment::new(10).unwrap().of_tag(true);
    assert_eq!(
        (ten.ids().get(), ten.number(1_000), ten.reach(1_000), ten.resume_above(1_000)),
        (1, 1_000, 1_000, 1_000)
    );
    let taken = |increment| BoundRun::new(ten).add(Range { first: 1_000, count: 1, increment });
    assert_eq!(taken(10), Ok(Some(1_000)));
    for step in [1, 5] {
        assert_eq!(taken(step), Err(BoundSequenceError::Apart { increment: 10, step }));
    }
}

#[test]
fn a_call_gives_up_where_others_are_always_in_between() {
    let mut run = BoundRun::new(Increment::new(5).unwrap());
    let error = (0..10_000).find_map(|turn| run.add(range(turn * 10, 4)).err());
    assert_eq!(error, Some(BoundSequenceError::Interrupted(Increment::new(5).unwrap())));
}

#[test]
fn snowflake_ids_of_a_block_are_in_one_tick() {
    let layout: Layout = "twitter".parse().unwrap();
    let five = Increment::new(5).unwrap();
    let taken = |from: u64, to: u64| TakenPositions {
        positions: PositionRange { from: Position(from), to: Position(to) },
        node_bits: NodeBits(0),
    };
    assert_eq!(five.number_of(&layout, &taken(0, 10)), Some(5));
    assert_eq!(five.number_of(&layout, &taken(0, 9)), None);
    assert_eq!(five.number_of(&layout, &taken(4090, 4100)), None);
    assert!(five.check_layout(&layout).is_ok());
    assert!(Increment::new(1024).unwrap().check_layout(&layout).is_ok());
    assert!(Increment::new(1025).unwrap().check_layout(&layout).is_err());
    // In this layout the bits of the worker id are below the bits of the sequence number.
    let sony: Layout = "sonyflake".parse().unwrap();
    assert!(five.check_layout(&sony).is_err());
    assert!(Increment::new(1).unwrap().check_layout(&sony).is_ok());
}

proptest! {
    /// The ids that applications derive from two calls never overlap. They also do not overlap ids of calls before the sequence
    /// was bound or after it is unbound.
    #[test]
    fn blocks_of_two_calls_never_meet(increment in 2_i64..1_000, first in 1_i64..1_000_000, gap in 0_i64..10) {
        let n = Increment::new(increment).unwrap();
        let ids = i64::from(n.ids().get());
        let second = first + ids + gap;
        let uses = |first: i64| {
            let v = n.number(first);
            let all = [v - increment..v, v - increment + 1..v + 1, v..v + increment];
            assert!(all.iter().all(|ids| ids.start >= first && ids.end <= first + i64::from(n.ids().get())));
            all
        };
        for a in uses(first) {
            for b in uses(second) {
                prop_assert!(a.end <= b.start);
            }
        }
        // Ids from calls before the sequence was bound, or after it is unbound, do not overlap these ids either.
        prop_assert!(uses(n.reach(first) + 1).iter().all(|ids| ids.start > first + increment - 1));
        let last = first + ids - 1;
        let next = n.resume_above(last) + 1;
        prop_assert!(next - increment > last);
    }
}
