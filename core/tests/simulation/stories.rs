//! Stories: faults in an order that random runs seldom have. Each story goes wrong only if one guard is left out.

use super::disk::{Disk, File};
use super::event::{BEGIN, Event, Scope};
use super::registry::Registry;
use super::removal::without;
use super::server::{SECOND, Server};
use super::world::World;
use snowflake_ids_core::ClockRollback;
use snowflake_ids_core::guard::Guard;
use snowflake_ids_core::server::lease::Policy;
use std::collections::BTreeSet;
use std::rc::Rc;

/// How often each story runs, with different pauses.
const TIMES: u64 = 10;

const LAYOUT: &str = "34/0/10/6 unit=1s epoch=2020-01-01";
const TWO_WORKERS: &str = "34/0/1/6 unit=1s epoch=2020-01-01";
const FOUR_WORKERS: &str = "34/0/2/6 unit=1s epoch=2020-01-01";
const EIGHT_SHARES: &str = "34/0/5/6 unit=1s epoch=2020-01-01";
const ROLLBACK: &str = "34/0/10/1r/6 unit=1s epoch=2020-01-01";

/// A world of stopped servers with right clocks, without random faults.
fn world(seed: u64, scope: Scope, layout: &str, servers: usize) -> World {
    paced(seed, scope, layout, servers, SECOND / 4)
}

/// A world of stopped servers, with this longest pause between two calls of a session.
fn paced(seed: u64, scope: Scope, layout: &str, servers: usize, pace: i64) -> World {
    let mut world = World::new(7 * seed + 1, scope, layout.parse().unwrap(), pace);
    world.healed.set(true);
    for _ in 0..servers {
        let server = world.add_server();
        let server = &world.servers[server];
        server.clocks.offset.set(0);
        server.clocks.gain.set(0);
        server.policy.set(Policy::Reuse);
        server.rollback.set(ClockRollback::Error);
    }
    world
}

impl World {
    fn run_for(&mut self, seconds: i64) {
        self.run_until(self.now() + seconds * SECOND);
    }

    /// Runs the world until a condition holds.
    fn await_that(&mut self, what: &str, is_so: impl Fn(&Self) -> bool) {
        while !is_so(self) {
            assert!(self.now() < BEGIN + 600 * SECOND, "{what} never came about");
            self.run_until(self.now() + SECOND / 1_000);
        }
    }

    /// Starts a server again with its clock set back, and lets it run for a while.
    fn restart_behind(&mut self, server: usize, seconds: i64) {
        self.servers[server].clocks.step(-seconds * SECOND);
        self.start(server);
        self.run_for(30);
    }

    fn has_issued_in(&self, scope: u32) -> bool {
        self.ledger.borrow().has_any(scope)
    }

    fn repeats(&self) -> bool {
        self.ledger.borrow().twice > 0
    }
}

fn file(server: &Server) -> Option<File> {
    server.disk.borrow().file.clone()
}

fn has_lease(server: &Server) -> bool {
    worker_of(server).is_some()
}

/// The worker id that a server has leased.
fn worker_of(server: &Server) -> Option<u32> {
    file(server)?.state().ok()?.lease.map(|lease| lease.worker_id)
}

/// Whether the server has issued ids above the mark in its file.
fn is_beyond_its_high_water_mark(server: &Server) -> bool {
    let marked = file(server).and_then(|file| file.state().ok()).map(|state| state.own.highest());
    let next = server.live().map(|live| live.shared.generator.next());
    next.zip(marked).is_some_and(|(next, marked)| next > marked)
}

/// Runs a story with all guards, and then without one guard. `goes_wrong`: whether something went wrong.
fn needs(guard: Guard, goes_wrong: impl Fn(u64) -> bool) {
    for seed in 0..TIMES {
        assert!(!goes_wrong(seed), "with all rules, seed {seed}");
    }
    let wrong = (0..TIMES).find(|seed| without(guard, || goes_wrong(*seed)) == Some(true));
    println!("without {guard:?}: seed {wrong:?}");
    assert!(wrong.is_some(), "all goes well without {guard:?}, too");
}

#[test]
fn a_high_water_mark_written_after_it_is_used_repeats_ids() {
    needs(Guard::WriteFirst, |seed| {
        let mut world = paced(seed, Scope::Numbers, LAYOUT, 1, SECOND / 200);
        world.start(0);
        world.await_that("an id", |world| world.ledger.borrow().issued > 0);
        let end = world.now() + 20 * SECOND;
        while world.now() < end && !is_beyond_its_high_water_mark(&world.servers[0]) {
            world.run_until(world.now() + SECOND / 1_000);
        }
        world.kill(0, true);
        world.restart_behind(0, 2);
        world.repeats()
    });
}

#[test]
fn a_lost_file_taken_for_a_new_server_repeats_ids() {
    needs(Guard::MarkerFile, |seed| {
        let mut world = world(seed, Scope::Numbers, LAYOUT, 1);
        world.start(0);
        world.run_for(30);
        world.kill(0, false);
        world.servers[0].disk.borrow_mut().put(None);
        world.restart_behind(0, 5);
        world.repeats()
    });
}

#[test]
fn a_file_put_back_repeats_ids_of_a_number() {
    needs(Guard::FileKnown, |seed| {
        let mut world = world(seed, Scope::Numbers, LAYOUT, 1);
        world.start(0);
        world.run_for(20);
        let earlier = file(&world.servers[0]).map(|file| File { inode: 1_000_000, synced: true, ..file });
        world.run_for(20);
        world.kill(0, false);
        world.servers[0].disk.borrow_mut().put(earlier);
        world.restart_behind(0, 15);
        world.repeats()
    });
}

#[test]
fn high_water_marks_of_other_nodes_forgotten_repeat_ids() {
    needs(Guard::HighWaterMarksKept, |seed| {
        let mut world = world(seed, Scope::Numbers, ROLLBACK, 1);
        world.servers[0].rollback.set(ClockRollback::Switch);
        world.start(0);
        world.run_for(60);
        for _ in 0..2 {
            world.servers[0].clocks.step(-20 * SECOND);
            world.run_for(8);
        }
        world.repeats()
    });
}

#[test]
fn a_lease_kept_by_a_promoted_server_has_two_holders() {
    needs(Guard::PromotionForgets, |seed| {
        let mut world = world(seed, Scope::Shared, LAYOUT, 1);
        world.start(0);
        world.run_for(30);
        world.back_up(0);
        assert!(world.fail_over(0), "it was promoted");
        world.run_for(30);
        world.repeats()
    });
}

#[test]
fn a_successor_below_the_last_commit_repeats_ids() {
    needs(Guard::PromotionRises, |seed| {
        let mut world = world(seed, Scope::Succession, LAYOUT, 1);
        world.start(0);
        for _ in 0..3 {
            world.run_for(10);
            world.back_up(0);
        }
        assert!(world.fail_over(0), "it was promoted");
        world.run_for(30);
        world.repeats()
    });
}

/// A worker id's holder is cut off from the registry, and issues until its lease ends. The next holder's clock is set back as soon
/// as the next holder has the lease. `ends_unanswered`: before that, the next holder ends without the registry's response.
fn succeeds_one_cut_off(seed: u64, ends_unanswered: bool) -> bool {
    let mut world = world(seed, Scope::Tight, TWO_WORKERS, 3);
    world.start(0);
    world.start(1);
    world.run_for(10);
    world.servers[0].cut_off.set(i64::MAX);
    world.start(2);
    world.await_that("the next lease", |world| world.shared.leased.get() == 3);
    if ends_unanswered {
        world.crash(2, false);
    }
    world.await_that("the lease in the state", |world| has_lease(&world.servers[2]));
    world.servers[2].clocks.step(-20 * SECOND);
    world.run_for(30);
    world.repeats()
}

#[test]
fn a_holder_below_the_end_of_the_lease_before_repeats_ids() {
    needs(Guard::StartAtExpiry, |seed| succeeds_one_cut_off(seed, false));
}

#[test]
fn a_lease_found_by_its_pending_token_begins_where_it_was_leased() {
    needs(Guard::PendingTokenStart, |seed| succeeds_one_cut_off(seed, true));
}

#[test]
fn a_worker_id_given_back_too_early_has_two_holders() {
    needs(Guard::ReleaseLast, |seed| {
        let mut world = world(seed, Scope::Tight, FOUR_WORKERS, 4);
        world.servers[0].rollback.set(ClockRollback::Switch);
        for server in 0..3 {
            world.start(server);
            world.run_for(5);
        }
        let worker_id = worker_of(&world.servers[0]).unwrap();
        // The ids are ahead of the clock, so the server takes another worker id and gives the present one back.
        world.servers[0].clocks.step(40 * SECOND);
        world.run_for(40);
        world.servers[0].clocks.step(-40 * SECOND);
        world.await_that("a worker id that is given back", |world| world.shared.is_given_back(worker_id));
        world.servers[0].cut_off.set(world.now() + 60 * SECOND);
        world.crash(0, false);
        world.start(3);
        world.run_for(60);
        world.repeats()
    });
}

#[test]
fn a_registry_made_anew_that_leases_to_anybody_has_two_holders() {
    needs(Guard::FormerLeases, |seed| {
        let mut world = world(seed, Scope::Tight, FOUR_WORKERS, 4);
        for server in 0..3 {
            world.start(server);
        }
        world.run_for(20);
        // The other servers still use the former registry.
        world.shared.make_anew();
        for server in [0, 3] {
            world.servers[server].introduced.set(1);
        }
        world.await_that("a server that comes with its lease", |world| !world.shared.is_empty());
        // The number of requests decides which worker id is leased.
        world.run_for(6 * seed.cast_signed());
        world.start(3);
        world.run_for(60);
        world.repeats()
    });
}

#[test]
fn servers_that_went_different_ways_give_an_id_twice() {
    needs(Guard::Shares, |seed| {
        let mut world = world(seed, Scope::Alone, EIGHT_SHARES, 1);
        world.servers[0].rollback.set(ClockRollback::Switch);
        world.start(0);
        world.run_for(30);
        world.back_up(0);
        assert!(world.fail_over(0), "it was promoted");
        world.run_for(300);
        // The server uses up the worker ids of its share, and then all other worker ids.
        for _ in 0..32 {
            world.servers[0].clocks.step(-15 * SECOND);
            world.run_for(8);
        }
        world.repeats()
    });
}

/// The standby has no copy of the state file, but the table names the worker id that the primary had chosen.
#[test]
fn a_promoted_server_that_knows_no_state_has_another_worker_id() {
    needs(Guard::RecordedNamed, |seed| {
        // The standby chooses one of 32 worker ids, so a single run seldom repeats the primary's choice.
        (0..8).any(|more| {
            let mut world = world(TIMES * more + seed, Scope::Alone, EIGHT_SHARES, 1);
            world.start(0);
            world.await_that("ids", |world| world.ledger.borrow().issued > 0);
            world.back_up(0);
            world.servers[0].backups.borrow_mut()[0].disk = Disk::default();
            assert!(world.fail_over(0), "it was promoted");
            world.run_for(60);
            world.repeats()
        })
    });
}

/// The server's own high-water mark for the worker id is below the ids that the other server has issued under that worker id.
#[test]
fn a_server_that_chooses_a_worker_id_of_another_issues_nothing() {
    needs(Guard::UsedNamed, |seed| {
        let mut world = world(seed, Scope::Alone, FOUR_WORKERS, 1);
        world.start(0);
        world.await_that("ids", |world| world.ledger.borrow().issued > 0);
        world.back_up(0);
        assert!(world.fail_over(0), "it was promoted");
        world.run_for(60);
        world.servers[1].last.get().is_none()
    });
}

/// Whether a server that joined an unreachable registry issues ids that the registry does not know.
fn issues_unleased(seed: u64) -> bool {
    let mut world = world(seed, Scope::Alone, LAYOUT, 1);
    world.start(0);
    world.await_that("ids", |world| world.ledger.borrow().issued > 0);
    world.servers[0].cut_off.set(world.now() + 300 * SECOND);
    // Joining is sometimes rolled back.
    while world.servers[0].is_alone() {
        world.change_registry(0, true);
        world.run_for(5);
    }
    world.run_for(60);
    world.has_issued_in(0)
}

#[test]
fn a_chosen_worker_id_that_is_kept_as_a_server_joins_is_not_leased() {
    needs(Guard::ForeignLeft, issues_unleased);
}

#[test]
fn what_sessions_hold_as_a_server_joins_is_not_leased() {
    needs(Guard::HeldStale, issues_unleased);
}

/// A generator with 16 worker ids gives a server only worker ids of the server's share.
#[test]
fn servers_that_went_different_ways_keep_apart_in_a_narrow_layout() {
    for seed in 0..TIMES {
        let mut world = world(seed, Scope::Alone, EIGHT_SHARES, 1);
        world.others.replace(vec!["41/0/4/4 epoch=2020-01-01".parse().unwrap()]);
        world.servers[0].rollback.set(ClockRollback::Switch);
        world.start(0);
        world.run_for(30);
        world.back_up(0);
        assert!(world.fail_over(0), "it was promoted");
        world.run_for(300);
        for _ in 0..32 {
            world.servers[0].clocks.step(-15 * SECOND);
            world.run_for(8);
        }
        assert!(!world.repeats(), "seed {seed}");
    }
}

/// How many worker ids a server takes if it ends before it gets the response to its first request.
fn taken_by_one_that_ends(seed: u64) -> u64 {
    let mut world = world(seed, Scope::Shared, LAYOUT, 1);
    world.start(0);
    world.await_that("a lease", |world| world.shared.leased.get() == 1);
    world.crash(0, false);
    world.run_for(30);
    world.shared.leased.get()
}

#[test]
fn a_pending_token_drawn_anew_costs_a_worker_id() {
    needs(Guard::KeepPendingToken, |seed| taken_by_one_that_ends(seed) > 1);
}

#[test]
fn a_pending_token_that_is_not_written_first_costs_a_worker_id() {
    needs(Guard::PendingTokenFirst, |seed| taken_by_one_that_ends(seed) > 1);
}

#[test]
fn a_holder_far_ahead_keeps_the_others_out() {
    needs(Guard::PeersBounded, |seed| {
        let mut world = world(seed, Scope::Shared, LAYOUT, 2);
        world.start(0);
        world.run_for(20);
        for _ in 0..3 {
            world.servers[0].clocks.step(50 * SECOND);
            world.run_for(30);
        }
        world.start(1);
        world.run_for(30);
        world.servers[1].last.get().is_none()
    });
}

#[test]
fn a_holder_whose_clock_was_ahead_tells_of_ids_far_ahead() {
    needs(Guard::LastBounded, |seed| {
        let mut world = world(seed, Scope::Alone, LAYOUT, 1);
        let registry = Rc::new(Registry::default());
        world.servers[0].databases[0].registry.replace(Some(Rc::clone(&registry)));
        world.start(0);
        world.run_for(20);
        world.servers[0].clocks.step(50 * SECOND);
        world.run_for(30);
        world.kill(0, false);
        world.restart_behind(0, 50);
        registry.latest().is_none_or(|told| told.0 > world.now() + SECOND)
    });
}

/// A clock is ten years ahead for a while. If the server follows the clock, the ids are ahead too.
#[test]
fn a_jump_that_is_followed_leaves_a_server_silent() {
    needs(Guard::JumpNotFollowed, |seed| {
        let mut world = world(seed, Scope::Numbers, LAYOUT, 1);
        world.start(0);
        world.run_for(30);
        world.servers[0].clocks.step(10 * 365 * 86_400 * SECOND);
        world.after(30 * SECOND, Event::ClockRight { server: 0 });
        world.run_for(170);
        !world.silent().is_empty()
    });
}

/// At the server's start, its clock is behind by more than a jump that the server follows. The clock is right again when an operator
/// resets the lost file.
#[test]
fn a_lost_file_begun_anew_below_what_the_clock_shows_repeats_ids() {
    needs(Guard::ResetAtClock, |seed| {
        let mut world = world(seed, Scope::Numbers, LAYOUT, 1);
        world.start(0);
        world.run_for(119);
        world.kill(0, false);
        world.servers[0].disk.borrow_mut().put(None);
        world.run_for(30);
        world.servers[0].clocks.step(-130 * SECOND);
        world.start(0);
        world.run_for(2);
        world.servers[0].clocks.step(130 * SECOND);
        world.run_for(1);
        world.operate();
        world.run_for(60);
        assert!(world.silent().is_empty(), "it stays silent");
        world.repeats()
    });
}

/// The third server begins to use a layout with room for two worker ids, after the other servers are gone.
#[test]
fn a_worker_id_without_room_in_a_layout_stays_without_ids_of_it() {
    needs(Guard::LeaseFits, |seed| {
        let mut world = world(seed, Scope::Shared, LAYOUT, 3);
        for server in 0..3 {
            world.start(server);
            world.await_that("a lease", |world| has_lease(&world.servers[server]));
        }
        (0..2).for_each(|server| world.kill(server, false));
        world.others.replace(vec!["41/0/1/9 epoch=2020-01-01".parse().unwrap()]);
        world.max_slots.set(1);
        world.kill(2, false);
        world.run_for(240);
        world.start(2);
        world.run_for(100);
        world.ledger.borrow().in_others == 0
    });
}

/// One registry leases different worker ids to 1,024 nodes that start at the same time. The registry is then absent for a short
/// time. Afterwards, the nodes renew their leases without a storm of requests.
#[test]
fn a_thousand_nodes_share_a_registry() {
    const NODES: usize = 1_024;
    let mut world = paced(1, Scope::Shared, LAYOUT, NODES, SECOND);
    for server in 0..NODES {
        world.start(server);
    }
    let all = |world: &World| world.servers.iter().all(|server| has_lease(server));
    world.await_that("a lease of each node", all);
    let started = world.now();
    let asked = world.shared.served();
    let workers: BTreeSet<_> = world.servers.iter().filter_map(|server| worker_of(server)).collect();
    assert_eq!(workers.len(), NODES);
    // The registry is absent for less time than a lease lasts.
    let away_until = world.now() + 20 * SECOND;
    world.servers.iter().for_each(|server| server.cut_off.set(away_until));
    world.run_for(20);
    let before = world.shared.served();
    world.run_for(10);
    let after = world.shared.served() - before;
    println!(
        "all leased by {asked} requests in {} s, {after} in 10 s after it was away",
        (started - BEGIN) / SECOND
    );
    let most = 4 * u64::try_from(NODES).unwrap();
    assert!(asked < most && after < most, "{asked} and {after} requests");
    assert!(all(&world) && !world.repeats());
}
