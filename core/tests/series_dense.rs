//! Dense series: a server with sessions, workers of two databases and rows of keys, on which the code that ships runs. Between
//! any two calls of what a worker touches others go on, and it may die there. Deterministic: what happens follows from the seed.
//!
//! No number of a key comes twice in a period, none that a key was set above comes after that, and in runs without crashes, cancelled
//! calls and keys that are set the numbers of each key are 1 to n.
#![cfg(not(loom))]
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

#[path = "series_worker/alone.rs"]
mod alone;
#[path = "simulation/chance.rs"]
mod chance;
#[path = "series_dense/host.rs"]
mod host;
#[path = "series_dense/ledger.rs"]
mod ledger;
#[path = "series_dense/world.rs"]
mod world;

use snowflake_ids_core::guard::{Guard, leave_out};

/// How many runs there are, and how many a missing rule may take to show.
fn seeds() -> u64 {
    if std::env::var_os("SNOWFLAKE_IDS_FULL").is_some() { 20_000 } else { 1_000 }
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
    a_counter_of_a_period_that_is_over_gives_numbers_in_the_next: SeriesDay;
    a_counter_that_gives_numbers_while_it_is_written_back_repeats_them: SeriesDeparts;
    a_counter_that_is_kept_after_its_worker_died_repeats_numbers: SeriesSwept;
    a_counter_that_is_written_back_after_its_key_was_set_repeats_numbers: SeriesConfirmed;
    what_is_left_over_and_not_written_back_first_is_missing: SeriesBackFirst;
    a_counter_that_is_evicted_meanwhile_loses_numbers: SeriesBusy;
    numbers_without_a_place_are_missing: SeriesPlaced;
    numbers_that_do_not_join_repeat_those_between: SeriesJoins;
    a_counter_that_is_behind_its_row_repeats_numbers_where_it_is_believed: SeriesReached;
    a_counter_that_outlives_a_set_repeats_numbers: SeriesVoid;
    what_is_left_over_and_believed_repeats_numbers: SeriesProven;
    a_number_for_a_call_that_was_withdrawn_is_of_another_key: SeriesTicket;
}
