//! What is counted of a round.

use super::outcome::{Done, Fate, Outcome};
use crate::series::dense::counter::Left;
use crate::series::dense::host::{Reserved, RoundCounts};

/// Of one whose transaction is durable.
pub(super) fn count(departing: &[Left], (outcomes, fates): &Done) -> RoundCounts {
    let mut counts = RoundCounts { rounds: 1, ..RoundCounts::default() };
    for outcome in outcomes {
        if let Outcome::Reserved(Reserved::Numbers { first, last, .. }, _) = outcome {
            counts.reservations += 1;
            counts.reserved = counts.reserved.saturating_add(last.abs_diff(*first)).saturating_add(1);
        }
    }
    for (left, _) in departing.iter().zip(fates).filter(|(_, fate)| **fate == Fate::Gone) {
        counts.evictions += 1;
        counts.evicted = counts.evicted.saturating_add(left.limit.abs_diff(left.given));
    }
    counts
}
