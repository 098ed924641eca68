//! Every id that was ever issued, and whether it was issued before.

use rustc_hash::{FxHashMap, FxHashSet};

/// All ids of a run. A *scope* is what ids are unique in: servers with one registry, or of one origin.
#[derive(Default)]
pub struct Ledger {
    ids: FxHashSet<(u32, usize, u64)>,
    /// Of servers that may be succeeded under their own number: what they issued when, until it is replicated.
    recent: FxHashMap<usize, Vec<(i64, usize, u64)>>,
    pub issued: u64,
    /// Of these, those of other layouts than the servers' own.
    pub in_others: u64,
    pub twice: u64,
    pub first_twice: Option<String>,
}

impl Ledger {
    /// Notes an id of a layout; `what` describes it if it was issued before.
    pub fn issue(&mut self, scope: u32, layout: usize, id: u64, what: impl FnOnce() -> String) {
        self.issued += 1;
        self.in_others += u64::from(layout > 0);
        if !self.ids.insert((scope, layout, id)) {
            self.repeat(what);
        }
    }

    /// Whether an id was issued in a scope.
    pub fn has_any(&self, scope: u32) -> bool {
        self.ids.iter().any(|(of, ..)| *of == scope)
    }

    /// Notes that an id was, or will be, issued by another server, too.
    pub fn repeat(&mut self, what: impl FnOnce() -> String) {
        self.twice += 1;
        self.first_twice.get_or_insert_with(what);
    }

    /// Notes that an id may be lost with its server.
    pub fn not_yet_replicated(&mut self, server: usize, at: i64, layout: usize, id: u64) {
        self.recent.entry(server).or_default().push((at, layout, id));
    }

    /// Moves what a server issued after an instant into a scope of its own: its successor never saw it.
    pub fn split(&mut self, server: usize, after: i64, scope: u32, own: u32) {
        for (at, layout, id) in self.recent.remove(&server).unwrap_or_default() {
            if at > after && self.ids.remove(&(scope, layout, id)) {
                self.ids.insert((own, layout, id));
            }
        }
    }
}
