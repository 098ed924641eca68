//! Notes of ids that rollbacks left.
#![cfg(not(loom))]
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

use snowflake_ids_core::sequence::directory::{Directory, DirectoryEntry, Key, Tag, index_len};
use snowflake_ids_core::sequence::floors::Floors;
use snowflake_ids_core::sequence::reservation::Floor;

fn key(database: u32, tag: &str) -> Key {
    Key { database, source: 1, tag: Tag::new(tag.as_bytes()).unwrap() }
}

const fn floor(life: i64, id: i64) -> Floor {
    Floor { life, day: 0, id }
}

#[test]
fn a_note_stays_until_its_row_knows_and_bounds_hold() {
    let (mut entries, mut index) = ([DirectoryEntry::EMPTY; 2], vec![0; index_len(2)]);
    let mut floors = Floors(Directory::new(&mut entries, &mut index, &mut []));
    let (a, b, c) = (key(1, "a"), key(2, "a"), key(1, "c"));
    assert!(floors.raise(&a, floor(7, 10)) && floors.raise(&b, floor(8, 20)));
    assert!(!floors.raise(&c, floor(9, 30)), "there is memory for two");
    assert_eq!(
        (floors.get(&a), floors.get(&b), floors.get(&c)),
        (Some(floor(7, 10)), Some(floor(8, 20)), None)
    );

    // Never downwards, but for another life.
    assert!(floors.raise(&a, floor(7, 9)));
    assert_eq!(floors.get(&a), Some(floor(7, 10)));
    assert!(floors.raise(&a, floor(6, 5)));
    assert_eq!(floors.get(&a), Some(floor(6, 5)));

    floors.clear(&a, Some((0, 4)));
    assert_eq!(floors.get(&a), Some(floor(6, 5)), "that of a transaction that came after");
    floors.clear(&a, Some((0, 5)));
    assert_eq!(floors.get(&a), None);
    assert!(floors.raise(&c, floor(9, 30)), "a note that goes makes room");
    assert_eq!(floors.get(&c), Some(floor(9, 30)), "and leaves nothing of its own");

    // Days come first.
    let of_day = |day, id| Floor { life: 9, day, id };
    for (day, id) in [(10, 50), (10, 40), (9, 900)] {
        assert!(floors.raise(&c, of_day(day, id)));
    }
    floors.clear(&c, Some((9, 1_000)));
    assert_eq!(floors.get(&c), Some(of_day(10, 50)));

    floors.clear_all(|key| key.database == 2);
    assert_eq!(floors.iter().map(|(key, floor)| (*key, floor)).collect::<Vec<_>>(), [(c, of_day(10, 50))]);
    floors.clear(&c, None);
    assert_eq!(floors.iter().count(), 0);
}
