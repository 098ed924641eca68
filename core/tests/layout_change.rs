//! The instant from which ids of a new layout are above all old ids, compared with a search that tries each instant.

use proptest::prelude::*;
use snowflake_ids_core::ids::layout::change::{ChangeError, LayoutChange, Past, check, first_above};
use snowflake_ids_core::{Explain, Field, Kind, Layout, NodeBits, Order, Position, Tick, UnixMicros, Widths};
use std::time::Duration;

const NOW: UnixMicros = UnixMicros(1_770_000_000_000_000);
const MINUTE: Duration = Duration::from_mins(1);

fn layout(text: &str) -> Layout {
    text.parse().unwrap()
}

fn past(layout: &Layout) -> Past {
    Past { high_water_mark: layout.position_after(NOW.plus(MINUTE)), ahead: MINUTE }
}

fn of(old: &str, new: &str) -> LayoutChange {
    let [old, new] = [old, new].map(layout);
    check(&old, &new, past(&old), NOW)
}

#[test]
fn an_earlier_epoch_is_above_at_once_and_a_later_one_never_is() {
    let change = of("41/5/5/12 epoch=2020-01-01", "41/5/5/12 epoch=2015-01-01");
    assert_eq!((change.above_from, change.ready), (Some(NOW), true));
    // Old ids reach today's new ids in five years, minus the minute by which ids may be ahead.
    let years = change.old_until.unwrap().since(NOW).as_secs_f64() / 86_400.0 / 365.25;
    assert!((4.9..5.1).contains(&years), "{years}");
    assert!((58.0..59.0).contains(&change.years), "{change:?}");

    let change = of("41/5/5/12 epoch=2020-01-01", "41/5/5/12 epoch=2025-01-01");
    assert_eq!(change.above_from, None, "{change:?}");
    let error = change.allow(&layout("twitter"), &layout("discord")).unwrap_err();
    assert!(matches!(error, ChangeError::Never { .. }) && error.kind() == Kind::NotReady);
}

/// With one more bit below the ticks, ids grow twice as fast, whatever the epoch. The new ids are therefore above the old ids some
/// day.
#[test]
fn a_layout_that_grows_faster_overtakes() {
    let change = of("41/5/5/11 epoch=2020-01-01", "41/5/5/12 epoch=2025-01-01");
    let above_from = change.above_from.unwrap();
    let years = above_from.since(NOW).as_secs_f64() / 86_400.0 / 365.25;
    assert!((3.8..4.0).contains(&years), "{above_from}");
    assert!(!change.ready);
    let [old, new] = ["41/5/5/11", "41/5/5/12 epoch=2025-01-01"].map(layout);
    let error = change.allow(&old, &new).unwrap_err();
    assert!(error.detail().unwrap().contains(&above_from.to_string()), "{error:?}");
}

#[test]
fn from_javascripts_layout_all_others_of_its_epoch_are_above() {
    let change = of("javascript", "cosid");
    assert!(change.ready, "{change:?}");
    let change = of("cosid", "javascript");
    assert!(!change.ready && change.above_from.is_none(), "{change:?}");
    assert_eq!(change.old_until, None);
}

#[test]
fn the_same_layout_is_no_change() {
    let change = of("twitter", "twitter");
    assert!(change.ready && change.old_until == Some(UnixMicros(i64::MAX)));
}

#[test]
fn what_was_given_here_counts_however_far_it_is_ahead() {
    let [old, new] = ["41/5/5/12 epoch=2020-01-01", "41/5/5/12 epoch=2019-12-31"].map(layout);
    assert!(check(&old, &new, past(&old), NOW).ready);
    let ahead = NOW.plus(Duration::from_hours(48));
    let far = Past { high_water_mark: old.position_after(ahead), ..past(&old) };
    let change = check(&old, &new, far, NOW);
    let above_from = change.above_from.unwrap();
    assert!(!change.ready && above_from.since(NOW) > Duration::from_hours(23), "{change:?}");
    assert!(above_from.since(NOW) < Duration::from_hours(25), "{change:?}");
}

prop_compose! {
    /// Layouts small enough that a test can try all of their instants.
    fn small()(
        ticks in 2_u8..=7, worker_id in 0_u8..=3, sequence in 1_u8..=3, first in any::<bool>(),
        unit in prop::sample::select(&[1_000_u64, 2_000, 5_000, 10_000][..]), epoch in 0_i64..100,
    ) -> Layout {
        let order = if first { Order::SequenceFirst } else { Order::SequenceLast };
        let widths = Widths { ticks, datacenter: 0, worker_id, rollback: 0, sequence };
        Layout::new(widths, order, unit, UnixMicros(epoch * 1_000)).unwrap()
    }
}

/// The smallest and the largest id that a layout may give between two instants. None: the layout gives no id there.
fn bounds(layout: &Layout, from: UnixMicros, to: UnixMicros) -> Option<(u64, u64)> {
    let mut found: Option<(u64, u64)> = None;
    let nodes = layout.max(Field::Worker);
    let shift = if layout.order() == Order::SequenceFirst { 0 } else { layout.widths().sequence };
    for tick in 0..=layout.max(Field::Ticks) {
        let begins = layout.instant(Tick(tick));
        let ends = UnixMicros(begins.0 + layout.unit().cast_signed() - 1);
        if ends < from || begins > to {
            continue;
        }
        for sequence in 0..=layout.max(Field::Sequence) {
            for node in [0, nodes] {
                let id =
                    layout.id(Position(tick << layout.widths().sequence | sequence), NodeBits(node << shift));
                found = Some(found.map_or((id, id), |(low, high)| (low.min(id), high.max(id))));
            }
        }
    }
    found
}

const EVER: UnixMicros = UnixMicros(10_000_000);
const NEVER: UnixMicros = UnixMicros(-1);

/// Whether new ids from `at` on are above all old ids that may exist by then.
fn is_above(old: &Layout, new: &Layout, past: Past, at: UnixMicros) -> bool {
    let Some((least, _)) = bounds(new, at, EVER) else { return false };
    if at < new.epoch() {
        return false;
    }
    let given = bounds(old, NEVER, at.plus(past.ahead)).map(|(_, high)| high);
    let marked = past.high_water_mark.0.checked_sub(1).and_then(|last| {
        bounds(old, NEVER, old.instant_of(Position(last))).map(|_| {
            let bits = if old.order() == Order::SequenceFirst { 0 } else { old.widths().sequence };
            old.id(Position(last), NodeBits(old.max(Field::Worker) << bits))
        })
    });
    given.max(marked).is_none_or(|high| high < least)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]
    #[test]
    fn it_is_as_trying_each_instant_says(
        old in small(), new in small(), now in 0_i64..400, high_water_mark in 0_u64..200, ahead in 0_u64..30,
    ) {
        let now = UnixMicros(now * 1_000 + 500);
        let high_water_mark = Position(high_water_mark.min(old.end_position().0));
        let past = Past { high_water_mark, ahead: Duration::from_millis(ahead) };
        let change = check(&old, &new, past, now);
        prop_assume!(old != new);
        // `ready` is true exactly if new ids from now on are above the old ids.
        prop_assert_eq!(change.ready, is_above(&old, &new, past, now), "{:?}", change);
        let ticks: Vec<_> = (0..=new.max(Field::Ticks)).map(|tick| new.instant(Tick(tick))).filter(|at| *at > now).collect();
        let above: Vec<_> = ticks.iter().copied().filter(|at| is_above(&old, &new, past, *at)).collect();
        match change.above_from {
            Some(from) => {
                prop_assert!(is_above(&old, &new, past, from), "not at {from}: {change:?}");
                // Old ids until `old_until` stay below the new ids. Old ids of the next tick do not.
                let until = change.old_until.unwrap();
                let (least, _) = bounds(&new, from, EVER).unwrap();
                let high = |at: UnixMicros| bounds(&old, NEVER, at.plus(past.ahead)).map(|(_, high)| high);
                prop_assert!(high(until.min(EVER)).is_none_or(|high| high < least), "{until}");
                prop_assert!(until > EVER || high(UnixMicros(until.0 + 1)).is_some_and(|high| high >= least), "{until}");
            }
            None => prop_assert!(!above.iter().any(|at| {
                ticks.iter().filter(|later| *later >= at).all(|later| above.contains(later))
            }) || above.len() <= slack(&old, &new), "{above:?} of {ticks:?}"),
        }
        // A result later than `now` is at most `slack` ticks later than the first tick from which the new ids stay above.
        if let Some(from) = change.above_from.filter(|from| *from > now) {
            let for_good = ticks.iter().rposition(|at| !above.contains(at)).map_or(0, |last| last + 1);
            let said = ticks.iter().position(|at| *at == from).unwrap();
            prop_assert!(said <= for_good + slack(&old, &new), "{said} for {for_good}: {change:?}");
        }
    }

    /// The first position of the new layout whose ids are above all old ids below a high-water mark.
    #[test]
    fn a_term_begins_above_the_old_high_water_marks(old in small(), new in small(), high_water_mark in 0_u64..2_000) {
        let high_water_mark = Position(high_water_mark.min(old.end_position().0));
        let high = bounds_below(&old, high_water_mark);
        let least = |position: Position| new.id(position, NodeBits(0));
        match first_above(&old, &new, high_water_mark) {
            Some(first) => {
                prop_assert!(high.is_none_or(|high| least(first) > high));
                let before = new.tick_of(first).0.checked_sub(1).map(|tick| new.first_of(Tick(tick)));
                prop_assert!(before.is_none_or(|before| high.is_some_and(|high| least(before) <= high)));
            }
            None => prop_assert!(high.is_some_and(|high| least(new.first_of(Tick(new.max(Field::Ticks)))) <= high)),
        }
    }
}

fn bounds_below(layout: &Layout, high_water_mark: Position) -> Option<u64> {
    let shift = if layout.order() == Order::SequenceFirst { 0 } else { layout.widths().sequence };
    let node_bits = NodeBits(layout.max(Field::Worker) << shift);
    (0..high_water_mark.0).map(|position| layout.id(Position(position), node_bits)).max()
}

/// Ids grow by steps, one step per tick. If ids grew in straight lines instead, the result would differ by at most this many ticks
/// of the new layout.
fn slack(old: &Layout, new: &Layout) -> usize {
    let shift = |layout: &Layout| layout.widths().worker_id + layout.widths().sequence;
    let (old_step, new_step) = (1_i64 << shift(old), 1_i64 << shift(new));
    let [old_unit, new_unit] = [old.unit(), new.unit()].map(u64::cast_signed);
    let faster = new_step * old_unit - old_step * new_unit;
    if faster <= 0 {
        return usize::MAX / 2;
    }
    usize::try_from(old_step * (old_unit + new_unit) / faster).unwrap() + 2
}
