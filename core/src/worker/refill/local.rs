//! Reserving from the table of this database.

use super::host::{CarryOvers, RefillHost};
use super::job::Job;
use super::slot::TagSlot;
use super::tables::{Database, Tables, TransactionError};
use super::worker::{RETRY, RETRY_AFTER_FAILURE, RefillWorker};
use crate::guard::{Guard, holds};
use crate::registry::link::RegistryLink;
use crate::sequence::request::Answer;
use crate::sequence::reservation::Outcome;
use crate::sequence::tag_rows::{Create, LockWait, TagRows, reserve};
use std::time::Duration;

/// What came of it.
pub enum LocalOutcome {
    /// All were served, but for those that need a pause before the next attempt.
    Here(Option<Duration>),
    /// The ids come from registries on other servers.
    Elsewhere,
}

/// What a transaction reserved.
enum Reservation {
    Done(Outcomes),
    /// The ids come from registries on other servers.
    Elsewhere,
    /// They should, and it is not known from which.
    Unregistered,
}

/// What came of each job. None: the table that the job's tag was in is not there any more.
type Outcomes = Vec<Option<Outcome>>;

impl<'h, H: RefillHost, L: RegistryLink, C: CarryOvers> RefillWorker<'h, H, L, C> {
    /// Reserves for all of them in one transaction, and publishes when it is durable.
    pub(super) fn serve_locally(&self, jobs: &[&Job<'h, H::Slot>]) -> LocalOutcome {
        let started = self.host.uptime();
        let were_locked: Vec<&Job<'_, _>> = jobs.iter().copied().filter(|job| job.was_locked()).collect();
        // One that cannot be served must not take the others with it: not twice.
        let (failed, sound): (Vec<&Job<'_, _>>, Vec<&Job<'_, _>>) =
            jobs.iter().partition(|job| job.has_failed());
        let together = if sound.is_empty() {
            Ok(LocalOutcome::Here(None))
        } else {
            self.serve_together(&sound, LockWait::Skip, started)
        };
        let mut alone: Vec<_> = failed.into_iter().map(|job| (job, LockWait::Skip)).collect();
        let mut pause = None;
        match together {
            Ok(LocalOutcome::Here(pause_of_them)) => {
                pause = pause_of_them;
                // A row that was locked the last time, too, may be locked again and again: it is waited for. So is one in a
                // round, each in its turn, as all others wait meanwhile.
                alone.extend(self.turn_of(&were_locked).map(|job| (job, LockWait::Wait)));
            }
            Ok(LocalOutcome::Elsewhere) => return LocalOutcome::Elsewhere,
            // No row was waited for: a table is locked.
            Err(failure) if failure.is_lock_timeout => {
                return LocalOutcome::Here(sound.iter().map(|job| self.failed(job, &failure)).max());
            }
            Err(_) => alone.extend(sound.into_iter().map(|job| (job, LockWait::Skip))),
        }
        for (job, wait) in alone {
            if self.host.is_overdue() {
                return LocalOutcome::Here(pause.max(Some(RETRY)));
            }
            match self.serve_together(&[job], wait, started) {
                Ok(LocalOutcome::Here(pause_of_it)) => pause = pause.max(pause_of_it),
                Ok(LocalOutcome::Elsewhere) => return LocalOutcome::Elsewhere,
                Err(failure) => pause = pause.max(Some(self.failed(job, &failure))),
            }
        }
        LocalOutcome::Here(pause)
    }

    /// One of these that are locked still, if any: another one each time.
    pub(super) fn turn_of<'j>(&self, were_locked: &[&'j Job<'h, H::Slot>]) -> Option<&'j Job<'h, H::Slot>> {
        let locked: Vec<&Job<'_, _>> =
            were_locked.iter().copied().filter(|job| job.was_locked() && !job.is_answered()).collect();
        let turn = self.turn.replace(self.turn.get().wrapping_add(1));
        locked.get(turn.checked_rem(locked.len())?).copied()
    }

    /// One transaction for all of them.
    fn serve_together(
        &self,
        jobs: &[&Job<'h, H::Slot>],
        wait: LockWait,
        started: Duration,
    ) -> Result<LocalOutcome, TransactionError> {
        let reserved = self.host.database().transaction(|tables| self.reserve(tables, jobs, wait))?;
        let outcomes = match reserved {
            Reservation::Done(outcomes) => outcomes,
            Reservation::Elsewhere => return Ok(LocalOutcome::Elsewhere),
            Reservation::Unregistered => {
                for job in jobs {
                    job.answer(Answer::NoRegistry);
                }
                return Ok(LocalOutcome::Here(None));
            }
        };
        let reserved = jobs.iter().zip(&outcomes).filter_map(|(job, outcome)| match outcome {
            Some(Outcome::Reserved(reserved)) => Some((job.source, &job.tag, reserved)),
            _ => None,
        });
        if holds(Guard::NotedFirst) && !self.carry_over.take_up(reserved) {
            // What was reserved is a gap.
            return Ok(LocalOutcome::Here(Some(RETRY_AFTER_FAILURE)));
        }
        let took = self.host.uptime().saturating_sub(started);
        let both = jobs.iter().zip(outcomes);
        let pauses = both.map(|(job, outcome)| self.take_up(job, outcome, took));
        Ok(LocalOutcome::Here(pauses.max().flatten()))
    }

    fn reserve<T: Tables>(
        &self,
        tables: &mut T,
        jobs: &[&Job<'h, H::Slot>],
        wait: LockWait,
    ) -> Result<Reservation, <T as TagRows>::Error> {
        let Some(source) = tables.source() else { return Ok(Reservation::Done(vec![None; jobs.len()])) };
        if tables.uses_registries()? {
            return Ok(Reservation::Elsewhere);
        }
        if tables.is_clustered()? {
            return Ok(Reservation::Unregistered);
        }
        let mut outcomes = Vec::with_capacity(jobs.len());
        for job in jobs {
            outcomes.push(if source == job.source {
                Some(reserve(tables, &job.tag, create(job), wait, |_, row| {
                    Ok(job.wish(
                        self.host.settings(),
                        self.carry_over.of(job.source, &job.tag),
                        job.floor(self.host, row),
                    ))
                })?)
            } else {
                None
            });
        }
        // Once more: the rows are locked now, so that it cannot change any more.
        let elsewhere = holds(Guard::StillLocal) && tables.uses_registries()?;
        Ok(if elsewhere { Reservation::Elsewhere } else { Reservation::Done(outcomes) })
    }

    /// Publishes what was reserved, and answers the callers. Gives a pause where they have to go on waiting.
    fn take_up(&self, job: &Job<'h, H::Slot>, outcome: Option<Outcome>, took: Duration) -> Option<Duration> {
        match outcome {
            None => {
                self.host.leave_table(job.source);
                job.answer(Answer::NoTable);
            }
            Some(Outcome::Locked) => {
                job.note_locked();
                return Some(RETRY);
            }
            Some(Outcome::Reserved(reserved)) => {
                if !job.put_out(self.host, &reserved, took) {
                    job.give_back(self.host.database(), &reserved);
                }
                job.supplied();
            }
            Some(denial) => job.deny(&denial),
        }
        None
    }

    /// Notes why a job could not be done; gives the pause before the next attempt.
    fn failed(&self, job: &Job<'h, H::Slot>, failure: &TransactionError) -> Duration {
        if job.note_failure(failure) {
            return RETRY;
        }
        self.host.say_once(format!("snowflake_ids could not reserve ids: {}", failure.message));
        RETRY_AFTER_FAILURE
    }
}

fn create<S: TagSlot>(job: &Job<'_, S>) -> Create {
    if job.creates() { Create::Yes(None) } else { Create::No }
}
