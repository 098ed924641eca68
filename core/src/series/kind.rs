//! The row of a series, and the kinds of series.

use super::error::SeriesError;
use super::limits::{MAX_SECTIONS, MAX_STEP};
use crate::error::excerpt;

/// The row of a series, as stored in the table.
#[derive(Clone, Copy, Debug, Default)]
pub struct SeriesRow<'a> {
    /// The id of the series' counters.
    pub id: Option<i64>,
    /// The kind of series.
    pub kind: &'a str,
    /// The type of the keys.
    pub key_type: &'a str,
    /// The first number of a key.
    pub start: Option<i64>,
    /// The highest number of a key.
    pub max_value: Option<i64>,
    /// The period after which keys start over.
    pub reset: Option<&'a str>,
    /// The time zone in which periods begin.
    pub time_zone: &'a str,
    /// The format of numbers as text.
    pub format: Option<&'a str>,
    /// The initial count of numbers in one reservation; None for a gapless series.
    pub step: Option<i32>,
    /// The largest count of numbers in one reservation; None for a gapless series.
    pub max_step: Option<i32>,
    /// The number of sections; None for a gapless series.
    pub sections: Option<i32>,
    /// The servers that share a key's numbers: `global` (also if missing), `node` or `shard`.
    pub scope: Option<&'a str>,
}

/// The kind of a series, which determines its guarantees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SeriesKind {
    /// n committed calls for a key give the key's first n numbers. Each call changes the key's row in the caller's
    /// transaction.
    Gapless,
    /// The numbers of a key grow and never repeat. The value is the number of sections; the keys of a section share one
    /// maximum.
    Monotonic(u16),
}

impl SeriesKind {
    /// Returns the kind of a row. An error names the invalid column.
    pub(super) fn new(row: &SeriesRow<'_>) -> Result<Self, SeriesError> {
        match row.kind {
            "gapless" => {
                let given = [("step", row.step), ("max_step", row.max_step), ("sections", row.sections)];
                match given.into_iter().find(|(_, given)| given.is_some()) {
                    Some((argument, _)) => Err(SeriesError::NoSuchArgument { kind: "gapless", argument }),
                    None => Ok(Self::Gapless),
                }
            }
            "monotonic" if row.reset.is_some() => {
                Err(SeriesError::NoSuchArgument { kind: "monotonic", argument: "reset" })
            }
            "monotonic" => {
                check_steps(row)?;
                let sections = row.sections.ok_or(SeriesError::Missing { column: "sections" })?;
                let count = u16::try_from(sections).ok().filter(|count| (1..=MAX_SECTIONS).contains(count));
                Ok(Self::Monotonic(count.ok_or(SeriesError::Sections { sections })?))
            }
            "" => Err(SeriesError::Missing { column: "kind" }),
            other => Err(SeriesError::Kind { name: excerpt(other) }),
        }
    }

    /// Returns the kind's name in SQL.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Gapless => "gapless",
            Self::Monotonic(_) => "monotonic",
        }
    }
}

fn check_steps(row: &SeriesRow<'_>) -> Result<(), SeriesError> {
    let step = row.step.ok_or(SeriesError::Missing { column: "step" })?;
    let max_step = row.max_step.ok_or(SeriesError::Missing { column: "max_step" })?;
    if !(1..=MAX_STEP).contains(&max_step) {
        Err(SeriesError::MaxStep { max_step })
    } else if !(1..=max_step).contains(&step) {
        Err(SeriesError::Step { step, max_step })
    } else {
        Ok(())
    }
}
