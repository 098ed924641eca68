//! What is left when the server stops goes through its file, and a file of another release is not misread.
#![cfg(not(loom))]
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

use proptest::prelude::*;
use snowflake_ids_core::form::RELEASE;
use snowflake_ids_core::leftover::{Leftover, Unreadable, from_text, to_text};
use snowflake_ids_core::reservation;
use snowflake_ids_core::terms::Range;

fn leftovers() -> impl Strategy<Value = Vec<Leftover>> {
    let one = (
        any::<[u32; 3]>(),
        prop::collection::vec(any::<u8>(), 1..512),
        any::<[i64; 3]>(),
        any::<Option<i32>>(),
    );
    let one = one.prop_map(|([database, source, count], tag, [version, first, increment], day)| Leftover {
        database,
        source,
        tag,
        left: reservation::Leftover { version, day, range: Range { first, count, increment } },
    });
    prop::collection::vec(one, 0..5)
}

proptest! {
    #[test]
    fn leftovers_read_back(leftovers in leftovers()) {
        prop_assert_eq!(from_text(to_text(leftovers.clone()).unwrap().as_bytes()), Ok(leftovers));
    }
}

#[test]
fn the_file_of_a_newer_release_is_known_as_such() {
    let newer = from_text(br#"{"version":2,"release":"9.1.0","left":{"over":[]}}"#).unwrap_err();
    assert!(matches!(newer, Unreadable::Newer(_)), "{newer}");
    assert!(newer.to_string().contains("9.1.0") && newer.to_string().contains(RELEASE), "{newer}");
}

#[test]
fn any_other_file_is_damaged() {
    for text in
        ["", "[]", "{}", r#"{"version":1,"release":"x"}"#, r#"{"version":0,"release":"x","leftovers":[]}"#]
    {
        assert!(matches!(from_text(text.as_bytes()), Err(Unreadable::Damaged(_))), "{text}");
    }
}
