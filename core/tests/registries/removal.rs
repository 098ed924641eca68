//! Every rule is needed: without it some run issues an id twice, or leaves a node without ids.

use super::guards::{Guard, Guards};
use super::run::Run;
use super::world::{SECOND, World};

/// The seeds that a missing rule may take to show.
const SEEDS: u64 = 2_000;

macro_rules! without {
    ($($test:ident: $guard:ident $fails:ident;)*) => {$(
        #[test]
        fn $test() {
            let seed = (0..SEEDS).find(|seed| Run::new(*seed, Guards::without(Guard::$guard)).$fails());
            println!("without {:?}: seed {seed:?}", Guard::$guard);
            assert!(seed.is_some(), "no run misses {:?}", Guard::$guard);
        }
    )*};
}

without! {
    a_registry_that_was_set_back_repeats_ids: Received issues_twice;
    what_is_handed_out_before_it_is_noted_comes_again: ReceivedFirst issues_twice;
    a_former_primary_repeats_ids: Timeline issues_twice;
    a_registry_made_of_a_dump_repeats_ids: Identity issues_twice;
    rows_that_are_no_shares_repeat_ids: Share issues_twice;
    a_standby_that_lagged_repeats_ids: SkipAhead issues_twice;
    // What it has of its own is noted as received: so it is refused, rather than given that again.
    a_node_whose_ids_were_not_handed_over_gets_none: HandOverRaises leaves_silent;
    a_registry_set_back_to_before_it_was_raised_repeats_ids: HandOverNoted issues_twice;
    a_node_that_goes_on_while_it_hands_over_repeats_ids: HandOverLocks issues_twice;
    a_node_that_attaches_gives_ids_that_the_column_has: AttachDiscards issues_twice;
    a_node_that_leaves_repeats_what_it_received: LeaveRaises issues_twice;
    an_answer_that_counts_twice_repeats_ids: AnswerOnce issues_twice;
    shares_that_were_not_raised_repeat_ids: SharesRaised issues_twice;
}

/// A registry that is set back to when a node stopped has what was left over then for it, though it was taken up since.
#[test]
fn what_was_taken_up_is_not_left_over_any_more() {
    let issued_twice = |guards| {
        let mut world = World::of_several(1, 1, 1);
        world.guards = guards;
        world.run_until(60 * SECOND);
        world.stop(0);
        world.back_up(0);
        let taken_up =
            |world: &World| world.nodes[0].disk.received.values().map(|last| last.version).sum::<i64>();
        let before = taken_up(&world);
        while taken_up(&world) == before {
            world.run_until(world.now + 1);
        }
        world.crash(0);
        // What it has asked is over when the registry is set back.
        world.run_until(world.now + SECOND / 10);
        world.restore(0, false);
        world.run_until(world.now + 30 * SECOND);
        world.ledger.twice
    };
    assert_eq!(issued_twice(Guards::default()), 0);
    assert!(issued_twice(Guards::without(Guard::CarryOverIsLast)) > 0);
}
