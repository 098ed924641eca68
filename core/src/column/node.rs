//! Nodes of a cluster over which a table is distributed. On a worker, the table's sequences count from group << 48, so that two
//! nodes never give the same number. The coordinator's numbers are below 1 << 48.

use super::facts::Base;

/// The numbers of a node's sequences.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Numbers {
    /// The number below the first.
    pub below: i64,
    /// The last number.
    pub last: i64,
}

impl Numbers {
    /// Returns the numbers of a group of nodes.
    pub const fn of_group(group: i32) -> Self {
        let below = (group as i64) << 48;
        Self { below, last: below.wrapping_add(1 << 48) }
    }

    /// Returns the options of a new sequence.
    pub fn options(&self) -> String {
        let first = self.below.saturating_add(1);
        format!("MINVALUE {first} MAXVALUE {} START WITH {first}", self.last.saturating_add(1))
    }

    /// Returns the id above which a column's sequences continue: the highest one in this range, and room above it if a tag gave
    /// it. Other nodes may give more ids of the tag until they learn of the change.
    pub fn above(&self, base: Base, highest: Option<i64>, given: Option<i64>) -> Option<i64> {
        let is_of_tag = base == Base::Bigint && highest > given;
        highest
            .map(|highest| if is_of_tag { highest.saturating_add(1 << 36).min(self.last) } else { highest })
    }
}
