//! Every rule is needed: without it some run issues an id twice, breaks what has to hold, or costs more than it has to.
//! A rule of the issuer is left out of the code that ships.

use super::run::{Run, SCOPES};
use super::server::SECOND;
use super::world::{BEGIN, Cost, Event, Scope, World};
use snowflake_ids_core::guard::{Guard, leave_out};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The seeds that a missing rule may take to show.
const SEEDS: usize = 2_500;

/// Seeds of one scope; of stormy runs, where there are such.
fn seeds(scope: Scope) -> impl Iterator<Item = u64> + Clone {
    let mine = move |seed: &u64| SCOPES[usize::try_from(seed % 5).unwrap()] == scope;
    let stormy = move |seed: &u64| scope == Scope::Succession || seed.is_multiple_of(7);
    (0..).filter(mine).filter(stormy)
}

/// Runs something without a rule; None: an assertion of the code that ships did not hold.
fn without<T>(guard: Guard, run: impl FnOnce() -> T) -> Option<T> {
    leave_out(Some(guard));
    let done = catch_unwind(AssertUnwindSafe(run));
    leave_out(None);
    done.ok()
}

/// The first seed whose run is bad without a rule of the issuer.
fn first_bad(guard: Guard, scope: Scope) -> Option<(u64, &'static str)> {
    let bad = |seed| match without(guard, || Run::new(seed)) {
        None => Some((seed, "an assertion failed")),
        Some(run) if run.issues_twice() => Some((seed, "an id was issued twice")),
        Some(run) if run.cost().damaged > 0 => Some((seed, "a file was damaged")),
        Some(_) => None,
    };
    seeds(scope).take(SEEDS).find_map(bad)
}

/// What some runs cost with all rules, and without one.
fn costs(guard: Guard, seeds: &(impl Iterator<Item = u64> + Clone), cost: fn(Cost) -> u64) -> [u64; 2] {
    [None, Some(guard)].map(|guard| {
        leave_out(guard);
        let total = seeds.clone().map(|seed| cost(Run::new(seed).cost())).sum();
        leave_out(None);
        total
    })
}

macro_rules! without {
    ($($test:ident: $guard:ident $scope:ident;)*) => {$(
        #[test]
        fn $test() {
            let bad = first_bad(Guard::$guard, Scope::$scope);
            println!("without {:?}: seed {bad:?}", Guard::$guard);
            assert!(bad.is_some(), "no run misses {:?}", Guard::$guard);
        }
    )*};
}

without! {
    a_mark_written_after_it_is_used_repeats_ids: WriteFirst Numbers;
    a_file_not_synced_is_damaged: SyncFile Numbers;
    a_name_not_synced_repeats_ids: SyncDirectory Numbers;
    a_start_at_the_clock_repeats_ids: StartAtMark Numbers;
    a_term_noted_before_it_is_closed_repeats_ids: CloseFirst Numbers;
    a_term_noted_for_another_node_repeats_ids: SettleOwnTerm Shared;
    bits_read_before_the_position_repeat_ids: TermRead Numbers;
    ids_beyond_the_expiry_come_twice: ExpiryClamps Tight;
    a_lease_kept_by_a_promoted_server_has_two_holders: PromotionForgets Shared;
    a_copy_taken_for_the_original_has_the_same_lease: CopyKnown Shared;
    a_copy_taken_for_the_original_has_the_same_number: CopyKnown Numbers;
    a_file_put_back_repeats_ids_of_a_number: FileKnown Numbers;
    a_successor_below_the_last_commit_repeats_ids: PromotionRises Succession;
    a_lost_file_taken_for_a_new_server_repeats_ids: Witness Numbers;
    marks_of_other_nodes_forgotten_repeat_ids: MarksKept Tight;
    a_holder_below_the_end_of_the_lease_before_repeats_ids: StartAtExpiry Tight;
    a_row_changed_blindly_has_two_holders: CompareAndSwap Tight;
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
    a_claim_that_is_not_written_first_costs_worker_ids: ClaimFirst leases seeds(Scope::Tight).take(100);
    a_holder_far_ahead_keeps_the_others_out: PeersBounded refusals 0..200;
}

/// A clock that is ten years ahead for a while takes the ids with it, if it is followed.
#[test]
fn a_jump_that_is_followed_leaves_a_server_silent() {
    let is_silent = || {
        let layout = "34/0/10/6 unit=1s epoch=2020-01-01".parse().unwrap();
        let mut world = World::new(1, Scope::Numbers, layout, SECOND);
        let server = world.add_server();
        world.healed.set(true);
        world.start(server);
        world.run_until(BEGIN + 30 * SECOND);
        world.servers[server].clocks.step(10 * 365 * 86_400 * SECOND);
        world.after(30 * SECOND, Event::ClockRight { server });
        world.run_until(BEGIN + 200 * SECOND);
        !world.silent().is_empty()
    };
    assert!(!is_silent());
    assert_eq!(without(Guard::JumpNotFollowed, is_silent), Some(true));
}
