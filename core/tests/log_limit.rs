//! Repeated messages in the log are limited.

use snowflake_ids_core::process::log_limit::{AGAIN, LogLimit};
use std::time::Duration;

const fn at(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

#[test]
fn the_same_is_said_once_a_minute_with_how_often_it_came() {
    let mut logged = LogLimit::default();
    let mut said = Vec::new();
    for second in 0..150 {
        said.extend(logged.say(&"down", at(second)).map(|more| (second, more)));
    }
    assert_eq!(said, [(0, 0), (60, 59), (120, 59)]);
}

#[test]
fn something_else_is_said_at_once() {
    let mut logged = LogLimit::default();
    assert_eq!(logged.say(&(1, "down"), at(5)), Some(0));
    assert_eq!(logged.say(&(1, "locked"), at(5)), Some(0));
    assert_eq!(logged.say(&(2, "down"), at(5)), Some(0));
    assert_eq!(logged.say(&(1, "down"), at(6)), None, "it changed to and fro");
}

#[test]
fn however_many_different_things_there_are_few_are_said() {
    let mut logged = LogLimit::default();
    let said = (0..100_000).filter(|number| logged.say(number, at(1)).is_some()).count();
    assert_eq!(said, 64);
    let later = at(1) + AGAIN;
    assert_eq!(logged.say(&"another", later), Some(0), "those are forgotten by now");
    assert_eq!(logged.say(&5, later), Some(0), "what was in its place is said as if for the first time");
}
