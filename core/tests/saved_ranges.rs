//! Saved ranges are written to their file at a stop, are used once, and expire. A file of another release is never misread.

use proptest::prelude::*;
use rustc_hash::FxHashSet;
use snowflake_ids_core::server::form::RELEASE;
use snowflake_ids_core::server::saved_ranges::{
    InUse, MAX_STOPS, Name, RecordedRange, SavedRecord, SavedRecords, Unreadable, VERSION, except, from_text,
    high_water_marks_of, taken, to_text,
};
use snowflake_ids_core::tag::definition::Range;
use snowflake_ids_core::tag::reservation::{self, HighWaterMark};
use std::cell::Cell;
use std::hash::{Hash, Hasher};

prop_compose! {
    fn names()(database in 0_u32..3, source: u32, tag in prop::collection::vec(any::<u8>(), 1..512)) -> Name {
        Name { database, source, tag }
    }
}

fn saved_ranges() -> impl Strategy<Value = Vec<RecordedRange>> {
    let one = (names(), any::<[u32; 2]>(), any::<[i64; 3]>(), any::<Option<i32>>());
    let one = one.prop_map(|(of, [stops, count], [version, first, increment], day)| {
        let range = Range { first, count, increment };
        SavedRecord { of, stops, what: reservation::SavedRange { version, day, range } }
    });
    prop::collection::vec(one, 0..5)
}

fn high_water_marks() -> impl Strategy<Value = Vec<SavedRecord<HighWaterMark>>> {
    let one = (names(), any::<u32>(), any::<[i64; 2]>(), any::<i32>());
    let one = one.prop_map(|(of, stops, [tag_generation, id], day)| SavedRecord {
        of,
        stops,
        what: HighWaterMark { tag_generation, day, id },
    });
    prop::collection::vec(one, 0..5)
}

fn records() -> impl Strategy<Value = SavedRecords> {
    (high_water_marks(), saved_ranges()).prop_map(|(high_water_marks, left)| SavedRecords {
        high_water_marks,
        left,
        damage: None,
    })
}

proptest! {
    #[test]
    fn records_read_back(records in records()) {
        let text = to_text(records.clone()).unwrap();
        prop_assert_eq!(high_water_marks_of(&text), Ok(records.high_water_marks.clone()));
        prop_assert_eq!(from_text(&text), Ok(records));
    }

    /// The last line may be incomplete on disk. Ranges that an earlier line records as consumed stay consumed, and all other
    /// ranges are left.
    #[test]
    fn what_was_taken_up_is_not_left(records in records(), which: prop::sample::Index, lost in 0_usize..600) {
        prop_assume!(records.left.len() > 1);
        let mut text = to_text(records.clone()).unwrap();
        let (gone, last) = (which.get(&records.left).clone(), records.left[0].clone());
        text.extend(taken(gone.of.clone(), gone.what.version).unwrap());
        let durable = text.len();
        text.extend(taken(last.of.clone(), last.what.version).unwrap());
        text.truncate((text.len() - lost.min(text.len())).max(durable));
        let left = from_text(&text).unwrap().left;
        prop_assert!(!left.contains(&gone));
        for record in records.left.iter().filter(|record| **record != gone && **record != last) {
            prop_assert!(left.contains(record));
        }
    }

    /// An unreadable line in the middle may have recorded a range as consumed.
    #[test]
    fn damage_leaves_nothing_over_and_the_high_water_marks_there_are(records in records(), junk in "[^\n]{1,20}") {
        let mut text = to_text(records.clone()).unwrap();
        text.extend(format!("x{junk}\n").as_bytes());
        let read = from_text(&text).unwrap();
        prop_assert_eq!((read.high_water_marks, read.left), (records.high_water_marks, Vec::new()));
        prop_assert!(read.damage.is_some());
    }
}

fn name(database: u32, tag: &str) -> Name {
    Name { database, source: 9, tag: tag.into() }
}

fn left(first: i64) -> reservation::SavedRange {
    reservation::SavedRange { version: first, day: None, range: Range { first, count: 10, increment: 1 } }
}

fn record<T>(of: Name, what: T) -> SavedRecord<T> {
    SavedRecord { of, stops: 0, what }
}

const HIGH_WATER_MARK: HighWaterMark = HighWaterMark { tag_generation: 4, day: 0, id: 50 };

#[test]
fn at_a_stop_what_is_in_use_counts_and_what_was_recorded_of_all_else() {
    let names = ["used up", "left", "looked at", "unused"].map(|tag| name(1, tag));
    let gone = name(2, "of a dropped database");
    let all = || names.iter().chain([&gone]).cloned();
    let old = SavedRecords {
        high_water_marks: all().map(|of| record(of, HIGH_WATER_MARK)).collect(),
        left: all().map(|of| record(of, left(1))).collect(),
        damage: None,
    };
    let in_use = |slot_index: usize, had_ids, left, high_water_mark| InUse {
        name: names[slot_index].clone(),
        had_ids,
        left,
        high_water_mark,
    };
    let higher = HighWaterMark { id: 60, ..HIGH_WATER_MARK };
    let now = vec![
        in_use(0, true, None, None),
        in_use(1, true, Some(left(100)), Some(higher)),
        in_use(2, false, None, Some(HIGH_WATER_MARK)),
    ];
    let after = old.at_stop(now, |database| database == 1);
    let said: Vec<_> =
        after.left.iter().map(|record| (&record.of, record.what.version, record.stops)).collect();
    assert_eq!(said, [(&names[1], 100, 0), (&names[2], 1, 1), (&names[3], 1, 1)]);
    let said: Vec<_> =
        after.high_water_marks.iter().map(|record| (&record.of, record.what.id, record.stops)).collect();
    assert_eq!(said, [(&names[1], 60, 0), (&names[2], 50, 0), (&names[3], 50, 1)]);
}

#[test]
fn what_is_unused_for_many_stops_is_dropped() {
    let mut records = SavedRecords {
        high_water_marks: vec![record(name(1, "t"), HIGH_WATER_MARK)],
        left: vec![record(name(1, "t"), left(1))],
        damage: None,
    };
    for _ in 0..MAX_STOPS {
        records = records.at_stop(Vec::new(), |_| true);
        assert_eq!((records.high_water_marks.len(), records.left.len()), (1, 1));
    }
    records = records.at_stop(Vec::new(), |_| true);
    assert_eq!(records, SavedRecords::default());
}

thread_local! {
    static STEPS: Cell<u64> = const { Cell::new(0) };
}

/// A key that counts comparisons and hashes.
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

/// The number of steps grows with the sum of 50,000 tags in use and 200,000 records, not with their product.
#[test]
fn a_stop_looks_at_each_note_a_few_times() {
    let in_use: FxHashSet<Counted> = (0..50_000).map(|tag| Counted(4 * tag)).collect();
    let recorded = (0..200_000).map(Counted).collect();
    assert_eq!(except(recorded, &in_use, |key| key).count(), 150_000);
    assert!(STEPS.get() < 2_000_000, "{} steps", STEPS.get());

    let tag = |number: u32| name(number % 7, &format!("tag {number}"));
    let old = SavedRecords {
        left: (0..200_000).map(|number| record(tag(number), left(1))).collect(),
        high_water_marks: (0..200_000).map(|number| record(tag(number), HIGH_WATER_MARK)).collect(),
        damage: None,
    };
    let now = |number: u32| InUse {
        name: tag(4 * number),
        had_ids: true,
        left: Some(left(2)),
        high_water_mark: None,
    };
    let looked = Cell::new(0);
    let after = old.at_stop((0..50_000).map(now).collect(), |_| {
        looked.set(looked.get() + 1);
        true
    });
    assert_eq!((after.left.len(), after.high_water_marks.len()), (200_000, 150_000));
    assert_eq!(looked.get(), 7, "each database once");
}

/// A file of form 1. Later releases have to read this text.
const FORM_1: &str = r#"{"version":1,"release":"1.0.0"}
5251a1c5 {"high_water_mark":{"of":{"database":1,"source":9,"tag":"high"},"stops":2,"what":{"tag_generation":4,"day":0,"id":50}}}
ff089380 {"left":{"of":{"database":1,"source":9,"tag":"left"},"stops":0,"what":{"version":7,"day":null,"first":11,"count":10,"increment":1}}}
a29fee45 {"left":{"of":{"database":1,"source":9,"tag":"taken"},"stops":1,"what":{"version":8,"day":null,"first":21,"count":10,"increment":1}}}

8f494142 {"taken":{"of":{"database":1,"source":9,"tag":"taken"},"version":8}}
"#;

#[test]
fn the_file_has_this_form() {
    let file = FORM_1.as_bytes();
    let read = from_text(file).unwrap();
    assert_eq!(read.damage, None);
    assert_eq!(read.high_water_marks, [SavedRecord { of: name(1, "high"), stops: 2, what: HIGH_WATER_MARK }]);
    assert_eq!(high_water_marks_of(file), Ok(read.high_water_marks.clone()));
    let saved = reservation::SavedRange { version: 7, ..left(11) };
    assert_eq!(read.left, [record(name(1, "left"), saved)]);
    // Until the next stop, consumed ranges are recorded in the same file.
    let more = [file, &taken(name(1, "left"), 7).unwrap()].concat();
    assert_eq!(from_text(&more).unwrap(), SavedRecords { left: Vec::new(), ..read.clone() });
    let anew = to_text(read.clone()).unwrap();
    assert!(FORM_1.as_bytes().starts_with(&anew[..anew.len() / 2]), "{}", String::from_utf8_lossy(&anew));
    assert_eq!(from_text(&anew), Ok(read));
}

/// A changed line may still be valid JSON with another meaning.
#[test]
fn a_changed_digit_is_damage() {
    let records = SavedRecords { left: vec![record(name(1, "t"), left(11))], ..SavedRecords::default() };
    let text = String::from_utf8(to_text(records).unwrap()).unwrap();
    assert!(text.contains(r#""first":11"#), "{text}");
    let read = from_text(text.replace(r#""first":11"#, r#""first":12"#).as_bytes()).unwrap();
    assert!(read.left.is_empty() && read.damage.is_some(), "{read:?}");
}

#[test]
fn a_file_of_an_unknown_form_is_known_as_such() {
    for form in [VERSION - 1, VERSION + 1] {
        for text in [
            format!(r#"{{"version":{form},"release":"9.1.0","left":{{"over":[]}}}}"#),
            format!("{{\"version\":{form},\"release\":\"9.1.0\"}}\n{{\"left\":1}}\n"),
        ] {
            let unknown = from_text(text.as_bytes()).unwrap_err();
            assert!(matches!(unknown, Unreadable::UnknownForm(_)), "{unknown}");
            let said = unknown.to_string();
            assert!(said.contains(RELEASE) && said.ends_with("Install at least version 9.1.0."), "{said}");
        }
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
        "{\"version\":1}\n",
        "{\"version\":-1,\"release\":\"x\"}\n",
    ] {
        assert!(matches!(from_text(text.as_bytes()), Err(Unreadable::Damaged(_))), "{text}");
    }
}
