//! Ids that 32 sessions get from one tag, first after the tag's steps have adapted to the sessions, then from a new tag's first
//! moment. Also the ids' cost in WAL.

mod cold;
mod durable;
mod hot;
mod tag;

use super::prelude::*;

pub fn measure(effort: Effort) -> Result<Outcome> {
    let server = server::start(&wal::ONLY_OURS)?;
    let mut session = Session::open(&server)?;
    let adapted = hot::measure(&server, &mut session, effort)?;
    let from_the_start = cold::measure(&server, &mut session, effort)?;
    let durably = durable::measure(&server, &mut session, effort)?;
    Ok(adapted.and(from_the_start).and(durably))
}
