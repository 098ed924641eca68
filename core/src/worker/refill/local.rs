//! The table of this database as a registry.

use super::host::{CarryOvers, Database, RefillHost, Tables};
use super::job::Job;
use super::registry::{Refill, RefillError, RefillRegistry};
use crate::guard::{Guard, holds};
use crate::sequence::reservation::{Outcome, Reserved};
use crate::sequence::tag_rows::{Create, LockWait, TagRows, give_back, reserve};

/// The table of tags here.
pub struct LocalRegistry<'w, 'h, H, C> {
    pub refill: &'w Refill<'h, H, C>,
    /// True if it was found that the ids come from other servers.
    pub is_elsewhere: bool,
}

/// Outcomes, or the reason why the table is of no use: the transaction did not fail.
type Reservation = Result<Vec<Option<Outcome>>, RefillError>;

impl<H: RefillHost, C: CarryOvers> LocalRegistry<'_, '_, H, C> {
    fn reserve_in<T: Tables>(
        &self,
        tables: &mut T,
        jobs: &[&Job<'_, H::Slot>],
        wait: LockWait,
    ) -> Result<Reservation, <T as TagRows>::Error> {
        let Some(source) = tables.source() else { return Ok(Ok(vec![None; jobs.len()])) };
        if tables.uses_registries()? {
            return Ok(Err(RefillError::Elsewhere));
        }
        if tables.is_clustered()? {
            return Ok(Err(RefillError::Unregistered));
        }
        let Refill { host, carry_over, .. } = self.refill;
        let mut outcomes = Vec::with_capacity(jobs.len());
        for job in jobs {
            let create = if job.creates() { Create::Yes(None) } else { Create::No };
            outcomes.push(if source == job.source {
                Some(reserve(tables, &job.tag, create, wait, |_, row| {
                    let left = carry_over.of(job.source, &job.tag);
                    Ok(job.wish(*host, host.settings(), left, job.floor(*host, row)))
                })?)
            } else {
                None
            });
        }
        // Once more: the rows are locked now, so that it cannot change any more.
        let is_elsewhere = holds(Guard::StillLocal) && tables.uses_registries()?;
        Ok(if is_elsewhere { Err(RefillError::Elsewhere) } else { Ok(outcomes) })
    }
}

impl<H: RefillHost, C: CarryOvers> RefillRegistry<H::Slot> for LocalRegistry<'_, '_, H, C> {
    const MOST: usize = usize::MAX;

    fn count(&self) -> usize {
        1
    }

    fn waits(&self, _locked: usize, _tags: usize) -> bool {
        true
    }

    /// One transaction for all of them.
    fn reserve(&mut self, jobs: &[&Job<'_, H::Slot>], wait: LockWait) -> Reservation {
        let database = self.refill.host.database();
        let reserved = database.transaction(|tables| self.reserve_in(tables, jobs, wait));
        let reserved = reserved.map_err(RefillError::Here)?;
        self.is_elsewhere |= matches!(reserved, Err(RefillError::Elsewhere));
        reserved
    }

    /// Should that fail, they are a gap. Whose the slot is by now does not matter: the row's version tells whether it is as
    /// the reservation left it.
    fn give_back(&self, job: &Job<'_, H::Slot>, reserved: &Reserved) {
        let given = self.refill.host.database().transaction(|tables| match tables.source() {
            Some(source) if source == job.source => give_back(tables, &job.tag, reserved),
            _ => Ok(()),
        });
        drop(given);
    }
}
