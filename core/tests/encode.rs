//! Text forms: known values, corrupted text, fixed width.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

use snowflake_ids_core::{Explain, Format, Kind, TextError};

#[test]
fn known_values() {
    let cases = [
        (Format::Base62, 61, "z"),
        (Format::Base62, 62, "10"),
        (Format::Base58, 57, "z"),
        (Format::Base58, 0, "1"),
        (Format::Base36, 35, "z"),
        (Format::Crockford32, 1234, "16J"),
        (Format::Hex, 255, "ff"),
        (Format::Hex, i64::MAX, "7fffffffffffffff"),
        (Format::Base62, i64::MAX, "AzL8n0Y58m7"),
        (Format::Base36, i64::MAX, "1y2p0ij32e8e7"),
    ];
    for (format, id, text) in cases {
        assert_eq!(format.encode(id, false).unwrap(), text, "{format:?}");
        assert_eq!(format.decode(text).unwrap(), id, "{format:?}");
    }
}

#[test]
fn widths_are_those_of_the_largest_id() {
    assert_eq!(Format::ALL.map(Format::width), [11, 11, 13, 13, 16]);
}

#[test]
fn corrupted_text_says_which_character_is_wrong() {
    for (format, text, found, at) in [
        (Format::Base62, "12-3", '-', 3),
        (Format::Base58, "1230", '0', 4),
        (Format::Base36, "é", 'é', 1),
        (Format::Crockford32, "12U", 'U', 3),
        (Format::Hex, "0x12", 'x', 2),
    ] {
        assert_eq!(format.decode(text), Err(TextError::Digit { format: format.name(), found, at }));
    }
}

#[test]
fn empty_and_oversized_text_is_refused() {
    for format in Format::ALL {
        assert_eq!(format.decode(""), Err(TextError::Empty { format: format.name() }));
        let last = format.encode(i64::MAX, false).unwrap();
        assert_eq!(
            format.decode(&format!("{last}{last}")),
            Err(TextError::TooLarge { format: format.name() })
        );
    }
    assert!(matches!(Format::Hex.decode("8000000000000000"), Err(TextError::TooLarge { .. })));
    assert!(matches!(Format::Crockford32.decode("---"), Err(TextError::Empty { .. })));
}

#[test]
fn crockford_forgives_what_people_misread() {
    assert_eq!(Format::Crockford32.decode("io-Ll"), Format::Crockford32.decode("1011"));
    assert_eq!(Format::Hex.decode("FF"), Ok(255));
    assert_eq!(Format::Base36.decode("ZZ"), Format::Base36.decode("zz"));
}

#[test]
fn unknown_formats_are_refused_with_the_known_ones() {
    let error = "base64".parse::<Format>().unwrap_err();
    assert_eq!(error.kind(), Kind::BadArgument);
    assert!(error.hint().is_some_and(|hint| hint.contains("base62") && hint.contains("crockford32")));
    assert_eq!("Base62".parse::<Format>(), Ok(Format::Base62));
    assert_eq!(Format::Base62.encode(-1, false), Err(TextError::Negative { id: -1 }));
}
