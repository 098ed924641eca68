//! Records of ids that rolled-back transactions handed out.

use snowflake_ids_core::tag::directory::{Directory, DirectoryEntry, Tag, TagKey};
use snowflake_ids_core::tag::high_water_marks::HighWaterMarks;
use snowflake_ids_core::tag::reservation::HighWaterMark;

fn key(database: u32, tag: &str) -> TagKey {
    TagKey { database, source: 1, tag: Tag::new(tag.as_bytes()).unwrap() }
}

const fn high_water_mark(tag_generation: i64, id: i64) -> HighWaterMark {
    HighWaterMark { tag_generation, day: 0, id }
}

#[test]
fn a_note_stays_until_its_row_knows_and_bounds_hold() {
    let mut entries = [DirectoryEntry::EMPTY; 2];
    let mut high_water_marks = HighWaterMarks(Directory::new(&mut entries, &mut []));
    let (a, b, c) = (key(1, "a"), key(2, "a"), key(1, "c"));
    assert!(
        high_water_marks.raise(&a, high_water_mark(7, 10))
            && high_water_marks.raise(&b, high_water_mark(8, 20))
    );
    assert!(!high_water_marks.raise(&c, high_water_mark(9, 30)), "there is memory for two");
    assert_eq!(
        (high_water_marks.get(&a), high_water_marks.get(&b), high_water_marks.get(&c)),
        (Some(high_water_mark(7, 10)), Some(high_water_mark(8, 20)), None)
    );

    // As long as the tag's generation stays the same, its mark never falls.
    assert!(high_water_marks.raise(&a, high_water_mark(7, 9)));
    assert_eq!(high_water_marks.get(&a), Some(high_water_mark(7, 10)));
    assert!(high_water_marks.raise(&a, high_water_mark(6, 5)));
    assert_eq!(high_water_marks.get(&a), Some(high_water_mark(6, 5)));

    high_water_marks.clear(&a, Some((0, 4)));
    assert_eq!(
        high_water_marks.get(&a),
        Some(high_water_mark(6, 5)),
        "that of a transaction that came after"
    );
    high_water_marks.clear(&a, Some((0, 5)));
    assert_eq!(high_water_marks.get(&a), None);
    assert!(high_water_marks.raise(&c, high_water_mark(9, 30)), "a note that goes makes room");
    assert_eq!(high_water_marks.get(&c), Some(high_water_mark(9, 30)), "and leaves nothing of its own");

    // A mark of a later day replaces a mark with a higher id.
    let of_day = |day, id| HighWaterMark { tag_generation: 9, day, id };
    for (day, id) in [(10, 50), (10, 40), (9, 900)] {
        assert!(high_water_marks.raise(&c, of_day(day, id)));
    }
    high_water_marks.clear(&c, Some((9, 1_000)));
    assert_eq!(high_water_marks.get(&c), Some(of_day(10, 50)));

    high_water_marks.clear_all(|key| key.database == 2);
    assert_eq!(
        high_water_marks.iter().map(|(key, high_water_mark)| (*key, high_water_mark)).collect::<Vec<_>>(),
        [(c, of_day(10, 50))]
    );
    high_water_marks.clear(&c, None);
    assert_eq!(high_water_marks.iter().count(), 0);
}
