//! Answers of a registry to requests for ids of tags (named id ranges).

use crate::guard::{Guard, holds};
use crate::registry::tables::{LockWait, Tables, reserve};
use crate::registry::wire::ReserveRequest;
use crate::tag::reservation::{Outcome, Share};

/// Reserves ids of several tags, in the order of the tags, so that two requests never deadlock. A request for a single tag
/// waits for the row lock. A request for several tags skips locked rows, so that no tag waits for another tag's lock.
pub fn reserve_all<T: Tables>(tables: &mut T, wants: Vec<ReserveRequest>) -> Result<Vec<Outcome>, T::Error> {
    let wait = if wants.len() > 1 { LockWait::Skip } else { LockWait::Wait };
    let mut wants: Vec<(usize, ReserveRequest)> = wants.into_iter().enumerate().collect();
    wants.sort_by(|(_, one), (_, other)| one.tag.cmp(&other.tag));
    let mut outcomes = Vec::with_capacity(wants.len());
    for (place, want) in wants {
        outcomes.push((place, reserve_one(tables, want, wait)?));
    }
    outcomes.sort_by_key(|(place, _)| *place);
    Ok(outcomes.into_iter().map(|(_, outcome)| outcome).collect())
}

fn reserve_one<T: Tables>(
    tables: &mut T,
    want: ReserveRequest,
    lock_wait: LockWait,
) -> Result<Outcome, T::Error> {
    let Some(tag) = tables.tag(&want.tag) else { return Ok(Outcome::Unknown) };
    let unfit = want.demand.unfit_to_create().filter(|_| want.create && holds(Guard::Dropped));
    let create = (want.create && unfit.is_none()).then(|| want.demand.share.unwrap_or(Share::ALL));
    // Only a transaction that holds the row lock raises the high-water mark. So the mark is read under the lock.
    let outcome = reserve(tables, &tag, create, lock_wait, |tables, row| {
        let high_water_mark = row.high_water_mark(tables.high_water_mark(&tag));
        row.admit(want.demand, high_water_mark)
    })?;
    Ok(match (outcome, unfit) {
        (Outcome::Unknown, Some(unfit)) => Outcome::Unfit(unfit),
        (outcome, _) => outcome,
    })
}
