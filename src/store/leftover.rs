//! Ids that were reserved and are in nobody's buffers.

use serde::{Deserialize, Serialize};
use snowflake_ids_core::directory::Key;
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
    /// The first id.
    pub first: i64,
    /// How many there are.
    pub count: u32,
    /// From one to the next.
    pub increment: i64,
}

impl Leftover {
    /// The ids, if the row still stands where it stood, on the same terms.
    pub fn range(&self, version: i64, terms: &Terms) -> Option<Range> {
        let range = Range { first: self.first, count: self.count, increment: self.increment };
        let same = self.version == version
            && range.last() == terms.max_id
            && self.increment == terms.increment
            && terms.first_after(self.first.saturating_sub(1)) == Some(self.first);
        (same && self.count > 0).then_some(range)
    }

    /// Whether they are this tag's.
    pub fn is_of(&self, key: &Key) -> bool {
        self.database == key.database && self.source == key.source && self.tag == key.tag.as_bytes()
    }
}
