//! Every guard is needed: if the shipped code leaves one guard out, some run issues an id twice or leaves a node without ids.

use super::database::Store;
use super::guards::Guards;
use super::registry::Origin;
use super::run::Run;
use super::world::{SECOND, World, run_until};
use snowflake_ids_core::guard::{self, Guard};

/// The number of seeds of which at least one must fail if a guard is left out.
const SEEDS: u64 = 2_000;

fn fails(what: &dyn std::fmt::Debug, guards: Guards, fails: impl Fn(&Run) -> bool) {
    let seed = (0..SEEDS).find(|seed| fails(&Run::new(*seed, guards)));
    println!("without {what:?}: seed {seed:?}");
    assert!(seed.is_some(), "no run misses {what:?}");
}

macro_rules! without {
    ($($test:ident: $guard:ident $fails:ident;)*) => {$(
        #[test]
        fn $test() {
            fails(&Guard::$guard, Guards::without(Guard::$guard), Run::$fails);
        }
    )*};
}

without! {
    a_registry_that_was_set_back_repeats_ids: Received issues_twice;
    what_is_handed_out_before_it_is_recorded_comes_again: ReceivedFirst issues_twice;
    a_former_primary_repeats_ids: Timeline issues_twice;
    a_registry_made_of_a_dump_repeats_ids: Identity issues_twice;
    rows_that_are_no_shares_repeat_ids: Share issues_twice;
    a_standby_that_lagged_repeats_ids: SkipAhead issues_twice;
    a_standby_that_missed_the_use_between_two_promotions_repeats_ids: SkipEach issues_twice;
    a_fork_that_does_not_count_repeats_ids: ForkCounts issues_twice;
    a_row_raised_before_its_skip_repeats_ids: SkipFirst issues_twice;
    a_response_that_comes_late_counts_as_that_to_the_next_request: LateResponses issues_twice;
    a_reservation_here_while_a_registry_comes_into_use_repeats_ids: StillLocal issues_twice;
    a_reservation_of_a_registry_that_is_not_used_any_more_repeats_ids: StillUsed issues_twice;
}

without! {
    // The node's own ids are recorded as received. The registry is therefore refused, and does not give the ids again.
    a_node_whose_ids_were_not_handed_over_gets_none: HandOverRaises leaves_silent;
    a_registry_set_back_to_before_it_was_raised_repeats_ids: HandOverRecorded issues_twice;
    a_node_that_goes_on_while_it_hands_over_repeats_ids: HandOverLocks issues_twice;
    a_node_that_attaches_gives_ids_that_the_column_has: AttachDiscards issues_twice;
    a_node_that_attaches_while_it_leaves_gives_ids_that_the_column_has: AttachKeepsEndpoints issues_twice;
    a_node_that_leaves_repeats_what_it_received: LeaveRaises issues_twice;
    shares_that_were_not_raised_repeat_ids: SharesRaised issues_twice;
}

/// The data that is set back to the node's stop, together with the registry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SetBack {
    /// The node's saved-range file, restored from a backup.
    File,
    /// The node's tables, without the file.
    Tables,
}

/// Counts the ids that repeat after a node used its saved range, and then all records of this use except one were set back.
/// `alone`: the node uses no registry.
fn taken_up_twice(alone: bool, what: SetBack, guards: Guards) -> u64 {
    guards.impose();
    let world = World::of_several(1, 1, 1);
    if alone {
        world.borrow_mut().nodes[0].alone_until = u64::MAX;
    }
    run_until(&world, 60 * SECOND);
    world.borrow_mut().stop(0);
    world.borrow_mut().back_up(0);
    let before = world.borrow().store_of(0, Store::clone);
    let step_while = |unchanged: &dyn Fn(&World) -> bool| {
        while unchanged(&world.borrow()) {
            let next = world.borrow().now + 1;
            run_until(&world, next);
        }
    };
    let versions = |store: &Store| {
        let received = store.received.values().map(|last| last.version);
        received.chain(store.rows.values().map(|line| line.version)).collect::<Vec<_>>()
    };
    let then = versions(&before);
    step_while(&|world| world.store_of(0, versions) == then);
    // Sessions get some of the saved ids. No other ids are reserved.
    let issued = world.borrow().ledger.issued;
    step_while(&|world| world.ledger.issued == issued);
    {
        let mut world = world.borrow_mut();
        world.crash(0);
        let this = &world.nodes[0];
        match what {
            SetBack::File => this.saved_range.borrow_mut().clone_from(&this.former_saved_range),
            SetBack::Tables => *world.servers[this.server].db.store.borrow_mut() = before,
        }
        // The registry's restore ends the requests that the registry was serving.
        let backup = world.registries[0].backups.last().cloned().unwrap();
        world.registries[0].backups = vec![backup];
        world.restore(0, Origin::Copy);
    }
    let next = world.borrow().now + 30 * SECOND;
    run_until(&world, next);
    guard::leave_out(None);
    world.borrow().ledger.twice
}

#[test]
fn what_was_taken_up_is_not_left_over_any_more() {
    for (alone, what, guard) in [
        (false, SetBack::File, Guard::SavedRangeIsLast),
        (false, SetBack::Tables, Guard::RecordedFirst),
        (true, SetBack::Tables, Guard::RecordedFirst),
    ] {
        let case = format!("alone: {alone}, {what:?}, {guard:?}");
        assert_eq!(taken_up_twice(alone, what, Guards::default()), 0, "{case}");
        assert!(taken_up_twice(alone, what, Guards::without(guard)) > 0, "{case}");
    }
}

/// A tag was dropped at a registry. The registry does not create the tag again for a node that has received ids of the tag.
/// Otherwise other nodes would get these ids again.
#[test]
fn what_ids_were_received_of_is_not_made_anew() {
    let is_made_anew = |guards: Guards| {
        guards.impose();
        let world = World::of_several(1, 1, 1);
        run_until(&world, 60 * SECOND);
        {
            let world = world.borrow();
            let server = &world.servers[world.registries[0].primary];
            assert!(!server.db.store.borrow().rows.is_empty());
            server.db.store.borrow_mut().rows.clear();
        }
        run_until(&world, 90 * SECOND);
        guard::leave_out(None);
        let world = world.borrow();
        let rows = &world.servers[world.registries[0].primary].db.store.borrow().rows;
        !rows.is_empty()
    };
    assert!(!is_made_anew(Guards::default()));
    assert!(is_made_anew(Guards::without(Guard::Dropped)));
}

/// Counts repeated ids. A node uses two registries, of which the first has lost its tags. The second registry is raised only by
/// the tables of the joining node. Each node knows only the ids that it received itself.
fn given_twice_by_the_second(guards: Guards) -> u64 {
    guards.impose();
    let world = World::of_several(1, 2, 3);
    {
        let mut world = world.borrow_mut();
        world.shared_from = 60 * SECOND;
        // Only one node uses both registries.
        world.nodes[1..].iter_mut().for_each(|node| node.wants_all = false);
        // The backup is from before any tag was created.
        world.back_up(0);
    }
    while !world.borrow().shared {
        let next = world.borrow().now + 1;
        run_until(&world, next);
    }
    world.borrow_mut().restore(0, Origin::Archive);
    let next = world.borrow().now + 60 * SECOND;
    run_until(&world, next);
    guard::leave_out(None);
    let world = world.borrow();
    assert!(
        world.silent(None).is_empty() && world.used_by(&world.nodes[0]).len() == 2,
        "it was raised by now"
    );
    world.ledger.twice
}

#[test]
fn a_registry_that_was_set_back_is_not_raised_by_a_node_that_joins() {
    assert_eq!(given_twice_by_the_second(Guards::default()), 0);
    assert!(given_twice_by_the_second(Guards::without(Guard::HandOverCompares)) > 0);
}

/// A node received ids of a tag that a registry has lost. The node does not create the tag again at the registry, whether the
/// node joins or attaches.
#[test]
fn a_node_that_joins_again_or_attaches_does_not_make_what_was_lost() {
    let is_made = |change: &dyn Fn(&mut World) -> bool, guards: Guards| {
        guards.impose();
        let world = World::of_several(1, 1, 2);
        world.borrow_mut().back_up(0);
        run_until(&world, 60 * SECOND);
        assert!(world.borrow_mut().restore(0, Origin::Copy));
        assert!(change(&mut world.borrow_mut()));
        // The operator has not noticed the loss yet.
        run_until(&world, 70 * SECOND);
        guard::leave_out(None);
        let world = world.borrow();
        let rows = &world.servers[world.registries[0].primary].db.store.borrow().rows;
        !rows.is_empty()
    };
    let joins = |world: &mut World| world.join(0, vec![0]);
    let attaches = |world: &mut World| world.attach(0);
    for change in [&joins as &dyn Fn(&mut World) -> bool, &attaches] {
        assert!(!is_made(change, Guards::default()));
        assert!(is_made(change, Guards::without(Guard::HandOverCompares)));
    }
}
