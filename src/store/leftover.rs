//! Ids that were reserved and are in nobody's buffers.

use serde::{Deserialize, Serialize};
use snowflake_ids_core::segment::Period;
use snowflake_ids_core::terms::{Range, Terms};

/// Ids of one tag.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Leftover {
    /// The tag's database,
    pub database: u32,
    /// the table of tags that it is in,
    pub source: u32,
    /// and what it is called.
    pub tag: Vec<u8>,
    /// The row's version after the last reservation.
    pub version: i64,
    /// The first day of the period that they count in; None where the tag is not dated.
    pub day: Option<i32>,
    /// The first id.
    pub first: i64,
    /// How many there are.
    pub count: u32,
    /// From one to the next.
    pub increment: i64,
}

impl Leftover {
    /// The ids, if the row still stands where it stood, on the same terms.
    pub fn range(&self, version: i64, period: Period, terms: &Terms) -> Option<Range> {
        let range = Range { first: self.first, count: self.count, increment: self.increment };
        let same = self.version == version
            && self.day == period.dated()
            && range.last() == terms.max_id
            && self.increment == terms.increment
            && terms.first_after(self.first.saturating_sub(1)) == Some(self.first);
        (same && self.count > 0).then_some(range)
    }

    /// Whether others are of the same tag.
    pub fn is_of_the_tag_of(&self, other: &Self) -> bool {
        (self.database, self.source, &self.tag) == (other.database, other.source, &other.tag)
    }
}
