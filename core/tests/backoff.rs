//! Pauses between attempts.

use snowflake_ids_core::backoff::{Backoff, Retries};
use std::time::Duration;

#[test]
fn pauses_double_up_to_the_longest() {
    let backoff = Backoff::new(Duration::from_secs(1), Duration::from_mins(1));
    let pauses = [0, 1, 2, 6, 7, 40, u32::MAX].map(|failures| backoff.after(failures).as_secs());
    assert_eq!(pauses, [0, 1, 2, 32, 60, 60, 60]);
    let mut last = None;
    for failures in 1..10 {
        last = Some(backoff.next(last));
        assert_eq!(last, Some(backoff.after(failures)));
    }
}

#[test]
fn what_is_in_trouble_is_tried_after_growing_pauses_until_it_is_not() {
    let mut retries = Retries::new(Backoff::new(Duration::from_secs(1), Duration::from_secs(4)));
    let mut tried = |in_trouble: &[u32], now| {
        retries.due(&in_trouble.iter().copied().collect(), Duration::from_secs(now))
    };
    let seconds = (0..16).filter(|now| !tried(&[1], *now).is_empty()).collect::<Vec<_>>();
    assert_eq!(seconds, [1, 3, 7, 11, 15]);
    assert_eq!(tried(&[1, 2], 16), [] as [u32; 0]);
    assert_eq!(tried(&[2], 17), [2]);
    assert_eq!(tried(&[1], 18), [] as [u32; 0], "the first pause again");
    assert_eq!(tried(&[1], 19), [1]);
}
