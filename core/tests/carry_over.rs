//! What is left when the server stops goes through its file, serves once, and is not kept for good; a file of another
//! release is not misread.
#![cfg(not(loom))]
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

use proptest::prelude::*;
use rustc_hash::FxHashSet;
use snowflake_ids_core::sequence::definition::Range;
use snowflake_ids_core::sequence::reservation::{self, Floor};
use snowflake_ids_core::server::carry_over::{
    CarryOver, InUse, MOST_STOPS, Name, Note, Notes, Unreadable, VERSION, except, floors_of, from_text,
    taken, to_text,
};
use snowflake_ids_core::server::form::RELEASE;
use std::cell::Cell;
use std::hash::{Hash, Hasher};

prop_compose! {
    fn names()(database in 0_u32..3, source: u32, tag in prop::collection::vec(any::<u8>(), 1..512)) -> Name {
        Name { database, source, tag }
    }
}

fn carry_overs() -> impl Strategy<Value = Vec<CarryOver>> {
    let one = (names(), any::<[u32; 2]>(), any::<[i64; 3]>(), any::<Option<i32>>());
    let one = one.prop_map(|(of, [stops, count], [version, first, increment], day)| {
        let range = Range { first, count, increment };
        Note { of, stops, what: reservation::CarryOver { version, day, range } }
    });
    prop::collection::vec(one, 0..5)
}

fn floors() -> impl Strategy<Value = Vec<Note<Floor>>> {
    let one = (names(), any::<u32>(), any::<[i64; 2]>(), any::<i32>());
    let one = one.prop_map(|(of, stops, [life, id], day)| Note { of, stops, what: Floor { life, day, id } });
    prop::collection::vec(one, 0..5)
}

fn notes() -> impl Strategy<Value = Notes> {
    (floors(), carry_overs()).prop_map(|(floors, left)| Notes { floors, left, damage: None })
}

proptest! {
    #[test]
    fn notes_read_back(notes in notes()) {
        let text = to_text(notes.clone()).unwrap();
        prop_assert_eq!(floors_of(&text), Ok(notes.floors.clone()));
        prop_assert_eq!(from_text(&text), Ok(notes));
    }

    /// However much of the last line reached the disk: what is said to be taken up before is, and all others are left.
    #[test]
    fn what_was_taken_up_is_not_left(notes in notes(), which: prop::sample::Index, lost in 0_usize..600) {
        prop_assume!(notes.left.len() > 1);
        let mut text = to_text(notes.clone()).unwrap();
        let (gone, last) = (which.get(&notes.left).clone(), notes.left[0].clone());
        text.extend(taken(gone.of.clone(), gone.what.version).unwrap());
        let durable = text.len();
        text.extend(taken(last.of.clone(), last.what.version).unwrap());
        text.truncate((text.len() - lost.min(text.len())).max(durable));
        let left = from_text(&text).unwrap().left;
        prop_assert!(!left.contains(&gone));
        for note in notes.left.iter().filter(|note| **note != gone && **note != last) {
            prop_assert!(left.contains(note));
        }
    }

    /// A line in the middle that can't be read may have said that ids were taken up.
    #[test]
    fn damage_leaves_nothing_over_and_the_floors_there_are(notes in notes(), junk in "[^\n]{1,20}") {
        let mut text = to_text(notes.clone()).unwrap();
        text.extend(format!("x{junk}\n").as_bytes());
        let read = from_text(&text).unwrap();
        prop_assert_eq!((read.floors, read.left), (notes.floors, Vec::new()));
        prop_assert!(read.damage.is_some());
    }
}

fn name(database: u32, tag: &str) -> Name {
    Name { database, source: 9, tag: tag.into() }
}

fn left(first: i64) -> reservation::CarryOver {
    reservation::CarryOver { version: first, day: None, range: Range { first, count: 10, increment: 1 } }
}

fn note<T>(of: Name, what: T) -> Note<T> {
    Note { of, stops: 0, what }
}

const FLOOR: Floor = Floor { life: 4, day: 0, id: 50 };

#[test]
fn at_a_stop_what_is_in_use_counts_and_what_was_noted_of_all_else() {
    let names = ["used up", "left", "looked at", "unused"].map(|tag| name(1, tag));
    let gone = name(2, "of a dropped database");
    let all = || names.iter().chain([&gone]).cloned();
    let old = Notes {
        floors: all().map(|of| note(of, FLOOR)).collect(),
        left: all().map(|of| note(of, left(1))).collect(),
        damage: None,
    };
    let in_use =
        |place: usize, had_ids, left, floor| InUse { name: names[place].clone(), had_ids, left, floor };
    let higher = Floor { id: 60, ..FLOOR };
    let now = vec![
        in_use(0, true, None, None),
        in_use(1, true, Some(left(100)), Some(higher)),
        in_use(2, false, None, Some(FLOOR)),
    ];
    let after = old.at_stop(now, |database| database == 1);
    let said: Vec<_> = after.left.iter().map(|note| (&note.of, note.what.version, note.stops)).collect();
    assert_eq!(said, [(&names[1], 100, 0), (&names[2], 1, 1), (&names[3], 1, 1)]);
    let said: Vec<_> = after.floors.iter().map(|note| (&note.of, note.what.id, note.stops)).collect();
    assert_eq!(said, [(&names[1], 60, 0), (&names[2], 50, 0), (&names[3], 50, 1)]);
}

#[test]
fn what_is_unused_for_many_stops_is_dropped() {
    let mut notes = Notes {
        floors: vec![note(name(1, "t"), FLOOR)],
        left: vec![note(name(1, "t"), left(1))],
        damage: None,
    };
    for _ in 0..MOST_STOPS {
        notes = notes.at_stop(Vec::new(), |_| true);
        assert_eq!((notes.floors.len(), notes.left.len()), (1, 1));
    }
    notes = notes.at_stop(Vec::new(), |_| true);
    assert_eq!(notes, Notes::default());
}

thread_local! {
    static STEPS: Cell<u64> = const { Cell::new(0) };
}

/// A key that counts how often it is looked at.
struct Counted(u32);

impl PartialEq for Counted {
    fn eq(&self, other: &Self) -> bool {
        STEPS.set(STEPS.get() + 1);
        self.0 == other.0
    }
}

impl Eq for Counted {}

impl Hash for Counted {
    fn hash<H: Hasher>(&self, state: &mut H) {
        STEPS.set(STEPS.get() + 1);
        self.0.hash(state);
    }
}

/// 50,000 tags in use, 200,000 noted: steps of the order of their sum, not of their product.
#[test]
fn a_stop_looks_at_each_note_a_few_times() {
    let in_use: FxHashSet<Counted> = (0..50_000).map(|tag| Counted(4 * tag)).collect();
    let noted = (0..200_000).map(Counted).collect();
    assert_eq!(except(noted, &in_use, |key| key).count(), 150_000);
    assert!(STEPS.get() < 2_000_000, "{} steps", STEPS.get());

    let tag = |number: u32| name(number % 7, &format!("tag {number}"));
    let old = Notes {
        left: (0..200_000).map(|number| note(tag(number), left(1))).collect(),
        floors: (0..200_000).map(|number| note(tag(number), FLOOR)).collect(),
        damage: None,
    };
    let now = |number: u32| InUse { name: tag(4 * number), had_ids: true, left: Some(left(2)), floor: None };
    let looked = Cell::new(0);
    let after = old.at_stop((0..50_000).map(now).collect(), |_| {
        looked.set(looked.get() + 1);
        true
    });
    assert_eq!((after.left.len(), after.floors.len()), (200_000, 150_000));
    assert_eq!(looked.get(), 7, "each database once");
}

/// As the first form had it: lines without checksums.
const OF_FORM_1: &str = r#"{"version":1,"release":"0.1.0"}
{"floor":{"of":{"database":1,"source":9,"tag":"floor"},"stops":2,"what":{"life":4,"day":0,"id":50}}}
{"left":{"of":{"database":1,"source":9,"tag":"left"},"stops":0,"what":{"version":7,"day":null,"first":11,"count":10,"increment":1}}}
{"left":{"of":{"database":1,"source":9,"tag":"taken"},"stops":1,"what":{"version":8,"day":null,"first":21,"count":10,"increment":1}}}

{"taken":{"of":{"database":1,"source":9,"tag":"taken"},"version":8}}
"#;

#[test]
fn the_file_of_an_older_release_is_read_and_written_anew() {
    let of_form_1 = OF_FORM_1.as_bytes();
    let read = from_text(of_form_1).unwrap();
    assert_eq!(read.damage, None);
    assert_eq!(read.floors, [Note { of: name(1, "floor"), stops: 2, what: FLOOR }]);
    assert_eq!(floors_of(of_form_1), Ok(read.floors.clone()));
    let left_over = reservation::CarryOver { version: 7, ..left(11) };
    assert_eq!(read.left, [note(name(1, "left"), left_over)]);
    // What is taken up before the next stop is noted in the same file.
    let more = [of_form_1, &taken(name(1, "left"), 7).unwrap()].concat();
    assert_eq!(from_text(&more).unwrap(), Notes { left: Vec::new(), ..read.clone() });
    let anew = to_text(read.clone()).unwrap();
    assert!(anew.starts_with(format!("{{\"version\":{VERSION},").as_bytes()));
    assert_eq!(from_text(&anew), Ok(read));
}

/// A line that is still a line may say something else.
#[test]
fn a_changed_digit_is_damage() {
    let notes = Notes { left: vec![note(name(1, "t"), left(11))], ..Notes::default() };
    let text = String::from_utf8(to_text(notes).unwrap()).unwrap();
    assert!(text.contains(r#""first":11"#), "{text}");
    let read = from_text(text.replace(r#""first":11"#, r#""first":12"#).as_bytes()).unwrap();
    assert!(read.left.is_empty() && read.damage.is_some(), "{read:?}");
}

#[test]
fn the_file_of_a_newer_release_is_known_as_such() {
    let newer = VERSION + 1;
    for text in [
        format!(r#"{{"version":{newer},"release":"9.1.0","left":{{"over":[]}}}}"#),
        format!("{{\"version\":{newer},\"release\":\"9.1.0\"}}\n{{\"left\":1}}\n"),
    ] {
        let newer = from_text(text.as_bytes()).unwrap_err();
        assert!(matches!(newer, Unreadable::Newer(_)), "{newer}");
        let said = newer.to_string();
        assert!(said.contains(RELEASE) && said.ends_with("Install at least version 9.1.0."), "{said}");
    }
}

#[test]
fn any_other_file_is_damaged() {
    for text in [
        "",
        "[]",
        "{}",
        "\n",
        r#"{"version":1,"release":"x"}"#,
        "{\"version\":0,\"release\":\"x\",\"carry-overs\":[]}\n",
    ] {
        assert!(matches!(from_text(text.as_bytes()), Err(Unreadable::Damaged(_))), "{text}");
    }
}
