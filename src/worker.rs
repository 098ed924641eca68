//! The workers: one launcher for the server; a refill worker, which reserves segments, for each database that needs one
//! at the moment; and a lease worker while there is something to do about the lease of the worker id.
//!
//! Nothing is passed from process to process. Requests stand in shared memory; being called only means to look
//! there. So a worker may die at any moment, and a call may get lost, without a request being so.

pub mod carry_over;
pub mod launcher;
pub mod lease_worker;
pub mod log;
pub mod refill_worker;

use crate::pg::clock::uptime;
use crate::pg::wait::Event;
use crate::pg::worker;
use crate::segment::place;
use crate::shared::registries;
use crate::shared::segments::Segments;
use std::time::Duration;

/// Forgets what is in memory of a database of this oid, which is about to be created: all of it belongs to one that was
/// dropped. Nobody is connected to either. Where the creation fails, what was reserved for the former is a gap.
pub fn forget_database(database: u32) {
    place::leave_all(database, None);
    registries::forget(database);
}

/// How long a worker stays in a database without work.
const TIMEOUT: Duration = Duration::from_secs(2);

/// Sleeps where there is nothing to do since `last_work`, by uptime; whether the worker is to look again, or to leave.
fn rest(event: Event, last_work: Duration) -> bool {
    let idle = uptime().saturating_sub(last_work);
    let stays = idle < TIMEOUT;
    if stays {
        worker::show_activity(None);
        worker::sleep(event, TIMEOUT.saturating_sub(idle));
    }
    stays
}

/// The slots with requests that nobody has answered.
fn pending(segments: &Segments) -> Vec<usize> {
    segments.asked.places(|place| is_asked(segments, place))
}

fn is_asked(segments: &Segments, place: usize) -> bool {
    segments.slots.get(place).is_some_and(|slot| slot.request.pending().is_some())
}

/// Notes the slots with requests whose callers ended before they could note them.
fn note_pending(segments: &Segments) {
    let asked = (0..segments.slots.len()).filter(|place| is_asked(segments, *place));
    asked.for_each(|place| segments.asked.note(place));
}
