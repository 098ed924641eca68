//! Text forms: known values, corrupted text and fixed width.

use snowflake_ids_core::{Explain, Format, Kind, PrefixedFormat, TextError};

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

#[test]
fn prefixes_are_written_and_required() {
    let customers = PrefixedFormat::new(Format::Base58, "cus").unwrap();
    assert_eq!(customers.encode(57, false).unwrap(), "cus_z");
    assert_eq!(customers.encode(57, true).unwrap(), "cus_1111111111z");
    assert_eq!(customers.decode("cus_1111111111z"), Ok(57));
    for other in ["z", "cus", "usr_z", "CUS_z", "cus-z", "cu", "", "é"] {
        assert_eq!(customers.decode(other), Err(TextError::OtherPrefix { prefix: "cus".into() }), "{other}");
    }
    assert_eq!(customers.decode("cus_"), Err(TextError::Empty { format: "base58" }));
    assert_eq!(customers.decode("cus_é"), Err(TextError::Digit { format: "base58", found: 'é', at: 5 }));
    assert_eq!(customers.decode("cus_cus_z"), Err(TextError::Digit { format: "base58", found: '_', at: 8 }));

    let live = PrefixedFormat::new(Format::Hex, "sk_live_2").unwrap();
    assert_eq!(live.encode(255, false).unwrap(), "sk_live_2_ff");
    assert_eq!(live.decode("sk_live_2_FF"), Ok(255));
}

#[test]
fn prefixes_are_short_and_lower_case() {
    let longest = "a234567890123456";
    assert!(PrefixedFormat::new(Format::Hex, longest).is_ok());
    for prefix in ["", "_", "_a", "Cus", "cus-", "c s", "é", &format!("{longest}7")] {
        let error = PrefixedFormat::new(Format::Hex, prefix).unwrap_err();
        assert_eq!((error.kind(), error), (Kind::BadArgument, TextError::Prefix { prefix: prefix.into() }));
    }
}
