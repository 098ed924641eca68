//! Instants and durations of wall time.

use jiff::Timestamp;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use std::fmt;
use std::time::Duration;

/// The wall clock, supplied by the caller. The core reads no clock of the operating system, so that tests, simulations and
/// the model checker control the time.
pub trait Clock {
    /// Returns the present wall time.
    fn now(&self) -> UnixMicros;
}

/// A constant clock: every call returns the same instant.
impl Clock for UnixMicros {
    fn now(&self) -> UnixMicros {
        *self
    }
}

/// An instant: microseconds since 1970-01-01 00:00 UTC, the resolution of Postgres's `timestamptz`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UnixMicros(pub i64);

/// The mean length of a Gregorian year, in microseconds.
pub const YEAR_MICROS: i64 = 31_556_952_000_000;

impl UnixMicros {
    /// Returns the instant `millis` milliseconds after 1970-01-01 00:00 UTC. Returns None if 64-bit microseconds cannot
    /// represent the instant.
    pub const fn from_millis(millis: i64) -> Option<Self> {
        match millis.checked_mul(1_000) {
            Some(micros) => Some(Self(micros)),
            None => None,
        }
    }

    /// Returns the beginning of a day, in UTC. `day` counts from 1970-01-01.
    pub fn of_day(day: i32) -> Self {
        Self(i64::from(day).saturating_mul(86_400_000_000))
    }

    /// Returns the UTC day of this instant, counted from 1970-01-01.
    pub fn day(self) -> i32 {
        i32::try_from(self.0.div_euclid(86_400_000_000)).unwrap_or(i32::MAX)
    }

    /// Adds microseconds to the instant. The result is capped at the largest instant.
    #[must_use]
    pub const fn plus_micros(self, micros: u64) -> Self {
        Self(self.0.saturating_add_unsigned(micros))
    }

    /// Adds a duration to the instant. The result is capped at the largest instant.
    #[must_use]
    pub fn plus(self, time: Duration) -> Self {
        self.plus_micros(micros(time))
    }

    /// Subtracts a duration from the instant. The result is capped at the smallest instant.
    #[must_use]
    pub fn minus(self, time: Duration) -> Self {
        Self(self.0.saturating_sub_unsigned(micros(time)))
    }

    /// Returns the time since another instant; zero if the other instant is not earlier.
    pub const fn since(self, earlier: Self) -> Duration {
        let passed = self.0.saturating_sub(earlier.0);
        Duration::from_micros(if passed > 0 { passed.unsigned_abs() } else { 0 })
    }
}

/// Writes ISO 8601 in UTC. Beyond the calendar's range, writes only the approximate year.
impl fmt::Display for UnixMicros {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match Timestamp::from_microsecond(self.0) {
            Ok(at) => write!(f, "{at}"),
            Err(_) => write!(f, "about the year {}", 1970 + self.0 / YEAR_MICROS),
        }
    }
}

/// Serializes as ISO 8601. Beyond the calendar's range, serializes as microseconds since 1970.
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

/// Returns a duration in microseconds, capped at `u64::MAX`.
pub fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

/// Returns a duration as text for people, such as `90 s`.
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
    // A unit is used only for values of at least 2, so that 90 s are not shown as 1.5 min.
    match UNITS.iter().find(|(size, _)| micros >= 2.0 * size) {
        Some((size, unit)) => {
            let text = format!("{:.3}", micros / size);
            let text = text.trim_end_matches('0').trim_end_matches('.');
            format!("{text} {unit}")
        }
        None => format!("{} ms", micros / 1e3),
    }
}
