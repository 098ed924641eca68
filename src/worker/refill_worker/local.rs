//! Reserving from the table of this database.

use super::job::Job;
use super::{RETRY, RETRY_AFTER_FAILURE};
use crate::pg::catalog::Source;
use crate::pg::clock::uptime;
use crate::pg::server;
use crate::pg::worker::{self, Failed};
use crate::segment::place;
use crate::shared::segments::Segments;
use crate::store::registry;
use crate::store::segment::{self as store, Create, Timeout};
use crate::worker::carry_over::CarryOvers;
use crate::worker::log;
use pgrx::PgLogLevel;
use pgrx::spi::SpiError;
use snowflake_ids_core::request::Answer;
use snowflake_ids_core::reservation::{Outcome, Row};
use std::time::Duration;

/// What came of it.
pub enum Served {
    /// All were served, but for those that need a pause before the next attempt.
    Here(Option<Duration>),
    /// The ids come from registries on other servers.
    Elsewhere,
}

/// What came of each job. None: the table that the job's tag was in is not there any more.
type Outcomes = Vec<Option<Outcome>>;

/// Reserves for all of them in one transaction, and publishes when it is durable.
pub fn serve(segments: &Segments, carry_overs: &CarryOvers, jobs: &[&Job]) -> Served {
    let started = uptime();
    // One that can't be served must not take the others with it: not twice.
    let (sound, troubled): (Vec<&Job>, Vec<&Job>) = jobs.iter().partition(|job| !job.is_troubled());
    let together = if sound.is_empty() {
        Ok(Served::Here(None))
    } else {
        serve_together(segments, carry_overs, &sound, started)
    };
    let (mut pause, left) = match together {
        Ok(Served::Here(pause)) => (pause, troubled),
        Ok(Served::Elsewhere) => return Served::Elsewhere,
        Err(_) => (None, [sound, troubled].concat()),
    };
    for job in left {
        if super::is_overdue() {
            return Served::Here(pause.max(Some(RETRY)));
        }
        match serve_together(segments, carry_overs, &[job], started) {
            Ok(Served::Here(another)) => pause = pause.max(another),
            Ok(Served::Elsewhere) => return Served::Elsewhere,
            Err(failure) => pause = pause.max(Some(failed(job, &failure))),
        }
    }
    Served::Here(pause)
}

/// One transaction for all of them.
fn serve_together(
    segments: &Segments,
    carry_overs: &CarryOvers,
    jobs: &[&Job],
    started: Duration,
) -> Result<Served, Failed> {
    let reserved = worker::transaction(|| reserve(carry_overs, jobs))?;
    let Some(outcomes) = reserved.map_err(|error| Failed::of_spi(&error))? else {
        return Ok(Served::Elsewhere);
    };
    let reserved = jobs.iter().zip(&outcomes).filter_map(|(job, outcome)| match outcome {
        Some(Outcome::Reserved(reserved)) => Some((job.source, &job.tag, reserved)),
        _ => None,
    });
    if !carry_overs.take_up(reserved) {
        // What was reserved is a gap.
        return Ok(Served::Here(Some(RETRY_AFTER_FAILURE)));
    }
    let took = uptime().saturating_sub(started);
    let both = jobs.iter().zip(outcomes);
    let pauses = both.map(|(job, outcome)| take_up(segments, job, outcome, took));
    Ok(Served::Here(pauses.max().flatten()))
}

/// None where the ids come from registries on other servers.
fn reserve(carry_overs: &CarryOvers, jobs: &[&Job]) -> Result<Option<Outcomes>, SpiError> {
    let source = Source::find();
    let is_elsewhere = || source.map_or(Ok(false), |source| source.as_owner(registry::in_use));
    if is_elsewhere()? {
        return Ok(None);
    }
    let one = |job: &&Job| match source {
        Some(source) if source.number() == job.source => source
            .as_owner(|| {
                let wish = |row: &Row| Ok(job.wish(carry_overs, job.floor(row)));
                store::reserve(&job.tag, create(job), timeout(job), wish)
            })
            .map(Some),
        _ => Ok(None),
    };
    let outcomes = jobs.iter().map(one).collect::<Result<_, _>>()?;
    // Once more: the rows are locked now, so that it can't change any more.
    Ok((!is_elsewhere()?).then_some(outcomes))
}

fn create(job: &Job) -> Create {
    if job.creates() { Create::Yes(None) } else { Create::No }
}

/// A row that was locked the last time is waited for: it may be locked again and again.
fn timeout(job: &Job) -> Timeout {
    if job.is_troubled() { Timeout::Some } else { Timeout::None }
}

/// Publishes what was reserved, and answers those who asked. Gives a pause where they have to go on waiting.
fn take_up(segments: &Segments, job: &Job, outcome: Option<Outcome>, took: Duration) -> Option<Duration> {
    match outcome {
        None => {
            place::leave_all(server::database(), Some(job.source));
            job.answer(Answer::NoTable);
        }
        Some(Outcome::Locked) => {
            job.note_locked();
            return Some(RETRY);
        }
        Some(Outcome::Reserved(reserved)) => {
            if !job.put_out(segments, &reserved, took) {
                job.give_back(&reserved);
            }
            job.supplied();
        }
        Some(denial) => job.deny(&denial),
    }
    None
}

/// Notes why a job could not be done; gives the pause before the next attempt.
fn failed(job: &Job, failure: &Failed) -> Duration {
    if job.note_failure(failure) {
        return RETRY;
    }
    log::once(PgLogLevel::WARNING, format!("snowflake_ids could not reserve ids: {}", failure.message));
    RETRY_AFTER_FAILURE
}
