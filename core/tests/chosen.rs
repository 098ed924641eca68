//! The worker id of a server without a registry.

use super::here::{self, LEASED, NOW};
use snowflake_ids_core::server::clock_reference::Reading;
use snowflake_ids_core::server::lease::{Lease, Origin, Policy};
use snowflake_ids_core::server::state::{
    Chosen, DataDirectory, FileIdentity, First, Here, Identity, Machine, NodeHighWaterMark, State,
    StateError, WorkerIdSource,
};
use snowflake_ids_core::{Explain, Layout, Node, Position, UnixMicros};
use std::collections::BTreeSet;
use std::time::Duration;

fn layout() -> Layout {
    "41/5/5/12".parse().unwrap()
}

fn narrow() -> Layout {
    "41/0/3/9".parse().unwrap()
}

fn here(home: &str) -> Here {
    here::here(home, layout(), LEASED)
}

/// The facts of `here`, with clocks that are `seconds` later.
fn after(seconds: u64, here: &Here) -> Here {
    let micros = seconds * 1_000_000;
    let Reading { wall, boot, since_boot } = here.clock.clone();
    let clock = Reading { wall: wall.plus_micros(micros), boot, since_boot: since_boot + micros };
    Here { clock, ..here.clone() }
}

fn alone(here: &Here) -> State {
    let mut state = State::fresh(here);
    state.be_alone(here, false);
    state
}

fn worker_id(state: &State) -> u32 {
    state.node.expect("a worker id").worker_id
}

/// The facts of a server without a configured datacenter id.
fn of_pairs(home: &str) -> Here {
    Here { identity: Identity::Leased { datacenter: None }, ..here(home) }
}

fn pair(state: &State) -> (u32, u32) {
    state.node.map(|node| (node.datacenter, node.worker_id)).expect("a pair")
}

/// Reserves ids up to 3 s ahead of the clock, as a server that issues them does.
fn issue(state: &mut State, here: &Here) {
    let limit = state.reserve(&layout(), here.clock.wall, Position(0), Duration::from_secs(3));
    assert!(limit.is_some_and(|limit| limit > layout().position_at(here.clock.wall)));
}

#[test]
fn a_server_that_has_not_looked_for_a_registry_issues_nothing() {
    let mut state = State::fresh(&here("a"));
    assert_eq!(state.node, None);
    state.be_alone(&here("a"), false);
    issue(&mut state, &here("a"));
    assert_eq!(state.lease.as_ref().map(|lease| lease.expiry), Some(Lease::NO_END));
}

#[test]
fn each_worker_id_is_as_likely_as_another_for_servers_out_of_one_image() {
    let mut taken = [0; 32];
    for home in 0..3_200 {
        taken[worker_id(&alone(&here(&home.to_string()))) as usize] += 1;
    }
    assert!(taken.iter().all(|taken| (50..150).contains(taken)), "{taken:?}");
}

#[test]
fn a_worker_id_is_kept() {
    let mut state = alone(&here("a"));
    issue(&mut state, &here("a"));
    let later = after(1_000_000, &here("a"));
    let text = state.to_text().unwrap();
    let reopened = State::from_text(text.as_bytes()).unwrap().open(&later).unwrap();
    assert_eq!(worker_id(&reopened), worker_id(&state));
    assert_eq!(reopened, state);
}

#[test]
fn a_copy_and_a_promoted_server_look_for_a_registry_and_choose_another() {
    for home in 0..200 {
        let original = here(&home.to_string());
        let state = alone(&original);
        let copy = here("elsewhere");
        let promoted = Here { timeline: 2, ..copy.clone() };
        for there in [copy, promoted, Here { timeline: 2, ..original.clone() }] {
            let mut state = state.clone().open(&there).unwrap();
            assert_eq!(state.node, None);
            state.be_alone(&there, false);
            assert_ne!(worker_id(&state), worker_id(&alone(&original)), "home {home}");
        }
    }
}

/// The primary and its promoted standby never choose the same worker id, even if each uses up its whole share.
#[test]
fn both_sides_of_a_promotion_choose_from_different_shares() {
    let primary = here("primary");
    let standby = Here { timeline: 2, ..here("standby") };
    let all = |mut state: State, here: &Here| {
        let mut workers = BTreeSet::new();
        while state.take_another(here, here.clock.wall) == Some(true) {
            workers.insert(worker_id(&state));
            issue(&mut state, here);
        }
        workers
    };
    let ours = all(alone(&primary), &primary);
    // The standby reads the primary's first worker id from the table, and has no copy of the state file.
    let mut state = State::fresh(&standby);
    let first = worker_id(&alone(&primary));
    let row = Chosen {
        first: First { datacenter: 0, worker_id: first, timeline: 1 },
        home: "primary".into(),
        system_identifier: 7,
    };
    state.record_chosen(&standby, &[row]);
    state.be_alone(&standby, false);
    let theirs = all(state, &standby);
    assert!((3..=4).contains(&ours.len()) && (3..=4).contains(&theirs.len()), "{ours:?} {theirs:?}");
    assert!(ours.is_disjoint(&theirs), "{ours:?} {theirs:?}");
}

#[test]
fn a_lease_of_its_own_registry_goes_on_without_an_end() {
    let mut state = State::fresh(&here("a"));
    let expiry = NOW.plus_micros(60_000_000);
    let since = NOW.plus_micros(5_000_000);
    state.take_up(Lease { datacenter: 0, worker_id: 9, token: 1, since, expiry, origin: None });
    state.be_alone(&here("a"), false);
    assert_eq!((worker_id(&state), state.lease.as_ref().unwrap().expiry), (9, Lease::NO_END));
    assert_eq!(state.high_water_mark(state.node.unwrap()), layout().position_at(since));
}

#[test]
fn a_server_that_leaves_its_registry_leaves_the_worker_id_there() {
    let mut state = State::fresh(&here("a"));
    let origin = Some(Origin { identity: "r".into(), server: "central".into() });
    let expiry = NOW.plus_micros(60_000_000);
    let lease = Lease { datacenter: 0, worker_id: 9, token: 1, since: UnixMicros(0), expiry, origin };
    state.leased_from(5, lease.origin.as_ref());
    state.take_up(lease);
    assert_eq!((state.source.database(), state.source.is_alone()), (Some(5), false));
    state.be_alone(&here("a"), false);
    assert_ne!(worker_id(&state), 9);
    assert_eq!((state.source.database(), state.source.shared()), (None, None));
}

#[test]
fn a_server_that_finds_a_registry_goes_on_until_that_has_answered() {
    let mut state = alone(&here("a"));
    let chosen = worker_id(&state);
    state.lease_by(5, false);
    let state = state.open(&here("a")).unwrap();
    assert_eq!((worker_id(&state), state.source.is_alone()), (chosen, false));
}

#[test]
fn a_change_that_is_under_way_is_kept_in_mind() {
    let mut state = alone(&here("a"));
    state.source.move_by(5, None);
    state.be_alone(&here("a"), true);
    assert_eq!(state.source.moving(), Some(5));
    state.be_alone(&here("a"), false);
    assert_eq!(state.source.moving(), None);
}

#[test]
fn a_disposable_worker_id_is_used_by_one_start_only_and_queue_waits_for_the_clock() {
    let start = Here { policy: Policy::Disposable, starts: true, ..here("a") };
    let (mut state, mut seen) = (alone(&start), BTreeSet::new());
    while let Some(node) = state.node {
        assert!(seen.insert(node.worker_id), "{} again", node.worker_id);
        state = state.open(&start).unwrap();
    }
    assert_eq!(seen.len(), 32);
    let none = state.no_worker(&start).unwrap();
    assert_eq!(none.message, "no worker id is free");
    assert!(none.detail.contains("has 32 worker ids") && none.hint.contains("worker_id_policy"), "{none:?}");
    // The clock has passed the times of all ids that were issued, under any worker id.
    let mut state = state.open(&after(600, &here("a"))).unwrap();
    assert!(state.node.is_some());
    assert_eq!(state.no_worker(&here("a")), None);
    state.give_up();
    state.source = WorkerIdSource::Unknown;
    assert_eq!(state.open(&here("a")).unwrap().node, None);
}

#[test]
fn where_the_clock_is_behind_another_worker_id_issues_until_there_is_none() {
    let here = here("a");
    let mut state = alone(&here);
    issue(&mut state, &here);
    let behind = UnixMicros(NOW.0 - 1_000_000);
    let mut seen = BTreeSet::from([worker_id(&state)]);
    while state.take_another(&here, behind) == Some(true) {
        assert!(seen.insert(worker_id(&state)));
        issue(&mut state, &here);
    }
    assert!((4..=5).contains(&seen.len()), "its share: {seen:?}");
    let before = worker_id(&state);
    let later = NOW.plus_micros(10_000_000);
    assert_eq!(state.take_another(&here, later), Some(true), "the clock has passed all");
    assert_ne!(worker_id(&state), before);
    state.lease_by(5, false);
    assert_eq!(state.take_another(&here, later), None, "a registry has to be asked");
}

#[test]
fn a_layout_without_room_has_a_worker_id_of_its_own() {
    for home in 0..200 {
        let original = here(&home.to_string());
        let mut state = alone(&original);
        let at = original.clock.wall.plus(original.max_drift);
        let in_narrow = |state: &mut State, here: &Here| {
            assert!(worker_id(state) < 8 || state.choose_in(&narrow(), Some(0), here.policy, at));
            state.node_in(&narrow()).unwrap().worker_id
        };
        let own = worker_id(&state);
        let ours = in_narrow(&mut state, &original);
        assert_eq!((ours, worker_id(&state)), (own % 8, own), "the server's stays");
        assert_eq!(state.node_in(&layout()).unwrap().worker_id, own);
        // A copy or a promoted standby also has a worker id in the narrow layout. This worker id always differs from the original's.
        let copy = Here { timeline: 1 + home % 2, ..here("elsewhere") };
        let mut copied = state.clone().open(&copy).unwrap();
        copied.be_alone(&copy, false);
        assert_ne!(in_narrow(&mut copied, &copy), ours, "home {home}");
        // The worker ids also differ after both clocks were stepped back, when both servers choose again.
        for (state, here) in [(&mut state, &original), (&mut copied, &copy)] {
            issue(state, here);
            assert_eq!(state.take_another(here, NOW), Some(true));
        }
        assert_ne!(in_narrow(&mut copied, &copy), in_narrow(&mut state, &original), "home {home}");
    }
}

/// After `pg_upgrade`, the new cluster's table of chosen worker ids has a copy of the former cluster's row. Both clusters may have
/// the same share.
#[test]
fn a_layout_without_room_has_a_worker_id_where_the_share_is_another_servers() {
    let mut chosen = 0;
    for home in 0..200 {
        let upgraded = here(&home.to_string());
        let mut state = alone(&upgraded);
        let own = worker_id(&state);
        if own < 8 {
            continue;
        }
        let rows = [8, 16].map(|further| Chosen {
            first: First { datacenter: 0, worker_id: (own + further) % 32, timeline: 1 },
            home: format!("former {further}"),
            system_identifier: further.into(),
        });
        state.record_chosen(&upgraded, &rows);
        let at = upgraded.clock.wall.plus(upgraded.max_drift);
        assert!(state.choose_in(&narrow(), Some(0), upgraded.policy, at), "home {home}");
        let narrow = state.node_in(&narrow()).unwrap().worker_id;
        assert_eq!(narrow, (own + 7) % 8, "the share that promotions reach last");
        chosen += 1;
    }
    assert!(chosen > 100);
}

#[test]
fn a_state_begun_anew_takes_another_worker_id() {
    for home in 0..200 {
        let here = here(&home.to_string());
        let mut former = alone(&here);
        issue(&mut former, &here);
        let above = layout().position_after(NOW.plus_micros(60_000_000));
        let state = State::anew(&here, above, Some(&former));
        assert!(state.source.is_alone() && worker_id(&state) != worker_id(&former), "home {home}");
        let used = Node { datacenter: 0, worker_id: worker_id(&former), rollback: 0 };
        assert_eq!(state.high_water_mark(used), above);
        let unknown = State::anew(&here, above, None);
        assert_eq!((unknown.node, unknown.source.is_alone()), (None, false), "it looks for a registry first");
    }
}

#[test]
fn a_state_that_was_put_back_is_known_by_its_file() {
    let file = |inode| Some(FileIdentity { inode, at: None });
    let first = here("a").with_file(FileIdentity { inode: 1, at: None });
    let mut state = alone(&first);
    issue(&mut state, &first);
    state.home.file = file(1);
    let put_back = after(100, &first).with_file(FileIdentity { inode: 2, at: None });
    let mut state = state.open(&put_back).unwrap();
    assert_eq!(state.node, None, "it looks for a registry first");
    state.be_alone(&put_back, false);
    let begins = state.high_water_mark(state.node.unwrap());
    assert!(begins >= layout().position_after(put_back.clock.wall.plus(put_back.max_drift)));
}

/// The facts of `here` on a file system where copies have the same inode.
fn on([host, id, container]: [&str; 3], here: &Here) -> Here {
    let machine = Some(Machine { id: id.into(), container: container.into() });
    Here { home: DataDirectory { machine, host: host.into(), ..here.home.clone() }, ..here.clone() }
}

fn restarted(state: State, here: &Here) -> State {
    let mut state = state.open(here).unwrap();
    if state.source == WorkerIdSource::Unknown {
        state.be_alone(here, false);
    }
    issue(&mut state, here);
    state
}

/// Returns whether a server keeps its worker id only if no known fact about its machine has changed.
fn is_known_by_its_machine() -> bool {
    let server = on(["h", "m", "c"], &here("a"));
    let mut state = alone(&server);
    issue(&mut state, &server);
    let keeps = |facts| worker_id(&restarted(state.clone(), &on(facts, &server))) == worker_id(&state);
    let of_unknown = restarted(state.clone(), &on(["", "m", "c"], &server));
    let same = [["h", "m", "c"], ["", "m", "c"], ["h", "", "c"], ["h", "m", ""], [""; 3]];
    let others = [["other", "m", "c"], ["h", "other", "c"], ["h", "m", "other"], ["other", "", ""]];
    let elsewhere = restarted(state.clone(), &here("a"));
    same.into_iter().all(keeps)
        && !others.into_iter().any(keeps)
        && worker_id(&restarted(of_unknown.clone(), &server)) == worker_id(&of_unknown)
        && worker_id(&elsewhere) != worker_id(&state)
        && worker_id(&restarted(elsewhere.clone(), &server)) != worker_id(&elsewhere)
}

#[test]
fn where_inodes_repeat_the_machine_tells_a_copy() {
    assert!(is_known_by_its_machine());
    #[cfg(feature = "guards")]
    crate::rules::needs::needs(snowflake_ids_core::guard::Guard::MachineKnown, is_known_by_its_machine);
}

#[test]
fn a_boot_and_a_file_system_where_inodes_tell_are_no_evidence() {
    let server = on(["h", "m", "c"], &here("a"));
    let clock = Reading { boot: "another".into(), since_boot: 1, ..server.clock.clone() };
    let elsewhere = DataDirectory { host: "other".into(), ..here("a").home };
    for (one, two) in
        [(&server, &Here { clock, ..server.clone() }), (&here("a"), &Here { home: elsewhere, ..here("a") })]
    {
        let state = restarted(alone(one), one);
        assert_eq!(worker_id(&restarted(state.clone(), two)), worker_id(&state));
    }
}

/// The state may also be from an image that was never started.
#[test]
fn containers_of_one_image_choose_for_themselves() {
    let image = on(["build", "", ""], &here("image"));
    let chosen = |host: usize| {
        let there = on([&host.to_string(), "", ""], &image);
        (worker_id(&alone(&there)), worker_id(&restarted(alone(&image), &there)))
    };
    let (fresh, of_image): (BTreeSet<_>, BTreeSet<_>) = (0..40).map(chosen).unzip();
    assert!(fresh.len() > 16 && of_image.len() > 8, "{fresh:?} {of_image:?}");
}

/// Copies that replaced each other at one path differ by their state files. What a copy knows counts in all layouts.
#[test]
fn copies_at_one_path_choose_for_themselves_and_leave_all_layouts_to_the_original() {
    let put_back = |inode| here("a").with_file(FileIdentity { inode, at: None });
    let drawn: BTreeSet<_> = (0..40).map(|inode| worker_id(&alone(&put_back(inode)))).collect();
    assert!(drawn.len() > 16, "{drawn:?}");
    let mut state = alone(&put_back(1));
    issue(&mut state, &here("a"));
    let limit = state.reserve(&narrow(), NOW, Position(0), Duration::from_secs(3));
    assert!(limit.is_some() && state.tables().count() == 2);
    let copy = state.open(&here("b").with_file(FileIdentity { inode: 2, at: None })).unwrap();
    assert_eq!(copy.own.minimum, Position(0), "nothing was lost here");
    let of_narrow = copy.high_water_marks_of(&narrow()).unwrap();
    assert!(of_narrow.high_water_marks.iter().all(NodeHighWaterMark::is_of_another));
}

/// Each new host name takes another worker id. When none is left, the one comes back that was left longest ago.
#[test]
fn forty_host_names_take_a_worker_id_each_and_former_ones_come_back() {
    for (server, most) in [(here("a"), 32), (of_pairs("a"), 41)] {
        let mut state = alone(&on(["0", "", ""], &server));
        issue(&mut state, &server);
        let mut taken = vec![pair(&state)];
        for host in 1..=40 {
            let there = on([&host.to_string(), "", ""], &after(10 * host, &server));
            state = restarted(state, &there);
            assert_eq!(restarted(state.clone(), &there), state, "a restart keeps it");
            taken.push(pair(&state));
        }
        assert_eq!(taken.iter().collect::<BTreeSet<_>>().len(), most);
        assert_eq!(taken[most..], taken[..41 - most], "in the same order");
    }
}

/// A lease is left to its registry. An older state file counts as another server's under any host name.
#[test]
fn another_host_name_gives_up_a_lease_and_an_older_file_too() {
    let server = on(["a", "", ""], &here("a"));
    let mut state = State::fresh(&server);
    let origin = Some(Origin { identity: "r".into(), server: "central".into() });
    let expiry = NOW.plus_micros(600_000_000);
    state.leased_from(5, origin.as_ref());
    state.take_up(Lease { datacenter: 0, worker_id: 9, token: 1, since: UnixMicros(0), expiry, origin });
    issue(&mut state, &server);
    state.home.file = Some(FileIdentity { inode: 1, at: None });
    let there = after(10, &on(["b", "", ""], &server));
    for (inode, blocked) in [(1, &[][..]), (2, &[9])] {
        let opened = state.clone().open(&there.clone().with_file(FileIdentity { inode, at: None })).unwrap();
        assert_eq!((opened.node, &opened.lease, opened.source.database()), (None, &None, Some(5)));
        assert_eq!(opened.blocked_worker_ids(0, NOW.plus(Duration::from_hours(9))), blocked, "file {inode}");
    }
}

#[test]
fn a_server_knows_its_own_row() {
    let server = here("a");
    let mut state = alone(&server);
    let row = |home: &str, worker_id| Chosen {
        first: First { datacenter: 0, worker_id, timeline: 1 },
        home: home.into(),
        system_identifier: 7,
    };
    let own = worker_id(&state);
    state.lease_by(5, false);
    state.leave_former();
    state.record_chosen(&server, &[row("a", own), row("b", (own + 1) % 32)]);
    assert_eq!(state.blocked_worker_ids(0, NOW), [(own + 1) % 32]);
}

#[test]
fn the_layout_may_change_until_an_id_was_issued() {
    let first = here("a");
    let other = Here { layout: "41/0/3/9".parse().unwrap(), ..first.clone() };
    let mut state = alone(&first);
    let reopened = state.clone().open(&other).unwrap();
    assert!(reopened.source.is_alone() && worker_id(&reopened) < 8);
    assert_eq!(reopened.open(&first).unwrap().layout, first.layout);
    issue(&mut state, &first);
    assert!(matches!(state.open(&other), Err(StateError::Layout { .. })));
}

#[test]
fn a_number_in_a_copy_is_no_matter_where_no_id_was_issued() {
    let fixed = |home: &str| Here { identity: Identity::Fixed { datacenter: 0, worker_id: 3 }, ..here(home) };
    let mut state = State::fresh(&fixed("a"));
    let copy = state.clone().open(&fixed("b")).unwrap();
    assert!(copy.node.is_some() && copy.copy_of.is_none());
    // An early copy of the state file is restored.
    let first = fixed("a").with_file(FileIdentity { inode: 1, at: None });
    let put_back = fixed("a").with_file(FileIdentity { inode: 2, at: None });
    let early = State::fresh(&first).open(&put_back);
    assert!(matches!(early, Err(StateError::Copy { .. })));
    issue(&mut state, &fixed("a"));
    let refused = state.open(&fixed("b")).unwrap_err();
    assert!(matches!(refused, StateError::Copy { .. }));
    let detail = refused.detail().unwrap();
    assert!(detail.contains(r#"were issued in "/data" on host "h"; this"#), "{detail}");
}

/// A transaction that makes this server use a registry may have committed just before the crash.
#[test]
fn after_a_crash_in_a_change_of_registries_it_is_looked_before_ids_go_on() {
    let server = here("a");
    let mut state = alone(&server);
    issue(&mut state, &server);
    let chosen = worker_id(&state);
    state.source.move_by(5, None);
    assert_eq!(
        state.clone().open(&server).unwrap().node,
        state.node,
        "nothing happens while it is under way"
    );
    let mut state = state.open(&Here { starts: true, ..server.clone() }).unwrap();
    assert_eq!((state.node, state.source.is_alone()), (None, false));
    state.be_alone(&server, false);
    assert_eq!(worker_id(&state), chosen, "it was rolled back");
}

#[test]
fn without_a_datacenter_the_server_draws_among_all_pairs() {
    let drawn: BTreeSet<_> = (0..200).map(|home| pair(&alone(&of_pairs(&home.to_string())))).collect();
    let datacenters: BTreeSet<_> = drawn.iter().map(|(datacenter, _)| datacenter).collect();
    assert!(drawn.len() > 150 && datacenters.len() == 32, "{} pairs", drawn.len());
    let state = alone(&of_pairs("a"));
    assert_eq!(pair(&state.clone().open(&of_pairs("a")).unwrap()), pair(&state), "a restart keeps the pair");
    let configured = Here { identity: Identity::Leased { datacenter: Some(8) }, ..here("a") };
    assert_eq!(pair(&state.open(&configured).unwrap()).0, 8, "a datacenter that is set stays");
}

#[test]
fn a_released_pair_comes_back_after_all_others_of_its_share() {
    let server = of_pairs("a");
    let mut state = alone(&server);
    let mut seen = BTreeSet::from([pair(&state)]);
    for round in 1..128 {
        let here = after(600 * round, &server);
        issue(&mut state, &here);
        let (datacenter, worker_id) = pair(&state);
        let now = here.clock.wall;
        assert_eq!(state.leave_worker_id(&here, now, datacenter, worker_id), Ok(true));
        assert!(seen.insert(pair(&state)), "{:?} again after {round}", pair(&state));
    }
    let shares: BTreeSet<_> =
        seen.iter().map(|(datacenter, worker_id)| (datacenter * 32 + worker_id) % 8).collect();
    assert_eq!(shares.len(), 1);
}

#[test]
fn promotions_and_copies_use_other_pairs() {
    for home in 0..100 {
        let server = of_pairs(&home.to_string());
        let mut state = alone(&server);
        issue(&mut state, &server);
        let number = |state: &State| pair(state).0 * 32 + pair(state).1;
        for timeline in 2..9 {
            let mut promoted = state.clone().open(&Here { timeline, ..server.clone() }).unwrap();
            promoted.be_alone(&Here { timeline, ..server.clone() }, false);
            assert_eq!(number(&promoted) % 8, (number(&state) + timeline - 1) % 8, "home {home}");
        }
        let copy = of_pairs(&format!("copy of {home}"));
        let mut copied = state.clone().open(&copy).unwrap();
        copied.be_alone(&copy, false);
        assert_ne!(number(&copied) % 8, number(&state) % 8, "a copy uses another share");
    }
}

#[test]
fn a_layout_without_room_for_the_pair_gets_a_number_of_its_own() {
    let wide: Layout = "41/0/10/12".parse().unwrap();
    let mut numbers = BTreeSet::new();
    for home in 0..300 {
        let server = of_pairs(&home.to_string());
        let mut state = alone(&server);
        let (datacenter, worker_id) = pair(&state);
        if datacenter == 0 {
            assert_eq!(state.node_in(&wide), state.node);
            continue;
        }
        assert!(state.choose_in(&wide, None, Policy::Reuse, NOW));
        let node = state.node_in(&wide).unwrap();
        assert_eq!((node.datacenter, node.worker_id), (0, datacenter * 32 + worker_id));
        numbers.insert(node.worker_id);
        assert!(state.choose_in(&narrow(), None, Policy::Reuse, NOW));
        assert_eq!(state.node_in(&narrow()).unwrap().worker_id, worker_id % 8);
    }
    assert!(numbers.len() > 200);
}

#[test]
fn with_a_full_list_of_marks_the_worker_id_that_was_passed_longest_ago_comes_back() {
    let layout: Layout = "39/0/16/8 unit=10ms".parse().unwrap();
    let server = Here { layout, ..of_pairs("a") };
    let mut state = alone(&server);
    let first = worker_id(&state);
    let mut seen = BTreeSet::new();
    for round in 1..=256 {
        let here = after(600 * round, &server);
        assert!(state.reserve(&layout, here.clock.wall, Position(0), Duration::from_secs(3)).is_some());
        assert!(seen.insert(worker_id(&state)), "{} again after {round}", worker_id(&state));
        assert_eq!(state.leave_worker_id(&here, here.clock.wall, 0, worker_id(&state)), Ok(true));
    }
    assert_eq!(worker_id(&state), first);
}
