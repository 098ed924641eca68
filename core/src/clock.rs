//! Wall time: the only form in which it enters the core.

use jiff::Timestamp;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use std::fmt;
use std::time::Duration;

/// Wall time that the caller supplies. The core asks for it at the moment it needs it and never reads a
/// clock itself, so that tests, simulations and the model checker decide what time it is.
pub trait Clock {
    /// The wall clock now.
    fn now(&self) -> UnixMicros;
}

/// A reading taken beforehand is a clock that stands still.
impl Clock for UnixMicros {
    fn now(&self) -> UnixMicros {
        *self
    }
}

/// An instant: microseconds since 1970-01-01 00:00 UTC, the resolution of Postgres's `timestamptz`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UnixMicros(pub i64);

/// A Gregorian year on average, in microseconds.
pub const YEAR_MICROS: i64 = 31_556_952_000_000;

impl UnixMicros {
    /// The instant of a count of milliseconds since 1970; None beyond the range of 64-bit microseconds.
    pub const fn from_millis(millis: i64) -> Option<Self> {
        match millis.checked_mul(1_000) {
            Some(micros) => Some(Self(micros)),
            None => None,
        }
    }

    /// The beginning of a day, which is counted from 1970-01-01, in UTC.
    pub fn of_day(day: i32) -> Self {
        Self(i64::from(day).saturating_mul(86_400_000_000))
    }

    /// The day that it is of in UTC, counted from 1970-01-01.
    pub fn day(self) -> i32 {
        i32::try_from(self.0.div_euclid(86_400_000_000)).unwrap_or(i32::MAX)
    }

    /// The instant so many microseconds later; the last one there is where that is beyond it.
    #[must_use]
    pub const fn plus_micros(self, micros: u64) -> Self {
        Self(self.0.saturating_add_unsigned(micros))
    }

    /// The instant so much later; the last one there is where that is beyond it.
    #[must_use]
    pub fn plus(self, time: Duration) -> Self {
        self.plus_micros(micros(time))
    }

    /// The time since an earlier instant; zero where it is not earlier.
    pub const fn since(self, earlier: Self) -> Duration {
        let passed = self.0.saturating_sub(earlier.0);
        Duration::from_micros(if passed > 0 { passed.unsigned_abs() } else { 0 })
    }
}

/// ISO 8601 in UTC; the year alone where it has more than four digits.
impl fmt::Display for UnixMicros {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match Timestamp::from_microsecond(self.0) {
            Ok(at) => write!(f, "{at}"),
            Err(_) => write!(f, "about the year {}", 1970 + self.0 / YEAR_MICROS),
        }
    }
}

/// ISO 8601; microseconds since 1970 where no calendar reaches.
impl Serialize for UnixMicros {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match Timestamp::from_microsecond(self.0) {
            Ok(at) => serializer.collect_str(&at),
            Err(_) => serializer.collect_str(&self.0),
        }
    }
}

impl<'de> Deserialize<'de> for UnixMicros {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = <std::borrow::Cow<'de, str>>::deserialize(deserializer)?;
        if let Ok(micros) = text.parse() {
            return Ok(Self(micros));
        }
        let at: Timestamp = text.parse().map_err(de::Error::custom)?;
        Ok(Self(at.as_microsecond()))
    }
}

/// A length of time in microseconds; the longest there is where it is longer.
pub fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

/// A length of time for people: the largest units that say it without a page of digits.
pub fn human(time: Duration) -> String {
    #[allow(clippy::cast_precision_loss, reason = "exact below 2^53")]
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
    // Two of a unit before it is used, so that 90 s are 90 s and not 1.5 min.
    match UNITS.iter().find(|(size, _)| micros >= 2.0 * size) {
        Some((size, unit)) => {
            let text = format!("{:.3}", micros / size);
            let text = text.trim_end_matches('0').trim_end_matches('.');
            format!("{text} {unit}")
        }
        None => format!("{} ms", micros / 1e3),
    }
}
