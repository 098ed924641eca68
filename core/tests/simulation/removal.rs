//! Every rule is needed: without it some run issues an id twice, or service costs more than it has to.

use super::guards::{Guard, Guards};
use super::run::{Run, SCOPES};
use super::server::SECOND;
use super::world::{BEGIN, Cost, Event, Scope, World};

/// The seeds that a missing rule may take to show.
const SEEDS: usize = 2_500;

/// Seeds of one scope; of stormy runs, where there are such.
fn seeds(scope: Scope) -> impl Iterator<Item = u64> + Clone {
    let mine = move |seed: &u64| SCOPES[usize::try_from(seed % 5).unwrap()] == scope;
    let stormy = move |seed: &u64| scope == Scope::Succession || seed.is_multiple_of(7);
    (0..).filter(mine).filter(stormy)
}

/// The first seed whose run issues an id twice without a rule.
fn first_bad(guard: Guard, scope: Scope) -> Option<u64> {
    seeds(scope).take(SEEDS).find(|seed| Run::new(*seed, Guards::without(guard)).issues_twice())
}

/// What some runs cost with all rules, and without one.
fn costs(guard: Guard, seeds: &(impl Iterator<Item = u64> + Clone), cost: fn(Cost) -> u64) -> [u64; 2] {
    [Guards::default(), Guards::without(guard)]
        .map(|guards| seeds.clone().map(|seed| cost(Run::new(seed, guards).cost())).sum())
}

macro_rules! without {
    ($($test:ident: $guard:ident $scope:ident;)*) => {$(
        #[test]
        fn $test() {
            let seed = first_bad(Guard::$guard, Scope::$scope);
            println!("without {:?}: seed {seed:?}", Guard::$guard);
            assert!(seed.is_some(), "no run misses {:?}", Guard::$guard);
        }
    )*};
}

without! {
    a_mark_written_after_it_is_used_repeats_ids: WriteFirst Numbers;
    a_mark_not_synced_repeats_ids: SyncFirst Numbers;
    a_start_at_the_clock_repeats_ids: StartAtMark Numbers;
    a_tenure_noted_before_it_is_closed_repeats_ids: CloseFirst Numbers;
    a_tenure_noted_for_another_node_repeats_ids: SettleOwnTerm Numbers;
    bits_read_before_the_position_repeat_ids: TermRead Shared;
    bits_read_after_the_position_repeat_ids: BlockKeepsBits Numbers;
    ids_beyond_the_expiry_come_twice: ExpiryClamps Tight;
    a_holder_below_the_expiry_before_it_repeats_ids: StartAtExpiry Tight;
    a_row_changed_blindly_has_two_holders: CompareAndSwap Tight;
    a_lease_kept_by_a_promoted_server_has_two_holders: PromotionForgets Shared;
    a_lease_kept_by_a_copy_has_two_holders: CopyForgets Shared;
    a_copy_that_keeps_its_number_repeats_ids: CopyRefused Numbers;
    a_file_put_back_repeats_ids_of_a_number: FileKnown Numbers;
    a_successor_below_the_last_commit_repeats_ids: PromotionRises Succession;
    a_lost_file_taken_for_a_new_server_repeats_ids: Witness Numbers;
    marks_of_other_nodes_forgotten_repeat_ids: MarksKept Tight;
    registries_that_went_different_ways_give_an_id_twice: Shares Alone;
}

macro_rules! costs_more_without {
    ($($test:ident: $guard:ident $cost:ident $seeds:expr;)*) => {$(
        #[test]
        fn $test() {
            let [with, without] = costs(Guard::$guard, &$seeds, |cost| cost.$cost);
            println!("without {:?}: {} {with}, then {without}", Guard::$guard, stringify!($cost));
            assert!(without > with + with / 10, "{without} without {:?}, {with} with it", Guard::$guard);
        }
    )*};
}

costs_more_without! {
    a_claim_drawn_anew_costs_worker_ids: KeepClaim leases seeds(Scope::Tight).take(100);
    a_holder_far_ahead_keeps_the_others_out: PeersBounded refusals 0..200;
}

/// A clock that is ten years ahead for a while takes the ids with it, if it is followed.
#[test]
fn a_jump_that_is_followed_leaves_a_server_silent() {
    let is_silent = |guards| {
        let layout = "34/0/10/6 unit=1s epoch=2020-01-01".parse().unwrap();
        let mut world = World::new(1, guards, Scope::Numbers, layout, SECOND);
        let server = world.add_server();
        world.healed = true;
        world.start(server);
        world.run_until(BEGIN + 30 * SECOND);
        world.servers[server].clocks.offset += 10 * 365 * 86_400 * SECOND;
        world.after(30 * SECOND, Event::ClockRight { server });
        world.run_until(BEGIN + 200 * SECOND);
        !world.silent().is_empty()
    };
    assert!(!is_silent(Guards::default()));
    assert!(is_silent(Guards::without(Guard::JumpNotFollowed)));
}
