//! Requests of this session for a leased worker id.

use crate::pg::encoding::legible;
use crate::pg::report;
use crate::pg::wait::Event;
use crate::settings;
use crate::shared::generator::Shared;
use crate::shared::leases::{LEASES, Leases};
use crate::shared::segments::SEGMENTS;
use snowflake_ids_core::registry::lease_worker::LeaseSettings;
use snowflake_ids_core::server::lease::LeaseError;
use snowflake_ids_core::tag::tickets::Answer;
use std::time::Duration;

/// The longest time that a call waits for the lease of a worker id.
const WAIT: Duration = Duration::from_secs(5);
/// The separator between the parts of a [`LeaseError`] in shared memory.
const SEPARATOR: char = '\u{1f}';

/// Joins the parts of the error into one text. The text may be cut off in shared memory, so the less important parts come
/// last.
fn to_text(none: &LeaseError) -> String {
    let LeaseError { message, detail, hint, holders } = none;
    format!("{message}{SEPARATOR}{hint}{SEPARATOR}{detail}{SEPARATOR}{holders}")
}

fn from_text(text: &str) -> Option<LeaseError> {
    let mut parts = text.splitn(4, SEPARATOR).map(legible);
    let (message, hint, detail, holders) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
    Some(LeaseError { message, detail, hint, holders })
}

/// Asks the lease worker for a worker id, and waits for the lease worker's answer. With `other`, asks for a different worker
/// id, because the clock is behind ids of the present worker id.
pub fn ask(shared: &Shared, other: bool) -> Result<(), LeaseError> {
    let Some(leases) = LEASES.get() else { return Err(silence()) };
    if other {
        leases.requests.want_another(shared.generation());
    }
    let ticket = leases.requests.request.ask();
    call(leases);
    let answer = leases.answered.wait(Event::Lease, WAIT, || leases.requests.request.answer_to(ticket));
    match answer {
        Some(Answer::Supplied) => Ok(()),
        _ => Err(trouble().unwrap_or_else(silence)),
    }
}

/// Requests a renewal of the lease even if the renewal is not due yet.
pub fn ask_to_renew() {
    if let Some(leases) = LEASES.get() {
        leases.requests.ask_to_renew();
        call(leases);
    }
}

/// Requests a renewal of the lease even if the renewal is not due yet, and then calls [`ask`].
pub fn renew(shared: &Shared) -> Result<(), LeaseError> {
    ask_to_renew();
    ask(shared, false)
}

/// Returns the last failure to get or renew a lease; None if the last attempt succeeded.
pub fn trouble() -> Option<LeaseError> {
    from_text(&LEASES.get()?.trouble.read().1)
}

/// Returns the foreign server of the registry that leases the worker id; None if the worker id comes from this server.
pub fn origin() -> Option<String> {
    Some(LEASES.get()?.origin.read().1).filter(|origin| !origin.is_empty())
}

/// Wakes the lease worker, or the launcher if no lease worker runs.
pub fn call(leases: &Leases) {
    let called = leases.worker_slot.worker_latch.wake();
    if !called && let Some(segments) = SEGMENTS.get() {
        segments.launcher.wake();
    }
}

/// Answers all callers that hold `ticket` or an earlier ticket.
pub fn answer(leases: &Leases, ticket: u64, outcome: Result<(), LeaseError>) {
    let answer = if outcome.is_ok() { Answer::Supplied } else { Answer::Exhausted };
    record(leases, outcome.err().as_ref());
    leases.requests.request.answer(ticket, answer);
    leases.answered.broadcast();
}

/// Publishes a failure to get or renew a lease; None clears the failure. A session that gets no worker id shows the failure
/// in its error message.
pub fn record(leases: &Leases, trouble: Option<&LeaseError>) {
    let former = leases.trouble.read().1;
    let text = trouble.map(to_text).unwrap_or_default();
    if let Some(none) = trouble.filter(|none| !none.holders.is_empty() && former != text) {
        report::log(format!("{none}: {} {}", none.detail, none.holders));
    }
    leases.trouble.write(&text);
}

/// Returns the present values of the settings that leases depend on.
pub fn settings() -> LeaseSettings {
    LeaseSettings {
        policy: settings::worker_id_policy(),
        max_clock_skew: settings::max_clock_skew(),
        duration: settings::lease_duration(),
    }
}

fn silence() -> LeaseError {
    let manned = SEGMENTS.get().is_some_and(|segments| segments.launcher.is_occupied());
    if !manned {
        return no_worker();
    }
    LeaseError::yet(
        "The background worker has not leased a worker id in time.",
        "Look at \"snowflake_ids lease worker\" in pg_stat_activity, and at the server's log.",
    )
}

/// Returns the error for a missing lease worker. The usual cause is that the server already runs `max_worker_processes`
/// background workers.
pub fn no_worker() -> LeaseError {
    LeaseError::yet(
        "No background worker is running to lease a worker id: one is about to start, or all max_worker_processes are in use.",
        "Calls succeed as soon as a worker runs. If no worker starts, raise max_worker_processes and restart the server.",
    )
}
