//! Refill of tags from one registry: this database's own table of tags, or another server.

use super::host::{RefillHost, Tables};
use super::task::RefillTask;
use crate::guard::{Guard, holds};
use crate::registry::error::{RegistryError, SqlError};
use crate::server::saved_range_file::{SavedRangeFile, SavedRanges};
use crate::tag::reservation::{Outcome, Reserved};
use crate::tag::slot::Trouble;
use crate::tag::tag_rows::{LockWait, TagRows};
use crate::tag::tickets::Answer;
use std::cell::Cell;
use std::time::Duration;

/// The reason why a registry reserved no ids.
pub enum RefillError {
    /// The registry gave no response.
    Away(RegistryError),
    /// A transaction on this database's own table of tags failed.
    Here(SqlError),
    /// A local transaction that reads or writes received ids failed.
    Unnoted(SqlError),
    /// The ids come from registries on other servers.
    Elsewhere,
    /// The server belongs to a cluster and does not use the cluster's registry yet.
    Unregistered,
    /// The registry is asked again only after a pause.
    Paused,
}

impl RefillError {
    /// Returns whether the error may concern a single tag, and not the registry as a whole.
    fn is_of_tag(&self) -> bool {
        match self {
            Self::Away(error) => error.is_of_tag(),
            // A lock timeout concerns the whole table.
            Self::Here(failed) => !failed.is_lock_timeout(),
            _ => false,
        }
    }
}

/// A registry, as a refill round uses it.
pub trait RefillRegistry<S> {
    /// The largest number of tags in a request.
    const MOST: usize;

    /// Returns the number of registries that serve the same tags.
    fn count(&self) -> usize;
    /// Returns whether to wait for a locked row in this round. `locked` is the number of tags whose row was locked, and
    /// `tags` is the number of all tags.
    fn waits(&self, locked: usize, tags: usize) -> bool;
    /// Reserves ids of all these tags. The outcomes have the order of `tasks`. An outcome of None means that the tag's
    /// table was dropped.
    ///
    /// # Errors
    /// [`RefillError`]. The caller must then hand out no ids.
    fn reserve(
        &mut self,
        tasks: &[&RefillTask<'_, S>],
        wait: LockWait,
    ) -> Result<Vec<Option<Outcome>>, RefillError>;
    /// Gives back ids that could not be published. The ids become a gap if giving them back would need another request.
    fn give_back(&self, _task: &RefillTask<'_, S>, _reserved: &Reserved) {}
}

/// The parts of a refill worker that do not depend on the kind of registry.
pub struct Refill<'h, H, F> {
    pub host: &'h H,
    pub saved_ranges: SavedRanges<F>,
    /// The number of rounds, which selects the locked row to wait for.
    pub turn: Cell<usize>,
}

pub type Tasks<'j, 'h, H> = Vec<&'j RefillTask<'h, <H as RefillHost>::Slot>>;

impl<'h, H: RefillHost, F: SavedRangeFile> Refill<'h, H, F> {
    /// Serves tasks from one registry. Returns the tasks without an answer.
    ///
    /// Most requests skip locked rows. In each round, one extra request may wait for a row that was also locked in the
    /// last round. All other tags wait meanwhile, so the next round chooses a different row.
    pub fn serve<'j, R: RefillRegistry<H::Slot>>(
        &self,
        registry: &mut R,
        tasks: &[&'j RefillTask<'h, H::Slot>],
    ) -> Tasks<'j, 'h, H> {
        let were_locked: Vec<(&'j RefillTask<'h, H::Slot>, usize)> =
            tasks.iter().filter(|task| task.was_locked()).map(|task| (*task, task.denials())).collect();
        let waits = registry.waits(were_locked.len(), tasks.len());
        // A task that failed before gets a request of its own, so that its error does not affect the other tasks.
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

    /// Returns a task whose row is still locked. Each round returns a different task. A changed number of denials shows
    /// that the registry answered for the task in this round, so the task's row is not locked.
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

    /// Sends one request after another until the registry fails or the worker has to exit. The first request is always sent.
    /// Returns the tasks without an answer, and whether the registry can serve more requests.
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
            // The consumed parts of saved ranges could not be recorded, so the reserved ids become a gap.
            Ok(outcomes) => {
                let reserved = |outcome: &Option<Outcome>| matches!(outcome, Some(Outcome::Reserved(_)));
                let lost = tasks.iter().zip(&outcomes).filter(|(_, outcome)| reserved(outcome));
                lost.for_each(|(task, _)| task.record_locked());
                serves = false;
            }
            // One tag may have caused the error, so each tag gets a request of its own.
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

    /// Records the consumed parts of saved ranges durably. Returns false on failure. No reserved id may be handed out in
    /// that case.
    fn record_taken_up(&self, tasks: &[&RefillTask<'h, H::Slot>], outcomes: &[Option<Outcome>]) -> bool {
        let reserved = tasks.iter().zip(outcomes).filter_map(|(task, outcome)| match outcome {
            Some(Outcome::Reserved(reserved)) => Some((task.source, &task.tag, reserved)),
            _ => None,
        });
        !holds(Guard::RecordedFirst) || self.saved_ranges.take_up(reserved)
    }

    /// Publishes reserved ids, and answers the waiting sessions.
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
            RefillError::Here(error) | RefillError::Unnoted(error) if error.is_lock_timeout() => {
                Trouble::RowLocked
            }
            RefillError::Here(error) => failed(error.sqlstate(), "reserve ids", &error.message),
            RefillError::Unnoted(error) => {
                failed(error.sqlstate(), "record ids that it received", &error.message)
            }
            RefillError::Unregistered => return task.answer(Answer::NoRegistry),
            RefillError::Elsewhere | RefillError::Paused => return,
        };
        task.record_trouble(trouble);
    }

    /// Runs a transaction that reads or writes received ids.
    pub fn transaction<T>(
        &self,
        work: impl FnOnce(&mut H::Tables) -> Result<T, <H::Tables as TagRows>::Error>,
    ) -> Result<T, RefillError> {
        let there = |tables: &mut H::Tables| match tables.source() {
            Some(_) => work(tables).map(Some),
            None => Ok(None),
        };
        let done = self.host.transaction(there).map_err(RefillError::Unnoted)?;
        let gone = || {
            RefillError::Away(RegistryError::NoServer(SqlError::new(*b"42704", "the extension was dropped")))
        };
        done.ok_or_else(gone)
    }
}
