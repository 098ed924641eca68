//! A registry's side of requests for tags.

use crate::guard::{Guard, holds};
use crate::registry::wire::ReserveRequest;
use crate::sequence::directory::Tag;
use crate::sequence::reservation::{HighWaterMark, Outcome};
use crate::sequence::tag_rows::{Create, LockWait, TagRows, reserve};

/// The tables of a registry, within a transaction.
pub trait TagRegistry: TagRows {
    /// A tag in this database's encoding; None where it has letters that this database has not.
    fn tag(&mut self, text: &str) -> Option<Tag>;
    /// The highest id of transactions here that were rolled back.
    fn high_water_mark(&mut self, tag: &Tag) -> Option<HighWaterMark>;
}

/// Reserves in the order of the tags, so that two servers that want the same ones never wait for each other. A single tag
/// waits for its row, which many servers may want at once; several tags skip locked rows, so that none waits for another's.
pub fn reserve_all<R: TagRegistry>(
    rows: &mut R,
    wants: Vec<ReserveRequest>,
) -> Result<Vec<Outcome>, R::Error> {
    let wait = if wants.len() > 1 { LockWait::Skip } else { LockWait::Wait };
    let mut wants: Vec<(usize, ReserveRequest)> = wants.into_iter().enumerate().collect();
    wants.sort_by(|(_, one), (_, other)| one.tag.cmp(&other.tag));
    let mut outcomes = Vec::with_capacity(wants.len());
    for (place, want) in wants {
        outcomes.push((place, reserve_one(rows, want, wait)?));
    }
    outcomes.sort_by_key(|(place, _)| *place);
    Ok(outcomes.into_iter().map(|(_, outcome)| outcome).collect())
}

fn reserve_one<R: TagRegistry>(
    rows: &mut R,
    want: ReserveRequest,
    lock_wait: LockWait,
) -> Result<Outcome, R::Error> {
    let Some(tag) = rows.tag(&want.tag) else { return Ok(Outcome::Unknown) };
    let unfit = want.demand.unfit_to_create().filter(|_| want.create && holds(Guard::Dropped));
    let create = if want.create && unfit.is_none() { Create::Yes(want.demand.share) } else { Create::No };
    // The ids of transactions here that were rolled back are known when the row is locked.
    let outcome = reserve(rows, &tag, create, lock_wait, |rows, row| {
        let high_water_mark = row.high_water_mark(rows.high_water_mark(&tag));
        row.admit(want.demand, high_water_mark)
    })?;
    Ok(match (outcome, unfit) {
        (Outcome::Unknown, Some(unfit)) => Outcome::Unfit(unfit),
        (outcome, _) => outcome,
    })
}
