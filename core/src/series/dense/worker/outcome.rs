//! What a round did for each group, and for each counter that was to be written back.

use crate::refill_worker::slot::Trouble;
use crate::series::dense::host::Reserved;
use crate::series::dense::requests::Refusal;
use std::time::Duration;

/// What a transaction did for a group.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    /// What it reserved.
    Reserved(Reserved, Terms),
    /// There is no such series.
    Unknown,
    /// The registry gives none.
    Refused(Refusal),
    /// Nothing, for this reason: it is to be asked again after this pause.
    Away(Trouble, Duration),
}

/// What numbers were to be reserved.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Terms {
    /// How many ahead.
    pub(super) extra: u32,
    /// The first of a new row.
    pub(super) start: i64,
}

pub(super) const LOCKED: Outcome = Outcome::Reserved(Reserved::Locked, Terms { extra: 0, start: 0 });

/// What became of a counter that was to be written back.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    /// Its row says what is left, or is another's by now.
    Gone,
    /// It is not: another transaction has the row locked, or the registry was not asked.
    Stays,
    /// Whether it is, is not known.
    Unsure,
}

/// What came of each group, and of each counter that was to be written back, those of the groups last.
pub(super) type Done = (Vec<Outcome>, Vec<Fate>);
