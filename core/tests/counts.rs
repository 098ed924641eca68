//! Counters, and resetting them.

use snowflake_ids_core::tag::counts::{CountsCell, TagCounts};

const FIRST: TagCounts = TagCounts { issued: 100, refills: 2, refill_time: 30, waits: 4, wait_time: 500 };
const THEN: TagCounts = TagCounts { issued: 107, refills: 3, refill_time: 32, waits: 4, wait_time: 500 };

#[test]
fn what_is_told_is_what_was_counted_since_they_were_set_back() {
    let before = CountsCell::default();
    assert_eq!(FIRST - before.get(), FIRST);
    before.set(FIRST);
    assert_eq!(FIRST - before.get(), TagCounts::default());
    assert_eq!(
        THEN - before.get(),
        TagCounts { issued: 7, refills: 1, refill_time: 2, waits: 0, wait_time: 0 }
    );
}

#[test]
fn no_count_is_negative_or_beyond_its_end() {
    assert_eq!(FIRST - THEN, TagCounts { issued: 0, refills: 0, refill_time: 0, waits: 0, wait_time: 0 });
    let most = TagCounts { issued: u64::MAX, ..FIRST };
    assert_eq!([most, FIRST].into_iter().sum::<TagCounts>().issued, u64::MAX);
}

#[test]
fn counts_of_several_are_added_each_to_its_like() {
    let sum = CountsCell::default();
    sum.add(FIRST);
    sum.add(THEN);
    assert_eq!(sum.get(), TagCounts { issued: 207, refills: 5, refill_time: 62, waits: 8, wait_time: 1_000 });
}
