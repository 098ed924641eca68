//! Generators of layouts other than the server's own layout: their slots and their high-water marks.

use super::here::{self, FIXED, LEASED, NOW, SECOND, home};
use super::memory::{Machine, Server};
use super::rules::needs::needs;
use snowflake_ids_core::guard::Guard;
use snowflake_ids_core::server::issuer::{
    GeneratorSlot, IssuerError, LayoutGenerator, PositionSource, SlotRef,
};
use snowflake_ids_core::server::lease::{Lease, LeaseError};
use snowflake_ids_core::server::state::{Here, Identity, State, StateError};
use snowflake_ids_core::session::{Session, SessionError, take, wait_and_take};
use snowflake_ids_core::{
    Clock, Explain, GeneratorError, Kind, Layout, Node, NodeBits, Position, Rules, SequenceStart, UnixMicros,
};
use std::num::NonZeroU32;
use std::sync::atomic::Ordering::Relaxed;

fn own() -> Layout {
    "34/0/5/2r/6 unit=1s epoch=2020-01-01".parse().unwrap()
}

/// A layout in milliseconds, with eight worker ids.
fn web() -> Layout {
    "41/0/3/9 epoch=2019-12-24T16:00:00Z".parse().unwrap()
}

fn third() -> Layout {
    "30/0/5/1r/8 unit=10s epoch=2020-01-01".parse().unwrap()
}

fn here(identity: Identity) -> Here {
    here::here("a", own(), identity)
}

fn node(worker_id: u32) -> Node {
    Node { datacenter: 0, worker_id, rollback: 0 }
}

fn at(seconds: i64) -> UnixMicros {
    UnixMicros(NOW.0 + seconds * 1_000_000)
}

/// A state that has reserved ids in the server's own layout and in another layout.
fn used(identity: Identity) -> State {
    let mut state = State::fresh(&here(identity));
    if identity == LEASED {
        state.take_up(lease(3, UnixMicros(0)));
    }
    for layout in [own(), web()] {
        state.reserve(&layout, NOW, Position(0), 3 * SECOND);
    }
    state
}

fn lease(worker_id: u32, since: UnixMicros) -> Lease {
    Lease { datacenter: 0, worker_id, token: 11, since, expiry: at(100), origin: None }
}

#[test]
fn each_layout_has_high_water_marks_of_its_own() {
    let mut state = used(FIXED);
    let (high_water_mark, other) =
        (state.high_water_mark(node(3)), state.high_water_mark_in(&web(), node(3)));
    assert!(high_water_mark > own().position_at(at(2)) && other > web().position_at(at(2)));
    state.reserve(&web(), at(50), Position(0), 3 * SECOND);
    assert_eq!(state.high_water_mark(node(3)), high_water_mark);
    assert!(state.high_water_mark_in(&web(), node(3)) > web().position_at(at(52)));
    let text = state.to_text().unwrap();
    assert_eq!(State::from_text(text.as_bytes()), Ok(state.clone()));
    assert_eq!(state.clone().open(&here(FIXED)), Ok(state));
}

#[test]
fn what_raises_the_high_water_marks_of_the_own_layout_raises_all() {
    needs(Guard::OthersRise, || {
        let promoted = Here { timeline: 2, replayed: Some(at(500)), ..here(FIXED) };
        let put_back = Here { home: home("copy"), ..here(FIXED) };
        let promoted = used(FIXED).open(&promoted).unwrap();
        let adopted = used(FIXED).adopt(&put_back).unwrap();
        [web(), third()].iter().all(|layout| {
            [3, 4].iter().all(|worker_id| {
                promoted.high_water_mark_in(layout, node(*worker_id)) >= layout.position_after(at(560))
                    && adopted.high_water_mark_in(layout, node(*worker_id)) >= layout.position_after(at(60))
            })
        })
    });
}

#[test]
fn a_lease_that_is_given_back_is_free_after_the_ids_of_all_layouts() {
    needs(Guard::OthersEnd, || {
        let mut state = used(LEASED);
        state.settle(&web(), node(3), web().position_at(at(90)));
        state.end_of(&lease(3, UnixMicros(0))) > at(90)
    });
}

#[test]
fn a_worker_id_that_was_of_another_begins_in_all_layouts_where_that_one_ended() {
    let since = UnixMicros(at(30).0 + 700_000);
    needs(Guard::OthersStart, || {
        let mut state = State::fresh(&here(LEASED));
        state.take_up(lease(5, since));
        state.high_water_mark_in(&web(), node(5)) == web().position_at(since)
    });
}

#[test]
fn a_copy_is_known_by_ids_of_any_layout() {
    let mut state = State::fresh(&here(FIXED));
    state.reserve(&web(), NOW, Position(0), 3 * SECOND);
    let renumbered = Here { identity: Identity::Fixed { datacenter: 0, worker_id: 4 }, ..here(FIXED) };
    let state = state.open(&renumbered).unwrap();
    assert!(state.own.high_water_marks.is_empty());
    let copy = Here { home: home("copy"), ..here(FIXED) };
    assert!(matches!(state.clone().open(&copy), Err(StateError::Copy { worker_id: 3, .. })));
    let leased = Here { home: home("copy"), ..here(LEASED) };
    let copied = state.open(&leased).unwrap();
    assert_eq!(copied.blocked_worker_ids(0, NOW), [3, 4], "the original may issue under its new number");
}

/// A layout that differs for each value of `number`.
fn many(number: i64) -> Layout {
    format!("41/0/5/12 epoch=2020-01-01T{:02}:{:02}:00Z", number / 60, number % 60).parse().unwrap()
}

#[test]
fn layouts_that_are_dropped_raise_the_minimum_of_all_others() {
    let mut state = State::fresh(&here(FIXED));
    let mut high_water_marks = Vec::new();
    for number in 0..300 {
        let layout = many(number);
        state.reserve(&layout, at(number), Position(0), 3 * SECOND);
        high_water_marks.push((layout, state.high_water_mark_in(&layout, node(3))));
    }
    assert_eq!(state.others.layouts.len(), 256, "it is bounded");
    for (layout, high_water_mark) in high_water_marks {
        assert!(state.high_water_mark_in(&layout, node(3)) >= high_water_mark, "{layout}");
    }
    assert!(
        state.high_water_mark_in(&third(), node(3)) > third().position_at(at(3)),
        "it may be one that was dropped"
    );
}

/// Ids of layouts in use are ahead of the clock. If `others.minimum` were above these ids, other layouts could not issue yet.
#[test]
fn layouts_in_use_are_kept_so_that_others_begin_at_the_clock() {
    let mut state = State::fresh(&here(FIXED));
    for number in 0..300 {
        state.reserve(&many(number), NOW, Position(0), SECOND);
    }
    assert_eq!((state.others.layouts.len(), state.others.minimum), (300, UnixMicros(0)));
    for number in 300..600 {
        state.reserve(&many(number), at(60), Position(0), SECOND);
    }
    assert!(state.others.minimum <= at(60), "those that are over are not");
}

#[test]
fn a_node_that_is_another_servers_stays_so_when_its_layout_is_dropped() {
    let mut state = State::fresh(&here(LEASED));
    state.take_up(lease(3, UnixMicros(0)));
    state.reserve(&web(), NOW, Position(0), 3 * SECOND);
    let copy = Here { home: home("copy"), ..here(LEASED) };
    let mut state = state.open(&copy).unwrap();
    state.take_up(lease(6, UnixMicros(0)));
    for number in 0..258 {
        state.reserve(&many(number), at(10 + number), Position(0), SECOND);
    }
    assert!(state.high_water_marks_of(&web()).is_none(), "it is kept");
    assert!(state.blocked_worker_ids(0, at(10_000)).contains(&3));
}

#[test]
fn worker_ids_are_limited_to_what_all_layouts_in_use_have() {
    let mut state = State::fresh(&here(LEASED));
    assert_eq!(state.worker_id_limit(NOW), 31);
    state.want(&web(), NOW);
    assert_eq!(state.worker_id_limit(NOW), 7);
    assert_eq!(state.worker_id_limit(at(8 * 86_400)), 31, "one that is not used any more");
}

#[test]
fn the_own_layout_changes_where_an_operator_has_said_so() {
    needs(Guard::LayoutRises, || {
        // Ids of the new layout are above present ids of the old layout, but not above all issued ids.
        let (former, next): (Layout, Layout) = (
            "34/0/5/2r/6 unit=1s epoch=2024-01-01".parse().unwrap(),
            "34/0/5/9 unit=1s epoch=2020-01-01".parse().unwrap(),
        );
        let mut state = State::fresh(&Here { layout: former, ..here(FIXED) });
        state.reserve(&former, NOW, Position(0), 3 * SECOND);
        state.reserve(&next, NOW, Position(0), 3 * SECOND);
        let (old, new) = (state.high_water_mark(node(3)), state.high_water_mark_in(&next, node(3)));
        // Node 4 issued ids far ahead of the clock.
        state.settle(&former, node(4), Position(former.position_at(NOW).0 << 3));
        let last = Position(state.own.highest().0 - 1);
        let changed = Here { layout: next, ..here(FIXED) };
        assert!(matches!(state.clone().open(&changed), Err(StateError::Layout { .. })), "nobody has said so");
        state.next_layout = Some(next);
        let waits = state.clone().open(&Here { layout: former, ..here(FIXED) }).unwrap();
        assert_eq!(waits.next_layout, state.next_layout, "it has not been restarted with it");
        let third = Here { layout: third(), ..here(FIXED) };
        assert!(matches!(state.clone().open(&third), Err(StateError::Layout { .. })), "it is another one");
        let state = state.open(&changed).unwrap();
        assert_eq!((state.layout, state.next_layout), (next, None));
        assert_eq!(state.high_water_mark_in(&former, node(3)), old, "the marks of the former are kept");
        assert!(state.high_water_mark(node(3)) >= new, "and those that there were of the new one");
        assert_eq!(state.clone().open(&changed), Ok(state.clone()));
        let largest = former.id(last, former.place(Node { rollback: 3, ..node(31) }).unwrap());
        [3, 9].iter().all(|worker_id| next.id(state.high_water_mark(node(*worker_id)), NodeBits(0)) > largest)
    });
}

#[test]
fn a_lease_holds_in_a_new_layout() {
    let since = UnixMicros(at(30).0 + 700_000);
    let mut state = State::fresh(&here(LEASED));
    state.take_up(lease(5, since));
    state.next_layout = Some(web());
    let state = state.open(&Here { layout: web(), ..here(LEASED) }).unwrap();
    assert!(state.high_water_mark(node(5)) >= web().position_at(since));
}

#[test]
fn a_leased_worker_id_without_room_in_the_new_own_layout_is_replaced() {
    let machine = Machine::new(NOW);
    let server = Server::start(&machine, own(), LEASED, 4);
    server.issuer().change(|state, _| state.take_up(lease(9, UnixMicros(0)))).unwrap();
    server.issuer().change(|state, _| state.next_layout = Some(web())).unwrap();
    let restarted = Server::start(&machine, web(), LEASED, 4);
    restarted.offer(lease(5, UnixMicros(0)));
    ids(&restarted, &web(), &Session::new()).unwrap();
    assert_eq!(restarted.state().node.unwrap().worker_id, 5);
}

// The tests below use an issuer.

fn ids(server: &Server<'_>, layout: &Layout, session: &Session) -> Result<i64, SessionError> {
    let one = NonZeroU32::MIN;
    let issuer = server.issuer();
    let waited = wait_and_take(&issuer, layout, None, one, None)?;
    Ok(layout.id_of(session.keep(waited.taken, waited.generation)))
}

#[test]
fn one_write_raises_the_high_water_marks_of_all_layouts() {
    let machine = Machine::new(NOW);
    let server = Server::start(&machine, own(), FIXED, 4);
    for layout in [own(), web(), third()] {
        ids(&server, &layout, &Session::new()).unwrap();
    }
    let written = || server.shared.counts.reservations.load(Relaxed);
    let (before, issuer) = (written(), server.issuer());
    for second in 1..=30 {
        machine.set(at(second));
        issuer.keep_ahead().unwrap();
    }
    let limits =
        |layout: Layout| server.state().high_water_mark_in(&layout, node(3)) > layout.position_at(at(30));
    assert!(limits(own()) && limits(web()) && limits(third()));
    let writes = written() - before;
    assert!((5..=16).contains(&writes), "{writes}");
    issuer.stop().unwrap();
    let state = server.state();
    assert!(
        state.high_water_mark_in(&web(), node(3)) < web().position_at(at(1)),
        "what was issued is recorded exactly"
    );
}

#[test]
fn a_slot_is_given_up_after_a_minute_without_ids() {
    let machine = Machine::new(NOW);
    let server = Server::start(&machine, own(), FIXED, 1);
    let (of_web, of_third) = (Session::new(), Session::new());
    let first = ids(&server, &web(), &of_web).unwrap();
    let slot_ref = server.issuer().assign_slot(&web()).unwrap();
    machine.set(at(30));
    let refused = ids(&server, &third(), &of_third).unwrap_err();
    assert_eq!(refused.kind(), Kind::LimitReached);
    assert!(refused.hint().unwrap().contains("max_generators"));
    machine.set(at(62));
    ids(&server, &third(), &of_third).unwrap();
    assert!(!server.shared.assigned_at(slot_ref, &own()).is_held());
    let layout = web();
    let gone = server.shared.assigned_at(slot_ref, &layout);
    assert!(matches!(take(&gone, &RULES, &at(62), NonZeroU32::MIN, None), Err(GeneratorError::Unreserved)));
    let state = server.state();
    let issued = web().decode(first).unwrap();
    let position = web().position_at(issued.timestamp).0 | u64::from(issued.sequence);
    assert_eq!(state.high_water_mark_in(&web(), node(3)), Position(position + 1), "its mark is settled");
    machine.set(at(130));
    let again = ids(&server, &web(), &of_web).unwrap();
    assert!(again > first);
    assert_eq!(server.issuer().assign_slot(&own()).unwrap(), SlotRef::Own);
}

/// A single database gets half of the slots. A later database gets slots until it has one fewer than the database with most
/// slots. Both rules apply to any number of databases and layouts.
#[test]
fn databases_share_the_slots() {
    let machine = Machine::new(NOW);
    let server = Server::start(&machine, own(), FIXED, 64);
    let mut next = 0;
    let mut take_all = |database, most: usize| {
        server.database.set(database);
        (0..most)
            .take_while(|_| {
                next += 1;
                server.issuer().assign_slot(&many(next)).is_ok()
            })
            .count()
    };
    for (database, most, gets) in
        [(1, 100, 32), (2, 100, 31), (3, 3, 3), (1, 100, 0), (4, 100, 20), (5, 1, 1), (2, 100, 0)]
    {
        assert_eq!(take_all(database, most), gets, "database {database}");
    }
    // Any database may use a layout that has a slot.
    server.database.set(1);
    assert!(server.issuer().assign_slot(&many(1)).is_ok());
    // Slots that were not used for a minute are free again.
    machine.set(at(62));
    assert!(server.issuer().assign_slot(&many(1_000)).is_ok());
}

#[test]
fn a_database_takes_no_more_than_half_while_others_have_as_many() {
    let machine = Machine::new(NOW);
    let server = Server::start(&machine, own(), FIXED, 4);
    server.database.set(1);
    assert!((0..2).all(|next| server.issuer().assign_slot(&many(next)).is_ok()));
    let refused = server.issuer().assign_slot(&many(3)).unwrap_err();
    assert_eq!(refused.to_string(), "no slot is free for another layout of this database");
    assert!(refused.detail().unwrap().contains("has 2 slots, other databases have 0."), "{refused:?}");
}

#[test]
fn a_slot_that_is_taken_from_a_database_gives_nothing_any_more() {
    let machine = Machine::new(NOW);
    let server = Server::start(&machine, own(), FIXED, 4);
    let (former, later) = (Session::new(), Session::new());
    server.database.set(1);
    let issued = [web(), third()].map(|layout| ids(&server, &layout, &former).unwrap());
    server.database.set(2);
    ids(&server, &many(1), &later).unwrap();
    server.database.set(3);
    ids(&server, &many(2), &later).unwrap();
    assert!(ids(&server, &many(3), &later).is_err(), "nobody has two more");
    server.database.set(4);
    let slot_refs = [web(), third()].map(|layout| server.issuer().assign_slot(&layout).unwrap());
    ids(&server, &many(4), &later).unwrap();
    let lost: Vec<_> = slot_refs
        .iter()
        .filter(|slot_ref| !server.shared.assigned_at(**slot_ref, &own()).is_held())
        .collect();
    assert_eq!(lost.len(), 1);
    // A slot that its database has not used for a minute is free. The new ids of each layout are above the layout's earlier ids.
    machine.set(at(62));
    server.database.set(1);
    let again = [web(), third()].map(|layout| ids(&server, &layout, &former).unwrap());
    assert!(again.iter().zip(issued).all(|(again, issued)| *again > issued), "{again:?} {issued:?}");
}

proptest::proptest! {
    /// A database is refused a slot only if it has at least as many slots as are free, and no other database has at least two
    /// slots more.
    #[test]
    fn a_database_finds_a_slot_while_it_has_less_than_its_share(
        slots in 1..40_usize, callers in proptest::collection::vec(1..6_u32, 0..80)
    ) {
        let machine = Machine::new(NOW);
        let server = Server::start(&machine, own(), FIXED, slots);
        let mut held = [0; 6];
        for (number, database) in callers.into_iter().enumerate() {
            server.database.set(database);
            let assigned_at = server.issuer().assign_slot(&many(number.try_into().unwrap())).is_ok();
            let database = database as usize;
            let free = slots - held.iter().sum::<usize>();
            let (most, crowd) = held.iter().copied().zip(0..).max().unwrap();
            proptest::prop_assert_eq!(assigned_at, held[database] < free || held[database] + 1 < most);
            held[database] += usize::from(assigned_at);
            held[crowd] -= usize::from(assigned_at && free == 0);
        }
    }
}

proptest::proptest! {
    /// Layouts that lose their slots while in use, and get slots again, repeat no id.
    #[test]
    fn layouts_that_change_slots_give_no_id_twice(
        slots in 1..5_usize, calls in proptest::collection::vec((1..6_u32, 0..3_u32, 0..40_000_i64), 1..120)
    ) {
        let machine = Machine::new(NOW);
        let server = Server::start(&machine, own(), FIXED, slots);
        let (mut micros, mut issued) = (0, std::collections::HashMap::new());
        let sessions: Vec<_> = (0..18).map(|_| Session::new()).collect();
        for (database, layout, passed) in calls {
            micros += passed;
            machine.set(UnixMicros(NOW.0 + micros));
            server.database.set(database);
            let layout = database * 3 + layout;
            let Ok(id) = ids(&server, &many(layout.into()), &sessions[layout as usize]) else { continue };
            let former = issued.insert(layout, id);
            proptest::prop_assert!(former.is_none_or(|former| former < id), "{layout}: {former:?}, {id}");
        }
    }
}

#[test]
fn without_slots_there_is_the_own_layout_alone() {
    let machine = Machine::new(NOW);
    let server = Server::start(&machine, own(), FIXED, 0);
    ids(&server, &own(), &Session::new()).unwrap();
    assert_eq!(ids(&server, &web(), &Session::new()).unwrap_err().kind(), Kind::LimitReached);
}

#[test]
fn a_layout_without_room_for_the_node_is_refused() {
    let machine = Machine::new(NOW);
    let server = Server::start(&machine, own(), Identity::Fixed { datacenter: 0, worker_id: 9 }, 4);
    let refused = ids(&server, &web(), &Session::new()).unwrap_err();
    assert_eq!(refused.kind(), Kind::BadArgument);
    assert!(refused.detail().unwrap().contains("largest worker id is 7"), "{refused:?}");
    let hint = refused.hint().unwrap();
    assert!(hint.contains("twitter") && !hint.contains("javascript"), "{hint}");
    let issuing = server.issuing.borrow();
    assert!(issuing.slots.iter().all(|slot| slot.layout.is_none()), "it takes no place");
}

#[test]
fn a_leased_worker_id_without_room_is_recorded_and_another_asked_for() {
    let machine = Machine::new(NOW);
    let server = Server::start(&machine, own(), LEASED, 4);
    let issuer = server.issuer();
    issuer.change(|state, _| state.take_up(lease(9, UnixMicros(0)))).unwrap();
    server.offer(lease(5, UnixMicros(0)));
    ids(&server, &web(), &Session::new()).unwrap();
    assert_eq!(server.state().node.unwrap().worker_id, 5);
    assert_eq!(server.state().worker_id_limit(NOW), 7);
    // If no worker id fits the layout, the call fails with a reason.
    issuer.change(|state, _| state.take_up(lease(9, UnixMicros(0)))).unwrap();
    let refused = ids(&server, &web(), &Session::new()).unwrap_err();
    assert_eq!(refused.kind(), Kind::NotReady);
    ids(&server, &own(), &Session::new()).unwrap();
}

/// After the first refused call, further calls cause no request and no write for some seconds. This holds if the registry refuses,
/// and if a request succeeds but the server keeps its unfitting worker id.
#[test]
fn a_layout_without_room_that_is_asked_for_all_the_time_costs_others_nothing() {
    for trouble in [None, Some(LeaseError::yet("All are leased.", "Wait."))] {
        let machine = Machine::new(NOW);
        let server = Server::start(&machine, own(), LEASED, 4);
        let nine = || Lease { expiry: at(100_000), ..lease(9, UnixMicros(0)) };
        server.issuer().change(|state, _| state.take_up(nine())).unwrap();
        // If a request succeeds, and the worker id still does not fit, the call asks again.
        let tries = if trouble.is_some() { 1 } else { 3 };
        server.trouble.replace(trouble);
        let refused = || {
            let (asked, written) = (server.asked.get(), server.written.get());
            let refused = ids(&server, &web(), &Session::new()).unwrap_err();
            let said = (refused.to_string(), refused.kind(), refused.detail(), refused.hint());
            (said, server.asked.get() - asked, server.written.get() - written)
        };
        let (said, asked, written) = refused();
        assert_eq!((asked, written), (tries, 1), "it is recorded, and another worker id asked for");
        for _ in 0..10 {
            assert_eq!(refused(), (said.clone(), 0, 0), "at once, and the same");
        }
        machine.set(at(4));
        assert_eq!(refused(), (said.clone(), 0, 0));
        // The clock is set back, and time passes.
        machine.set(NOW);
        machine.set(at(2));
        assert_eq!(refused(), (said.clone(), tries, 0), "after some seconds it is asked again");
        machine.set(at(601));
        assert_eq!(refused(), (said.clone(), tries, 1), "and after some minutes recorded again");
        assert_eq!(refused(), (said, 0, 0));
        // A fitting worker id is used immediately.
        server.issuer().change(|state, _| state.take_up(Lease { worker_id: 5, ..nine() })).unwrap();
        ids(&server, &web(), &Session::new()).unwrap();
    }
}

#[test]
fn nothing_is_reserved_beyond_the_expiry_in_any_layout() {
    let machine = Machine::new(at(95));
    let server = Server::start(&machine, own(), LEASED, 4);
    server.issuer().change(|state, _| state.take_up(lease(5, UnixMicros(0)))).unwrap();
    server.settings.set(60 * SECOND);
    for layout in [own(), web(), third()] {
        let id = ids(&server, &layout, &Session::new());
        let state = server.state();
        let high_water_mark = state.high_water_mark_in(&layout, node(5));
        assert!(high_water_mark <= layout.position_at(at(100)), "{layout}: {id:?}");
    }
}

#[test]
fn a_reset_begins_above_what_was_issued_in_all_layouts() {
    let machine = Machine::new(NOW);
    let server = Server::start(&machine, own(), FIXED, 4);
    let session = Session::new();
    let first = ids(&server, &web(), &session).unwrap();
    let issuer = server.issuer();
    // The operator names an instant that is too early: sessions have received ids since the server's start.
    issuer.reset(Some(at(-1_000))).unwrap();
    assert!(ids(&server, &web(), &Session::new()).unwrap() > first);
    issuer.reset(None).unwrap();
    for layout in [web(), third()] {
        let begins = server.state().high_water_mark_in(&layout, node(3));
        assert!(begins >= layout.position_after(at(60)), "{layout}");
    }
    // The state file has positions far ahead of the clock.
    let mut ahead = used(FIXED);
    ahead.settle(&web(), node(3), web().position_at(at(5_000)));
    server.put(&ahead);
    let renewed = issuer.reset(None).unwrap();
    assert!(server.state().high_water_mark_in(&web(), node(3)) >= web().position_at(at(5_000)));
    assert!(renewed.begins.unwrap() >= at(4_999) && renewed.may_repeat.is_none());
}

#[test]
fn a_reset_for_another_layout_keeps_the_high_water_marks_of_the_former() {
    let machine = Machine::new(NOW);
    let server = Server::start(&machine, own(), FIXED, 4);
    let mut ahead = used(FIXED);
    ahead.settle(&own(), node(3), own().position_at(at(5_000)));
    ahead.settle(&web(), node(3), web().position_at(at(7_000)));
    server.put(&ahead);
    let changed = Server::start(&machine, web(), FIXED, 4);
    assert!(matches!(
        ids(&changed, &web(), &Session::new()),
        Err(SessionError::Issuer(IssuerError::Untrusted(StateError::Layout { .. })))
    ));
    changed.issuer().reset(None).unwrap();
    let state = changed.state();
    assert!(state.high_water_mark_in(&own(), node(3)) >= own().position_at(at(5_000)));
    assert!(state.high_water_mark(node(3)) >= web().position_at(at(7_000)));
}

#[test]
fn a_step_back_switches_the_rollback_value_of_the_layout_that_has_one() {
    let machine = Machine::new(NOW);
    let server = Server::start(&machine, own(), FIXED, 4);
    server.switches.set(true);
    ids(&server, &third(), &Session::new()).unwrap();
    machine.set(at(-500));
    let id = ids(&server, &third(), &Session::new()).unwrap();
    assert_eq!(third().decode(id).unwrap().rollback, 1);
    assert_eq!(server.state().node.unwrap().rollback, 0, "the own layout's stays");
}

// A slot that changes hands in the middle of a call.

const RULES: Rules = Rules { max_drift: 10_000_000, start: SequenceStart::Zero };

/// A clock whose first reading gives the slot to another layout.
struct Eviction<'a>(&'a GeneratorSlot, Layout);

impl Clock for Eviction<'_> {
    fn now(&self) -> UnixMicros {
        if self.0.slot_generation.load(Relaxed) == 0 {
            self.0.generator.close();
            self.0.reuse();
            self.0.generator.begin(NodeBits(0), self.1.position_at(NOW), Position(u64::MAX >> 1));
        }
        NOW
    }
}

#[test]
fn what_is_taken_while_a_slot_changes_hands_is_no_layouts() {
    needs(Guard::SlotHeld, || {
        let slot = GeneratorSlot::default();
        let layout = web();
        slot.generator.begin(NodeBits(0), layout.position_at(NOW), Position(u64::MAX >> 1));
        let source = LayoutGenerator::at(&slot, 0, &layout);
        assert!(source.is_held());
        matches!(
            take(&source, &RULES, &Eviction(&slot, third()), NonZeroU32::MIN, None),
            Err(GeneratorError::Unreserved)
        )
    });
}

/// Takes `taken` ids, which run ahead of the clock. Returns the lower bound that readers are told for all later ids.
fn told(server: &Server<'_>, taken: u32) -> i64 {
    let session = Session::new();
    for _ in 0..taken {
        ids(server, &own(), &session).unwrap();
    }
    server.issuer().admit_readers().unwrap();
    let next = server.shared.frontier.publish(&server.shared.generator);
    next.least_id(&own(), next.position).cast_signed()
}

#[test]
fn after_a_restart_as_another_node_ids_are_above_what_readers_were_told() {
    needs(Guard::ToldKept, || {
        let machine = Machine::new(NOW);
        let server = Server::start(&machine, own(), LEASED, 0);
        server.offer(lease(5, UnixMicros(0)));
        let told = told(&server, 200);
        server.issuer().change(|state, _| state.give_up()).unwrap();
        let server = Server::start(&machine, own(), LEASED, 0);
        server.offer(lease(3, UnixMicros(0)));
        ids(&server, &own(), &Session::new()).unwrap() >= told
    });
}

/// The first reservation after the step back uses a rollback value without a high-water mark. Without the guard, it would begin at
/// the clock.
#[test]
fn with_readers_a_step_back_is_waited_for() {
    needs(Guard::ToldKept, || {
        let machine = Machine::new(NOW);
        let server = Server::start(&machine, own(), FIXED, 0);
        server.switches.set(true);
        told(&server, 1);
        machine.set(at(10));
        ids(&server, &own(), &Session::new()).unwrap();
        machine.set(at(-100));
        ids(&server, &own(), &Session::new()).is_err()
    });
}

/// The term may end after a session has taken positions and before readers are admitted.
#[test]
fn readers_that_are_admitted_after_a_term_are_told_nothing_that_comes_again() {
    needs(Guard::ToldKept, || {
        let machine = Machine::new(NOW);
        let server = Server::start(&machine, own(), LEASED, 0);
        server.offer(lease(5, UnixMicros(0)));
        let session = Session::new();
        for _ in 0..200 {
            ids(&server, &own(), &session).unwrap();
        }
        server.issuer().change(|state, _| state.give_up()).unwrap();
        server.issuer().admit_readers().unwrap();
        let told = server.shared.frontier.publish(&server.shared.generator).position;
        server.offer(lease(3, UnixMicros(0)));
        ids(&server, &own(), &session).unwrap();
        server.shared.generator.next() > told
    });
}

#[test]
fn a_high_water_mark_at_the_end_of_its_layout_is_raised_no_more() {
    let machine = Machine::new(UnixMicros(own().instant_of(own().end_position()).0 - 2_000_000));
    let server = Server::start(&machine, own(), FIXED, 1);
    ids(&server, &own(), &Session::new()).unwrap();
    assert_eq!(server.shared.generator.limit(), own().end_position());
    assert_eq!(server.issuer().keep_ahead().unwrap(), None);
}
