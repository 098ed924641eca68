//! Definitions of tags: valid and invalid definitions, their ids, and how long the ids last.

use proptest::prelude::*;
use snowflake_ids_core::tag::definition::{
    Definition, DefinitionError, Exhausted, MAX_STEP, MAX_TAG_CHARS, Range, TagError, check_tag, forecast,
};
use snowflake_ids_core::{Explain, Kind};
use std::time::Duration;

const DEFINITION: Definition = Definition {
    max_id: 0,
    start: 1,
    step: 1000,
    max_step: 1_000_000,
    increment: 1,
    remainder: 0,
    max_value: i64::MAX,
};

/// Definitions with few ids, so that a test can count all ids. `max_id` may be below, among or above the ids.
fn small() -> impl Strategy<Value = Definition> {
    (0_i64..60, 0_i64..60, 1_i64..20, 0_i64..20, -1_i64..130).prop_map(
        |(start, more, increment, any, max_id)| Definition {
            max_id,
            start,
            increment,
            remainder: any % increment,
            max_value: start + more,
            ..DEFINITION
        },
    )
}

fn all_after(definition: &Definition, id: i64) -> Vec<i64> {
    (definition.start..=definition.max_value)
        .filter(|n| *n > id && n % definition.increment == definition.remainder)
        .collect()
}

#[test]
fn the_defaults_and_the_limits_are_good() {
    let good = [
        DEFINITION,
        Definition { max_id: -1, start: 0, ..DEFINITION },
        Definition { step: 1, max_step: 1, ..DEFINITION },
        Definition {
            step: MAX_STEP,
            max_step: MAX_STEP,
            increment: MAX_STEP,
            remainder: MAX_STEP - 1,
            ..DEFINITION
        },
        Definition { start: i64::MAX, max_id: i64::MAX, ..DEFINITION },
        Definition { start: 7, max_value: 7, increment: 5, remainder: 2, ..DEFINITION },
    ];
    for definition in good {
        assert_eq!(definition.check(), Ok(()), "{definition:?}");
    }
}

#[test]
fn each_argument_is_refused_by_name() {
    let (step, max_step, max_value) = (DEFINITION.step, DEFINITION.max_step, 8);
    let bad = [
        (Definition { step: 0, ..DEFINITION }, DefinitionError::Step { step: 0, max_step }),
        (Definition { step: -5, ..DEFINITION }, DefinitionError::Step { step: -5, max_step }),
        (Definition { step: 1_000_001, ..DEFINITION }, DefinitionError::Step { step: 1_000_001, max_step }),
        (Definition { max_step: 999, ..DEFINITION }, DefinitionError::Step { step, max_step: 999 }),
        (Definition { max_step: 0, step: 0, ..DEFINITION }, DefinitionError::MaxStep { max_step: 0 }),
        (
            Definition { max_step: MAX_STEP + 1, ..DEFINITION },
            DefinitionError::MaxStep { max_step: MAX_STEP + 1 },
        ),
        (Definition { increment: 0, ..DEFINITION }, DefinitionError::Increment { increment: 0 }),
        (
            Definition { increment: MAX_STEP + 1, ..DEFINITION },
            DefinitionError::Increment { increment: MAX_STEP + 1 },
        ),
        (
            Definition { increment: 3, remainder: 3, ..DEFINITION },
            DefinitionError::Remainder { remainder: 3, increment: 3 },
        ),
        (
            Definition { remainder: -1, ..DEFINITION },
            DefinitionError::Remainder { remainder: -1, increment: 1 },
        ),
        (Definition { start: -1, max_id: -1, ..DEFINITION }, DefinitionError::Start { start: -1 }),
        (Definition { max_id: -2, ..DEFINITION }, DefinitionError::MaxId { max_id: -2 }),
        (Definition { start: 9, max_value, ..DEFINITION }, DefinitionError::MaxValue { max_value, start: 9 }),
        (
            Definition { start: 5, max_value, increment: 5, remainder: 4, ..DEFINITION },
            DefinitionError::NoId { start: 5, max_value, increment: 5, remainder: 4 },
        ),
    ];
    for (definition, error) in bad {
        assert_eq!(definition.check(), Err(error), "{definition:?}");
        assert_eq!(error.kind(), Kind::BadArgument);
        let name = error.to_string().split(' ').find(|word| word.contains('_')).map(str::to_owned);
        let name = name.unwrap_or_else(|| error.to_string().split(' ').next().unwrap().to_owned());
        assert!(error.hint().unwrap().contains(&name), "the hint of \"{error}\" names {name}");
        assert!(error.detail().unwrap().ends_with('.'));
    }
}

#[test]
fn a_step_too_low_and_one_too_high_have_their_own_way_out() {
    let hint = |step| Definition { step, ..DEFINITION }.check().unwrap_err().hint().unwrap();
    assert_ne!(hint(0), hint(1_000_001));
}

#[test]
fn a_new_tag_begins_with_its_start() {
    assert_eq!(DEFINITION.reserve(1000), Ok(Range { first: 1, count: 1000, increment: 1 }));
    assert_eq!(DEFINITION.reserve(1000).unwrap().last(), 1000);
}

#[test]
fn a_segment_goes_by_the_increment() {
    let definition = Definition { increment: 10, remainder: 3, max_id: 23, ..DEFINITION };
    let range = definition.reserve(4).unwrap();
    assert_eq!((0..4).map(|offset| range.at(offset)).collect::<Vec<_>>(), [33, 43, 53, 63]);
    assert_eq!(range.last(), 63);
}

#[test]
fn the_last_segment_is_as_long_as_there_are_ids() {
    let definition = Definition { max_id: i64::MAX - 3, ..DEFINITION };
    assert_eq!(definition.reserve(1000), Ok(Range { first: i64::MAX - 2, count: 3, increment: 1 }));
    assert_eq!(definition.reserve(1000).unwrap().last(), i64::MAX);
    let used_up = Definition { max_id: i64::MAX, ..DEFINITION };
    assert_eq!(used_up.reserve(1), Err(Exhausted { max_value: i64::MAX }));
}

#[test]
fn at_least_one_id_comes() {
    assert_eq!(DEFINITION.reserve(0), Ok(Range { first: 1, count: 1, increment: 1 }));
}

#[test]
fn used_up_ids_say_how_to_go_on() {
    let below = Exhausted { max_value: 99 };
    assert_eq!(below.kind(), Kind::Exhausted);
    assert!(below.detail().unwrap().contains("99"));
    assert!(below.hint().unwrap().contains("segment_alter"));
    let hint = Exhausted { max_value: i64::MAX }.hint().unwrap();
    assert!(!hint.contains("segment_alter"), "no max_value is larger: {hint}");
}

#[test]
fn all_numbers_are_left_at_first() {
    let from_zero = Definition { start: 0, max_id: -1, ..DEFINITION };
    assert_eq!(from_zero.left_after(-1), 1 << 63);
    assert_eq!(from_zero.left_after(i64::MAX - 1), 1);
    assert_eq!(from_zero.left_after(i64::MAX), 0);
}

#[test]
fn a_new_period_begins_with_the_start_again() {
    let definition = Definition { max_id: 5_000, start: 100, ..DEFINITION };
    assert_eq!(definition.restarted(), Definition { max_id: 99, ..definition });
    assert_eq!(definition.restarted().reserve(1).unwrap().first, 100);
}

#[test]
fn the_bounds_of_segments_are_those_of_the_row() {
    let bounds = DEFINITION.bounds();
    assert_eq!((bounds.min, bounds.max), (1_000, 1_000_000));
}

#[test]
fn tags_have_1_to_128_characters() {
    assert_eq!(check_tag(0), Err(TagError::Empty));
    assert_eq!(check_tag(1), Ok(()));
    assert_eq!(check_tag(MAX_TAG_CHARS), Ok(()));
    let error = check_tag(129).unwrap_err();
    assert_eq!(error, TagError::TooLong { chars: 129 });
    assert!(error.detail().unwrap().contains("129") && error.detail().unwrap().contains("128"));
    assert_eq!((error.kind(), TagError::Empty.kind()), (Kind::BadArgument, Kind::BadArgument));
}

#[test]
fn a_forecast_follows_the_pace() {
    let minute = Duration::from_mins(1);
    assert_eq!(forecast(1_000, 100, minute), Some(10 * minute));
    assert_eq!(forecast(0, 100, minute), Some(Duration::ZERO));
    assert_eq!(forecast(1, 3, Duration::from_micros(10)), Some(Duration::from_micros(3)));
}

#[test]
fn without_a_pace_there_is_no_forecast() {
    assert_eq!(forecast(1_000, 0, Duration::from_mins(1)), None);
    assert_eq!(forecast(1_000, 10, Duration::ZERO), None);
}

#[test]
fn a_forecast_ends_after_10_000_years() {
    let year = Duration::from_secs(31_556_952);
    assert_eq!(forecast(10_000, 1, year), Some(10_000 * year));
    assert_eq!(forecast(10_001, 1, year), None);
    assert_eq!(forecast(u64::MAX, 1, Duration::MAX), None);
}

proptest! {
    #[test]
    fn ids_are_those_that_counting_finds(definition in small(), id in -5_i64..130) {
        let all = all_after(&definition, id);
        prop_assert_eq!(definition.first_after(id), all.first().copied());
        prop_assert_eq!(definition.left_after(id), all.len() as u64);
    }

    #[test]
    fn segments_one_after_the_other_are_all_ids(definition in small(), want in 1_u32..9) {
        let (mut row, mut got) = (definition, Vec::new());
        while let Ok(range) = row.reserve(want) {
            let before = got.len();
            got.extend((0..range.count).map(|offset| range.at(offset)));
            prop_assert!(range.count == want || row.left_after(range.last()) == 0);
            prop_assert!(got.len() > before);
            prop_assert_eq!(got.last(), Some(&range.last()));
            row.max_id = range.last();
        }
        prop_assert_eq!(got, all_after(&definition, definition.max_id));
    }

    #[test]
    fn terms_are_good_exactly_if_they_have_an_id(definition in small()) {
        prop_assert_eq!(definition.check().is_ok(), !all_after(&definition, -1).is_empty());
    }

    /// Calculating with any row neither overflows nor leaves the row's range of ids.
    #[test]
    fn any_row_is_safe_to_calculate_with(row in any::<[i64; 7]>(), id in any::<i64>(), want in any::<u32>()) {
        let [max_id, start, step, max_step, increment, remainder, max_value] = row;
        let definition = Definition { max_id, start, step, max_step, increment, remainder, max_value };
        let (_, _) = (definition.check(), definition.restarted());
        let bounds = definition.bounds();
        prop_assert!(bounds.min >= 1 && bounds.max >= 1);
        prop_assert_eq!(definition.left_after(id) == 0, definition.first_after(id).is_none());
        if let Some(first) = definition.first_after(id) {
            prop_assert!(first > id && first >= start && first <= max_value);
        }
        if let Ok(range) = definition.reserve(want) {
            prop_assert!(range.count >= 1 && range.count <= want.max(1));
            prop_assert!(range.first > max_id && range.first <= range.last() && range.last() <= max_value);
        }
    }

    #[test]
    fn forecasts_are_right_where_numbers_are_small(left in 0_u64..1 << 30, issued in 1_u64..1 << 20, over in 1_u64..1 << 30) {
        let expected = left * over / issued;
        let limit = 10_000 * 31_556_952_000_000;
        let forecast = forecast(left, issued, Duration::from_micros(over));
        prop_assert_eq!(forecast, (expected <= limit).then(|| Duration::from_micros(expected)));
    }
}

#[test]
fn a_range_is_followed_by_the_one_that_goes_on_in_its_steps() {
    let range = Range { first: 5, count: 3, increment: 10 };
    assert!(range.is_followed_by(&Range { first: 35, count: 1, increment: 10 }));
    assert!(!range.is_followed_by(&Range { first: 36, count: 1, increment: 10 }));
    assert!(!range.is_followed_by(&Range { first: 25, count: 1, increment: 10 }));
    assert!(!range.is_followed_by(&Range { first: 35, count: 1, increment: 1 }));
}

/// A promotion skips ids of the tag, and not numbers below the tag's first id. If the tag has given no id, the skip begins at `start`.
#[test]
fn a_promotion_skips_ids_and_no_numbers_below_them() {
    let skipped = |definition: Definition| definition.skipped_ahead(1).max_id;
    assert_eq!(skipped(DEFINITION), 2_000_000);
    assert_eq!(skipped(Definition { start: 1_000_000_000, ..DEFINITION }), 1_001_999_999);
    assert_eq!(skipped(Definition { increment: 7, remainder: 3, max_step: 10, ..DEFINITION }), 3 + 19 * 7);
    assert_eq!(DEFINITION.skipped_ahead(3).max_id, 6_000_000, "once for each promotion");
    assert_eq!(DEFINITION.skipped_ahead(0), DEFINITION);
    assert_eq!(skipped(Definition { max_value: 10, ..DEFINITION }), 5, "no more than half of what is left");
    assert_eq!(skipped(Definition { start: 5, max_value: 5, ..DEFINITION }), 0, "a last one is not skipped");
}
