//! The saved-range file of a server, the row of a tag, and transactions that change the tag. Each of the three is set back to a
//! different moment. The shipped code runs as processes, each of which may end between any two of its calls. The run is
//! deterministic: it follows from the seed.
//!
//! No id comes twice in one history of the tables. No saved id comes twice in all histories together. A rolled-back id does not
//! come again, with two exceptions: the server crashed, or the tables were set back, before the id was recorded. After a tag is
//! forced back, ids continue from the new position.

mod file;
mod world;

use super::simulation::{chance, process};
use snowflake_ids_core::guard::{Guard, leave_out};
use world::World;

/// The number of seeds to run. If a guard is left out, at least one of these seeds must fail.
const SEEDS: u64 = 2_000;

#[test]
fn no_id_comes_twice() {
    for seed in 0..SEEDS {
        assert_eq!(World::run(seed), None, "seed {seed}");
    }
}

macro_rules! without {
    ($($test:ident: $guard:ident;)*) => {$(
        #[test]
        fn $test() {
            leave_out(Some(Guard::$guard));
            let wrong = (0..SEEDS).find_map(|seed| World::run(seed).map(|wrong| (seed, wrong)));
            leave_out(None);
            println!("without {:?}: {wrong:?}", Guard::$guard);
            assert!(wrong.is_some(), "no run misses {:?}", Guard::$guard);
        }
    )*};
}

without! {
    versions_that_are_counted_repeat_ids: NewVersion;
    what_was_rolled_back_and_not_noted_comes_again: HighWaterMarkSaved;
    a_high_water_mark_of_another_generation_keeps_a_tag_from_going_back: HighWaterMarkOfGeneration;
    what_is_rolled_back_and_recorded_nowhere_comes_again: OwnHighWaterMark;
    what_a_transaction_hands_out_and_does_not_write_comes_again: OwnWritten;
    buffers_that_are_left_when_a_tag_is_changed_repeat_ids: OwnCloses;
}
