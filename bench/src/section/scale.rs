//! Many tags and many ids: the views at 100,000 tags, the slots of an idle database, and audits.

mod audit;
mod idle;
mod views;

use super::prelude::*;

pub fn measure(effort: Effort) -> Result<Outcome> {
    let views = views::measure(effort)?;
    let idle = idle::measure(effort)?;
    let audit = audit::measure(effort)?;
    Ok(views.and(idle).and(audit))
}
