//! Serving tags from a registry: this database's table of tags is one, other servers have the others.

use super::host::{Database, RefillHost, SavedRangeSource, Tables, TransactionError};
use super::task::RefillTask;
use crate::guard::{Guard, holds};
use crate::registry::error::{RegistryError, SqlError};
use crate::sequence::reservation::{Outcome, Reserved};
use crate::sequence::slot::Trouble;
use crate::sequence::tag_rows::{LockWait, TagRows};
use crate::sequence::tickets::Answer;
use std::cell::Cell;
use std::time::Duration;

/// Reason why a registry reserved nothing.
pub enum RefillError {
    /// It gave no response.
    Away(RegistryError),
    /// A transaction on this database's table of tags failed.
    Here(TransactionError),
    /// A transaction for what another server gave, or was to give, failed here.
    Unnoted(TransactionError),
    /// The ids come from other servers.
    Elsewhere,
    /// They should, and it is not known from which.
    Unregistered,
    /// It is not asked again so soon.
    Paused,
}

impl RefillError {
    /// Returns whether it may be one tag that cannot be served, and not the registry.
    fn is_of_tag(&self) -> bool {
        match self {
            Self::Away(error) => error.is_of_tag(),
            // A table is locked.
            Self::Here(failed) => !failed.is_lock_timeout,
            _ => false,
        }
    }
}

/// A registry, as a refill reserves from it.
pub trait RefillRegistry<S> {
    /// The most tags of a request.
    const MOST: usize;

    /// Returns the number of registries that serve the same tags.
    fn count(&self) -> usize;
    /// Returns whether to wait for one of so many rows that were locked in this round, among so many tags in all.
    fn waits(&self, locked: usize, tags: usize) -> bool;
    /// Reserves ids of all these tags. The outcomes are in their order; None stands for a tag whose table is gone.
    ///
    /// # Errors
    /// Nothing may be handed out.
    fn reserve(
        &mut self,
        tasks: &[&RefillTask<'_, S>],
        wait: LockWait,
    ) -> Result<Vec<Option<Outcome>>, RefillError>;
    /// Gives ids back that were not published, where that takes no other request. Else they are a gap.
    fn give_back(&self, _task: &RefillTask<'_, S>, _reserved: &Reserved) {}
}

/// The parts of a refill worker that serve from any registry.
pub struct Refill<'h, H, C> {
    pub host: &'h H,
    pub saved_range: C,
    /// Rows that are locked are waited for in turns.
    pub turn: Cell<usize>,
}

/// Jobs, as they are passed from one registry to the next.
pub type Tasks<'j, 'h, H> = Vec<&'j RefillTask<'h, <H as RefillHost>::Slot>>;

impl<'h, H: RefillHost, C: SavedRangeSource> Refill<'h, H, C> {
    /// Serves jobs from one registry, which waits for no row that is locked: but for one that was locked the last time, too, in a
    /// request of its own. Another one is waited for in each round, as all others wait meanwhile. Returns the jobs without an answer.
    pub fn serve<'j, R: RefillRegistry<H::Slot>>(
        &self,
        registry: &mut R,
        tasks: &[&'j RefillTask<'h, H::Slot>],
    ) -> Tasks<'j, 'h, H> {
        let were_locked: Vec<(&'j RefillTask<'h, H::Slot>, usize)> =
            tasks.iter().filter(|task| task.was_locked()).map(|task| (*task, task.denials())).collect();
        let waits = registry.waits(were_locked.len(), tasks.len());
        // One that cannot be served must not take the others with it: not twice.
        let (failed, sound): (Tasks<'j, 'h, H>, Tasks<'j, 'h, H>) =
            tasks.iter().partition(|task| task.has_failed());
        let (mut left, serves) = self.ask_each(registry, sound.chunks(R::MOST).chain(failed.chunks(1)));
        if serves
            && waits
            && let Some(task) = self.turn_of(&were_locked)
        {
            left.retain(|other| !std::ptr::eq(*other, task));
            left.extend(self.ask(registry, &[task], LockWait::Wait).0);
        }
        left
    }

    /// One of these that are locked still, if any: another one each time. Those with another number of denials than before have been
    /// denied here, and are not locked.
    fn turn_of<'j>(
        &self,
        were_locked: &[(&'j RefillTask<'h, H::Slot>, usize)],
    ) -> Option<&'j RefillTask<'h, H::Slot>> {
        let is_locked = |task: &RefillTask<'_, H::Slot>, before| {
            task.was_locked() && !task.is_answered() && task.denials() == before
        };
        let locked: Tasks<'j, 'h, H> = were_locked
            .iter()
            .filter(|(task, before)| is_locked(task, *before))
            .map(|(task, _)| *task)
            .collect();
        let turn = self.turn.replace(self.turn.get().wrapping_add(1));
        locked.get(turn.checked_rem(locked.len())?).copied()
    }

    /// Sends one request after the other until the registry can serve none, or the worker is to leave: the first one is sent in any
    /// case. Returns the jobs without an answer, and whether the registry serves others.
    fn ask_each<'a, 'j: 'a, R: RefillRegistry<H::Slot>>(
        &self,
        registry: &mut R,
        requests: impl Iterator<Item = &'a [&'j RefillTask<'h, H::Slot>]>,
    ) -> (Tasks<'j, 'h, H>, bool)
    where
        'h: 'a,
        H::Slot: 'a,
    {
        let (mut left, mut serves) = (Vec::new(), true);
        for (index, request) in requests.enumerate() {
            serves = serves && (index == 0 || !self.host.is_overdue());
            if serves {
                let (unanswered, goes_on) = self.ask(registry, request, LockWait::Skip);
                left.extend(unanswered);
                serves = goes_on;
            } else {
                left.extend(request);
            }
        }
        (left, serves)
    }

    fn ask<'j, R: RefillRegistry<H::Slot>>(
        &self,
        registry: &mut R,
        tasks: &[&'j RefillTask<'h, H::Slot>],
        wait: LockWait,
    ) -> (Tasks<'j, 'h, H>, bool) {
        let started = self.host.uptime();
        let mut serves = true;
        match registry.reserve(tasks, wait) {
            Ok(outcomes) if self.record_taken_up(tasks, &outcomes) => {
                let took = self.host.uptime().saturating_sub(started);
                for (task, outcome) in tasks.iter().zip(outcomes) {
                    self.take_up(registry, task, outcome, took);
                }
            }
            // The reserved ids are a gap.
            Ok(outcomes) => {
                let reserved = |outcome: &Option<Outcome>| matches!(outcome, Some(Outcome::Reserved(_)));
                let lost = tasks.iter().zip(&outcomes).filter(|(_, outcome)| reserved(outcome));
                lost.for_each(|(task, _)| task.record_locked());
                serves = false;
            }
            // One that cannot be served must not take the others with it.
            Err(failure) if failure.is_of_tag() && tasks.len() > 1 => {
                return self.ask_each(registry, tasks.chunks(1));
            }
            Err(failure) => {
                for task in tasks {
                    self.record(&failure, task);
                }
                serves = failure.is_of_tag() || matches!(failure, RefillError::Unregistered);
            }
        }
        (tasks.iter().copied().filter(|task| !task.is_answered()).collect(), serves)
    }

    /// Notes durably which saved ranges were taken up; false: none of what was reserved may be handed out.
    fn record_taken_up(&self, tasks: &[&RefillTask<'h, H::Slot>], outcomes: &[Option<Outcome>]) -> bool {
        let reserved = tasks.iter().zip(outcomes).filter_map(|(task, outcome)| match outcome {
            Some(Outcome::Reserved(reserved)) => Some((task.source, &task.tag, reserved)),
            _ => None,
        });
        !holds(Guard::RecordedFirst) || self.saved_range.take_up(reserved)
    }

    /// Publishes what was reserved, and answers the callers.
    fn take_up<R: RefillRegistry<H::Slot>>(
        &self,
        registry: &R,
        task: &RefillTask<'h, H::Slot>,
        outcome: Option<Outcome>,
        took: Duration,
    ) {
        match outcome {
            None => {
                self.host.leave_table(task.source);
                task.answer(Answer::NoTable);
            }
            Some(Outcome::Reserved(reserved)) => {
                if !task.put_out(self.host, &reserved, took) {
                    registry.give_back(task, &reserved);
                }
                task.supplied();
            }
            Some(Outcome::Locked) => task.record_locked(),
            Some(denial @ (Outcome::Unknown | Outcome::Exhausted(_))) => {
                task.deny(&denial, registry.count());
            }
            Some(Outcome::Unfit(_) | Outcome::Garbled(_)) => {}
        }
    }

    /// Notes why a job could not be done.
    pub fn record(&self, failure: &RefillError, task: &RefillTask<'h, H::Slot>) {
        let failed = |code, what: &str, why: &str| {
            self.host.say_once(format!("snowflake_ids could not {what}: {why}"));
            Trouble::Failed(code)
        };
        let trouble = match failure {
            RefillError::Away(error) if error.is_conflict() => Trouble::RowLocked,
            RefillError::Away(error) => match error.sqlstate().filter(|_| error.is_of_tag()) {
                Some(code) => failed(code, "reserve ids of a registry", &error.to_string()),
                None => Trouble::Registry,
            },
            RefillError::Here(error) | RefillError::Unnoted(error) if error.is_lock_timeout => {
                Trouble::RowLocked
            }
            RefillError::Here(error) => failed(error.code, "reserve ids", &error.message),
            RefillError::Unnoted(error) => failed(error.code, "record ids that it received", &error.message),
            RefillError::Unregistered => return task.answer(Answer::NoRegistry),
            RefillError::Elsewhere | RefillError::Paused => return,
        };
        task.record_trouble(trouble);
    }

    /// Runs a transaction for what other servers give.
    pub fn transaction<T>(
        &self,
        work: impl FnOnce(
            &mut <H::Database as Database>::Tables,
        ) -> Result<T, <<H::Database as Database>::Tables as TagRows>::Error>,
    ) -> Result<T, RefillError> {
        let there = |tables: &mut <H::Database as Database>::Tables| match tables.source() {
            Some(_) => work(tables).map(Some),
            None => Ok(None),
        };
        let done = self.host.database().transaction(there).map_err(RefillError::Unnoted)?;
        let gone = || {
            RefillError::Away(RegistryError::NoServer(SqlError::new(*b"42704", "the extension was dropped")))
        };
        done.ok_or_else(gone)
    }
}
