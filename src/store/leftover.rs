//! Ids that were reserved and are in nobody's buffers.

use serde::{Deserialize, Serialize};
use snowflake_ids_core::reservation;

/// Ids of one tag.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Leftover {
    /// The tag's database,
    pub database: u32,
    /// the table of tags that it is in,
    pub source: u32,
    /// and what it is called.
    pub tag: Vec<u8>,
    /// What is left of it.
    #[serde(flatten)]
    pub left: reservation::Leftover,
}

impl Leftover {
    /// Whether others are of the same tag.
    pub fn is_of_the_tag_of(&self, other: &Self) -> bool {
        (self.database, self.source, &self.tag) == (other.database, other.source, &other.tag)
    }
}
