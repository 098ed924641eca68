//! The rate of a tag's last hour.

use snowflake_ids_core::tag::rate::{HALF_HOUR, Rate};

/// Notes the number of ids after each half hour, and returns the rate that is then known.
fn rates(notes: &[(u32, u64)]) -> Vec<Option<u64>> {
    let rate = Rate::default();
    let sampled = notes.iter().map(|(half_hours, issued)| {
        rate.note(*issued, HALF_HOUR * *half_hours);
        rate.in_half_hour()
    });
    sampled.collect()
}

#[test]
fn a_rate_is_known_after_an_hour_and_a_load_does_not_count() {
    let loaded = [(1, 0), (2, 1_000_000), (3, 1_000_000), (4, 1_000_100), (5, 1_000_300)];
    assert_eq!(rates(&loaded), [None, None, Some(0), Some(0), Some(100)]);
}

#[test]
fn a_late_note_counts_as_half_an_hour() {
    assert_eq!(rates(&[(1, 0), (2, 300), (6, 1_500)]), [None, None, Some(300)]);
}

#[test]
fn a_slot_with_another_tag_has_no_rate() {
    let rate = Rate::default();
    (1..4).for_each(|half_hour: u32| rate.note(u64::from(half_hour) * 10, HALF_HOUR * half_hour));
    assert_eq!(rate.in_half_hour(), Some(10));
    assert!(!rate.is_due(HALF_HOUR * 7 / 2) && rate.is_due(HALF_HOUR * 4));
    rate.clear();
    assert_eq!((rate.in_half_hour(), rate.is_due(HALF_HOUR * 3)), (None, true));
}
