//! The state that a server keeps: opening it, reserving in it, switching worker ids, and its text.

use super::here::{self, FIXED, LEASED, NOW, SECOND, home};
use proptest::prelude::*;
use snowflake_ids_core::server::clock_reference::Reading;
use snowflake_ids_core::server::form::{Head, RELEASE};
use snowflake_ids_core::server::lease::{Lease, Origin, Policy};
use snowflake_ids_core::server::state::{
    Copied, DataDirectory, FileIdentity, Here, Identity, Machine, NodeHighWaterMark, State, StateError,
};
use snowflake_ids_core::{Explain, Kind, Layout, Node, Position, UnixMicros};
use std::time::Duration;

fn layout() -> Layout {
    "41/5/5/2r/10".parse().unwrap()
}

fn here(identity: Identity) -> Here {
    here::here("a", layout(), identity)
}

fn node(worker_id: u32, rollback: u32) -> Node {
    Node { datacenter: 0, worker_id, rollback }
}

fn lease(worker_id: u32) -> Lease {
    let expiry = UnixMicros(NOW.0 + 100_000_000);
    Lease { datacenter: 0, worker_id, token: 11, since: UnixMicros(0), expiry, origin: None }
}

fn after(seconds: i64) -> Position {
    layout().position_after(UnixMicros(NOW.0 + seconds * 1_000_000))
}

/// A state with a worker id that an operator set, with positions reserved.
fn fixed() -> State {
    let mut state = State::fresh(&here(FIXED));
    state.reserve(&layout(), NOW, Position(0), 3 * SECOND);
    state
}

/// A state with a leased worker id, with positions reserved.
fn leased() -> State {
    let mut state = State::fresh(&here(LEASED));
    state.take_up(lease(3));
    state.reserve(&layout(), NOW, Position(0), 3 * SECOND);
    state
}

#[test]
fn its_own_state_is_taken_up_as_it_is() {
    for (identity, state) in [(FIXED, fixed()), (LEASED, leased())] {
        assert_eq!(state.clone().open(&here(identity)), Ok(state));
    }
}

#[test]
fn states_of_others_are_refused() {
    let foreign = Here { system_identifier: 8, ..here(FIXED) };
    assert_eq!(fixed().open(&foreign), Err(StateError::Foreign { stored: 7, ours: 8 }));
    let other = Here { layout: "41/5/5/12".parse().unwrap(), ..here(FIXED) };
    let refused = fixed().open(&other).unwrap_err();
    assert!(matches!(refused, StateError::Layout { .. }));
    assert_eq!(refused.kind(), Kind::NotReady);
    assert!(refused.detail().is_some() && refused.hint().is_some());
}

#[test]
fn a_registry_knows_which_worker_ids_its_own_server_has() {
    let state = leased();
    let here = here(LEASED);
    assert_eq!(
        state.taken_worker_ids(&here, 0, [Some(12), None]),
        Some(vec![3, 3]),
        "its node, and its mark"
    );
    assert_eq!(state.taken_worker_ids(&here, 1, [Some(12), None]), Some(vec![]));
    assert_eq!(state.taken_worker_ids(&here, 0, [None, Some(11)]), None, "this very server");
    let later = Here { clock: Reading { wall: UnixMicros(NOW.0 + 9_000_000), ..here.clock.clone() }, ..here };
    assert_eq!(state.taken_worker_ids(&later, 0, [None; 2]), Some(vec![3]));
    let mut parted = state;
    parted.give_up();
    parted.pending_token = Some(12);
    assert_eq!(parted.taken_worker_ids(&later, 0, [None, Some(12)]), None, "it has a pending one");
    assert_eq!(parted.taken_worker_ids(&later, 0, [None; 2]), Some(vec![]));
}

#[test]
fn while_a_database_joins_a_registry_others_may_join_only_that_one() {
    let mut state = leased();
    state.source.move_by(1, Some("a"));
    assert_eq!(["a", "b"].map(|other| state.held_for(2, other)), [None, Some(1)]);
    assert_eq!(state.held_for(1, "b"), None, "the database itself");
    state.source.move_by(1, None);
    assert_eq!(state.held_for(2, "a"), None, "the registry stays known");
    state.source.move_by(3, None);
    assert_eq!(state.held_for(2, "a"), Some(3), "that of another database does not");
}

#[test]
fn worker_ids_of_one_server_come_from_one_registry() {
    let origin = |identity: &str| Origin { identity: identity.into(), server: "central".into() };
    let mut state = leased();
    assert_eq!(state.held_for(1, "a"), None, "nobody knows yet");
    state.leased_from(1, Some(&origin("a")));
    assert_eq!(state.held_for(1, "b"), None, "the database that has it may go elsewhere");
    assert_eq!(state.held_for(2, "a"), None, "another one may use the same");
    assert_eq!(state.held_for(2, "b"), Some(1));
    assert!(state.draw_from(1, Some("b")));
    assert_eq!(
        (state.held_for(2, "b"), state.held_for(2, "a")),
        (None, Some(1)),
        "it leases from there next"
    );
    // The database that leased is gone.
    assert!(!state.draw_from(3, Some("c")));
    assert_eq!((state.held_for(2, "c"), state.held_for(2, "b")), (None, Some(3)));
    state.lease_by(1, false);
    assert!(!state.draw_from(1, Some("a")));
    state.give_up();
    assert_eq!(state.held_for(2, "b"), Some(1), "whether or not it holds a lease at the moment");
    state.leased_from(1, None);
    assert_eq!(state.held_for(2, "c"), Some(1), "others may have been leased from it");
    state.leased_from(3, None);
    assert_eq!(state.held_for(2, "c"), None, "a registry of its own that leased nothing to others");
    state.leases_out(&here(LEASED), 2, "own");
    assert_eq!(state.held_for(2, "c"), None);
    state.leases_out(&here(LEASED), 3, "own");
    assert_eq!((state.held_for(2, "c"), state.held_for(2, "own")), (Some(3), None));
    state.source.move_by(4, None);
    assert_eq!(state.held_for(2, "own"), Some(4), "another database is about to");
}

#[test]
fn a_worker_id_of_elsewhere_is_given_up_as_a_database_joins_a_registry() {
    let from = |identity: &str| {
        let origin = Origin { identity: identity.into(), server: "central".into() };
        let mut state = leased();
        state.leased_from(1, Some(&origin));
        state.lease.as_mut().unwrap().origin = Some(origin);
        state
    };
    let of_own_tables = |leases_out: bool| {
        let mut state = leased();
        state.leased_from(1, None);
        if leases_out {
            state.leases_out(&here(LEASED), 1, "own");
        }
        state
    };
    for (mut state, database, joined, is_left) in [
        (of_own_tables(false), 1, Some("a"), true),
        (of_own_tables(true), 1, Some("a"), true),
        (of_own_tables(true), 2, Some("own"), false),
        (of_own_tables(true), 1, None, false),
        (from("a"), 2, Some("a"), false),
        (from("a"), 3, Some("c"), true),
    ] {
        let before = state.lease.clone();
        assert_eq!(state.draw_from(database, joined), is_left, "{joined:?}");
        let (kept, former) = if is_left { (None, before) } else { (before, None) };
        assert_eq!((state.node.is_none(), state.lease, state.former), (is_left, kept, former), "{joined:?}");
    }
}

#[test]
fn a_copy_with_a_number_is_refused_until_it_has_another_or_is_adopted() {
    let copy = Here { home: home("copy"), ..here(FIXED) };
    assert!(matches!(fixed().open(&copy), Err(StateError::Copy { worker_id: 3, .. })));
    let renumbered = Here { identity: Identity::Fixed { datacenter: 0, worker_id: 4 }, ..copy.clone() };
    let parted = fixed().open(&renumbered).unwrap();
    assert_eq!(parted.node, Some(node(4, 0)));
    assert!(
        matches!(parted.clone().open(&copy), Err(StateError::Copy { .. })),
        "nor may it go back to it later"
    );
    for state in [fixed(), parted] {
        let adopted = state.adopt(&copy).unwrap();
        assert!(
            adopted.high_water_mark(node(3, 0)) >= after(60),
            "above all that the other could issue up to now"
        );
        assert_eq!(adopted.clone().open(&copy), Ok(adopted));
    }
}

#[test]
fn a_copy_under_a_lease_forgets_it_and_never_uses_its_worker_id() {
    let copy = Here { home: home("copy"), ..here(LEASED) };
    let state = leased().open(&copy).unwrap();
    assert_eq!((state.node, &state.lease, state.pending_token), (None, &None, None));
    assert_eq!(state.blocked_worker_ids(0, NOW), [3]);
}

#[test]
fn a_moved_directory_is_no_copy() {
    let moved = Here { home: DataDirectory { directory: "/other".into(), ..home("a") }, ..here(FIXED) };
    assert_eq!(fixed().open(&moved).unwrap().node, Some(node(3, 0)));
}

fn file_identity(inode: u64, at: &str) -> FileIdentity {
    FileIdentity { inode, at: Some(at.to_owned()).filter(|at| !at.is_empty()) }
}

/// The facts for opening a state from this file.
fn found_in(identity: Identity, file: &FileIdentity) -> Here {
    here(identity).with_file(file.clone())
}

#[test]
fn a_state_that_was_put_back_with_a_number_is_refused_until_it_is_adopted() {
    let (written, put_back) = (file_identity(1, "10.5"), file_identity(2, "11.5"));
    let state = fixed().in_file(written.clone());
    assert_eq!(state.clone().open(&found_in(FIXED, &written)), Ok(state.clone()), "its own file");
    for file in [put_back, file_identity(1, "11.5"), file_identity(2, "10.5")] {
        let found = found_in(FIXED, &file);
        let refused = state.clone().open(&found).unwrap_err();
        assert!(refused.to_string().contains("was restored from an older copy"), "{refused}");
        assert_eq!(refused.for_others(), None);
        assert!(refused.detail().unwrap().contains("worker 3"), "{refused:?}");
        assert!(refused.hint().unwrap().contains("state_adopt"), "{refused:?}");
        assert!(state.is_copy(&found));
        let adopted = state.clone().adopt(&found).unwrap();
        assert!(
            adopted.high_water_mark(node(3, 0)) >= after(60),
            "above all that can have been issued up to now"
        );
        assert!(!adopted.is_copy(&found));
        let parted = Here { identity: Identity::Fixed { datacenter: 0, worker_id: 4 }, ..found };
        let parted = state.clone().open(&parted).unwrap();
        assert!(
            parted.high_water_mark(node(4, 0)) >= after(60),
            "of another number the state may not know either"
        );
    }
}

#[test]
fn a_state_that_was_put_back_under_a_lease_forgets_it_and_begins_above_all_workers_of_before() {
    let state = leased().in_file(file_identity(1, "10.5"));
    let found = found_in(LEASED, &file_identity(2, "11.5"));
    let settled = state.open(&found).unwrap();
    assert_eq!((settled.node, &settled.lease, settled.pending_token), (None, &None, None));
    assert_eq!(settled.blocked_worker_ids(0, NOW), [3]);
    assert!(settled.high_water_mark(node(9, 0)) >= after(60), "one that it leased since");
    let rewritten = settled.in_file(file_identity(3, "12.5"));
    assert_eq!(
        rewritten.clone().open(&found_in(LEASED, &file_identity(3, "12.5"))),
        Ok(rewritten),
        "and that once"
    );
}

#[test]
fn a_state_with_a_lease_of_a_shared_registry_that_was_put_back_begins_at_the_present() {
    let origin = Some(Origin { identity: "r".into(), server: "central".into() });
    let shared =
        State { lease: Some(Lease { origin, ..lease(3) }), ..leased() }.in_file(file_identity(1, "10.5"));
    let settled = shared.open(&found_in(LEASED, &file_identity(2, "11.5"))).unwrap();
    assert_eq!(
        (settled.node, &settled.lease, settled.high_water_mark(node(9, 0))),
        (None, &None, Position(0))
    );
    assert_eq!(settled.blocked_worker_ids(0, NOW), [3]);
}

/// An event that may have set tables back keeps its number, whether the state is refused, parted, adopted or begun anew.
#[test]
fn a_copy_is_numbered_once_and_each_later_one_otherwise() {
    let original = fixed().in_file(file_identity(1, "10.5"));
    let number = |state: &State, here: &Here| state.copied_in(here).map(|copied| copied.number);
    assert_eq!(number(&original, &found_in(FIXED, &file_identity(1, "10.5"))), None);
    for directory in ["a", "copy"] {
        let found =
            |inode| Here { home: home(directory), ..here(FIXED) }.with_file(file_identity(inode, "11.5"));
        let parted = Here { identity: Identity::Fixed { datacenter: 0, worker_id: 4 }, ..found(2) };
        let known = number(&original, &found(2));
        assert!(known.is_some() && known != number(&original, &found(3)), "{directory}");
        for state in [
            original.clone().open(&parted).unwrap(),
            original.clone().adopt(&found(2)).unwrap(),
            State::anew(&found(2), Position(0), Some(&original)),
        ] {
            let state = state.in_file(file_identity(4, "11.5"));
            assert_eq!(number(&state, &found(4)), known, "{directory}: that was it");
            assert!(
                number(&state, &found(5)).is_some_and(|later| Some(later) != known),
                "{directory}: once more"
            );
        }
    }
}

/// Rows record timelines. The other directories have the tables that they had.
#[test]
fn neither_a_promotion_nor_an_image_nor_a_move_sets_tables_back() {
    let machine = |container: &str| {
        let machine = Machine { id: String::new(), container: container.into() };
        Here { home: DataDirectory { machine: Some(machine), ..home("a") }, ..here(LEASED) }
    };
    let copy = Here { home: home("copy"), ..here(LEASED) };
    let image = State::fresh(&here(LEASED));
    let moved = State { home: machine("c1").home, ..leased() };
    assert_eq!(leased().copied_in(&Here { timeline: 2, ..copy.clone() }), None);
    assert_eq!(image.copied_in(&copy), None);
    assert_eq!(moved.copied_in(&machine("c2")), None);
    assert!(State { has_reserved: true, ..image }.copied_in(&copy).is_some());
}

/// A file system without birth times may begin to record them. Inodes are always compared.
#[test]
fn without_a_birth_the_inode_tells_a_file() {
    for (written, read, same) in [
        ("", "", true),
        ("", "10.5", true),
        ("10.5", "", true),
        ("10.5", "10.5", true),
        ("10.5", "11", false),
    ] {
        let state = fixed().in_file(file_identity(1, written));
        assert_eq!(
            state.clone().open(&found_in(FIXED, &file_identity(1, read))).is_ok(),
            same,
            "{written} {read}"
        );
        assert!(state.open(&found_in(FIXED, &file_identity(2, read))).is_err(), "{written} {read}");
    }
}

#[test]
fn a_state_that_names_no_file_is_taken_up_from_any() {
    let read = State::from_text(leased().to_text().unwrap().as_bytes()).unwrap();
    assert_eq!(read.home.file, None);
    let found = Here { identity: LEASED, ..found_in(FIXED, &file_identity(1, "10.5")) };
    assert_eq!(read.open(&found).unwrap().node, Some(node(3, 0)));
}

/// A promotion is stronger evidence than the file identity. The server may come from point-in-time recovery, or from a base
/// backup that became a standby.
#[test]
fn a_state_that_was_put_back_and_promoted_is_promoted() {
    let found = found_in(FIXED, &file_identity(2, "11.5"));
    let promoted = Here { timeline: 2, replayed: Some(UnixMicros(NOW.0 - 3_600_000_000)), ..found };
    let state = fixed().in_file(file_identity(1, "10.5")).open(&promoted).unwrap();
    assert_eq!(state.node, Some(node(3, 0)));
    assert!(
        state.high_water_mark(node(3, 0)) >= after(60),
        "what was issued after the instant of recovery may be known"
    );
    assert!(state.high_water_mark(node(5, 0)) >= after(60));
}

#[test]
fn a_promoted_server_begins_above_the_last_commit_and_forgets_the_lease() {
    let replayed = Some(UnixMicros(NOW.0 + 5_000_000));
    let promoted = |identity| Here { timeline: 2, home: home("standby"), replayed, ..here(identity) };
    let state = fixed().open(&promoted(FIXED)).unwrap();
    assert_eq!(state.high_water_mark(node(3, 0)), after(65));
    assert_eq!(state.high_water_mark(node(3, 1)), after(65), "the former primary may have switched since");
    let state = leased().open(&promoted(LEASED)).unwrap();
    assert_eq!((state.node, state.lease), (None, None));
    let fresh = State::fresh(&promoted(FIXED));
    assert_eq!(fresh.high_water_mark(node(3, 0)), after(65), "copied before the primary had a file");
}

#[test]
fn a_disposable_worker_id_is_not_used_after_a_restart() {
    let state = leased().open(&Here { starts: true, policy: Policy::Disposable, ..here(LEASED) }).unwrap();
    assert_eq!((state.node, state.lease), (None, None));
}

#[test]
fn a_lease_of_another_datacenter_or_beside_a_number_is_forgotten() {
    let elsewhere = here(Identity::Leased { datacenter: Some(1) });
    assert_eq!(leased().open(&elsewhere).unwrap().node, None);
    let numbered = leased().open(&here(FIXED)).unwrap();
    assert_eq!((numbered.node, &numbered.lease), (Some(node(3, 0)), &None));
    assert_eq!(
        numbered.high_water_mark(node(3, 0)),
        leased().high_water_mark(node(3, 0)),
        "what was issued under it stays issued"
    );
}

#[test]
fn a_pending_token_outlives_a_restart() {
    let pending = State { pending_token: Some(5), ..State::fresh(&here(LEASED)) };
    assert_eq!(pending.open(&here(LEASED)).unwrap().pending_token, Some(5));
}

#[test]
fn a_new_state_begins_every_node_where_it_is_told() {
    let state = State::anew(&here(FIXED), after(60), None);
    assert_eq!([node(3, 0), node(3, 1), node(9, 2)].map(|node| state.high_water_mark(node)), [after(60); 3]);
}

#[test]
fn nothing_is_reserved_beyond_the_expiry_or_the_end() {
    let mut state = leased();
    let expiry = layout().position_at(lease(3).expiry);
    assert_eq!(state.reserve(&layout(), NOW, Position(0), 500 * SECOND), Some(expiry));
    let late = UnixMicros(NOW.0 + 200_000_000);
    assert_eq!(state.reserve(&layout(), late, expiry, SECOND), Some(expiry), "not a position more");
    let mut state = fixed();
    assert_eq!(
        state.reserve(&layout(), layout().last_instant(), Position(0), SECOND),
        Some(layout().end_position())
    );
    assert_eq!(
        State::fresh(&here(LEASED)).reserve(&layout(), NOW, Position(0), SECOND),
        None,
        "no node issues"
    );
}

#[test]
fn a_lease_begins_where_the_one_before_it_ended() {
    let mut state = State::fresh(&here(LEASED));
    state.take_up(Lease { since: layout().instant_of(after(7)), ..lease(3) });
    assert_eq!([0, 1, 3].map(|rollback| state.high_water_mark(node(3, rollback))), [after(7); 3]);
    state.give_up();
    assert_eq!((state.node, &state.lease), (None, &None));
}

#[test]
fn a_switch_takes_a_rollback_value_whose_high_water_mark_the_clock_has_passed() {
    let mut state = fixed();
    let ahead = NodeHighWaterMark { node: node(3, 1), position: after(50) };
    state.own.high_water_marks.push(ahead);
    assert!(state.switch_rollback(&layout(), NOW));
    assert_eq!(state.node, Some(node(3, 2)), "the next one is ahead of the clock, too");
    state
        .own
        .high_water_marks
        .extend([2, 3].map(|rollback| NodeHighWaterMark { node: node(3, rollback), position: after(50) }));
    assert!(!state.switch_rollback(&layout(), NOW));
    assert_eq!(state.node, Some(node(3, 2)));
}

#[test]
fn an_end_is_recorded_exactly() {
    let mut state = fixed();
    state.settle(&layout(), node(3, 0), after(-1));
    assert_eq!(state.high_water_mark(node(3, 0)), after(-1));
}

/// Any state, with any high-water marks, with or without a lease.
fn states() -> impl Strategy<Value = State> {
    let high_water_marks = prop::collection::btree_map((0_u32..32, 0_u32..4), 0_u64..1 << 40, 0..300);
    (high_water_marks, any::<bool>(), any::<Option<i64>>()).prop_map(
        |(high_water_marks, is_leased, pending_token)| {
            let mut state = if is_leased { leased() } else { fixed() };
            let high_water_marks = high_water_marks
                .into_iter()
                .map(|((worker_id, rollback), position)| (node(worker_id, rollback), position));
            state.own.high_water_marks = high_water_marks
                .map(|(node, position)| NodeHighWaterMark { node, position: Position(position) })
                .collect();
            State { pending_token, ..state }
        },
    )
}

/// The number of the form that this release writes.
fn present_form() -> u32 {
    serde_json::from_str::<Head>(&fixed().to_text().unwrap()).unwrap().version
}

/// The text of a state as the release `release` writes it in the form `version`, with a field that the tested release does not know.
fn of_release(release: &str, version: u32) -> String {
    let state = serde_json::to_string(&fixed()).unwrap().replacen('{', r#"{"unknown here":[],"#, 1);
    let checksum = crc32fast::hash(format!("{version} {release} {state}").as_bytes());
    format!(r#"{{"version":{version},"release":"{release}","checksum":{checksum},"state":{state}}}"#)
}

#[test]
fn a_state_of_an_unknown_form_is_not_damaged_and_nothing_to_begin_anew_for() {
    let older = State::from_text(of_release("0.9.0", present_form() - 1).as_bytes());
    assert!(matches!(older, Err(StateError::UnknownForm(_))), "{older:?}");
    let newer = State::from_text(of_release("9.1.0", present_form() + 1).as_bytes()).unwrap_err();
    assert_eq!(newer.kind(), Kind::NotReady);
    assert_eq!(newer.to_string(), "the state file of snowflake_ids has an unknown format");
    let (detail, hint) = (newer.detail().unwrap(), newer.hint().unwrap());
    let forms = [format!("format {}", present_form() + 1), format!("reads format {}", present_form())];
    for known in forms.iter().map(String::as_str).chain(["9.1.0", RELEASE]) {
        assert!(detail.contains(known), "{detail}");
    }
    assert!(hint.contains("at least version 9.1.0") && !hint.contains("reset"), "{hint}");
    // The text is refused whatever the checksum and the state look like in that form.
    let other = br#"{"release":"12.0","version":7,"sealed":{"by":"another rule"}}"#;
    assert!(matches!(State::from_text(other), Err(StateError::UnknownForm(_))));
}

#[test]
fn a_state_of_another_build_has_an_unknown_form_if_its_seal_says_so() {
    let text = of_release(RELEASE, present_form() + 1);
    let newer = State::from_text(text.as_bytes()).unwrap_err();
    assert_eq!(newer.kind(), Kind::NotReady);
    let hint = newer.hint().unwrap();
    assert!(hint.contains("or a later one") && !hint.contains("reset"), "{hint}");
    let broken = text.replace(r#""checksum":"#, r#""checksum":1"#);
    assert_eq!(State::from_text(broken.as_bytes()).unwrap_err().kind(), Kind::Damaged);
}

/// A file of form 1. Later releases have to read this text.
#[test]
fn the_file_has_this_form() {
    let mut state = State::fresh(&here(LEASED));
    let origin = Some(Origin { identity: "a-registry".into(), server: "central".into() });
    state.take_up(Lease { origin, ..lease(3) });
    state.reserve(&layout(), NOW, Position(0), 3 * SECOND);
    state.own.high_water_marks.push(NodeHighWaterMark { node: node(4, 2), position: Position(77) });
    let machine = Some(Machine { id: "m".into(), container: "c".into() });
    let copy_of = Some(DataDirectory { file: Some(file_identity(9, "")), machine, ..home("first") });
    let pending_token = Some(-12);
    state.leased_from(5, state.lease.clone().unwrap().origin.as_ref());
    state.source.move_by(6, Some("next"));
    state.own.minimum = Position(5);
    let web: Layout = "41/5/5/12 epoch=2020-01-01".parse().unwrap();
    state.settle(&web, node(3, 1), Position(99));
    let other = &mut state.others.layouts[0];
    (other.rollback, other.used, other.of.minimum) = (1, NOW, Position(6));
    let copied = Some(Copied { number: 17, at: NOW });
    let state = State { copy_of, copied, pending_token, ..state }.in_file(file_identity(8, "0.5"));

    let sample = include_str!("state/form_1.json");
    assert_eq!(State::from_text(sample.as_bytes()).as_ref(), Ok(&state));
    let flipped = sample.replace("77", "78");
    assert_eq!(State::from_text(flipped.as_bytes()).unwrap_err().kind(), Kind::Damaged);
}

#[test]
fn a_state_says_which_release_wrote_it() {
    let text = fixed().to_text().unwrap();
    assert!(text.starts_with(&format!(r#"{{"version":{},"release":"{RELEASE}","#, present_form())), "{text}");
}

proptest! {
    /// A copy is whole even if the copying program read the file's length before the state changed.
    #[test]
    fn a_state_that_grows_by_some_digits_keeps_its_length(state in states()) {
        let text = state.to_text().unwrap();
        prop_assert_eq!(text.len() % 1024, 0);
        prop_assert_eq!(State::from_text(text.trim_end().as_bytes()), Ok(state));
    }

    /// A state may be restored, copied, promoted or adopted in any order. No high-water mark falls. A server whose worker id an
    /// operator set does not issue with another server's state.
    #[test]
    fn what_happens_to_a_file_lowers_no_high_water_mark(state in states(), steps in prop::collection::vec((0_u64..3, 0_u8..3, 1_u32..4, any::<bool>()), 1..6)) {
        let mut state = state.in_file(file_identity(0, "0.5"));
        for (inode, directory, timeline, adopts) in steps {
            let identity = if state.lease.is_some() { LEASED } else { FIXED };
            let timeline = timeline.max(state.timeline);
            let here = Here { timeline, home: home(&directory.to_string()), ..here(identity) };
            let here = here.with_file(file_identity(inode, "0.5"));
            let own = state.home.identity == here.home.identity && state.home.file == here.home.file;
            let promoted = timeline != state.timeline;
            let was_copy = state.copy_of.is_some();
            let opened = if adopts { state.clone().adopt(&here) } else { state.clone().open(&here) };
            let Ok(opened) = opened else {
                prop_assert!(!own || was_copy, "its own is never refused");
                continue;
            };
            // A state without reserved ids may be part of an image. Servers made from the image may issue under the state's worker id.
            let is_unused = state.own.high_water_marks.is_empty() && state.own.minimum == Position(0) && state.others.layouts.is_empty();
            let is_image = is_unused && state.home.identity != here.home.identity;
            let is_own = own || promoted || adopts || was_copy || is_image;
            prop_assert!(is_own || opened.node.is_none() || opened.node != state.node, "{opened:?}");
            for worker_id in 0..32 {
                let node = node(worker_id, 0);
                let before = Some(state.high_water_mark(node)).filter(|high_water_mark| !adopts || *high_water_mark < Position(u64::MAX)).unwrap_or(Position(0));
                // If the lease is forgotten, only a server that takes over the lease's row begins below the former mark.
                let before = if opened.lease == state.lease { before } else { before.min(state.own.minimum) };
                prop_assert!(opened.high_water_mark(node) >= before, "{node:?}");
            }
            state = opened.in_file(file_identity(inode, "0.5"));
        }
    }

    #[test]
    fn a_state_reads_back(state in states()) {
        let text = state.to_text().unwrap();
        prop_assert_eq!(State::from_text(text.as_bytes()), Ok(state));
    }

    /// A changed byte is noticed, unless the read state is equal to the written state.
    #[test]
    fn no_flipped_byte_goes_unnoticed(state in states(), at in any::<prop::sample::Index>(), flip in 1_u8..=255) {
        let mut text = state.to_text().unwrap().into_bytes();
        let at = at.index(text.len());
        text[at] ^= flip;
        match State::from_text(&text) {
            Ok(read) => prop_assert_eq!(read, state),
            Err(error) => prop_assert_eq!(error.kind(), Kind::Damaged),
        }
    }

    #[test]
    fn no_torn_file_goes_unnoticed(state in states(), at in any::<prop::sample::Index>()) {
        let text = state.to_text().unwrap();
        // The text is whole without its trailing spaces and line end.
        let at = at.index(text.trim_end().len());
        let torn = State::from_text(&text.as_bytes()[..at]);
        prop_assert_eq!(torn.unwrap_err().kind(), Kind::Damaged);
    }

    /// No node's high-water mark falls, whatever is reserved and however many nodes exist.
    #[test]
    fn reserving_lowers_no_high_water_mark(state in states(), next in 0_u64..1 << 50, seconds in -100_i64..100, ahead in 0_u64..1 << 30) {
        let at = UnixMicros(NOW.0 + seconds * 1_000_000);
        let mut raised = state.clone();
        let limit = raised.reserve(&layout(), at, Position(next), Duration::from_micros(ahead)).unwrap();
        for (worker_id, rollback) in (0..32).flat_map(|worker_id| (0..4).map(move |rollback| (worker_id, rollback))) {
            let node = node(worker_id, rollback);
            prop_assert!(raised.high_water_mark(node) >= state.high_water_mark(node), "{node:?}");
        }
        prop_assert!(raised.high_water_mark(state.node.unwrap()) >= limit, "reserved before it is used");
        prop_assert!(state.lease.is_none_or(|lease| limit <= layout().position_at(lease.expiry)));
    }
}

#[test]
fn high_water_marks_that_are_dropped_raise_the_minimum_of_all_others() {
    let wide: Layout = "41/5/10/6".parse().unwrap();
    let mut state = State::fresh(&Here { layout: wide, ..here(FIXED) });
    for worker_id in 0..600 {
        state.settle(&wide, node(worker_id, 0), Position(u64::from(worker_id) + 1));
    }
    assert!(state.own.high_water_marks.len() < 600);
    for worker_id in 0..600 {
        assert!(
            state.high_water_mark(node(worker_id, 0)) > Position(u64::from(worker_id)),
            "worker {worker_id}"
        );
    }
}

/// The new holder of a returned worker id begins above all ids issued under it, even if the worker id's high-water mark was dropped.
#[test]
fn a_worker_id_is_free_above_its_high_water_mark_even_if_that_was_dropped() {
    let mut state = leased();
    state.settle(&layout(), node(3, 0), after(30));
    for worker_id in 4..400 {
        state.settle(&layout(), node(worker_id, 0), after(40));
    }
    assert!(
        !state.own.high_water_marks.iter().any(|high_water_mark| high_water_mark.node == node(3, 0)),
        "it is kept"
    );
    assert!(layout().position_at(state.end_of(&lease(3))) > after(30));
}

/// The layout that the server changes to.
fn later() -> Layout {
    "41/5/5/2r/10 epoch=2015-01-01".parse().unwrap()
}

/// The smallest and the largest id of a position.
fn ids(layout: &Layout, position: Position) -> (u64, u64) {
    let last = Node { datacenter: 31, worker_id: 31, rollback: 3 };
    (layout.id(position, layout.place(node(0, 0)).unwrap()), layout.id(position, layout.place(last).unwrap()))
}

#[test]
fn a_server_goes_on_in_the_layout_that_was_recorded() {
    for (identity, state) in [(FIXED, fixed()), (LEASED, leased())] {
        let with_later = Here { layout: later(), ..here(identity) };
        let refused = state.clone().open(&with_later);
        assert!(matches!(refused, Err(StateError::Layout { .. })), "{refused:?}");
        let mut recorded = state.clone();
        recorded.next_layout = Some(later());
        // At this start the setting is unchanged, so the layout stays.
        assert_eq!(recorded.clone().open(&here(identity)), Ok(recorded.clone()));
        let recorded = State::from_text(recorded.to_text().unwrap().as_bytes()).unwrap();
        let opened = recorded.clone().open(&with_later).unwrap();
        assert_eq!((opened.layout, opened.next_layout), (later(), None));
        assert_eq!(opened.node, state.node);
        assert_eq!(opened.high_water_marks_of(&layout()), Some(&state.own), "the old marks are kept");
        assert_eq!(opened.clone().open(&with_later), Ok(opened.clone()));
        // A layout other than the recorded one is refused.
        let other = Here { layout: "twitter".parse().unwrap(), ..here(identity) };
        assert!(matches!(recorded.open(&other), Err(StateError::Layout { .. })));
        // After a change back, ids are above the ids of both layouts.
        let mut back = opened;
        back.reserve(&later(), NOW, Position(0), 3 * SECOND);
        let given = ids(&later(), Position(back.own.highest().0 - 1)).1;
        back.next_layout = Some(layout());
        let back = back.open(&here(identity)).unwrap();
        let high_water_mark = back.high_water_mark(back.node.unwrap());
        assert!(
            ids(&layout(), high_water_mark).0 > given
                && high_water_mark >= state.high_water_mark(state.node.unwrap())
        );
    }
}

#[test]
fn a_lease_goes_on_in_another_layout() {
    let mut state = leased();
    state.next_layout = Some(later());
    let opened = state.open(&Here { layout: later(), ..here(LEASED) }).unwrap();
    assert_eq!(opened.lease.map(|lease| lease.worker_id), Some(3));
}

/// Whether ids continue above all ids of the former layout, although the server's clock had been far ahead.
fn goes_on_above() -> bool {
    let mut state = State::fresh(&here(FIXED));
    let ahead = NOW.plus(Duration::from_hours(10 * 365 * 24));
    state.reserve(&layout(), ahead, Position(0), 3 * SECOND);
    let given = ids(&layout(), Position(state.own.highest().0 - 1)).1;
    state.next_layout = Some(later());
    let opened = state.open(&Here { layout: later(), ..here(FIXED) }).unwrap();
    [3, 4].iter().all(|worker_id| ids(&later(), opened.high_water_mark(node(*worker_id, 0))).0 > given)
}

#[test]
fn ids_begin_above_all_of_the_layout_before() {
    assert!(goes_on_above());
}
