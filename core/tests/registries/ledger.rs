//! A record of every issued id, used to detect repeated ids.

use super::world::TAGS;
use rustc_hash::{FxHashMap, FxHashSet};
use snowflake_ids_core::tag::definition::Range;

/// The node that issued an id, and the time.
type Taker = (usize, u64);

/// All ids of a run.
#[derive(Default)]
pub struct Ledger {
    /// The ids that each node issued, from any registry, with their times. A node may not issue an id twice.
    own: FxHashMap<(usize, usize, i64), u64>,
    /// Ids of columns that a node attached. The node may not issue these ids after the attachment.
    attached: FxHashSet<(usize, usize, i64)>,
    /// How often each id of a registry was issued, and the node that issued it last.
    shared: FxHashMap<(usize, i64), (u32, Taker)>,
    /// How often each id was reserved by a registry that had been set back.
    doubtful: FxHashMap<(usize, i64), u32>,
    pub issued: u64,
    pub twice: u64,
    /// The number of ids issued twice in the one case where ids may repeat: the registry had been set back.
    pub again: u64,
    pub first_twice: Option<String>,
}

impl Ledger {
    /// Records a range that was reserved by a registry that had been set back.
    pub fn doubt(&mut self, tag: usize, range: Range) {
        for offset in 0..range.count {
            *self.doubtful.entry((tag, range.at(offset))).or_default() += 1;
        }
    }

    /// Records that a node's column has these ids. Ids that the node issued earlier belong to another column.
    pub fn attach(&mut self, node: usize, tag: usize, ids: std::ops::RangeInclusive<i64>) {
        let ids = ids.map(|id| (node, tag, id)).filter(|id| !self.own.contains_key(id));
        self.attached.extend(ids);
    }

    /// Records that `node` is a copy of the node `of`, and so has also issued the ids of `of`.
    pub fn copy(&mut self, of: usize, node: usize) {
        let own = self.own.iter().filter(|((owner, ..), _)| *owner == of);
        let own: Vec<_> = own.map(|((_, tag, id), then)| ((node, *tag, *id), *then)).collect();
        self.own.extend(own);
        let attached = self.attached.iter().filter(|(owner, ..)| *owner == of);
        let attached: Vec<_> = attached.map(|(_, tag, id)| (node, *tag, *id)).collect();
        self.attached.extend(attached);
    }

    /// Records an id. Ids from a node's own rows are compared only with ids of that node.
    pub fn issue(&mut self, (node, now): Taker, tag: usize, id: i64, shared: bool) {
        self.issued += 1;
        let before = self.own.insert((node, tag, id), now).map(|then| (node, then));
        let mut twice = before.map(|taker| format!("{taker:?}"));
        if twice.is_none() && self.attached.contains(&(node, tag, id)) {
            twice = Some("an attached column".to_owned());
        }
        if shared {
            let (count, taker) = self.shared.entry((tag, id)).or_insert((0, (node, now)));
            *count += 1;
            if *count > 1 + self.doubtful.get(&(tag, id)).copied().unwrap_or(0) {
                twice.get_or_insert_with(|| format!("{taker:?}"));
            }
            self.again += u64::from(twice.is_none() && *count > 1);
            *taker = (node, now);
        }
        if let Some(before) = twice {
            self.twice += 1;
            let what =
                || format!("{id} of {} by {:?}, before by {before} (node, time)", TAGS[tag], (node, now));
            self.first_twice.get_or_insert_with(what);
        }
    }
}
