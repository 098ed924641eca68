//! Dense series of several nodes that draw from one registry: the rounds of their workers and what the registry does, as they ship. Between
//! any two calls of what they touch others go on; workers and servers die, requests and answers are lost or come late, and the registry
//! is away, or set back to an earlier moment. Deterministic: what happens follows from the seed.
//!
//! No number of a key comes twice in a period, from whichever node, and none is missing where nothing is lost.
#![cfg(not(loom))]
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

#[path = "simulation/chance.rs"]
mod chance;
#[path = "series_registry/node.rs"]
mod node;
#[path = "series_registry/registry.rs"]
mod registry;
#[path = "series_registry/world.rs"]
mod world;

use snowflake_ids_core::guard::{Guard, leave_out};

/// How many runs there are, and how many a missing rule may take to show.
fn seeds() -> u64 {
    if std::env::var_os("SNOWFLAKE_IDS_FULL").is_some() { 20_000 } else { 1_500 }
}

#[test]
fn no_number_comes_twice_and_none_is_missing() {
    match std::env::var("SNOWFLAKE_IDS_SEED") {
        Ok(seed) => assert_eq!(world::run(seed.parse().unwrap(), true), None),
        Err(_) => {
            for seed in 0..seeds() {
                assert_eq!(world::run(seed, false), None, "seed {seed}");
            }
        }
    }
}

macro_rules! without {
    ($($test:ident: $guard:ident;)*) => {$(
        #[test]
        fn $test() {
            leave_out(Some(Guard::$guard));
            let wrong = (0..seeds()).find_map(|seed| world::run(seed, false).map(|wrong| (seed, wrong)));
            leave_out(None);
            println!("without {:?}: {wrong:?}", Guard::$guard);
            assert!(wrong.is_some(), "no run misses {:?}", Guard::$guard);
        }
    )*};
}

without! {
    a_registry_that_is_not_told_what_was_received_repeats_numbers: NumbersReceived;
    a_registry_that_does_not_go_on_above_it_repeats_numbers: NumbersRaised;
    numbers_that_are_not_noted_first_come_again: NumbersNoted;
    a_row_that_is_set_back_twice_repeats_numbers: NumbersVersion;
    a_counter_that_may_be_given_back_and_gives_numbers_repeats_them: NumbersDoubt;
    numbers_ahead_that_do_not_follow_leave_those_between_out: NumbersAlone;
}
