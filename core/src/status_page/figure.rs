//! Numbers, lengths of time and instants as people read them.

use crate::clock::{UnixMicros, YEAR_MICROS, micros};
use jiff::Timestamp;
use std::time::Duration;

/// A count, with its digits in threes.
pub fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() * 4 / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A count of a kind of things, such as `1 tag` or `2 tags`.
pub fn counted(number: u64, one: &str) -> String {
    let ending = if number == 1 { "" } else { "s" };
    format!("{} {one}{ending}", count(number))
}

/// A rate: one digit behind the point where there is one before it.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a rate for people")]
pub fn rate(number: f64) -> String {
    if number > 0.0 && number < 10.0 { format!("{number:.1}") } else { count(number.max(0.0).round() as u64) }
}

/// A length of time, to two or three digits.
pub fn length(time: Duration) -> String {
    #[allow(clippy::cast_precision_loss, reason = "three digits are shown")]
    const UNITS: [(f64, &str); 6] = [
        (YEAR_MICROS as f64, "years"),
        (86_400e6, "days"),
        (3_600e6, "h"),
        (60e6, "min"),
        (1e6, "s"),
        (1e3, "ms"),
    ];
    #[allow(clippy::cast_precision_loss, reason = "three digits are shown")]
    let micros = micros(time) as f64;
    let (size, unit) = UNITS.into_iter().find(|(size, _)| micros >= 2.0 * size).unwrap_or((1e3, "ms"));
    let number = micros / size;
    let digits = usize::from(number < 100.0 && micros > 0.0);
    let text = format!("{number:.digits$}");
    format!("{} {unit}", text.strip_suffix(".0").unwrap_or(&text))
}

/// An instant, to a second; its year alone where it has more than four digits.
pub fn instant(at: UnixMicros) -> String {
    match Timestamp::from_microsecond(at.0) {
        Ok(at) => at.strftime("%Y-%m-%d %H:%M:%S UTC").to_string(),
        Err(_) => at.to_string(),
    }
}

/// The time of day of an instant.
pub fn time_of_day(at: UnixMicros) -> String {
    Timestamp::from_microsecond(at.0).map(|at| at.strftime("%H:%M").to_string()).unwrap_or_default()
}

/// A share, 0 to 1, in percent.
pub fn percent(share: f64) -> String {
    format!("{:.0}%", share.clamp(0.0, 1.0) * 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_come_in_threes() {
        assert_eq!([0, 999, 1_000, 1_234_567].map(count), ["0", "999", "1,000", "1,234,567"]);
        assert_eq!([0.0, 0.26, 9.9, 10.4, 12_345.6].map(rate), ["0", "0.3", "9.9", "10", "12,346"]);
        assert_eq!([(1, "tag"), (2, "tag")].map(|(number, of)| counted(number, of)), ["1 tag", "2 tags"]);
    }

    #[test]
    fn lengths_have_two_or_three_digits() {
        let micros = [0, 350, 1_500_000, 90_000_000, 7_200_000_000, 86_000_000_000];
        let said = micros.map(|micros| length(Duration::from_micros(micros)));
        assert_eq!(said, ["0 ms", "0.3 ms", "1500 ms", "90 s", "2 h", "23.9 h"]);
    }

    #[test]
    fn instants_are_shown_to_a_second() {
        assert_eq!(instant(UnixMicros(1_577_836_800_999_999)), "2020-01-01 00:00:00 UTC");
        assert_eq!(instant(UnixMicros(i64::MAX)), "about the year 294247");
        assert_eq!(time_of_day(UnixMicros(1_577_836_860_000_000)), "00:01");
    }
}
