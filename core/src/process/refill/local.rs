//! This database's own table of tags as a registry.

use super::task::{RefillHost, RefillTask};
use super::worker::{RefillError, RefillWorker};
use crate::guard::{Guard, holds};
use crate::registry::client::Network;
use crate::registry::tables::{LockWait, Tables, reserve};
use crate::server::saved_range_file::SavedRangeFile;
use crate::tag::reservation::{Outcome, Reserved, Share};

/// The outcomes, or the reason why the table cannot be used. The transaction itself succeeded in both cases.
type Reservation = Result<Vec<Option<Outcome>>, RefillError>;

impl<H: RefillHost, N: Network, F: SavedRangeFile> RefillWorker<'_, H, N, F> {
    /// Reserves ids for all tasks in one transaction.
    pub(super) fn reserve_locally(
        &mut self,
        tasks: &[&RefillTask<'_, H::Slot>],
        wait: LockWait,
    ) -> Reservation {
        let reserved = self.host.transaction(|tables| self.reserve_in(tables, tasks, wait));
        let reserved = reserved.map_err(RefillError::Here)?;
        self.is_remote |= matches!(reserved, Err(RefillError::Elsewhere));
        reserved
    }

    /// Gives ids back; after an error, the ids become a gap. The slot may belong to another tag by now: only the row's
    /// version decides whether the ids can be given back.
    pub(super) fn give_back(&self, task: &RefillTask<'_, H::Slot>, reserved: &Reserved) {
        let range = reserved.supply.range;
        let given = self.host.transaction(|tables| match tables.source() {
            Some(source) if source == task.source => {
                tables.set_back(&task.tag, range.first.saturating_sub(1), range.last(), reserved.version)
            }
            _ => Ok(()),
        });
        drop(given);
    }

    fn reserve_in<T: Tables>(
        &self,
        tables: &mut T,
        tasks: &[&RefillTask<'_, H::Slot>],
        wait: LockWait,
    ) -> Result<Reservation, T::Error> {
        let Some(source) = tables.source() else { return Ok(Ok(vec![None; tasks.len()])) };
        if !tables.endpoints()?.is_empty() {
            return Ok(Err(RefillError::Elsewhere));
        }
        if tables.is_clustered()? {
            return Ok(Err(RefillError::Unregistered));
        }
        let mut outcomes = Vec::with_capacity(tasks.len());
        for task in tasks {
            let create = task.creates().then_some(Share::ALL);
            outcomes.push(if source == task.source {
                Some(reserve(tables, &task.tag, create, wait, |_, row| {
                    let left = self.saved_ranges.of(task.source, &task.tag);
                    Ok(task.demand(self.host, left, task.high_water_mark(self.host, row)))
                })?)
            } else {
                None
            });
        }
        // The first check was made before the rows were locked. No session can start to use registries while the rows are
        // locked.
        let is_elsewhere = holds(Guard::StillLocal) && !tables.endpoints()?.is_empty();
        Ok(if is_elsewhere { Err(RefillError::Elsewhere) } else { Ok(outcomes) })
    }
}
