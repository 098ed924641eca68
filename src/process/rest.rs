//! The pause of a worker without work.

use crate::pg::clock::uptime;
use crate::pg::process;
use crate::pg::wait::Event;
use std::time::Duration;

/// The time that a worker without work stays in its database.
const TIMEOUT: Duration = Duration::from_secs(2);

/// Sleeps if the last work ended recently. `last_work` is the uptime at the end of that work. Returns false if the worker
/// must leave.
pub fn rest(event: Event, last_work: Duration) -> bool {
    let idle = uptime().saturating_sub(last_work);
    let stays = idle < TIMEOUT;
    if stays {
        process::show_activity(None);
        process::sleep(event, TIMEOUT.saturating_sub(idle));
    }
    stays
}
