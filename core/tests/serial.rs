//! Numbers as dated text: templates are accepted or refused, and rendered keys never repeat.

use proptest::prelude::*;
use snowflake_ids_core::tag::serial::{FormatError, MAX_FORMAT_BYTES, NumberFormat, Reset};
use snowflake_ids_core::{Explain, Kind};
use std::collections::HashSet;

const EACH: [Option<Reset>; 4] = [None, Some(Reset::Day), Some(Reset::Month), Some(Reset::Year)];
/// 2026-11-20.
const DAY: i32 = 20_777;

fn error(text: &str, reset: Option<Reset>) -> FormatError {
    NumberFormat::parse(text, reset).expect_err(text)
}

#[test]
fn known_keys() {
    let cases = [
        ("{YYYY}{MM}{DD}-{n:6}", Some(Reset::Day), DAY, 1, "20261120-000001"),
        ("{YY}.{MM}/{n}", Some(Reset::Month), DAY, 42, "26.11/42"),
        ("R{YYYY}-{n:4}", Some(Reset::Year), DAY, 12_345, "R2026-12345"),
        ("{n:19}", None, 0, i64::MAX, "9223372036854775807"),
        ("{n:19}", None, 0, 7, "0000000000000000007"),
        ("{n:06}", None, 0, 7, "000007"),
        ("Nº {n} {{ü}}", None, 0, 3, "Nº 3 {ü}"),
        ("{{{n}}}", None, 0, 3, "{3}"),
        ("{{n}}{n}", None, 0, 3, "{n}3"),
    ];
    for (text, reset, day, n, key) in cases {
        assert_eq!(NumberFormat::parse(text, reset).unwrap().render(day, n), key, "{text}");
    }
}

#[test]
fn date_fields_come_in_any_order_and_more_than_once() {
    let format = NumberFormat::parse("{DD}{MM}{YYYY}/{YY}/{n}", Some(Reset::Day)).unwrap();
    assert_eq!(format.render(DAY, 5), "20112026/26/5");
}

#[test]
fn known_days() {
    let format = NumberFormat::parse("{YYYY}{MM}{DD} {YY} {n}", Some(Reset::Day)).unwrap();
    for (day, key) in [
        (0, "19700101 70 1"),
        (-1, "19691231 69 1"),
        (11_016, "20000229 00 1"),
        (11_017, "20000301 00 1"),
        (-719_528, "00000101 00 1"),
        (2_932_896, "99991231 99 1"),
        (i32::MAX, "99991231 99 1"),
    ] {
        assert_eq!(format.render(day, 1), key, "{day}");
    }
    assert!(format.render(i32::MIN, 1).starts_with("-9999"));
}

#[test]
fn a_tag_without_a_format_has_one_for_its_reset() {
    let text = EACH.map(|reset| NumberFormat::default_for(reset).to_string());
    assert_eq!(text, ["{n}", "{YYYY}{MM}{DD}-{n:6}", "{YYYY}{MM}-{n:6}", "{YYYY}-{n:6}"]);
    for (reset, text) in EACH.iter().zip(&text) {
        assert_eq!(NumberFormat::parse(text, *reset), Ok(NumberFormat::default_for(*reset)));
    }
}

#[test]
fn resets_have_names() {
    for reset in Reset::ALL {
        assert_eq!(reset.to_string().parse(), Ok(reset));
        assert_eq!(reset.name().to_uppercase().parse(), Ok(reset));
    }
    let error = "week".parse::<Reset>().unwrap_err();
    assert_eq!(error, FormatError::UnknownReset { name: "week".into() });
    assert_eq!(error.hint().unwrap(), "Set reset to day, month, year, or to null.");
}

#[test]
fn a_brace_without_its_partner_is_shown() {
    for (text, at) in [("{n", 1), ("ü{n}}", 5), ("a}b{n}", 2), ("{n}{", 4), ("{YYYY-{n}", 1), ("{n}{{}", 6)]
    {
        assert_eq!(error(text, None), FormatError::Brace { at }, "{text}");
    }
}

#[test]
fn unknown_fields_are_named() {
    for field in ["", "N", "yyyy", "HH", "n ", "m:6", "YYYY:4"] {
        let error = error(&format!("{{{field}}}{{n}}"), Some(Reset::Day));
        assert_eq!(error, FormatError::UnknownField { field: field.into() });
        assert_eq!(error.to_string(), format!("unrecognized field \"{{{field}}}\" in format"));
        assert!(error.detail().unwrap().contains("{YYYY}, {YY}, {MM}, {DD}, {n} and {n:width}"));
    }
}

#[test]
fn widths_are_1_to_19() {
    for width in ["", "0", "20", "+6", "-1", "6 ", "256", "1000", "x"] {
        assert_eq!(error(&format!("{{n:{width}}}"), None), FormatError::Width { width: width.into() });
    }
    for width in 1..=19 {
        assert_eq!(NumberFormat::parse(&format!("{{n:{width}}}"), None).unwrap().render(0, 0).len(), width);
    }
}

#[test]
fn the_number_comes_exactly_once() {
    for (text, count) in [("", 0), ("INV", 0), ("{n}-{n:6}", 2), ("{n}{n}{n}", 3)] {
        assert_eq!(error(text, None), FormatError::Number { count });
    }
    let details = [0, 2].map(|count| FormatError::Number { count }.detail().unwrap());
    assert!(details[0].contains("Without the number") && details[1].contains("2 times"));
}

#[test]
fn long_templates_are_refused() {
    let text = |bytes: usize| format!("{{n}}{}", "x".repeat(bytes - 3));
    assert!(NumberFormat::parse(&text(MAX_FORMAT_BYTES), None).is_ok());
    assert_eq!(error(&text(65), None), FormatError::TooLong { bytes: 65 });
}

#[test]
fn dates_need_a_reset() {
    for field in ["YYYY", "YY", "MM", "DD"] {
        assert_eq!(error(&format!("{{{field}}}{{n}}"), None), FormatError::WithoutReset { field });
    }
}

#[test]
fn a_key_says_its_period_and_no_more() {
    let too_fine = |field, reset| FormatError::TooFine { field, reset };
    let missing = |missing, reset| FormatError::Missing { missing, reset };
    let (day, month, year) = (Reset::Day, Reset::Month, Reset::Year);
    for (text, reset, expected) in [
        ("{YYYY}{MM}{n}", year, too_fine("MM", year)),
        ("{YYYY}{DD}{n}", year, too_fine("DD", year)),
        ("{YYYY}{MM}{DD}{n}", month, too_fine("DD", month)),
        ("{n}", year, missing(year, year)),
        ("{n}", day, missing(year, day)),
        ("{MM}{n}", month, missing(year, month)),
        ("{YYYY}{n}", month, missing(month, month)),
        ("{YYYY}{MM}{n}", day, missing(day, day)),
        ("{YYYY}{DD}{n}", day, missing(month, day)),
        ("{MM}{DD}{n}", day, missing(year, day)),
    ] {
        assert_eq!(error(text, Some(reset)), expected, "{text}");
    }
    assert_eq!(missing(year, day).hint().unwrap(), "Add {YYYY} or {YY}.");
    assert_eq!(missing(day, day).hint().unwrap(), "Add {DD}.");
    assert_eq!(missing(year, day).to_string(), "format lacks the year, but numbers start anew each day");
}

#[test]
fn every_refusal_is_a_bad_argument_and_says_the_way_out() {
    for (text, reset) in [
        ("{", None),
        ("{x}{n}", None),
        ("{n:0}", None),
        ("", None),
        ("{YY}{n}", None),
        ("{YY}{MM}{n}", Some(Reset::Year)),
        ("{n}", Some(Reset::Year)),
        (&"x".repeat(65), None),
    ] {
        let error = error(text, reset);
        assert_eq!(error.kind(), Kind::BadArgument);
        for part in [error.detail(), error.hint()] {
            assert!(part.unwrap().ends_with(['.', '}']), "{error}");
        }
    }
}

fn resets() -> impl Strategy<Value = Option<Reset>> {
    prop::sample::select(&EACH[..])
}

/// Templates for a reset. They contain the fields that the reset needs and the number, in any order, with text between them.
fn templates() -> impl Strategy<Value = (String, Option<Reset>)> {
    let fields = resets().prop_flat_map(|reset| {
        let dates: &[&str] = match reset {
            None => &[],
            Some(Reset::Year) => &["{YYYY}"],
            Some(Reset::Month) => &["{YYYY}", "{MM}"],
            Some(Reset::Day) => &["{YYYY}", "{MM}", "{DD}"],
        };
        let number = (1_u8..=19).prop_map(|width| format!("{{n:{width}}}"));
        (Just(reset), number, Just(dates))
    });
    let fields = fields.prop_flat_map(|(reset, number, dates)| {
        let all = dates.iter().map(|&field| field.to_owned()).chain([number]).collect::<Vec<_>>();
        (Just(reset), Just(all).prop_shuffle())
    });
    (fields, prop::collection::vec("([a-zß0-9-]|\\{\\{|\\}\\}){0,2}", 4)).prop_map(
        |((reset, fields), texts)| {
            (fields.into_iter().zip(texts).flat_map(|(field, text)| [text, field]).collect(), reset)
        },
    )
}

/// The first day of the period that contains a day.
fn first_day(day: i32, reset: Option<Reset>) -> i32 {
    let date = jiff_date(day);
    match reset {
        Some(Reset::Month) => day - i32::from(date.day()) + 1,
        Some(Reset::Year) => day - i32::from(date.day_of_year()) + 1,
        Some(Reset::Day) | None => day,
    }
}

fn jiff_date(day: i32) -> jiff::civil::Date {
    jiff::Timestamp::from_second(i64::from(day) * 86_400).unwrap().to_zoned(jiff::tz::TimeZone::UTC).date()
}

proptest! {
    #[test]
    fn templates_survive_being_shown((text, reset) in templates()) {
        let format = NumberFormat::parse(&text, reset).unwrap();
        prop_assert_eq!(NumberFormat::parse(&format.to_string(), reset), Ok(format));
    }

    /// Templates are checked so that different dates or numbers give different keys.
    #[test]
    fn keys_of_different_periods_or_numbers_differ(
        (text, reset) in templates(), made in prop::collection::vec((0_i32..40_000, 0_i64..2_000), 2..40),
    ) {
        let format = NumberFormat::parse(&text, reset).unwrap();
        let made = made.into_iter().map(|(day, n)| (if reset.is_some() { first_day(day, reset) } else { 0 }, n));
        let made: HashSet<_> = made.collect();
        let keys: HashSet<_> = made.iter().map(|(day, n)| format.render(*day, *n)).collect();
        prop_assert_eq!(keys.len(), made.len());
    }

    /// Dates equal those of another library, as Postgres prints them.
    #[test]
    fn days_are_those_of_the_calendar(day in -700_000_i32..2_900_000) {
        let format = NumberFormat::parse("{YYYY}-{MM}-{DD} {n}", Some(Reset::Day)).unwrap();
        prop_assert_eq!(format.render(day, 9), format!("{} 9", jiff_date(day)));
    }

    #[test]
    fn any_text_is_understood_or_refused(text in ".{0,40}|[{}nYMD:0-9]{0,40}", reset in resets(), day in any::<i32>(), n in any::<i64>()) {
        if let Ok(format) = NumberFormat::parse(&text, reset) {
            prop_assert!(!format.render(day, n).is_empty());
            prop_assert_eq!(NumberFormat::parse(&format.to_string(), reset), Ok(format));
        }
    }
}
