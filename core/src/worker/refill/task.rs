//! A tag that wants ids.

use super::memory::{RefillSettings, SharedMemory};
use crate::clock::Clock;
use crate::sequence::directory::Tag;
use crate::sequence::reservation::{Demand, Outcome, Reached, Reserved, SavedRange, TagRow};
use crate::sequence::segment::{Stamp, Supply};
use crate::sequence::slot::{SlotState, TagSlot, Trouble};
use crate::sequence::step::WAITED_LATELY;
use crate::sequence::tickets::Answer;
use std::cell::Cell;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

/// A tag that wants ids.
pub struct RefillTask<'s, S> {
    /// Its slot.
    pub slot: &'s S,
    /// The tag.
    pub tag: Tag,
    /// The table of tags that it is in.
    pub source: u32,
    /// Answers go to the callers that asked before this.
    ticket: u64,
    /// The owner of the slot when the tag was found there, and the number of clearings when the row was locked: a slot is cleared under
    /// that lock. Ids are published for this only.
    stamp: Cell<Stamp>,
    /// Number of registries that have said that they don't know the tag, or have no more ids of it.
    denials: Cell<usize>,
}

impl<'s, S: TagSlot> RefillTask<'s, S> {
    /// The tag at a slot, if a call asks for ids. With the directory locked, so that the slot is the tag's.
    pub fn new(slot: &'s S, tag: Tag, source: u32) -> Option<Self> {
        let ticket = slot.state().request.pending()?;
        let stamp = Cell::new(slot.state().segment.stamp());
        Some(Self { slot, tag, source, ticket, stamp, denials: Cell::new(0) })
    }

    /// The state of its slot.
    pub fn state(&self) -> &'s SlotState {
        self.slot.state()
    }

    /// Returns whether there is room in the buffers, or what they hold is out of date.
    pub fn needs_ids(&self, clock: &impl Clock) -> bool {
        let buffer_states = self.state().segment.buffer_states();
        buffer_states.have_room() || buffer_states.is_over(clock)
    }

    /// Returns whether the tag is to be made where there is none.
    pub fn creates(&self) -> bool {
        self.state().request.creates()
    }

    /// Returns what to wish for. For the table of this database: called with the row locked.
    pub fn demand(
        &self,
        memory: &impl SharedMemory,
        settings: RefillSettings,
        saved_range: Option<SavedRange>,
        high_water_mark: Option<Reached>,
    ) -> Demand {
        let (slot, uptime) = (self.state(), memory.uptime());
        let most = slot.slow_start().map(|slow_start| slow_start.most(slot.wanted()));
        // As long as it should, where it says nothing of demand: the step stays what it is.
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

    /// Returns how far transactions that were rolled back came, with the row locked.
    pub fn high_water_mark(&self, memory: &impl SharedMemory, row: &TagRow) -> Option<Reached> {
        let recorded = memory.high_water_mark(self.source, &self.tag);
        let high_water_mark = row.high_water_mark(recorded);
        if high_water_mark.is_none() && recorded.is_some() {
            // Of another life, that a prepared transaction ended: nothing could tell of its commit.
            memory.clear_high_water_mark(self.source, &self.tag, None);
        }
        high_water_mark
    }

    /// Answers the callers.
    pub fn answer(&self, answer: Answer) {
        self.state().request.answer(self.ticket, answer);
        self.slot.wake();
    }

    /// Tells the callers that there are ids.
    pub fn supplied(&self) {
        self.answer(Answer::Supplied);
    }

    /// Returns the number of registries that have no ids of it.
    pub fn denials(&self) -> usize {
        self.denials.get()
    }

    /// Takes an answer that there are no ids; tells the callers when it is the last one of so many registries.
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

    /// Puts reserved ids into the buffers, unless the slot is another tag's by now or was cleared meanwhile.
    pub fn put_out(&self, memory: &impl SharedMemory, reserved: &Reserved, took: Duration) -> bool {
        memory.with_directory_locked(|| {
            let (slot, segment) = (self.state(), &self.state().segment);
            let Supply { range, period, prefetch_at } = reserved.supply;
            let mut stamp = self.stamp.get();
            // Ids of a day that is over belong to that day; or to this one, if another server's clock is behind.
            let buffer_states = segment.buffer_states();
            let stale = buffer_states.days().any(|day| day != period.day) || buffer_states.is_over(memory);
            if stamp == segment.stamp() && stale {
                self.slot.clear();
                stamp = segment.stamp();
            }
            let slow_start =
                slot.slow_start().and_then(|slow_start| slow_start.after(range.count, reserved.pace.step));
            // Nothing is fetched ahead where it may be lost.
            let prefetch_at = if slow_start.is_some() { u32::MAX } else { prefetch_at };
            if !segment.publish(&Supply { prefetch_at, ..reserved.supply }, stamp) {
                return false;
            }
            memory.clear_high_water_mark(self.source, &self.tag, Some((period.day, range.last())));
            slot.set_slow_start(slow_start);
            self.slot.set_format(&reserved.format);
            slot.record_published(reserved, took, memory.uptime());
            true
        })
    }

    /// Returns whether the slot is the tag's still.
    fn is_current(&self) -> bool {
        self.state().segment.slot_generation() == self.stamp.get().slot_generation
    }

    /// Notes why there are no ids, where the slot is the tag's still.
    pub fn record_trouble(&self, trouble: Trouble) {
        if self.is_current() {
            self.state().set_trouble(trouble);
        }
    }

    /// Notes that another transaction has the row locked.
    pub fn record_locked(&self) {
        self.record_trouble(Trouble::RowLocked);
    }

    /// Returns whether it was locked the last time.
    pub fn was_locked(&self) -> bool {
        self.state().trouble() == Some(Trouble::RowLocked)
    }

    /// Returns whether the callers have an answer.
    pub fn is_answered(&self) -> bool {
        self.state().request.answer_to(self.ticket).is_some()
    }

    /// Has calls that still wait ask again. A request that none waits for stays.
    pub fn defer(&self) {
        if !self.is_answered() && self.state().segment.buffer_states().left() == 0 {
            self.supplied();
        }
    }

    /// Returns whether a transaction failed the last time.
    pub fn has_failed(&self) -> bool {
        matches!(self.state().trouble(), Some(Trouble::Failed(_)))
    }
}
