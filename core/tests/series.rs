//! Series: valid rows, valid keys and values, and the numbers that a session remembers.

use proptest::prelude::*;
use snowflake_ids_core::series::{
    Key, KeyType, MAX_KEY_BYTES, MAX_NAME_BYTES, Recent, Series, SeriesError, SeriesKind, SeriesRow,
    check_name,
};
use snowflake_ids_core::{Explain, Kind};
use std::borrow::Cow;

pub const ROW: SeriesRow<'static> = SeriesRow {
    id: Some(7),
    kind: "gapless",
    key_type: "bigint",
    start: Some(1),
    max_value: Some(i64::MAX),
    reset: None,
    time_zone: "UTC",
    format: None,
    step: None,
    max_step: None,
    sections: None,
    scope: None,
};

fn series() -> Series {
    Series::new(&ROW).expect("a right row")
}

fn refused(row: &SeriesRow<'_>) -> String {
    let error = Series::new(row).expect_err("a wrong row");
    let is_too_much = matches!(error, SeriesError::NoSuchArgument { .. } | SeriesError::GaplessScope { .. });
    assert_eq!(error.kind(), if is_too_much { Kind::Unsupported } else { Kind::BadArgument }, "{error}");
    error.to_string()
}

#[test]
fn a_row_says_what_its_numbers_are() {
    let dated = SeriesRow { reset: Some("YEAR"), format: Some("R-{YYYY}-{n:4}"), ..ROW };
    let dated = Series::new(&dated).expect("a right row");
    assert_eq!(dated.write(0, 12), "R-1970-0012");
    assert_eq!(series().write(0, 12), "12");
    let of_month = Series::new(&SeriesRow { reset: Some("month"), ..ROW }).expect("a right row");
    assert_eq!(of_month.write(31, 12), "197002-000012");
}

#[test]
fn wrong_rows_are_refused() {
    assert_eq!(refused(&SeriesRow { kind: "sparse", ..ROW }), "unrecognized kind of series: \"sparse\"");
    assert_eq!(refused(&SeriesRow { kind: "", ..ROW }), "kind must not be null");
    assert_eq!(refused(&SeriesRow { key_type: "oid", ..ROW }), "keys of a series cannot be of type oid");
    assert_eq!(refused(&SeriesRow { id: None, ..ROW }), "id must not be null");
    assert_eq!(refused(&SeriesRow { start: None, ..ROW }), "start must not be null");
    assert_eq!(refused(&SeriesRow { max_value: None, ..ROW }), "max_value must not be null");
    assert_eq!(refused(&SeriesRow { start: Some(-1), ..ROW }), "start -1 is negative");
    assert_eq!(
        refused(&SeriesRow { start: Some(5), max_value: Some(4), ..ROW }),
        "max_value 4 is less than start 5"
    );
    assert_eq!(refused(&SeriesRow { reset: Some("week"), ..ROW }), "unrecognized reset \"week\"");
    assert!(refused(&SeriesRow { format: Some("{YYYY}{n}"), ..ROW }).contains("there is no reset"));
}

/// A row as `series_create` makes it.
const MONOTONIC: SeriesRow<'static> =
    SeriesRow { kind: "monotonic", step: Some(1_000), max_step: Some(1_000_000), sections: Some(16), ..ROW };

#[test]
fn a_row_says_which_promise_it_makes() {
    let kind = |row: &SeriesRow<'_>| Series::new(row).map(|series| series.kind);
    assert_eq!(kind(&ROW), Ok(SeriesKind::Gapless));
    assert_eq!(kind(&MONOTONIC), Ok(SeriesKind::Monotonic(16)));
    let largest = Some(1_000_000_000);
    let row = SeriesRow { step: largest, max_step: largest, sections: Some(1_024), ..MONOTONIC };
    assert_eq!(kind(&row), Ok(SeriesKind::Monotonic(1_024)));
    for row in [ROW, MONOTONIC] {
        assert_eq!(kind(&row).map(SeriesKind::name), Ok(row.kind));
    }
}

#[test]
fn a_row_says_which_servers_count_together() {
    let is_one_servers = |row: SeriesRow<'_>| Series::new(&row).map(|series| series.is_one_servers());
    assert_eq!(is_one_servers(ROW), Ok(true));
    assert_eq!(is_one_servers(SeriesRow { scope: Some("global"), ..ROW }), Ok(true));
    for scope in ["node", "shard"] {
        assert_eq!(is_one_servers(SeriesRow { scope: Some(scope), ..ROW }), Ok(false));
        assert_eq!(
            is_one_servers(SeriesRow { scope: Some(scope), ..MONOTONIC }),
            Err(SeriesError::GaplessScope { scope })
        );
    }
    assert_eq!(is_one_servers(MONOTONIC), Ok(false));
    assert_eq!(refused(&SeriesRow { scope: Some("Node"), ..ROW }), "unrecognized scope of series: \"Node\"");
}

#[test]
fn wrong_steps_and_sections_are_refused() {
    let too_many = 1_000_000_001;
    for (row, said) in [
        (SeriesRow { step: Some(1), ..ROW }, "series of kind \"gapless\" have no step"),
        (SeriesRow { max_step: Some(1), ..ROW }, "series of kind \"gapless\" have no max_step"),
        (SeriesRow { sections: Some(1), ..ROW }, "series of kind \"gapless\" have no sections"),
        (SeriesRow { reset: Some("year"), ..MONOTONIC }, "series of kind \"monotonic\" have no reset"),
        (SeriesRow { step: None, ..MONOTONIC }, "step must not be null"),
        (SeriesRow { max_step: None, ..MONOTONIC }, "max_step must not be null"),
        (SeriesRow { step: Some(0), ..MONOTONIC }, "step 0 is out of range"),
        (SeriesRow { step: Some(8), max_step: Some(7), ..MONOTONIC }, "step 8 is out of range"),
        (SeriesRow { max_step: Some(0), ..MONOTONIC }, "max_step 0 is out of range"),
        (SeriesRow { max_step: Some(-1), ..MONOTONIC }, "max_step -1 is out of range"),
        (SeriesRow { max_step: Some(too_many), ..MONOTONIC }, "max_step 1000000001 is out of range"),
        (SeriesRow { sections: None, ..MONOTONIC }, "sections must not be null"),
        (SeriesRow { sections: Some(0), ..MONOTONIC }, "number of sections is out of range: 0"),
        (SeriesRow { sections: Some(1_025), ..MONOTONIC }, "number of sections is out of range: 1025"),
        (SeriesRow { sections: Some(65_552), ..MONOTONIC }, "number of sections is out of range: 65552"),
    ] {
        assert_eq!(refused(&row), said);
    }
}

#[test]
fn a_key_of_another_type_is_refused_with_the_cast() {
    let error = series().key_of(&Key::Uuid(1), "invoices").expect_err("another type");
    assert_eq!(error.kind(), Kind::OtherType);
    assert_eq!(error.to_string(), "key of series \"invoices\" must be of type bigint, not uuid");
    assert_eq!(error.hint().as_deref(), Some("Cast the key: key::bigint."));
    assert_eq!(series().key_of(&Key::Bigint(1), "invoices").as_deref(), Ok(&Key::Bigint(1)));
}

#[test]
fn a_text_is_read_as_a_key_of_the_series_type() {
    let text = |text: &str| Key::text(text.as_bytes()).unwrap();
    let read =
        |key_type, said: &str| Series { key_type, ..series() }.key_of(&text(said), "s").map(Cow::into_owned);
    assert_eq!(read(KeyType::Bigint, "5"), Ok(Key::Bigint(5)));
    assert_eq!(read(KeyType::Bigint, " -5 "), Ok(Key::Bigint(-5)));
    assert_eq!(read(KeyType::Text, " 5 "), Ok(text(" 5 ")));
    let uuid = "01a19467-e800-7000-8000-000000000001";
    assert_eq!(read(KeyType::Uuid, uuid), Ok(Key::Uuid(0x01a1_9467_e800_7000_8000_0000_0000_0001)));
    for (key_type, said) in [
        (KeyType::Bigint, "five"),
        (KeyType::Bigint, ""),
        (KeyType::Bigint, "9223372036854775808"),
        (KeyType::Bigint, "5.0"),
        (KeyType::Uuid, "5"),
        (KeyType::Uuid, "01a19467"),
    ] {
        let error = read(key_type, said).expect_err("no key");
        assert_eq!(error.kind(), Kind::InvalidText, "{error}");
    }
}

#[test]
fn a_text_key_is_bounded() {
    assert_eq!(Key::text(&[b'x'; MAX_KEY_BYTES]).map(|key| key.key_type()), Ok(KeyType::Text));
    let bytes = MAX_KEY_BYTES + 1;
    let error = Key::text(&vec![b'x'; bytes]).expect_err("a long key");
    assert_eq!(error.to_string(), "key is too long");
    assert_eq!(error.detail().as_deref(), Some("It has 513 bytes; the limit is 512."));
}

#[test]
fn a_key_is_set_to_a_value_whose_next_is_one_of_its_numbers() {
    let series = Series { start: 100, max_value: 200, ..series() };
    for value in [99, 100, 200] {
        assert_eq!(series.check_value(value), Ok(()));
    }
    for value in [i64::MIN, 98, 201, i64::MAX] {
        assert_eq!(series.check_value(value), Err(SeriesError::Value { value, lowest: 99, max_value: 200 }));
    }
}

#[test]
fn names_are_bounded_and_break_no_lines() {
    assert_eq!(check_name(b"", 0), Err(SeriesError::NoName));
    assert_eq!(check_name(b"a\nb", 3), Err(SeriesError::ControlName));
    assert_eq!(check_name(&[b'x'; 129], 129), Err(SeriesError::LongName { bytes: 129 }));
    let long = [b'x'; MAX_NAME_BYTES + 1];
    assert_eq!(check_name(&long, 1), Err(SeriesError::LongName { bytes: long.len() }));
    assert_eq!(check_name(b"invoices", 8), Ok(()));
}

/// More keys than a session remembers.
const KEYS: i64 = 3_000;

proptest! {
    /// A session remembers the last number of each recently used key, and of few other keys.
    #[test]
    fn the_last_keys_are_remembered(keys in prop::collection::vec(0..KEYS, 1..4_000)) {
        let mut recent = Recent::default();
        for (number, key) in (0..).zip(&keys) {
            recent.record(1, &Key::Bigint(*key), number);
        }
        let mut seen = std::collections::HashSet::new();
        for (number, key) in (0..).zip(&keys).collect::<Vec<_>>().into_iter().rev() {
            if seen.len() == Recent::KEYS {
                break;
            }
            if seen.insert(*key) {
                prop_assert_eq!(recent.last(1, Key::Bigint(*key)), Some(number));
            }
        }
        prop_assert_eq!(recent.last(2, Key::Bigint(keys[0])), None);
        let kept = (0..KEYS).filter(|key| recent.last(1, Key::Bigint(*key)).is_some()).count();
        prop_assert!(kept <= 2 * Recent::KEYS);
    }
}
