//! What is found, in words.

use super::group::{Place, Places};
use super::nodes::{Given, Numbers};
use crate::clock::{UnixMicros, human};
use crate::layout::Layout;

/// What an audit tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Finding {
    /// Several rows have this id.
    Duplicate {
        /// The id.
        id: i64,
        /// How many.
        rows: u64,
        /// Where.
        places: Places,
    },
    /// No id can be as high by now.
    Future {
        /// The id.
        id: i64,
        /// How many rows have it.
        rows: u64,
        /// Where.
        places: Places,
        /// Beyond what it is.
        beyond: Beyond,
    },
    /// It is no id.
    Unfit {
        /// The number.
        id: i64,
        /// How many rows have it.
        rows: u64,
        /// Where.
        places: Places,
        /// Why it is none.
        why: Unfit,
    },
    /// Ids of a tag that no row has.
    Gap {
        /// The lowest of them.
        first: i64,
        /// The highest.
        last: i64,
        /// How many.
        ids: u64,
    },
    /// The ids of a node; of all that were not told apart where it has no numbers.
    Worker {
        /// Datacenter and worker.
        node: Option<Numbers>,
        /// How many rows.
        rows: u64,
        /// The first and last timestamp.
        times: Option<(UnixMicros, UnixMicros)>,
    },
    /// The ids of a day in UTC, counted from 1970-01-01.
    Day {
        /// The day.
        day: i64,
        /// How many rows.
        rows: u64,
    },
    /// Rows without an id.
    Null {
        /// How many.
        rows: u64,
    },
    /// All rows.
    Total {
        /// How many.
        rows: u64,
    },
    /// What was found and is not listed.
    Unlisted {
        /// Of which sort.
        of: Sort,
        /// How many findings.
        findings: u64,
    },
}

/// What an id is beyond.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Beyond {
    /// The present, by its timestamp: the clock, and what ids may be ahead of it at most.
    Clock {
        /// The id's.
        at: UnixMicros,
        /// When it was looked at.
        now: UnixMicros,
    },
    /// The highest id that is reserved of the tag.
    Reserved(i64),
}

/// Why a number is no id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unfit {
    /// It is below 0.
    Negative,
    /// It has more bits than the layout.
    Beyond(Layout),
    /// It leaves another remainder than the ids of the tag.
    Remainder {
        /// From one id to the next.
        increment: i64,
        /// What ids leave.
        remainder: i64,
    },
}

/// The sorts of findings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sort {
    /// See [`Finding::Duplicate`].
    Duplicate,
    /// See [`Finding::Future`].
    Future,
    /// See [`Finding::Unfit`].
    Unfit,
    /// See [`Finding::Gap`].
    Gap,
    /// See [`Finding::Worker`].
    Worker,
    /// See [`Finding::Day`].
    Day,
    /// See [`Finding::Null`].
    Null,
    /// See [`Finding::Total`].
    Total,
    /// See [`Finding::Unlisted`].
    Unlisted,
}

impl Sort {
    /// All of them, each at the place of its number.
    pub const ALL: [Self; 9] = [
        Self::Duplicate,
        Self::Future,
        Self::Unfit,
        Self::Gap,
        Self::Worker,
        Self::Day,
        Self::Null,
        Self::Total,
        Self::Unlisted,
    ];

    /// Its name in SQL.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Duplicate => "duplicate",
            Self::Future => "future",
            Self::Unfit => "unfit",
            Self::Gap => "gap",
            Self::Worker => "worker",
            Self::Day => "day",
            Self::Null => "null",
            Self::Total => "total",
            Self::Unlisted => "unlisted",
        }
    }

    /// Whether something is wrong where there is one. A gap may be what a transaction took that rolled back.
    pub const fn is_fault(self) -> bool {
        matches!(self, Self::Duplicate | Self::Future | Self::Unfit)
    }
}

impl Finding {
    /// Which sort it is of.
    pub const fn sort(&self) -> Sort {
        match self {
            Self::Duplicate { .. } => Sort::Duplicate,
            Self::Future { .. } => Sort::Future,
            Self::Unfit { .. } => Sort::Unfit,
            Self::Gap { .. } => Sort::Gap,
            Self::Worker { .. } => Sort::Worker,
            Self::Day { .. } => Sort::Day,
            Self::Null { .. } => Sort::Null,
            Self::Total { .. } => Sort::Total,
            Self::Unlisted { .. } => Sort::Unlisted,
        }
    }

    /// Whether something is wrong.
    pub const fn is_fault(&self) -> bool {
        match self {
            Self::Unlisted { of, .. } => of.is_fault(),
            other => other.sort().is_fault(),
        }
    }

    /// The id that it is about: the first one of a gap.
    pub const fn id(&self) -> Option<i64> {
        match *self {
            Self::Duplicate { id, .. } | Self::Future { id, .. } | Self::Unfit { id, .. } => Some(id),
            Self::Gap { first, .. } => Some(first),
            _ => None,
        }
    }

    /// How many rows; of a gap, how many ids; of what is not listed, how many findings.
    pub const fn count(&self) -> u64 {
        match *self {
            Self::Duplicate { rows, .. }
            | Self::Future { rows, .. }
            | Self::Unfit { rows, .. }
            | Self::Worker { rows, .. }
            | Self::Day { rows, .. }
            | Self::Null { rows }
            | Self::Total { rows } => rows,
            Self::Gap { ids, .. } => ids,
            Self::Unlisted { findings, .. } => findings,
        }
    }

    /// The node that it is about, by datacenter and worker.
    pub const fn node(&self) -> Option<Numbers> {
        match self {
            Self::Worker { node, .. } => *node,
            _ => None,
        }
    }

    /// The day that it is about, counted from 1970-01-01.
    pub const fn day(&self) -> Option<i64> {
        match self {
            Self::Day { day, .. } => Some(*day),
            _ => None,
        }
    }

    /// What else there is to say, as sentences; places by the names that they are given.
    pub fn detail(&self, name: &dyn Fn(Place) -> String) -> Option<String> {
        Some(match self {
            Self::Duplicate { places, .. } => format!("In {}.", places.to_text(name)),
            Self::Future { places, beyond, .. } => {
                format!("{} In {}.", beyond.to_text(), places.to_text(name))
            }
            Self::Unfit { places, why, .. } => format!("{} In {}.", why.to_text(), places.to_text(name)),
            Self::Gap { first, last, .. } => format!("No row has an id from {first} to {last}."),
            Self::Worker { times: Some((first, last)), .. } => format!("From {first} to {last}."),
            Self::Worker { .. } => "Of workers that are not listed each by itself.".to_owned(),
            Self::Unlisted { of, .. } => format!("Further findings \"{}\" are not listed.", of.name()),
            Self::Day { .. } | Self::Null { .. } | Self::Total { .. } => return None,
        })
    }

    pub(super) fn of_node(node: Numbers, given: Given) -> Self {
        let Given { rows, first, last } = given;
        Self::Worker { node: Some(node), rows, times: Some((first, last)) }
    }
}

impl Beyond {
    fn to_text(self) -> String {
        match self {
            Self::Clock { at, now } => {
                format!("Its timestamp is {at}, {} ahead of the clock.", human(at.since(now)))
            }
            Self::Reserved(highest) => format!("The highest id reserved of the tag is {highest}."),
        }
    }
}

impl Unfit {
    fn to_text(self) -> String {
        match self {
            Self::Negative => "It is negative, and no id is.".to_owned(),
            Self::Beyond(layout) => {
                format!("The largest id of layout \"{layout}\" is {}.", layout.largest_id())
            }
            Self::Remainder { increment, remainder } => {
                format!("Ids of the tag leave {remainder} when divided by {increment}.")
            }
        }
    }
}
