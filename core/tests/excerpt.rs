//! Excerpts of foreign texts in messages are short and printable, whatever the text.

use proptest::prelude::*;
use snowflake_ids_core::error::{EXCERPT_CHARS, excerpt};
use snowflake_ids_core::error::{TooLong, check_length};
use snowflake_ids_core::server::state::State;
use snowflake_ids_core::tag::definition::TagError;
use snowflake_ids_core::tag::serial::{self, Reset};
use snowflake_ids_core::{Explain, Format, Kind, Layout};

/// An upper bound on the bytes of a message with two excerpts, at four bytes a letter.
const MESSAGE_BYTES: usize = 2 * 4 * EXCERPT_CHARS + 256;

#[test]
fn an_excerpt_is_cut_and_has_no_control_characters() {
    assert_eq!(excerpt("Łódź"), "Łódź");
    assert_eq!(excerpt("a\tb\u{1b}[31m\u{85}"), "a?b?[31m?");
    let longest = "ż".repeat(EXCERPT_CHARS);
    assert_eq!(excerpt(&longest), longest);
    assert_eq!(excerpt(&format!("{longest}x")), format!("{longest}..."));
}

#[test]
fn a_text_is_refused_by_its_length_alone() {
    assert_eq!(check_length("layout", 1_024, 1_024), Ok(()));
    let error = check_length("layout", 1_025, 1_024).unwrap_err();
    assert_eq!(error, TooLong { name: "layout", bytes: 1_025, limit: 1_024 });
    assert_eq!((error.to_string(), error.kind()), ("layout is too long".into(), Kind::BadArgument));
    assert!(error.detail().is_some_and(|detail| detail.contains("1025") && detail.contains("1024")));
    let tag = TagError::TooManyBytes { bytes: 513 };
    assert!(tag.detail().is_some_and(|detail| detail.contains("513") && detail.contains("512")));
}

fn is_fit(error: &impl Explain) -> Result<(), TestCaseError> {
    let hint = error.hint().unwrap_or_default();
    for said in [error.to_string(), error.detail().unwrap_or_default(), hint] {
        prop_assert!(said.len() <= MESSAGE_BYTES, "{} bytes: {said}", said.len());
        prop_assert!(!said.chars().any(char::is_control), "{said:?}");
    }
    Ok(())
}

/// Texts that begin as some parser expects, and then become invalid.
fn texts() -> impl Strategy<Value = String> {
    let beginnings = [
        "",
        "41/5/5/12 ",
        "41/5/5/",
        "41/5/5/9r/",
        "unit=",
        "41/5/5/12 unit=",
        "41/5/5/12 epoch=",
        "{",
        "{n:",
    ];
    let endings = ["", "}", "/5/5/12", " unit=1s"];
    let middle = prop_oneof!["\\PC{0,40}", "(?s).{0,40}", "[a-z]{200,600}", "[\u{0}-\u{1f}]{1,300}"];
    (prop::sample::select(beginnings.to_vec()), middle, prop::sample::select(endings.to_vec()))
        .prop_map(|(beginning, middle, ending)| format!("{beginning}{middle}{ending}"))
}

proptest! {
    #[test]
    fn errors_of_any_text_are_short_and_clean(text in texts()) {
        text.parse::<Layout>().err().map_or(Ok(()), |error| is_fit(&error))?;
        text.parse::<Format>().err().map_or(Ok(()), |error| is_fit(&error))?;
        text.parse::<Reset>().err().map_or(Ok(()), |error| is_fit(&error))?;
        serial::NumberFormat::parse(&text, None).err().map_or(Ok(()), |error| is_fit(&error))?;
        for format in Format::ALL {
            format.decode(&text).err().map_or(Ok(()), |error| is_fit(&error))?;
        }
        State::from_text(text.as_bytes()).err().map_or(Ok(()), |error| is_fit(&error))?;
    }
}
