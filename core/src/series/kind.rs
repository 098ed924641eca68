//! The promise that a series makes, and what it takes to keep it.

use super::error::SeriesError;
use super::limits::{MAX_SECTIONS, MAX_STEP};
use crate::error::excerpt;

/// Number of numbers that are reserved at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Steps {
    /// At first: 1 to `max_step`.
    pub step: u32,
    /// The same under high demand: [`MAX_STEP`] at most.
    pub max_step: u32,
}

/// The promise that a series makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SeriesKind {
    /// n committed calls of a key give the first n numbers: the key's row is changed in the caller's transaction.
    Gapless,
    /// The numbers of a key grow and never repeat; its keys are in so many sections, each of which keeps one maximum of them all.
    Monotonic(Steps, u16),
}

/// What a row says of its kind.
#[derive(Clone, Copy, Debug, Default)]
pub struct Terms<'a> {
    /// Its name.
    pub kind: &'a str,
    /// Number of numbers that are reserved at once at first.
    pub step: Option<i32>,
    /// Most of them.
    pub max_step: Option<i32>,
    /// Number of sections the keys are in.
    pub sections: Option<i32>,
    /// True if keys start over.
    pub starts_over: bool,
}

impl SeriesKind {
    /// The kind that a row is of.
    ///
    /// # Errors
    /// [`SeriesError`], which names the column at fault.
    pub(super) fn new(terms: &Terms<'_>) -> Result<Self, SeriesError> {
        let Terms { step, max_step, sections, .. } = *terms;
        match terms.kind {
            "gapless" => {
                let given = [("step", step), ("max_step", max_step), ("sections", sections)];
                refuse("gapless", given)?;
                Ok(Self::Gapless)
            }
            // Of 0.2, before ALTER EXTENSION UPDATE: its rows say up to where numbers were reserved.
            "dense" => Ok(Self::Gapless),
            "monotonic" if terms.starts_over => {
                Err(SeriesError::NoSuchArgument { kind: "monotonic", argument: "reset" })
            }
            "monotonic" => {
                let steps = Steps::new(step, max_step)?;
                let sections = sections.ok_or(SeriesError::Missing { column: "sections" })?;
                let count = u16::try_from(sections).ok().filter(|count| (1..=MAX_SECTIONS).contains(count));
                Ok(Self::Monotonic(steps, count.ok_or(SeriesError::Sections { sections })?))
            }
            "" => Err(SeriesError::Missing { column: "kind" }),
            other => Err(SeriesError::Kind { name: excerpt(other) }),
        }
    }

    /// Its name in SQL.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Gapless => "gapless",
            Self::Monotonic(..) => "monotonic",
        }
    }
}

impl Steps {
    fn new(step: Option<i32>, max_step: Option<i32>) -> Result<Self, SeriesError> {
        let step = step.ok_or(SeriesError::Missing { column: "step" })?;
        let max_step = max_step.ok_or(SeriesError::Missing { column: "max_step" })?;
        let most = u32::try_from(max_step).ok().filter(|most| (1..=MAX_STEP).contains(most));
        let most = most.ok_or(SeriesError::MaxStep { max_step })?;
        let first = u32::try_from(step).ok().filter(|first| (1..=most).contains(first));
        let first = first.ok_or(SeriesError::Step { step, max_step })?;
        Ok(Self { step: first, max_step: most })
    }
}

/// Fails where a series is given what its kind has not.
fn refuse(
    kind: &'static str,
    given: impl IntoIterator<Item = (&'static str, Option<i32>)>,
) -> Result<(), SeriesError> {
    match given.into_iter().find(|(_, given)| given.is_some()) {
        Some((argument, _)) => Err(SeriesError::NoSuchArgument { kind, argument }),
        None => Ok(()),
    }
}
