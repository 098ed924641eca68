//! Reserving from a row: never at or below an id that any server knows to be handed out, and never from an unusable row.

use proptest::prelude::*;
use snowflake_ids_core::UnixMicros;
use snowflake_ids_core::tag::definition::{Definition, Exhausted, Range};
use snowflake_ids_core::tag::reservation::{
    Demand, HighWaterMark, Outcome, Reserved, SavedRange, Share, TagRow, Unfit, promotions_since,
};
use snowflake_ids_core::tag::segment::Period;
use snowflake_ids_core::tag::step::Pace;
use std::time::Duration;

const DEFINITION: Definition = Definition {
    max_id: 500,
    start: 1,
    step: 100,
    max_step: 1_000,
    increment: 1,
    remainder: 0,
    max_value: i64::MAX,
};
/// The version that a reservation gives the row.
const NEXT: i64 = -90;
const TODAY: Period = Period { day: 20_000, until: UnixMicros(1_728_086_400_000_000) };

fn row(definition: Definition) -> TagRow {
    TagRow { definition, period: Period::FOREVER, format: "{id}".into(), version: 7, tag_generation: 3 }
}

fn of_today(definition: Definition) -> TagRow {
    TagRow { period: TODAY, ..row(definition) }
}

pub fn demand() -> Demand {
    Demand {
        saved_range: None,
        pace: Pace::default(),
        lasted: None,
        target: Duration::from_mins(15),
        waited_lately: false,
        prefetch: 50,
        high_water_mark: None,
        received: None,
        share: None,
        most: None,
        clock: None,
    }
}

fn reserved(row: &TagRow, demand: &Demand) -> Reserved {
    match row.reserve(demand, NEXT) {
        Outcome::Reserved(reserved) => reserved,
        other => panic!("{other:?}"),
    }
}

fn range(first: i64, count: u32) -> Range {
    Range { first, count, increment: 1 }
}

/// The last hundred ids of the row, as a saved range.
fn saved_range() -> SavedRange {
    SavedRange { version: 7, day: None, range: range(401, 100) }
}

#[test]
fn the_ids_after_the_rows_highest_are_reserved() {
    let reserved = reserved(&row(DEFINITION), &demand());
    assert_eq!(reserved.supply.range, range(501, 100));
    assert_eq!(reserved.supply.period, Period::FOREVER);
    assert_eq!(reserved.supply.prefetch_at, 50);
    assert_eq!(reserved.reached(), (0, 600));
    assert_eq!((reserved.version, reserved.format.as_str()), (NEXT, "{id}"));
    assert_eq!(reserved.left, (i64::MAX - 600).unsigned_abs());
    assert_eq!(reserved.max_value, i64::MAX);
}

#[test]
fn their_number_follows_from_the_pace() {
    let pace = Pace { step: 100, multiplier: 1 };
    let quick = Demand { pace, lasted: Some(Duration::from_secs(1)), ..demand() };
    assert_eq!(reserved(&row(DEFINITION), &quick).pace, Pace { step: 200, multiplier: 1 });
    assert_eq!(reserved(&row(DEFINITION), &quick).supply.range, range(501, 200));
    let waited_lately = reserved(&row(DEFINITION), &Demand { waited_lately: true, ..quick });
    assert_eq!((waited_lately.supply.range, waited_lately.supply.prefetch_at), (range(501, 400), 0));
}

#[test]
fn a_demand_may_say_how_many_at_most() {
    let most = |most| reserved(&row(DEFINITION), &Demand { most: Some(most), ..demand() }).supply.range;
    assert_eq!([0, 1, 7, 100, u32::MAX].map(most), [1, 1, 7, 100, 100].map(|count| range(501, count)));
}

#[test]
fn ids_begin_above_the_high_water_mark_of_the_same_period() {
    let high_water_mark = |high_water_mark| {
        reserved(&of_today(DEFINITION), &Demand { high_water_mark: Some(high_water_mark), ..demand() })
            .supply
            .range
            .first
    };
    assert_eq!(high_water_mark((20_000, 507)), 508);
    assert_eq!(high_water_mark((20_000, 499)), 501, "the row is further");
    assert_eq!(high_water_mark((19_999, 507)), 501, "that was yesterday");
}

/// A mark belongs to an earlier generation if the tag was later dropped and recreated, or forced back.
#[test]
fn a_high_water_mark_counts_in_one_generation_of_the_tag() {
    let recorded = |tag_generation| {
        row(DEFINITION).high_water_mark(Some(HighWaterMark { tag_generation, day: 0, id: 900 }))
    };
    assert_eq!(recorded(3), Some((0, 900)));
    assert_eq!(recorded(4), None);
    assert_eq!(row(DEFINITION).high_water_mark(None), None);
}

#[test]
fn promotions_are_counted_since_a_row_was_written_in_its_cluster() {
    let since = |timeline| promotions_since(Some(77), timeline, (77, 3));
    assert_eq!([Some(1), Some(2), Some(3), Some(4), None].map(since), [2, 1, 0, 0, 0]);
    // After pg_upgrade, the row does not name this cluster yet.
    for other in [Some(78), None] {
        let another = |timeline, here| promotions_since(other, Some(timeline), (77, here));
        assert_eq!([another(1, 1), another(5, 1)], [0, 0], "no standby was promoted here");
        assert_eq!([another(1, 2), another(5, 2)], [1, 1]);
    }
}

/// A copy and its original reserve from the same row. The copy skips once, and again if it is copied or put back again.
#[cfg(feature = "guards")]
#[test]
fn a_copy_reserves_above_what_its_original_reserves_next() {
    use snowflake_ids_core::guard::Guard;
    use snowflake_ids_core::tag::reservation::copies_since;
    let next = |written, here| {
        let row = row(DEFINITION).now(false, copies_since(written, here));
        row.definition.max_id
    };
    super::rules::needs::needs(Guard::CopySkips, || {
        let (original, largest) = (next(None, None), DEFINITION.max_step);
        [next(None, Some(7)), next(Some(6), Some(7))].iter().all(|copy| *copy >= original + 2 * largest)
    });
    assert_eq!([next(Some(7), Some(7)), next(Some(7), None)], [500, 500], "once, and never without a copy");
}

/// The first change after a promotion skips ids by the row's former properties, and writes no period of the past.
#[test]
fn the_first_change_after_a_promotion_loses_no_skip() {
    let kept = |day, max_id, written| {
        let period = Period { day, ..Period::FOREVER };
        let now = TagRow { period, ..row(DEFINITION) }.now(false, 1);
        now.kept_above(max_id, written)
    };
    let skipped = row(DEFINITION).now(false, 1).definition.max_id;
    assert_eq!(kept(0, 500, None), (skipped, None));
    assert_eq!(kept(0, i64::MAX, None), (i64::MAX, None));
    assert_eq!(kept(9, i64::MAX, Some(8)), (skipped, Some(9)));
    assert_eq!(kept(9, 3, Some(10)), (3, Some(10)));
}

/// A restored row raises the row that it meets, in the later of both periods.
#[cfg(feature = "guards")]
#[test]
fn a_restored_row_raises_the_row_that_it_meets() {
    use snowflake_ids_core::guard::Guard;
    super::rules::needs::needs(Guard::RestoreRaises, || {
        let met = |day, max_id, restored| {
            TagRow { period: Period { day, ..Period::FOREVER }, ..row(DEFINITION) }
                .restored_over(max_id, restored)
        };
        let reached = DEFINITION.max_id;
        met(0, reached + 7, None) == (reached + 7, None)
            && met(0, reached - 7, None) == (reached, None)
            && met(0, reached - 7, Some(9)) == (reached, None)
            && met(9, reached + 7, Some(9)) == (reached + 7, Some(9))
            && met(9, reached + 7, Some(8)) == (reached, Some(9))
            && met(9, reached + 7, None) == (reached, Some(9))
            && met(9, 3, Some(10)) == (3, Some(10))
    });
}

#[test]
fn a_row_without_ids_says_so() {
    let used_up = Definition { max_value: 500, ..DEFINITION };
    assert_eq!(row(used_up).reserve(&demand(), NEXT), Outcome::Exhausted(Exhausted { max_value: 500 }));
    let by_the_high_water_mark = Demand { high_water_mark: Some((0, 600)), ..demand() };
    assert_eq!(
        row(Definition { max_value: 600, ..DEFINITION }).reserve(&by_the_high_water_mark, NEXT),
        Outcome::Exhausted(Exhausted { max_value: 600 })
    );
}

fn set_back(received: i64, max_id: i64, later: bool) -> Outcome {
    Outcome::Unfit(Unfit::SetBack { received, max_id, later })
}

#[test]
fn a_row_that_was_set_back_is_refused() {
    let received = |id| Demand { received: Some((0, id)), ..demand() };
    assert_eq!(row(DEFINITION).reserve(&received(501), NEXT), set_back(501, 500, false));
    assert_eq!(reserved(&row(DEFINITION), &received(500)).supply.range.first, 501);
    let anew = row(Definition { max_id: 0, ..DEFINITION });
    assert_eq!(
        anew.reserve(&received(1), NEXT),
        set_back(1, 0, false),
        "a row that was made anew has been set back, too"
    );
}

/// If the tag were created again, other servers would get the received ids again.
#[test]
fn a_tag_that_was_dropped_is_not_made_for_who_has_received_ids_of_it() {
    assert_eq!(demand().unfit_to_create(), None);
    let received = Demand { received: Some((0, 501)), ..demand() };
    assert_eq!(received.unfit_to_create(), Some(Unfit::Dropped { received: 501 }));
    let hint = Unfit::Dropped { received: 501 }.hint("it's");
    assert!(hint.contains("segment_create('it''s'"), "{hint}");
    assert!(hint.contains("DELETE FROM snowflake_ids.received WHERE tag = 'it''s'"), "{hint}");
}

#[test]
fn a_new_day_is_not_behind_what_was_received_the_day_before() {
    let received =
        |day, id| of_today(DEFINITION).reserve(&Demand { received: Some((day, id)), ..demand() }, NEXT);
    assert!(matches!(received(19_999, 9_000), Outcome::Reserved(_)));
    assert_eq!(received(20_000, 9_000), set_back(9_000, 500, false));
    assert_eq!(received(20_001, 1), set_back(1, 500, true), "it is a day behind");
}

/// Received numbers would repeat, because a column stores numbers of a day like numbers without a day.
#[test]
fn a_tag_that_becomes_dated_or_undated_is_refused() {
    let received = |day, id| Demand { received: Some((day, id)), ..demand() };
    for id in [0, 500, 9_000] {
        assert_eq!(
            row(DEFINITION).reserve(&received(20_000, id), NEXT),
            Outcome::Unfit(Unfit::Redated { dated: false })
        );
        assert_eq!(
            of_today(DEFINITION).reserve(&received(0, id), NEXT),
            Outcome::Unfit(Unfit::Redated { dated: true })
        );
    }
    let hint = Unfit::Redated { dated: true }.hint("it's");
    assert!(hint.contains("DELETE FROM snowflake_ids.received WHERE tag = 'it''s'"), "{hint}");
}

const DAY: i64 = 86_400_000_000;
/// An instant within [`TODAY`].
const NOW: UnixMicros = UnixMicros(20_000 * DAY + DAY / 2);

/// If the row's day is far from the asking server's clock, the row stays unchanged, so that ids continue once the clocks are right.
#[test]
fn a_period_that_is_far_from_the_servers_clock_is_not_begun() {
    let at =
        |days: i64| Some(UnixMicros::of_day(20_000).plus(Duration::from_hours(24 * days.cast_unsigned())));
    let asked = |row: TagRow, clock| row.reserve(&Demand { clock, ..demand() }, NEXT);
    let early = Some(UnixMicros(UnixMicros::of_day(20_000).0 - 2 * DAY));
    for (clock, is_far) in [(early, true), (at(0), false), (at(1), false), (at(5_000), true), (None, false)] {
        let unfit =
            matches!(asked(of_today(DEFINITION), clock), Outcome::Unfit(Unfit::Clock { day: 20_000, .. }));
        assert_eq!(unfit, is_far, "{clock:?}");
        assert!(matches!(asked(row(DEFINITION), clock), Outcome::Reserved(_)), "it is not dated");
    }
    let hint = Unfit::Clock { day: 20_000, clock: NOW }.hint("it's");
    assert!(hint.contains("segment_set('it''s', id, true)"), "{hint}");
}

/// A response would change a dated tag to undated, or the reverse.
#[test]
fn an_answer_that_changes_datedness_is_not_believed() {
    let check = |row: TagRow, received| {
        let format = if row.period == Period::FOREVER { "{n}" } else { "{YYYY}{MM}{DD}-{n}" };
        let reserved = reserved(&TagRow { format: format.into(), ..row }, &demand());
        reserved.check(&Demand { received, ..demand() }, NOW, NOW)
    };
    assert_eq!(check(row(DEFINITION), None), Ok(()));
    assert_eq!(check(row(DEFINITION), Some((0, 500))), Ok(()));
    assert_eq!(check(of_today(DEFINITION), None), Ok(()));
    assert_eq!(check(of_today(DEFINITION), Some((19_999, 9_000))), Ok(()), "another day");
    assert!(check(of_today(DEFINITION), Some((20_000, 501))).is_err(), "received before");
    assert!(check(row(DEFINITION), Some((0, 501))).is_err(), "received before");
    // The check fails for any earlier id, because numbers begin anew when a tag becomes dated or undated.
    assert!(check(of_today(DEFINITION), Some((0, 10))).is_err());
    assert!(check(row(DEFINITION), Some((20_000, 10))).is_err());
}

#[test]
fn an_answer_of_another_day_than_about_now_is_not_believed() {
    let check = |day: i32, length: i64, now: i64| {
        let until = UnixMicros((i64::from(day) + length).saturating_mul(DAY));
        let dated =
            TagRow { period: Period { day, until }, format: "{YYYY}{MM}{DD}-{n}".into(), ..row(DEFINITION) };
        let now = UnixMicros(now * DAY + DAY / 2);
        // The registry's own clock does not matter.
        reserved(&dated, &demand()).check(&demand(), UnixMicros(0), now).is_ok()
    };
    assert!(check(20_000, 1, 20_000));
    assert!(check(20_000, 1, 19_999) && check(20_000, 1, 20_001), "clocks differ");
    assert!(!check(20_000, 1, 19_998) && !check(20_000, 1, 20_002));
    assert!(check(19_900, 366, 20_000), "a year");
    assert!(!check(19_000, 3_660, 20_000), "ten");
    assert!(!check(i32::MAX, 1, 20_000) && !check(i32::MIN, 1, 20_000) && !check(0, i64::MAX, 20_000));
}

#[test]
fn an_answer_with_a_format_that_none_could_be_is_not_believed() {
    let check = |format: &str| {
        reserved(&TagRow { format: format.into(), ..row(DEFINITION) }, &demand())
            .check(&demand(), NOW, NOW)
            .is_ok()
    };
    assert!(check("{n}") && check("INV-{n:6}") && check("gr\u{fc}n {n}"));
    for format in
        ["", "{id}", "{YYYY}-{n}", "{n}{n}", "a\u{7}{n}", "a\n{n}", &format!("{}{{n}}", "x".repeat(64))]
    {
        assert!(!check(format), "{format:?}");
    }
}

/// A lying server cannot use up everybody's numbers by claiming that it has handed them out.
#[test]
fn a_high_water_mark_of_another_server_is_within_two_segments_of_the_row() {
    let admit = |row: &TagRow, high_water_mark, here| {
        row.admit(Demand { high_water_mark, ..demand() }, here).map(|demand| demand.high_water_mark)
    };
    let row = row(DEFINITION);
    assert_eq!(admit(&row, Some((0, 2_500)), None), Ok(Some((0, 2_500))));
    let too_far = |high_water_mark| Err(Unfit::HighWaterMark { high_water_mark, max_id: 500 });
    assert_eq!(admit(&row, Some((0, 2_501)), None), too_far(2_501));
    assert_eq!(admit(&row, Some((0, i64::MAX)), None), too_far(i64::MAX));
    // A mark known here counts, however far it is and whatever other servers claim.
    assert_eq!(admit(&row, None, Some((0, 9_000))), Ok(Some((0, 9_000))));
    assert_eq!(admit(&row, Some((0, 600)), Some((0, 9_000))), Ok(Some((0, 9_000))));
    assert_eq!(admit(&row, Some((0, 9_100)), Some((0, 9_000))), Ok(Some((0, 9_100))));
    assert_eq!(
        admit(&row, Some((i32::MAX, 0)), Some((0, 9_000))),
        Ok(Some((0, 9_000))),
        "a later day hides nothing"
    );
    let begins_later = TagRow { definition: Definition { start: 1_000_000, ..DEFINITION }, ..row };
    assert_eq!(admit(&begins_later, Some((0, 1_001_999)), None), Ok(Some((0, 1_001_999))));
    assert!(admit(&begins_later, Some((0, 1_002_000)), None).is_err());
    let hint = Unfit::HighWaterMark { high_water_mark: 9_000, max_id: 500 }.hint("t");
    assert!(hint.contains("snowflake_ids.segment_raise('t', 9000)"), "{hint}");
}

#[test]
fn what_was_left_over_comes_first() {
    let taken_up = reserved(&row(DEFINITION), &Demand { saved_range: Some(saved_range()), ..demand() });
    assert_eq!(taken_up.supply.range, range(401, 100));
    assert_eq!(taken_up.version, NEXT, "so that they are taken up once");
    assert_eq!(taken_up.reached(), (0, 500));
    let again = TagRow { version: taken_up.version, ..row(DEFINITION) };
    let fresh = reserved(&again, &Demand { saved_range: Some(saved_range()), ..demand() });
    assert_eq!(fresh.supply.range, range(501, 100));
}

#[test]
fn what_was_left_over_is_given_up_when_the_row_has_changed() {
    let saved_ranges = [
        SavedRange { version: 6, ..saved_range() },
        SavedRange { day: Some(20_000), ..saved_range() },
        SavedRange { range: range(402, 100), ..saved_range() },
        SavedRange { range: range(400, 100), ..saved_range() },
        SavedRange { range: range(500, 0), ..saved_range() },
        SavedRange { range: Range { first: 302, count: 100, increment: 2 }, ..saved_range() },
    ];
    for saved_range in saved_ranges {
        let fresh =
            reserved(&row(DEFINITION), &Demand { saved_range: Some(saved_range.clone()), ..demand() });
        assert_eq!(fresh.supply.range, range(501, 100), "{saved_range:?}");
    }
    let other_remainder = Definition { increment: 2, remainder: 1, max_id: 500, ..DEFINITION };
    let even = Range { first: 402, count: 50, increment: 2 };
    let saved_range = SavedRange { range: even, ..saved_range() };
    let fresh = reserved(&row(other_remainder), &Demand { saved_range: Some(saved_range), ..demand() });
    assert_eq!(fresh.supply.range.first, 501);
}

/// A saved range may include ids that a rolled-back transaction handed out.
#[test]
fn what_was_left_over_is_given_up_where_the_high_water_mark_is_not_below_it() {
    let high_water_mark =
        |id| Demand { saved_range: Some(saved_range()), high_water_mark: Some((0, id)), ..demand() };
    assert_eq!(reserved(&row(DEFINITION), &high_water_mark(400)).supply.range.first, 401);
    assert_eq!(
        reserved(&row(DEFINITION), &high_water_mark(401)).supply.range.first,
        501,
        "it may be one of those"
    );
    assert_eq!(reserved(&row(DEFINITION), &high_water_mark(501)).supply.range.first, 502);
    let of_yesterday =
        Demand { saved_range: Some(saved_range()), high_water_mark: Some((19_999, 450)), ..demand() };
    assert_eq!(reserved(&row(DEFINITION), &of_yesterday).supply.range.first, 401);
    let behind = row(Definition { max_id: 400, ..DEFINITION });
    assert_eq!(reserved(&behind, &high_water_mark(500)).supply.range.first, 501);
}

#[test]
fn what_was_left_over_of_a_day_is_of_that_day() {
    let saved_range = SavedRange { day: Some(20_000), ..saved_range() };
    let first = |row: &TagRow, saved_range: &SavedRange| {
        reserved(row, &Demand { saved_range: Some(saved_range.clone()), ..demand() }).supply.range.first
    };
    assert_eq!(first(&of_today(DEFINITION), &saved_range), 401);
    let tomorrow = Period { day: 20_001, ..TODAY };
    assert_eq!(first(&TagRow { period: tomorrow, ..row(DEFINITION) }, &saved_range), 501);
    assert_eq!(first(&row(DEFINITION), &saved_range), 501, "the tag is not dated any more");
}

#[test]
fn a_row_of_another_share_is_refused() {
    let share = Share { index: 1, of: 2 };
    let with = |increment, remainder| {
        row(Definition { increment, remainder, ..DEFINITION })
            .reserve(&Demand { share: Some(share), ..demand() }, NEXT)
    };
    for (increment, remainder) in [(1, 0), (3, 1), (2, 0), (4, 2)] {
        assert_eq!(
            with(increment, remainder),
            Outcome::Unfit(Unfit::Share { share, increment, remainder }),
            "{increment} {remainder}"
        );
    }
    for (increment, remainder) in [(2, 1), (4, 3), (6, 5)] {
        assert!(matches!(with(increment, remainder), Outcome::Reserved(_)), "{increment} {remainder}");
    }
}

/// An increment below 1 counts as 1.
#[test]
fn no_share_holds_without_an_increment() {
    for increment in [0, -2, i64::MIN] {
        assert!(!Share { index: 0, of: 2 }.holds(increment, 0), "{increment}");
    }
}

#[test]
fn one_id_may_be_reserved_above_what_was_issued() {
    let row = of_today(Definition { increment: 10, remainder: 3, ..DEFINITION });
    assert_eq!(row.one_after(None), Ok(Range { first: 503, count: 1, increment: 10 }));
    assert_eq!(row.one_after(Some((20_000, 523))).unwrap().first, 533);
    assert_eq!(row.one_after(Some((19_999, 523))).unwrap().first, 503);
    let last = TagRow { definition: Definition { max_value: 503, ..row.definition }, ..row };
    assert_eq!(last.one_after(Some((20_000, 503))), Err(Exhausted { max_value: 503 }));
}

prop_compose! {
    /// Valid definitions with few ids left, so that tests reach the definitions' limits.
    fn definition()(increment in 1_i64..12, any in 0_i64..12, max_id in -1_i64..200, max_step in 1_i64..40, step in 1_i64..40) -> Definition {
        Definition { max_id, start: 0, step: step.min(max_step), max_step, increment, remainder: any % increment, max_value: 210 }
    }
}

prop_compose! {
    fn rows()(definition in definition(), day in 0_i32..3, version in 0_i64..3) -> TagRow {
        let period = if day == 0 { Period::FOREVER } else { Period { day, until: UnixMicros(1) } };
        TagRow { definition, period, format: String::new(), version, tag_generation: 0 }
    }
}

fn reached() -> impl Strategy<Value = Option<(i32, i64)>> {
    prop::option::of((0_i32..3, 0_i64..210))
}

prop_compose! {
    fn paces()(step in 0_u32..50, multiplier in 0_u32..9) -> Pace {
        Pace { step, multiplier }
    }
}

prop_compose! {
    fn demands()(
        pace in paces(),
        lasted in prop::option::of(0_u64..40),
        waited_lately: bool,
        prefetch in 0_u8..=100,
        high_water_mark in reached(),
        received in reached(),
        share in prop::option::of((0_u32..3, 2_u32..4)),
        most in prop::option::of(any::<u32>()),
    ) -> Demand {
        let share = share.map(|(index, of)| Share { index: index % of, of });
        let lasted = lasted.map(Duration::from_secs);
        Demand { pace, lasted, waited_lately, prefetch, high_water_mark, received, share, most, target: Duration::from_secs(10), saved_range: None, clock: None }
    }
}

fn ids(range: Range) -> impl Iterator<Item = i64> {
    (0..range.count).map(move |offset| range.at(offset))
}

proptest! {
    /// Reserved ids are above all ids known to be handed out, are within the limits, and have the row's increment and remainder.
    #[test]
    fn what_is_reserved_was_never_reserved_before(row in rows(), demand in demands()) {
        let Outcome::Reserved(reserved) = row.reserve(&demand, NEXT) else { return Ok(()) };
        let Reserved { supply, left, version, .. } = reserved;
        let definition = row.definition;
        prop_assert!(supply.range.first > definition.max_id);
        for (day, id) in [demand.high_water_mark, demand.received].into_iter().flatten() {
            prop_assert!(day != row.period.day || supply.range.first > id, "{id} is handed out");
        }
        prop_assert!(supply.range.count >= 1 && i64::from(supply.range.count) <= definition.max_step);
        prop_assert!(supply.prefetch_at <= supply.range.count);
        prop_assert!(ids(supply.range).all(|id| id % definition.increment == definition.remainder && id <= definition.max_value));
        prop_assert_eq!(left, definition.left_after(supply.range.last()));
        prop_assert_eq!((supply.period, version), (row.period, NEXT));
        if let Some(share) = demand.share {
            prop_assert!(ids(supply.range).all(|id| id % i64::from(share.of) == i64::from(share.index)));
        }
    }

    /// A row is used exactly if two conditions hold: the row fits the share, and is not behind the received ids.
    #[test]
    fn a_row_is_unfit_for_a_reason(row in rows(), demand in demands()) {
        let Definition { max_id, increment, remainder, .. } = row.definition;
        let foreign = demand.share.is_some_and(|share| !share.holds(increment, remainder));
        let behind = demand.received.is_some_and(|(day, id)| match (day, row.period.dated()) {
            (0, None) => id > max_id,
            (received, Some(day)) => (received, id) > (day, max_id),
            (_, None) => false,
        });
        let redated = demand.received.is_some_and(|(day, _)| (day == 0) != (row.period.dated().is_none()));
        match row.reserve(&demand, NEXT) {
            Outcome::Unfit(Unfit::Share { .. }) => prop_assert!(foreign),
            Outcome::Unfit(Unfit::Redated { .. }) => prop_assert!(redated && !foreign),
            Outcome::Unfit(Unfit::SetBack { .. }) => prop_assert!(behind && !foreign && !redated),
            _ => prop_assert!(!foreign && !behind && !redated),
        }
    }

    /// A saved range is used as a whole or not at all.
    #[test]
    fn what_was_left_over_comes_whole_or_never(row in rows(), demand in demands(), version in 0_i64..3, count in 0_u32..20) {
        let Definition { max_id, increment, .. } = row.definition;
        let first = max_id - increment * (i64::from(count) - 1);
        let range = Range { first, count, increment };
        let saved_range = SavedRange { version, day: row.period.dated(), range };
        let with = Demand { saved_range: Some(saved_range), ..demand.clone() };
        match (row.reserve(&with, NEXT), row.reserve(&demand, NEXT)) {
            (Outcome::Reserved(with), _) if with.supply.range.first <= max_id => {
                prop_assert_eq!(with.supply.range, range);
                prop_assert_eq!(version, row.version);
                prop_assert!(ids(range).all(|id| id >= 0 && id % increment == row.definition.remainder));
            }
            (with, without) => prop_assert_eq!(with, without),
        }
    }

    /// Consecutive reservations by any servers repeat no id.
    #[test]
    fn one_after_the_other_no_id_comes_twice(mut row in rows(), demands in prop::collection::vec(demands(), 1..8)) {
        let mut last = row.definition.max_id;
        for demand in demands {
            if let Outcome::Reserved(reserved) = row.reserve(&demand, NEXT) {
                prop_assert!(reserved.supply.range.first > last);
                last = reserved.supply.range.last();
                row.definition.max_id = last;
                row.version = reserved.version;
            }
        }
    }

    /// Registries with different shares never give the same id, whatever increments their rows have.
    #[test]
    fn two_shares_have_no_id_in_common(of in 2_u32..5, index in 0_u32..5, other in 0_u32..5, one in definition(), two in definition()) {
        let (index, other) = (index % of, other % of);
        prop_assume!(index != other);
        let all = |index, definition: Definition| {
            let of = i64::from(of);
            let definition = Definition { increment: definition.increment * of, remainder: definition.remainder * of + i64::from(index), ..definition };
            let holds = Share { index, of: u32::try_from(of).unwrap() }.holds(definition.increment, definition.remainder);
            assert!(holds, "{definition:?}");
            definition.reserve(u32::MAX).map(|range| ids(range).collect::<Vec<_>>()).unwrap_or_default()
        };
        let two = all(other, two);
        prop_assert!(all(index, one).iter().all(|id| !two.contains(id)));
    }

    /// A share accepts terms exactly if each of their ids has the share's remainder.
    #[test]
    fn a_share_holds_what_leaves_its_remainder(of in 2_u32..6, index in 0_u32..6, increment in 1_i64..40, any in 0_i64..40) {
        let remainder = any % increment;
        let mine = (0..i64::from(of)).all(|turn| (remainder + turn * increment) % i64::from(of) == i64::from(index));
        prop_assert_eq!(Share { index, of }.holds(increment, remainder), mine);
    }

    /// No row and no demand make a calculation overflow; reserved ids are within the limits.
    #[test]
    fn any_row_and_any_demand_are_safe(
        numbers in any::<[i64; 8]>(),
        until: i64,
        pace: (u32, u32),
        days: [i32; 4],
        reached: [i64; 2],
        share: (u32, u32),
        left: (i64, i64, u32, i64),
    ) {
        let [max_id, start, step, max_step, increment, remainder, max_value, version] = numbers;
        let definition = Definition { max_id, start, step, max_step, increment, remainder, max_value };
        let period = Period { day: days[0], until: UnixMicros(until) };
        let row = TagRow { definition, period, format: String::new(), version, tag_generation: 0 };
        let demand = Demand {
            pace: Pace { step: pace.0, multiplier: pace.1 },
            lasted: Some(Duration::MAX),
            high_water_mark: Some((days[1], reached[0])),
            received: Some((days[2], reached[1])),
            share: Some(Share { index: share.0, of: share.1 }),
            saved_range: Some(SavedRange {
                version: left.0,
                day: Some(days[3]),
                range: Range { first: left.1, count: left.2, increment: left.3 },
            }),
            ..demand()
        };
        for demand in [demand.clone(), Demand { share: None, received: None, ..demand }] {
            if let Outcome::Reserved(reserved) = row.reserve(&demand, NEXT) {
                let Range { first, count, .. } = reserved.supply.range;
                prop_assert!(count >= 1 && first > max_id && first >= start && reserved.supply.range.last() <= max_value);
            }
            prop_assert!(row.one_after(demand.high_water_mark).is_err() || max_value > max_id);
        }
    }
}
