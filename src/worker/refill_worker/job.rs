//! A tag that wants ids.

use crate::pg::catalog::Source;
use crate::pg::clock::SystemClock;
use crate::pg::worker::{self, Failed};
use crate::segment::place;
use crate::settings;
use crate::shared::segments::Segments;
use crate::shared::slot::{Slot, Trouble};
use crate::store::segment as store;
use crate::worker::carry_over::CarryOvers;
use snowflake_ids_core::directory::Tag;
use snowflake_ids_core::request::Answer;
use snowflake_ids_core::reservation::{Outcome, Reached, Reserved, Row, Wish};
use snowflake_ids_core::segment::{Stamp, Supply};
use snowflake_ids_core::step::HUNGER;
use std::cell::Cell;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

/// A tag that wants ids.
pub struct Job {
    /// Its place.
    pub slot: &'static Slot,
    /// What it is called,
    pub tag: Tag,
    /// and the table of tags that it is in.
    pub source: u32,
    /// Answers go to those who asked before this.
    ticket: u64,
    /// Whose the place was when the tag was found there, and how often it had been cleared when the row was locked,
    /// under which lock it is cleared: what is reserved is published for this only.
    stamp: Cell<Stamp>,
}

impl Job {
    /// The tag at a place, if it is one of this database and somebody asks for ids.
    pub fn at(segments: &'static Segments, place: usize, database: u32) -> Option<Self> {
        let slot: &'static Slot = segments.slots.get(place)?;
        let directory = segments.directory.read();
        let key = directory.get(place).filter(|key| key.database == database)?;
        Some(Self {
            slot,
            tag: key.tag,
            source: key.source,
            ticket: slot.request.pending()?,
            stamp: Cell::new(slot.segment.stamp()),
        })
    }

    /// Whether there is room in the buffers, or what they hold is out of date.
    pub fn needs_ids(&self) -> bool {
        let shelves = self.slot.segment.shelves();
        shelves.have_room() || shelves.is_over(&SystemClock)
    }

    /// Whether the tag is to be made where there is none.
    pub fn creates(&self) -> bool {
        self.slot.request.creates()
    }

    /// What to wish for. For the table of this database: called with the row locked.
    pub fn wish(&self, carry_overs: &CarryOvers, floor: Option<Reached>) -> Wish {
        let supplies = &self.slot.supplies;
        let target = settings::segment_target_duration();
        // As long as it should, where it is not known: the step stays what it is.
        let lasted =
            supplies.lasted().map(|lasted| if supplies.cut_short.load(Relaxed) { target } else { lasted });
        let clearings = self.slot.segment.stamp().clearings;
        self.stamp.set(Stamp { clearings, ..self.stamp.get() });
        Wish {
            carry_over: carry_overs.of(self.source, &self.tag),
            pace: supplies.pace(),
            lasted,
            target,
            hungry: self.slot.waits.ago().is_some_and(|ago| ago < HUNGER),
            prefetch: settings::segment_prefetch(),
            floor,
            received: None,
            share: None,
        }
    }

    /// How far transactions that were rolled back came, with the row locked.
    pub fn floor(&self, row: &Row) -> Option<Reached> {
        let noted = self.slot.floor.get();
        let floor = row.floor(noted);
        if floor.is_none() && noted.is_some() {
            // Of another life, that a prepared transaction ended: nobody could tell of its commit.
            self.slot.floor.clear();
        }
        floor
    }

    /// Answers those who asked.
    pub fn answer(&self, answer: Answer) {
        self.slot.request.answer(self.ticket, answer);
        self.slot.answered.broadcast();
    }

    /// Tells those who asked that there are ids.
    pub fn supplied(&self) {
        self.answer(Answer::Supplied);
    }

    /// Tells those who asked that there are no ids.
    pub fn deny(&self, denial: &Outcome) {
        match denial {
            Outcome::Exhausted(exhausted) => {
                self.slot.supplies.max_value.store(exhausted.max_value, Relaxed);
                self.answer(Answer::Exhausted);
            }
            _ => self.answer(Answer::Unknown),
        }
    }

    /// Puts reserved ids into the buffers, unless the place is another tag's by now or was cleared meanwhile.
    pub fn put_out(&self, segments: &Segments, reserved: &Reserved, took: Duration) -> bool {
        let _directory = segments.directory.write();
        let (slot, supplies) = (self.slot, &self.slot.supplies);
        let Supply { range, period, .. } = reserved.supply;
        let mut stamp = self.stamp.get();
        // What is left of a day that is over belongs to that day; or to this one, where another server's clock is behind.
        let shelves = slot.segment.shelves();
        let stale = shelves.days().any(|day| day != period.day) || shelves.is_over(&SystemClock);
        if stamp == slot.segment.stamp() && stale {
            slot.clear();
            stamp = slot.segment.stamp();
        }
        if !slot.segment.publish(&reserved.supply, stamp) {
            return false;
        }
        place::end_trial(segments, slot);
        slot.floor.pass(period.day, range.last());
        slot.trouble.clear();
        slot.format.write(&reserved.format);
        supplies.note(reserved, took);
        true
    }

    /// Notes that another transaction has the row locked.
    pub fn note_locked(&self) {
        self.slot.trouble.set(Trouble::RowLocked);
    }

    /// Whether it was locked the last time.
    pub fn was_locked(&self) -> bool {
        self.slot.trouble.get() == Some(Trouble::RowLocked)
    }

    /// Notes that a transaction failed; whether because something was locked.
    pub fn note_failure(&self, failure: &Failed) -> bool {
        if failure.is_lock_timeout() {
            self.note_locked();
        } else {
            self.slot.trouble.set(Trouble::Failed(failure.code));
        }
        failure.is_lock_timeout()
    }

    /// Whether it is to be served by itself, as something about it failed the last time.
    pub fn is_troubled(&self) -> bool {
        self.was_locked() || self.has_failed()
    }

    /// Whether those who asked have an answer.
    pub fn is_answered(&self) -> bool {
        self.slot.request.answer_to(self.ticket).is_some()
    }

    /// Has those who still wait ask again. What nobody waits for yet stays asked.
    pub fn defer(&self) {
        if !self.is_answered() && self.slot.segment.shelves().left() == 0 {
            self.supplied();
        }
    }

    /// Whether a transaction failed the last time.
    pub fn has_failed(&self) -> bool {
        matches!(self.slot.trouble.get(), Some(Trouble::Failed(_)))
    }

    /// Gives ids back that were reserved and not published, so that they leave no gap. Should that fail, they do. Whose the
    /// place is by now does not matter: the row's version tells whether it is as the reservation left it.
    pub fn give_back(&self, reserved: &Reserved) {
        let given = worker::transaction(|| {
            let source = Source::of_number(self.source);
            source.map(|source| source.as_owner(|| store::give_back(&self.tag, reserved)))
        });
        drop(given);
    }
}
