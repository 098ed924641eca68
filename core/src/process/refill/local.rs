//! This database's own table of tags as a registry.

use super::host::{RefillHost, Tables};
use super::registry::{Refill, RefillError, RefillRegistry};
use super::task::RefillTask;
use crate::guard::{Guard, holds};
use crate::server::saved_range_file::SavedRangeFile;
use crate::tag::reservation::{Outcome, Reserved, Share};
use crate::tag::tag_rows::{LockWait, TagRows, reserve};

pub struct LocalRegistry<'w, 'h, H, F> {
    pub refill: &'w Refill<'h, H, F>,
    /// True if the transaction found registries on other servers in use.
    pub is_elsewhere: bool,
}

/// The outcomes, or the reason why the table cannot be used. The transaction itself succeeded in both cases.
type Reservation = Result<Vec<Option<Outcome>>, RefillError>;

impl<H: RefillHost, F: SavedRangeFile> LocalRegistry<'_, '_, H, F> {
    fn reserve_in<T: Tables>(
        &self,
        tables: &mut T,
        tasks: &[&RefillTask<'_, H::Slot>],
        wait: LockWait,
    ) -> Result<Reservation, <T as TagRows>::Error> {
        let Some(source) = tables.source() else { return Ok(Ok(vec![None; tasks.len()])) };
        if !tables.endpoints()?.is_empty() {
            return Ok(Err(RefillError::Elsewhere));
        }
        if tables.is_clustered()? {
            return Ok(Err(RefillError::Unregistered));
        }
        let Refill { host, saved_ranges, .. } = self.refill;
        let mut outcomes = Vec::with_capacity(tasks.len());
        for task in tasks {
            let create = task.creates().then_some(Share::ALL);
            outcomes.push(if source == task.source {
                Some(reserve(tables, &task.tag, create, wait, |_, row| {
                    let left = saved_ranges.of(task.source, &task.tag);
                    Ok(task.demand(*host, host.settings(), left, task.high_water_mark(*host, row)))
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

impl<H: RefillHost, F: SavedRangeFile> RefillRegistry<H::Slot> for LocalRegistry<'_, '_, H, F> {
    const MOST: usize = usize::MAX;

    fn count(&self) -> usize {
        1
    }

    fn waits(&self, _locked: usize, _tags: usize) -> bool {
        true
    }

    /// Reserves ids for all tasks in one transaction.
    fn reserve(&mut self, tasks: &[&RefillTask<'_, H::Slot>], wait: LockWait) -> Reservation {
        let reserved = self.refill.host.transaction(|tables| self.reserve_in(tables, tasks, wait));
        let reserved = reserved.map_err(RefillError::Here)?;
        self.is_elsewhere |= matches!(reserved, Err(RefillError::Elsewhere));
        reserved
    }

    /// Gives ids back; after an error, the ids become a gap. The slot may belong to another tag by now: only the row's
    /// version decides whether the ids can be given back.
    fn give_back(&self, task: &RefillTask<'_, H::Slot>, reserved: &Reserved) {
        let range = reserved.supply.range;
        let given = self.refill.host.transaction(|tables| match tables.source() {
            Some(source) if source == task.source => {
                tables.set_back(&task.tag, range.first.saturating_sub(1), range.last(), reserved.version)
            }
            _ => Ok(()),
        });
        drop(given);
    }
}
