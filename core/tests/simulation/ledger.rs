//! A record of every issued id, used to detect repeated ids.

use rustc_hash::{FxHashMap, FxHashSet};

/// All ids of a run. Ids are unique within a *scope*: the servers of one registry, or one server and its promoted standbys.
#[derive(Default)]
pub struct Ledger {
    ids: FxHashSet<(u32, usize, u64)>,
    /// For each server whose promoted standby keeps the worker id: the ids issued before the promotion, with their times.
    recent: FxHashMap<usize, Vec<(i64, usize, u64)>>,
    pub issued: u64,
    /// The number of ids in layouts of named generators.
    pub in_others: u64,
    pub twice: u64,
    pub first_twice: Option<String>,
}

impl Ledger {
    /// Records an id of a layout. `what` describes the id if it repeats.
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

    /// Records a repeated id, or an id that a copy issues under a worker id of its original.
    pub fn repeat(&mut self, what: impl FnOnce() -> String) {
        self.twice += 1;
        self.first_twice.get_or_insert_with(what);
    }

    /// Records that an id may be lost if its server is lost.
    pub fn not_yet_replicated(&mut self, server: usize, at: i64, layout: usize, id: u64) {
        self.recent.entry(server).or_default().push((at, layout, id));
    }

    /// Moves ids that a server issued after an instant into a scope of their own, because the server's successor never saw them.
    pub fn split(&mut self, server: usize, after: i64, scope: u32, own: u32) {
        for (at, layout, id) in self.recent.remove(&server).unwrap_or_default() {
            if at > after && self.ids.remove(&(scope, layout, id)) {
                self.ids.insert((own, layout, id));
            }
        }
    }
}
