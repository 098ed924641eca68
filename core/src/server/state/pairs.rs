//! The pairs of datacenter and worker id among which a server without a registry chooses.

use crate::ids::layout::{Field, Layout};
use crate::server::lease::{MOST_NUMBERS, capacity};

/// The pairs of datacenter and worker id among which a server chooses. Each pair has a number.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pairs {
    /// The datacenter of all pairs; None if the pairs are of all datacenters.
    pub datacenter: Option<u32>,
    /// The number of worker ids in one datacenter.
    workers: u32,
    /// The number of pairs. The lowest number of a pair is 0.
    pub count: u32,
}

impl Pairs {
    /// Returns the pairs of a layout. `datacenter` is the configured datacenter id, if any.
    pub fn of(layout: &Layout, datacenter: Option<u32>) -> Self {
        let workers = capacity(layout);
        let datacenters = u32::try_from(layout.max(Field::Datacenter)).unwrap_or(u32::MAX).saturating_add(1);
        let all = workers.saturating_mul(datacenters).min(MOST_NUMBERS);
        Self { datacenter, workers, count: if datacenter.is_some() { workers } else { all } }
    }

    /// Returns the number of a pair: the worker id in a configured datacenter, else datacenter × workers + worker id.
    /// Returns None for a pair of another datacenter than the configured one.
    pub fn number(&self, datacenter: u32, worker_id: u32) -> Option<u32> {
        match self.datacenter {
            Some(configured) => (configured == datacenter).then_some(worker_id),
            None => datacenter.checked_mul(self.workers)?.checked_add(worker_id),
        }
    }

    /// Returns the datacenter and the worker id of the pair with a number.
    pub fn pair(&self, number: u32) -> (u32, u32) {
        match self.datacenter {
            Some(configured) => (configured, number),
            None => (number / self.workers, number % self.workers),
        }
    }
}

/// Returns true if a layout has room for a datacenter id and a worker id.
pub(super) fn has_room(layout: &Layout, datacenter: u32, worker_id: u32) -> bool {
    let fits = |field, value: u32| layout.check(field, value.into()).is_ok();
    fits(Field::Datacenter, datacenter) && fits(Field::Worker, worker_id)
}
