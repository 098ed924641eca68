//! Layouts as text, and back: `41/5/5/12 unit=1ms epoch=2020-01-01`, or the name of a preset.
//!
//! The fields are `ticks/datacenter/worker/sequence`. Two rollback bits are written as `2r` after the worker. A sequence
//! above the node is written as `12s`, right after the ticks.

use super::bits::{Layout, check_epoch, check_unit};
use super::field::{Field, LayoutError, Order, RANGES, Widths, preset};
use crate::clock::UnixMicros;
use crate::error::excerpt;
use jiff::{Timestamp, civil, tz::TimeZone};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use std::fmt;
use std::str::FromStr;

/// The default epoch: 2020-01-01 UTC.
const DEFAULT_EPOCH: UnixMicros = UnixMicros(1_577_836_800_000_000);
/// The default length of a tick: 1 ms, in microseconds.
const DEFAULT_UNIT: u64 = 1_000;
const MILLIS_PER_DAY: i64 = 86_400_000;

impl Default for Layout {
    /// Twitter's widths with an epoch of 2020: `41/5/5/12 epoch=2020-01-01`. The layout ends in 2089.
    fn default() -> Self {
        let widths = Widths { ticks: 41, datacenter: 5, worker_id: 5, rollback: 0, sequence: 12 };
        let unit = strength_reduce::StrengthReducedU64::new(DEFAULT_UNIT);
        Self { widths, order: Order::SequenceLast, unit, epoch: DEFAULT_EPOCH }
    }
}

impl FromStr for Layout {
    type Err = LayoutError;

    fn from_str(text: &str) -> Result<Self, LayoutError> {
        let syntax = |reason: String| LayoutError::Syntax { text: excerpt(text), reason };
        let mut words = text.split_ascii_whitespace();
        let first = words.next().ok_or_else(|| syntax("It is empty".into()))?;
        let base = match preset(&first.to_ascii_lowercase()) {
            Some(preset) => Some(preset.parse::<Self>()?),
            None if first.contains('/') => None,
            None => {
                return Err(syntax(format!(
                    "\"{}\" is neither field widths nor a known name",
                    excerpt(first)
                )));
            }
        };
        let (widths, order) = match &base {
            Some(layout) => (layout.widths, layout.order),
            None => parse_widths(first, syntax)?,
        };
        let (mut unit, mut epoch) = (None, None);
        for word in words {
            let seen_before = match word.split_once('=') {
                Some(("unit", value)) => unit.replace(parse_unit(value)?).is_some(),
                Some(("epoch", value)) => epoch.replace(parse_epoch(value)?).is_some(),
                _ => return Err(syntax(format!("\"{}\" is neither unit=... nor epoch=...", excerpt(word)))),
            };
            if seen_before {
                return Err(syntax(format!(
                    "\"{}\" sets a part of the layout that is already set",
                    excerpt(word)
                )));
            }
        }
        let base = base.unwrap_or_default();
        Self::new(widths, order, unit.unwrap_or_else(|| base.unit()), epoch.unwrap_or(base.epoch))
    }
}

/// Parses the widths. `syntax` makes an error from a reason.
fn parse_widths(text: &str, syntax: impl Fn(String) -> LayoutError) -> Result<(Widths, Order), LayoutError> {
    let parts: Vec<&str> = text.split('/').collect();
    let (order, ticks, sequence, node) = match parts[..] {
        [ticks, sequence, ref node @ ..] if sequence.ends_with('s') => {
            (Order::SequenceFirst, ticks, &sequence[..sequence.len() - 1], node)
        }
        [ticks, ref node @ .., sequence] => (Order::SequenceLast, ticks, sequence, node),
        _ => (Order::SequenceLast, "", "", &[][..]),
    };
    let (datacenter, worker_id, rollback) = match *node {
        [datacenter, worker_id] => (datacenter, worker_id, "0r"),
        [datacenter, worker_id, rollback] => (datacenter, worker_id, rollback),
        _ => return Err(syntax(format!("It has {} fields instead of four or five", parts.len()))),
    };
    let rollback = rollback.strip_suffix('r').ok_or_else(|| {
        syntax(format!("The rollback width \"{}\" does not end in \"r\"", excerpt(rollback)))
    })?;
    let width = |field, text: &str| {
        if text.is_empty() || !text.bytes().all(|b| b.is_ascii_digit()) {
            return Err(syntax(format!("The {field} width \"{}\" is not a whole number", excerpt(text))));
        }
        let width = text.parse().unwrap_or(u32::MAX);
        u8::try_from(width).map_err(|_| {
            let range = RANGES.iter().find(|range| range.0 == field);
            let (min, max) = range.map_or((0, 0), |&(_, min, max)| (min, max));
            LayoutError::Width { field, width, min, max }
        })
    };
    let widths = Widths {
        ticks: width(Field::Ticks, ticks)?,
        datacenter: width(Field::Datacenter, datacenter)?,
        worker_id: width(Field::Worker, worker_id)?,
        rollback: width(Field::Rollback, rollback)?,
        sequence: width(Field::Sequence, sequence)?,
    };
    Ok((widths, order))
}

fn parse_unit(text: &str) -> Result<u64, LayoutError> {
    let wrong = || LayoutError::Unit { unit: excerpt(text) };
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (count, suffix) = text.split_at(digits);
    let scale: u64 = match suffix {
        "us" => 1,
        "ms" => 1_000,
        "s" => 1_000_000,
        _ => return Err(wrong()),
    };
    let unit = count.parse::<u64>().ok().and_then(|count| count.checked_mul(scale)).ok_or_else(wrong)?;
    check_unit(unit).map_err(|_| wrong())?;
    Ok(unit)
}

fn parse_epoch(text: &str) -> Result<UnixMicros, LayoutError> {
    let wrong = |reason| LayoutError::Epoch { epoch: excerpt(text), reason };
    let at = text
        .parse::<Timestamp>()
        .or_else(|_| text.parse::<civil::DateTime>()?.to_zoned(TimeZone::UTC).map(|z| z.timestamp()))
        .map_err(|_| wrong("It is neither a date nor an instant of ISO 8601"))?;
    if at.as_nanosecond() % 1_000_000 != 0 {
        return Err(wrong("It is finer than a millisecond"));
    }
    let epoch = UnixMicros(at.as_microsecond());
    check_epoch(epoch).map_err(|error| match error {
        LayoutError::Epoch { reason, .. } => wrong(reason),
        other => other,
    })?;
    Ok(epoch)
}

/// Writes the canonical text: the widths, the unit unless it is 1 ms, and the epoch.
impl fmt::Display for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Widths { ticks, datacenter, worker_id, rollback, sequence } = self.widths;
        write!(f, "{ticks}/")?;
        if self.order == Order::SequenceFirst {
            write!(f, "{sequence}s/")?;
        }
        write!(f, "{datacenter}/{worker_id}")?;
        if rollback > 0 {
            write!(f, "/{rollback}r")?;
        }
        if self.order == Order::SequenceLast {
            write!(f, "/{sequence}")?;
        }
        match self.unit() {
            DEFAULT_UNIT => Ok(()),
            unit if unit.is_multiple_of(1_000_000) => write!(f, " unit={}s", unit / 1_000_000),
            unit if unit.is_multiple_of(1_000) => write!(f, " unit={}ms", unit / 1_000),
            unit => write!(f, " unit={unit}us"),
        }?;
        let epoch = self.epoch.to_string();
        let midnight = (self.epoch.0 / 1_000) % MILLIS_PER_DAY == 0;
        write!(f, " epoch={}", if midnight { &epoch[..10] } else { &epoch })
    }
}

impl Serialize for Layout {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Layout {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}
