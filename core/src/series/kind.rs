//! The row of a series, and the promise that the series makes.

use super::error::SeriesError;
use super::limits::{MAX_SECTIONS, MAX_STEP};
use crate::error::excerpt;

/// The row of a series, as it is stored.
#[derive(Clone, Copy, Debug, Default)]
pub struct SeriesRow<'a> {
    /// The number by which its counters are found.
    pub id: Option<i64>,
    /// The promise that it makes.
    pub kind: &'a str,
    /// The type of its keys.
    pub key_type: &'a str,
    /// The first number of a key.
    pub start: Option<i64>,
    /// The highest number of a key.
    pub max_value: Option<i64>,
    /// After which period keys start over.
    pub reset: Option<&'a str>,
    /// The time zone in which periods begin.
    pub time_zone: &'a str,
    /// The format of numbers as text.
    pub format: Option<&'a str>,
    /// Number of numbers that are reserved at once at first, where the kind reserves some.
    pub step: Option<i32>,
    /// Most of them.
    pub max_step: Option<i32>,
    /// Number of sections the keys are in, where the kind has some.
    pub sections: Option<i32>,
    /// The servers that share a key's numbers: all (`global`, also where it is missing), or each has its own (`node`).
    pub scope: Option<&'a str>,
}

/// The promise that a series makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SeriesKind {
    /// n committed calls of a key give the first n numbers: the key's row is changed in the caller's transaction.
    Gapless,
    /// The numbers of a key grow and never repeat; its keys are in so many sections, each of which keeps one maximum of them all.
    Monotonic(u16),
}

impl SeriesKind {
    /// The kind that a row is of. An error names the column at fault.
    pub(super) fn new(row: &SeriesRow<'_>) -> Result<Self, SeriesError> {
        match row.kind {
            "gapless" => {
                let given = [("step", row.step), ("max_step", row.max_step), ("sections", row.sections)];
                match given.into_iter().find(|(_, given)| given.is_some()) {
                    Some((argument, _)) => Err(SeriesError::NoSuchArgument { kind: "gapless", argument }),
                    None => Ok(Self::Gapless),
                }
            }
            // Of 0.2, before ALTER EXTENSION UPDATE: its rows say up to where numbers were reserved.
            "dense" => Ok(Self::Gapless),
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

    /// Its name in SQL.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Gapless => "gapless",
            Self::Monotonic(_) => "monotonic",
        }
    }
}

/// Fails unless the step is 1 to `max_step`, and that at most [`MAX_STEP`].
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
