//! The speed of series of each kind, compared with `nextval` and with a counter written by hand.

mod by_hand;
mod crowded;
mod gapless;
mod many;
mod restart;
mod warm;

use super::prelude::*;

pub fn measure(effort: Effort) -> Result<Outcome> {
    let gapless = gapless::measure(effort)?;
    let warm = warm::measure(effort)?;
    let crowded = crowded::measure(effort)?;
    let many = many::measure(effort)?;
    let restart = restart::measure(effort)?;
    Ok(gapless.and(warm).and(crowded).and(many).and(restart))
}
