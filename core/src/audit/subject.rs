//! What ids are to be, and what is wrong with those that are not so.

use super::finding::{Beyond, Finding, Sort, Unfit};
use super::group::Group;
use super::listing::Listing;
use super::nodes::Nodes;
use crate::clock::UnixMicros;
use crate::layout::{Layout, TickError};

/// What the ids of a column are to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Subject {
    /// Snowflake ids.
    Snowflakes(Snowflakes),
    /// The numbers of a tag.
    Numbers(Numbers),
}

/// Snowflake ids of a layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Snowflakes {
    /// Their layout.
    pub layout: Layout,
    /// The clock, read after the last row was seen.
    pub now: UnixMicros,
    /// How far ids may be ahead of it, in microseconds.
    pub max_drift: u64,
}

/// The numbers of a tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Numbers {
    /// From one to the next; less than 1 counts as 1.
    pub increment: i64,
    /// What they leave when divided by that.
    pub remainder: i64,
    /// The highest that is reserved, read after the last row was seen; None where it is not known.
    pub highest: Option<i64>,
}

/// The ids as far as they were looked at, one after the other.
pub enum Review {
    /// See [`Snowflakes`].
    Snowflakes(SnowflakeReview),
    /// See [`Numbers`].
    Numbers(NumberReview),
}

impl Review {
    /// Of no id yet.
    pub fn new(subject: &Subject) -> Self {
        match subject {
            Subject::Snowflakes(snowflakes) => Self::Snowflakes(SnowflakeReview::new(*snowflakes)),
            Subject::Numbers(numbers) => Self::Numbers(NumberReview { numbers: *numbers, before: None }),
        }
    }

    /// Looks at the next id.
    pub fn look(&mut self, group: &Group, listing: &mut Listing) {
        let Some(id) = group.id() else { return };
        let rows = group.rows();
        if rows > 1 && !listing.is_full_of(Sort::Duplicate) {
            listing.add(Finding::Duplicate { id, rows, places: group.places().clone() });
        }
        match self {
            Self::Snowflakes(review) => review.look(id, group, listing),
            Self::Numbers(review) => review.look(id, group, listing),
        }
    }

    /// What concerns all of them.
    pub fn end(self, listing: &mut Listing) {
        if let Self::Snowflakes(review) = self {
            review.end(listing);
        }
    }
}

fn unfit(id: i64, group: &Group, why: Unfit, listing: &mut Listing) {
    if !listing.is_full_of(Sort::Unfit) {
        listing.add(Finding::Unfit { id, rows: group.rows(), places: group.places().clone(), why });
    }
}

fn future(id: i64, group: &Group, beyond: Beyond, listing: &mut Listing) {
    if !listing.is_full_of(Sort::Future) {
        listing.add(Finding::Future { id, rows: group.rows(), places: group.places().clone(), beyond });
    }
}

/// Snowflake ids as far as they were looked at.
pub struct SnowflakeReview {
    snowflakes: Snowflakes,
    /// The highest id that there can be by now; None where there can be none.
    highest: Option<u64>,
    nodes: Nodes,
    /// The day of the last id, and its rows.
    day: Option<(i64, u64)>,
}

const DAY_MICROS: i64 = 86_400_000_000;

impl SnowflakeReview {
    fn new(snowflakes: Snowflakes) -> Self {
        let Snowflakes { layout, now, max_drift } = snowflakes;
        let highest = match layout.max_id(now.plus_micros(max_drift)) {
            Ok(highest) => Some(highest),
            Err(TickError::AfterLast { .. }) => Some(layout.largest_id()),
            Err(TickError::BeforeEpoch { .. }) => None,
        };
        Self { snowflakes, highest, nodes: Nodes::default(), day: None }
    }

    fn look(&mut self, id: i64, group: &Group, listing: &mut Listing) {
        let Snowflakes { layout, now, .. } = self.snowflakes;
        let Ok(decoded) = layout.decode(id) else {
            let why = if id < 0 { Unfit::Negative } else { Unfit::Beyond(layout) };
            return unfit(id, group, why, listing);
        };
        if self.highest.is_none_or(|highest| decoded.id > highest) {
            future(id, group, Beyond::Clock { at: decoded.timestamp, now }, listing);
        }
        self.nodes.add(&decoded, group.rows());
        self.count_day(decoded.timestamp.0.div_euclid(DAY_MICROS), group.rows(), listing);
    }

    fn count_day(&mut self, day: i64, rows: u64, listing: &mut Listing) {
        match &mut self.day {
            Some((same, count)) if *same == day => *count += rows,
            last => {
                if let Some((day, rows)) = last.replace((day, rows)) {
                    listing.add(Finding::Day { day, rows });
                }
            }
        }
    }

    fn end(self, listing: &mut Listing) {
        if let Some((day, rows)) = self.day {
            listing.add(Finding::Day { day, rows });
        }
        let (nodes, others) = self.nodes.end();
        for (node, given) in nodes {
            listing.add(Finding::of_node(node, given));
        }
        if others > 0 {
            listing.add(Finding::Worker { node: None, rows: others, times: None });
        }
    }
}

/// Numbers of a tag as far as they were looked at.
pub struct NumberReview {
    numbers: Numbers,
    /// The last one that is of the tag.
    before: Option<i64>,
}

impl NumberReview {
    fn look(&mut self, id: i64, group: &Group, listing: &mut Listing) {
        let Numbers { remainder, highest, .. } = self.numbers;
        let increment = self.numbers.increment.max(1);
        if id < 0 {
            return unfit(id, group, Unfit::Negative, listing);
        }
        if id.rem_euclid(increment) != remainder {
            return unfit(id, group, Unfit::Remainder { increment, remainder }, listing);
        }
        // What is between it and the others was never an id.
        if let Some(highest) = highest.filter(|highest| id > *highest) {
            return future(id, group, Beyond::Reserved(highest), listing);
        }
        if let Some(before) = self.before.replace(id) {
            // Both are 0 or more, so that nothing overflows, and both leave the same remainder.
            let steps = (id - before) / increment;
            if steps > 1 && !listing.is_full_of(Sort::Gap) {
                let (first, last) = (before + increment, id - increment);
                listing.add(Finding::Gap { first, last, ids: (steps - 1).unsigned_abs() });
            }
        }
    }
}
