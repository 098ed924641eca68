//! The tasks of the refill worker, and its host: the process, and the memory that it shares with sessions.

use crate::clock::Clock;
use crate::registry::error::SqlError;
use crate::registry::tables::Tables;
use crate::tag::directory::Tag;
use crate::tag::reservation::{Demand, HighWaterMark, Outcome, Reached, Reserved, SavedRange, TagRow};
use crate::tag::segment::{Stamp, Supply};
use crate::tag::slot::{SlotState, TagSlot, Trouble};
use crate::tag::step::WAITED_LATELY;
use crate::tag::tickets::Answer;
use std::cell::Cell;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

/// A tag that needs ids.
pub struct RefillTask<'s, S> {
    /// The tag's slot.
    pub slot: &'s S,
    /// The tag.
    pub tag: Tag,
    /// The table of the tag.
    pub source: u32,
    /// The ticket of the newest request. An answer goes to all requests with tickets up to this ticket.
    ticket: u64,
    /// The slot's generation when the task was created, and the number of clearings of the slot's buffers when the row
    /// was locked. Ids are published only if both are unchanged.
    stamp: Cell<Stamp>,
    /// The number of registries that do not have the tag, or have no ids of the tag left.
    denials: Cell<usize>,
}

impl<'s, S: TagSlot> RefillTask<'s, S> {
    /// Returns the task of a slot. Returns None if no request is pending. The caller holds the directory lock, so the
    /// slot belongs to the tag.
    pub fn new(slot: &'s S, tag: Tag, source: u32) -> Option<Self> {
        let ticket = slot.state().request.pending()?;
        let stamp = Cell::new(slot.state().segment.stamp());
        Some(Self { slot, tag, source, ticket, stamp, denials: Cell::new(0) })
    }

    /// Returns the state of the slot.
    pub fn state(&self) -> &'s SlotState {
        self.slot.state()
    }

    /// Returns whether the buffers have room, or hold ids of a period that is over.
    pub fn needs_ids(&self, clock: &impl Clock) -> bool {
        let buffer_states = self.state().segment.buffer_states();
        buffer_states.have_room() || buffer_states.is_over(clock)
    }

    /// Returns whether a missing tag is to be created.
    pub fn creates(&self) -> bool {
        self.state().request.creates()
    }

    /// Returns the demand of the tag. For the local table, the caller holds the row lock.
    pub fn demand(
        &self,
        host: &impl RefillHost,
        saved_range: Option<SavedRange>,
        high_water_mark: Option<Reached>,
    ) -> Demand {
        let (slot, uptime, settings) = (self.state(), host.uptime(), host.settings());
        let most = slot.slow_start().map(|slow_start| slow_start.most(slot.wanted()));
        // A last segment that says nothing about demand counts as a segment that lasted exactly the target time. The
        // step then stays the same.
        let says_nothing = most.is_some() || slot.was_cut_short();
        let lasted = slot.lasted(uptime).map(|lasted| if says_nothing { settings.target } else { lasted });
        let clearings = slot.segment.stamp().clearings;
        self.stamp.set(Stamp { clearings, ..self.stamp.get() });
        Demand {
            saved_range,
            pace: slot.pace(),
            lasted,
            target: settings.target,
            waited_lately: most.is_none() && slot.waited_ago(uptime).is_some_and(|ago| ago < WAITED_LATELY),
            prefetch: settings.prefetch,
            high_water_mark,
            received: None,
            share: None,
            most,
            clock: None,
        }
    }

    /// Returns the highest id that rolled-back transactions handed out for the tag. The caller holds the row lock.
    pub fn high_water_mark(&self, host: &impl RefillHost, row: &TagRow) -> Option<Reached> {
        let recorded = host.high_water_mark(self.source, &self.tag);
        let high_water_mark = row.high_water_mark(recorded);
        if high_water_mark.is_none() && recorded.is_some() {
            // The mark is of another generation of the tag. COMMIT PREPARED may have ended that generation without a change
            // of shared memory.
            host.clear_high_water_mark(self.source, &self.tag, None);
        }
        high_water_mark
    }

    /// Answers the waiting sessions.
    pub fn answer(&self, answer: Answer) {
        self.state().request.answer(self.ticket, answer);
        self.slot.wake();
    }

    /// Tells the waiting sessions that ids are available.
    pub fn supplied(&self) {
        self.answer(Answer::Supplied);
    }

    /// Returns the number of registries that have no ids of the tag.
    pub fn denials(&self) -> usize {
        self.denials.get()
    }

    /// Records that a registry has no ids of the tag. The waiting sessions get the last denial as their answer once all
    /// registries have denied ids.
    pub fn deny(&self, denial: &Outcome, registries: usize) {
        self.denials.set(self.denials.get() + 1);
        if self.denials.get() < registries {
            return;
        }
        match denial {
            Outcome::Exhausted(exhausted) => {
                if self.is_current() {
                    self.state().max_value.store(exhausted.max_value, Relaxed);
                }
                self.answer(Answer::Exhausted);
            }
            _ => self.answer(Answer::Unknown),
        }
    }

    /// Publishes reserved ids in the buffers. Returns false if the slot has another owner, or if its buffers were
    /// cleared since the ids were reserved.
    pub fn put_out(&self, host: &impl RefillHost, reserved: &Reserved, took: Duration) -> bool {
        host.with_directory_locked(|| {
            let (slot, segment) = (self.state(), &self.state().segment);
            let Supply { range, period, prefetch_at } = reserved.supply;
            let mut stamp = self.stamp.get();
            // Buffered ids of another period are discarded first.
            let buffer_states = segment.buffer_states();
            let stale = buffer_states.days().any(|day| day != period.day) || buffer_states.is_over(host);
            if stamp == segment.stamp() && stale {
                self.slot.clear();
                stamp = segment.stamp();
            }
            let slow_start =
                slot.slow_start().and_then(|slow_start| slow_start.after(range.count, reserved.pace.step));
            // During a slow start nothing is fetched ahead, because the ids may be lost.
            let prefetch_at = if slow_start.is_some() { u32::MAX } else { prefetch_at };
            if !segment.publish(&Supply { prefetch_at, ..reserved.supply }, stamp) {
                return false;
            }
            host.clear_high_water_mark(self.source, &self.tag, Some((period.day, range.last())));
            slot.set_slow_start(slow_start);
            self.slot.set_format(&reserved.format);
            slot.record_published(reserved, took, host.uptime());
            true
        })
    }

    /// Returns whether the slot still belongs to the tag.
    fn is_current(&self) -> bool {
        self.state().segment.slot_generation() == self.stamp.get().slot_generation
    }

    /// Records why there are no ids, if the slot still belongs to the tag.
    pub fn record_trouble(&self, trouble: Trouble) {
        if self.is_current() {
            self.state().set_trouble(trouble);
        }
    }

    /// Records that another transaction holds the row lock.
    pub fn record_locked(&self) {
        self.record_trouble(Trouble::RowLocked);
    }

    /// Returns whether the row was locked at the last attempt.
    pub fn was_locked(&self) -> bool {
        self.state().trouble() == Some(Trouble::RowLocked)
    }

    /// Returns whether the waiting sessions have an answer.
    pub fn is_answered(&self) -> bool {
        self.state().request.answer_to(self.ticket).is_some()
    }

    /// Makes waiting sessions ask again. A request without a waiting session stays pending.
    pub fn defer(&self) {
        if !self.is_answered() && self.state().segment.buffer_states().left() == 0 {
            self.supplied();
        }
    }

    /// Returns whether the transaction failed at the last attempt.
    pub fn has_failed(&self) -> bool {
        matches!(self.state().trouble(), Some(Trouble::Failed(_)))
    }
}

/// The settings of refills, which may change between rounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RefillSettings {
    /// The time that a segment should last.
    pub target: Duration,
    /// The used part of a segment, in percent, at which the next segment is fetched.
    pub prefetch: u8,
    /// The time limit for a registry's response.
    pub registry_timeout: Duration,
}

/// The worker's process, and the memory that it shares with sessions. Its clock decides when a period ends.
pub trait RefillHost: Clock {
    /// The slot of a tag.
    type Slot: TagSlot;
    /// The tables of the worker's database, within a transaction.
    type Tables: Tables;

    /// Runs a transaction with the rights of the tables' owner, and commits it durably. Rolls back if `work` fails.
    ///
    /// # Errors
    /// The transaction was rolled back.
    fn transaction<T>(
        &self,
        work: impl FnOnce(&mut Self::Tables) -> Result<T, <Self::Tables as Tables>::Error>,
    ) -> Result<T, SqlError>;
    /// Returns the time of a clock that only goes forward.
    fn uptime(&self) -> Duration;
    /// Returns the present settings.
    fn settings(&self) -> RefillSettings;
    /// Returns the tags of the worker's database that have unanswered requests.
    fn tasks(&self) -> Vec<RefillTask<'_, Self::Slot>>;
    /// Runs `work` while no other process changes buffers or the owners of slots. `work` must not fail.
    fn with_directory_locked<T>(&self, work: impl FnOnce() -> T) -> T;
    /// Returns the highest id that rolled-back transactions handed out for a tag.
    fn high_water_mark(&self, source: u32, tag: &Tag) -> Option<HighWaterMark>;
    /// Drops the high-water mark of a tag, once the tag's row covers the mark. `known` is the highest id that the row
    /// covers, or None if the mark is not valid any more.
    fn clear_high_water_mark(&self, source: u32, tag: &Tag, known: Option<Reached>);
    /// Returns whether a failed registry of the database is due for a retry.
    fn has_registry_to_probe(&self) -> bool;
    /// Frees the slots of all tags of a dropped table of tags.
    fn leave_table(&self, source: u32);

    /// Returns whether the worker has to exit after this round, because other databases wait for its slot.
    fn is_dismissed(&self) -> bool;
    /// Returns whether the worker's time limit to exit has passed.
    fn is_overdue(&self) -> bool;
    /// Returns whether databases wait for a slot. An idle worker then exits.
    fn is_crowded(&self) -> bool;
    /// Records that the time slice was successful.
    fn record_served(&self);
    /// Sleeps while there is nothing to do. `last_work` is the uptime of the last work. Returns false if the worker has
    /// to exit.
    fn rest(&self, last_work: Duration) -> bool;
    /// Sleeps until woken, at most for `limit`.
    fn sleep(&self, limit: Duration);

    /// Requests a renewal of the worker id's lease, if another server leases it. A registry that was promoted may have lost the
    /// lease.
    fn renew_lease(&self);
    /// Shows in `pg_stat_activity` the number of tags that the worker serves.
    fn show_activity(&self, tags: usize);
    /// Logs a warning, but not if the same warning was logged recently.
    fn say_once(&self, warning: String);
    /// Returns a tag as text for messages.
    fn shown(&self, tag: &Tag) -> String;
}
