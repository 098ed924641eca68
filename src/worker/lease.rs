//! Asking for a worker id on lease.

use crate::pg::shmem::generator::Shared;
use crate::pg::shmem::leases::{Leases, leases};
use crate::pg::shmem::segments::segments;
use crate::pg::text::legible;
use crate::pg::wait::Event;
use crate::settings;
use pgrx::pg_sys::panic::ErrorReport;
use pgrx::{PgSqlErrorCode, function_name};
use snowflake_ids_core::UnixMicros;
use snowflake_ids_core::request::Answer;
use std::fmt;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

/// Why there is none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoLease {
    /// What is wrong,
    pub message: String,
    /// the figures,
    pub detail: String,
    /// and the way out.
    pub hint: String,
}

/// Between the parts of one in shared memory.
const SEPARATOR: char = '\u{1f}';

impl NoLease {
    /// There is none yet.
    pub fn yet(detail: impl Into<String>, hint: impl Into<String>) -> Self {
        let message = "this server has no worker id yet".to_owned();
        Self { message, detail: detail.into(), hint: hint.into() }
    }

    /// As one text. What may be cut comes last.
    fn to_text(&self) -> String {
        format!("{}{SEPARATOR}{}{SEPARATOR}{}", self.message, self.hint, self.detail)
    }

    fn from_text(text: &str) -> Option<Self> {
        let mut parts = text.splitn(3, SEPARATOR).map(legible);
        let (message, hint, detail) = (parts.next()?, parts.next()?, parts.next()?);
        Some(Self { message, detail, hint })
    }
}

impl fmt::Display for NoLease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl From<NoLease> for ErrorReport {
    #[cold]
    fn from(none: NoLease) -> Self {
        Self::new(PgSqlErrorCode::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE, none.message, function_name!())
            .set_detail(none.detail)
            .set_hint(none.hint)
    }
}

/// Has the registrar lease a worker id, or another one where the clock is behind the ids of the present one; waits until
/// it has looked after that.
///
/// # Errors
/// [`NoLease`].
pub fn ask(shared: &Shared, other: bool, limit: Duration) -> Result<(), NoLease> {
    let Some(leases) = leases() else { return Err(silence()) };
    if other {
        leases.behind.store(shared.generator.era() + 1, Relaxed);
    }
    let ticket = leases.request.ask();
    call(leases);
    match leases.answered.wait(Event::Lease, limit, || leases.request.answer_to(ticket)) {
        Some(Answer::Supplied) => Ok(()),
        _ => Err(trouble().unwrap_or_else(silence)),
    }
}

/// Why there was no lease when the registrar looked last; None where there was one.
pub fn trouble() -> Option<NoLease> {
    NoLease::from_text(&leases()?.trouble.read().1)
}

/// Has the request looked at soon.
pub fn call(leases: &Leases) {
    let called = leases.desk.station.wake();
    if !called && let Some(segments) = segments() {
        segments.supervisor.wake();
    }
}

/// Answers all who asked up to this ticket.
pub fn answer(leases: &Leases, ticket: u64, outcome: Result<(), NoLease>) {
    let answer = if outcome.is_ok() { Answer::Supplied } else { Answer::Exhausted };
    note(leases, outcome.err().as_ref());
    leases.request.answer(ticket, answer);
    leases.answered.broadcast();
}

/// Notes why there is no lease, for those who wait in vain.
pub fn note(leases: &Leases, trouble: Option<&NoLease>) {
    leases.trouble.write(&trouble.map(NoLease::to_text).unwrap_or_default());
}

/// The time until a lease has to be renewed: until a quarter of the time for which ids are leased is gone.
pub fn until_renewal(horizon: UnixMicros, now: UnixMicros) -> Duration {
    Duration::from_micros(horizon.since(now)).saturating_sub(settings::lease_horizon() / 4 * 3)
}

fn silence() -> NoLease {
    let manned = segments().is_some_and(|segments| segments.supervisor.is_manned());
    if !manned {
        return no_worker();
    }
    NoLease::yet(
        "The background worker that leases one has not come to it in time.",
        "Look at \"snowflake_ids registrar\" in pg_stat_activity, and at the server's log.",
    )
}

/// All of the server's workers are in use.
pub fn no_worker() -> NoLease {
    NoLease::yet(
        "No background worker could be started to lease one: all max_worker_processes are in use.",
        "Raise max_worker_processes and restart the server. Calls succeed as soon as a worker ends.",
    )
}
