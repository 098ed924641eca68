//! Keeps the saved high-water marks ahead of the ids that are issued, and logs clock steps.

use crate::issuer::issuer;
use crate::pg::clock::uptime;
use crate::pg::process;
use crate::pg::report::{self, for_log, new_report};
use crate::shared::generator::{SHARED, Shared};
use snowflake_ids_core::clock::human;
use snowflake_ids_core::server::issuer::IssuerError;
use snowflake_ids_core::server::state::Identity;
use snowflake_ids_core::{Generator, Node, Position};
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

/// The time after the last id during which the launcher keeps the high-water marks ahead of ids. A session that takes an id
/// within this time does not wait for a disk write.
const WARM: Duration = Duration::from_mins(10);
/// The pause after a failed write of the state file.
const RETRY: Duration = Duration::from_secs(1);

#[derive(Default)]
pub struct HighWaterMarkKeeper {
    /// The sum of all generators' next positions, and the sum of all generators' limits, at the last round in which one of
    /// the sums had changed.
    seen: (u64, u64),
    moved: Duration,
    /// The number of backward clock steps that were logged.
    steps_back: u64,
    steps_forward: u64,
    ahead: bool,
    /// The datacenter id and the worker id that the server chose, as logged.
    chosen: Option<(u32, u32)>,
    failure: Option<String>,
}

impl HighWaterMarkKeeper {
    pub fn begin(&mut self) {
        if let Some(shared) = SHARED.get() {
            // Within a transaction, the issuer reads what a previous primary stored. After an error, the first session
            // opens the state.
            let begun = process::transaction(|| issuer(shared).begin());
            begun.ok().and_then(|begun| self.record(begun));
        }
    }

    /// Does all work that is due. Returns the time until the next round; None if there will be no work.
    pub fn round(&mut self) -> Option<Duration> {
        let shared = SHARED.get()?;
        issuer(shared).watch();
        self.tell_of_clock(shared);
        self.tell_of_worker_id(shared);
        let seen = (sum(shared, Generator::next), sum(shared, Generator::limit));
        if seen != self.seen {
            (self.seen, self.moved) = (seen, uptime());
        }
        if uptime().saturating_sub(self.moved) >= WARM {
            return None;
        }
        let due = self.record(issuer(shared).keep_ahead());
        // The raised limits must not count as a use of ids in the next round.
        self.seen.1 = sum(shared, Generator::limit);
        due.unwrap_or(Some(RETRY))
    }

    /// Saves the exact positions of the last ids when the server stops.
    pub fn end(&mut self) {
        if let Some(shared) = SHARED.get() {
            self.record(issuer(shared).stop());
        }
    }

    fn record<T>(&mut self, done: Result<T, IssuerError>) -> Option<T> {
        match done {
            Ok(done) => {
                self.failure = None;
                Some(done)
            }
            Err(error) => {
                let message = error.to_string();
                if self.failure.as_ref() != Some(&message) {
                    for_log(&error).report(pgrx::PgLogLevel::WARNING);
                    self.failure = Some(message);
                }
                None
            }
        }
    }

    /// Logs the worker id that the server chose itself, once it has begun to issue ids.
    fn tell_of_worker_id(&mut self, shared: &Shared) {
        let is_chosen =
            matches!(shared.identity, Identity::Leased { .. }) && shared.status.alone.load(Relaxed);
        let snapshot = shared.generator.snapshot();
        if !is_chosen || snapshot.limit == Position::ZERO {
            return;
        }
        let Some(Node { datacenter, worker_id, .. }) = shared.layout.node_of(snapshot.node_bits) else {
            return;
        };
        if self.chosen.replace((datacenter, worker_id)) != Some((datacenter, worker_id)) {
            report::log(format!(
                "this server chose worker id {worker_id} of datacenter {datacenter} for its snowflake ids"
            ));
        }
    }

    fn tell_of_clock(&mut self, shared: &Shared) {
        let snapshot = shared.generator.snapshot();
        if snapshot.steps_back > self.steps_back
            && let Some(step) = snapshot.last_step_back
        {
            let more = snapshot.steps_back - self.steps_back;
            self.steps_back = snapshot.steps_back;
            let [from, to] = [step.from, step.to].map(|tick| shared.layout.instant(tick));
            let often = if more > 1 { format!(" the last of {more} times") } else { String::new() };
            let next = shared.layout.instant_of(shared.generator.next().max(snapshot.limit));
            let ids =
                if next > to { format!("Ids were issued or reserved up to {next}.") } else { String::new() };
            warn(
                format!("the clock was stepped back by {}", human(from.since(to))),
                format!("It showed {from}, and then {to}{often}. {ids}").trim_end().to_owned(),
            );
        }
        let counts = &shared.counts;
        let steps_forward = counts.steps_forward.load(Relaxed);
        if steps_forward > self.steps_forward {
            self.steps_forward = steps_forward;
            let by = human(Duration::from_micros(counts.last_step_forward.load(Relaxed)));
            report::log(format!("the clock was stepped forward by {by}, and snowflake ids follow"));
        }
        let ahead = shared.status.clock_ahead.load(Relaxed);
        if ahead > 0 && !self.ahead {
            warn(
                format!(
                    "the clock jumped ahead by {} and is not followed",
                    human(Duration::from_micros(ahead))
                ),
                format!(
                    "That is more than snowflake_ids.max_clock_jump, which is {}. Ids go on with the time that has really \
                     passed, until the clock is set back. If it is right, SELECT snowflake_ids.clock_accept().",
                    human(crate::settings::max_clock_jump())
                ),
            );
        }
        self.ahead = ahead > 0;
    }
}

fn sum(shared: &Shared, of: impl Fn(&Generator) -> Position) -> u64 {
    shared.generators().fold(0, |sum, generator| sum.wrapping_add(of(generator).0))
}

fn warn(message: String, detail: String) {
    use pgrx::{PgLogLevel, PgSqlErrorCode};
    new_report(PgSqlErrorCode::ERRCODE_WARNING, message).set_detail(detail).report(PgLogLevel::WARNING);
}
