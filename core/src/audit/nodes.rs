//! How many ids each node has given, and from when to when.

use crate::clock::UnixMicros;
use crate::id::Decoded;
use std::collections::BTreeMap;

/// How many nodes are told apart: a column of numbers that are no ids may name millions.
pub const MAX_NODES: usize = 65_536;

/// Who gave ids.
pub type Numbers = (u32, u32);

/// The ids of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Given {
    /// How many rows have one.
    pub rows: u64,
    /// The timestamp of the lowest,
    pub first: UnixMicros,
    /// and of the highest.
    pub last: UnixMicros,
}

/// All nodes, by datacenter and worker.
#[derive(Clone, Debug, Default)]
pub struct Nodes {
    known: BTreeMap<Numbers, Given>,
    others: u64,
}

impl Nodes {
    /// Notes rows with an id; ids come in ascending order.
    pub fn add(&mut self, id: &Decoded, rows: u64) {
        let (numbers, at) = ((id.datacenter_id, id.worker_id), id.timestamp);
        if let Some(given) = self.known.get_mut(&numbers) {
            given.rows += rows;
            given.last = at;
        } else if self.known.len() < MAX_NODES {
            self.known.insert(numbers, Given { rows, first: at, last: at });
        } else {
            self.others += rows;
        }
    }

    /// Each of them in their order, and the rows of those that were not told apart.
    pub fn end(self) -> (BTreeMap<Numbers, Given>, u64) {
        (self.known, self.others)
    }
}
