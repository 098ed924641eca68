//! Numbers of a series, of each kind, beside `nextval` and a counter that is written by hand.

mod crowded;
mod gapless;
mod many;
mod once;
mod restart;
mod warm;

use super::prelude::*;

/// Sessions that take numbers at once.
const SESSIONS: usize = 16;

/// A counter of each key, as it is written by hand where there are no series.
const COUNTER: &str =
    "create table counter (key bigint primary key, n bigint not null) with (fillfactor = 50)";
/// Its next number; pgbench knows the key.
const BY_HAND: &str =
    "insert into counter as c values (:k, 1) on conflict (key) do update set n = c.n + 1 returning n";

pub fn measure(effort: Effort) -> Result<Outcome> {
    let gapless = gapless::measure(effort)?;
    let warm = warm::measure(effort)?;
    let once = once::measure(effort)?;
    let crowded = crowded::measure(effort)?;
    let many = many::measure(effort)?;
    let restart = restart::measure(effort)?;
    Ok(gapless.and(warm).and(once).and(crowded).and(many).and(restart))
}
