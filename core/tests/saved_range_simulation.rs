//! The saved-range file of a server, beside the row of a tag, transactions that change the tag, and all of it set back to
//! different moments. What runs is the code that ships, as processes that may end between any two of its calls. Deterministic: what happens follows from the seed.
//!
//! No id comes twice in one history of the tables, and no id that was left over comes twice in all of them together. What a
//! transaction handed out and rolled back comes no more, unless the server crashed or the tables were set back before it was
//! noted; after a tag is forced back, ids go on there.

mod file;
mod world;

use super::simulation::{chance, process};
use snowflake_ids_core::guard::{Guard, leave_out};
use world::World;

/// How many runs there are, and how many a missing rule may take to show.
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
    a_high_water_mark_of_another_life_keeps_a_tag_from_going_back: HighWaterMarkOfGeneration;
    what_is_rolled_back_and_noted_nowhere_comes_again: OwnHighWaterMark;
    what_a_transaction_hands_out_and_does_not_write_comes_again: OwnWritten;
    buffers_that_are_left_when_a_tag_is_changed_repeat_ids: OwnCloses;
}
