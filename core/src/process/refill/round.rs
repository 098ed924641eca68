//! A round: the refill of tags from one registry, which is this database's own table of tags or another server.

use super::task::{RefillHost, RefillTask};
use super::worker::{RefillError, RefillWorker};
use crate::guard::{Guard, holds};
use crate::registry::client::Network;
use crate::registry::link::Endpoint;
use crate::registry::tables::LockWait;
use crate::registry::wire::MAX_WANTS;
use crate::server::saved_range_file::SavedRangeFile;
use crate::tag::reservation::Outcome;
use crate::tag::slot::Trouble;
use crate::tag::tickets::Answer;
use std::time::Duration;

/// The registry that a round asks.
#[derive(Clone, Copy)]
pub enum Registry<'e> {
    /// This database's own table of tags.
    Own,
    /// A registry on another server, and the number of registries in use.
    Other(&'e Endpoint, usize),
}

impl Registry<'_> {
    /// Returns the largest number of tags in a request.
    fn most(self) -> usize {
        if let Self::Own = self { usize::MAX } else { MAX_WANTS }
    }

    /// Returns the number of registries that serve the same tags.
    fn count(self) -> usize {
        if let Self::Other(_, count) = self { count } else { 1 }
    }
}

pub type Tasks<'j, 'h, H> = Vec<&'j RefillTask<'h, <H as RefillHost>::Slot>>;

impl<'h, H: RefillHost, N: Network, F: SavedRangeFile> RefillWorker<'h, H, N, F> {
    /// Serves tasks from one registry. Returns the tasks without an answer.
    ///
    /// Most requests skip locked rows. In each round, one extra request may wait for a row that was also locked in the
    /// last round. All other tags wait meanwhile, so the next round chooses a different row.
    pub(super) fn serve_from<'j>(
        &mut self,
        registry: Registry<'_>,
        tasks: &[&'j RefillTask<'h, H::Slot>],
    ) -> Tasks<'j, 'h, H> {
        let were_locked: Vec<(&'j RefillTask<'h, H::Slot>, usize)> =
            tasks.iter().filter(|task| task.was_locked()).map(|task| (*task, task.denials())).collect();
        let waits = match registry {
            Registry::Own => true,
            Registry::Other(..) => self.waits(were_locked.len(), tasks.len()),
        };
        // A task that failed before gets a request of its own, so that its error does not affect the other tasks.
        let (failed, sound): (Tasks<'j, 'h, H>, Tasks<'j, 'h, H>) =
            tasks.iter().partition(|task| task.has_failed());
        let (mut left, serves) =
            self.ask_each(registry, sound.chunks(registry.most()).chain(failed.chunks(1)));
        if serves
            && waits
            && let Some(task) = self.row_to_wait_for(&were_locked)
        {
            left.retain(|other| !std::ptr::eq(*other, task));
            left.extend(self.ask(registry, &[task], LockWait::Wait).0);
        }
        left
    }

    /// Returns a task whose row is still locked. Each round returns a different task. A changed number of denials shows
    /// that the registry answered for the task in this round, so the task's row is not locked.
    fn row_to_wait_for<'j>(
        &mut self,
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
        let round = self.rounds;
        self.rounds = round.wrapping_add(1);
        locked.get(round.checked_rem(locked.len())?).copied()
    }

    /// Sends one request after another until the registry fails or the worker has to exit. The first request is always sent.
    /// Returns the tasks without an answer, and whether the registry can serve more requests.
    fn ask_each<'a, 'j: 'a>(
        &mut self,
        registry: Registry<'_>,
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

    fn ask<'j>(
        &mut self,
        registry: Registry<'_>,
        tasks: &[&'j RefillTask<'h, H::Slot>],
        wait: LockWait,
    ) -> (Tasks<'j, 'h, H>, bool) {
        let started = self.host.uptime();
        let mut serves = true;
        let reserved = match registry {
            Registry::Own => self.reserve_locally(tasks, wait),
            Registry::Other(endpoint, count) => self.reserve_remotely(endpoint, count, tasks, wait),
        };
        match reserved {
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
    fn take_up(
        &self,
        registry: Registry<'_>,
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
                // Ids of another server become a gap: giving them back would need another request.
                if !task.put_out(self.host, &reserved, took) && matches!(registry, Registry::Own) {
                    self.give_back(task, &reserved);
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

    pub(super) fn record(&self, failure: &RefillError, task: &RefillTask<'h, H::Slot>) {
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
}
