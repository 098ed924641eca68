//! Every id that was ever issued, and whether it was issued before.

use rustc_hash::{FxHashMap, FxHashSet};
use snowflake_ids_core::definition::Range;

/// All ids of a run.
#[derive(Default)]
pub struct Ledger {
    /// What each node issued: nothing twice, wherever it came from.
    own: FxHashSet<(usize, usize, i64)>,
    /// Ids of columns that a node attached: it has to give none of them from then on.
    attached: FxHashSet<(usize, usize, i64)>,
    /// How often ids of registries were issued,
    shared: FxHashMap<(usize, i64), u32>,
    /// and how often they were reserved by one that had been set back.
    doubtful: FxHashMap<(usize, i64), u32>,
    pub issued: u64,
    pub twice: u64,
    /// Issued twice where that is not covered.
    pub again: u64,
    pub first_twice: Option<String>,
}

impl Ledger {
    /// A registry that was set back has reserved these.
    pub fn doubt(&mut self, tag: usize, range: Range) {
        for offset in 0..range.count {
            *self.doubtful.entry((tag, range.at(offset))).or_default() += 1;
        }
    }

    /// A column of a node has these ids, up to the highest of them. What was issued there before is another column's.
    pub fn attach(&mut self, node: usize, tag: usize, ids: std::ops::RangeInclusive<i64>) {
        let ids = ids.map(|id| (node, tag, id)).filter(|id| !self.own.contains(id));
        self.attached.extend(ids);
    }

    /// Notes an id; `what` describes it if it was issued before. Ids of a node's own rows are compared with its own only.
    pub fn issue(&mut self, node: usize, tag: usize, id: i64, shared: bool, what: impl FnOnce() -> String) {
        self.issued += 1;
        let mut good = self.own.insert((node, tag, id)) && !self.attached.contains(&(node, tag, id));
        if shared {
            let count = self.shared.entry((tag, id)).or_default();
            *count += 1;
            good &= *count <= 1 + self.doubtful.get(&(tag, id)).copied().unwrap_or(0);
            self.again += u64::from(good && *count > 1);
        }
        if !good {
            self.twice += 1;
            self.first_twice.get_or_insert_with(what);
        }
    }
}
