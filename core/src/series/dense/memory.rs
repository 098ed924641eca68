//! The counters of one partition, in memory that the caller provides, for shared memory sized at start.
//!
//! Nothing is allocated and nothing locked here. Places are found through an [`Index`].

use super::counter::{Counter, CounterKey, Given, Left, State, Taken};
use crate::guard::{Guard, holds};
use crate::index::{Index, NOWHERE};
use std::time::Duration;

/// How many counters at a time can want more numbers before they are used up, and how many can wait for being written back.
const LISTED: usize = 64;

/// How many places the clock's hand passes at most while the partition is locked.
const LOOKED_AT: usize = 4096;

/// How many databases a partition knows that no worker reaches: of more, the first are asked for again.
const UNREACHED: usize = 8;

/// Why memory has no number of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Miss {
    /// The key has no counter here, or one that gives no numbers now.
    Unknown,
    /// What was reserved is used up.
    Dry,
    /// The counter is of an earlier period.
    Over,
    /// The next number is above the series' `max_value`: that was lowered after it was reserved.
    Exhausted,
}

/// A place that a worker holds while it reserves numbers for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Held {
    /// How many were reserved ahead the last time; 0: none yet.
    pub step: u32,
    /// How long ago that was.
    pub ago: Duration,
}

/// A list of places, in which each is at most once.
#[derive(Clone, Copy, Debug)]
struct Places {
    places: [u32; LISTED],
    len: usize,
}

impl Places {
    const EMPTY: Self = Self { places: [0; LISTED], len: 0 };

    fn as_slice(&self) -> &[u32] {
        self.places.get(..self.len).unwrap_or_default()
    }

    fn push(&mut self, place: u32) -> bool {
        let Some(free) = self.places.get_mut(self.len) else { return false };
        *free = place;
        self.len += 1;
        true
    }

    fn remove(&mut self, place: u32) {
        if let Some(at) = self.as_slice().iter().position(|listed| *listed == place) {
            self.len -= 1;
            self.places.swap(at, self.len);
        }
    }
}

/// The counters. All processes that share it share this value, too, not only the memory it works in.
#[derive(Debug)]
pub struct Partition<'m> {
    counters: &'m mut [Counter],
    index: Index<'m>,
    /// The first free place.
    free: u32,
    len: usize,
    /// Where the clock's hand is.
    hand: usize,
    /// Those that want more numbers,
    wanting: Places,
    /// and those that are to be written back, or are being written back.
    leaving: Places,
    /// Databases that no worker reaches, whose counters with numbers cannot leave; 0: none.
    unreached: [u32; UNREACHED],
}

impl<'m> Partition<'m> {
    /// An empty partition in this memory, whatever it held before. Of an index that is not as long as [`index_len`](crate::index::index_len) says, the
    /// largest power of two is used, and as many counters as that serves.
    pub fn new(counters: &'m mut [Counter], index: &'m mut [u32]) -> Self {
        let index = Index::new(index);
        let count = counters.len().min(index.serves());
        let counters = counters.get_mut(..count).unwrap_or_default();
        let mut free = NOWHERE;
        for (place, counter) in (0..NOWHERE).zip(counters.iter_mut()).rev() {
            *counter = Counter { free, ..Counter::EMPTY };
            free = place;
        }
        let (wanting, leaving) = (Places::EMPTY, Places::EMPTY);
        Self { counters, index, free, len: 0, hand: 0, wanting, leaving, unreached: [0; UNREACHED] }
    }

    /// How many places are in use.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether none is.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Takes the next number of a key, of the period that begins on this day or of a later one that the key has come to.
    ///
    /// # Errors
    /// [`Miss`]: the worker is to be asked.
    #[inline]
    pub fn take(&mut self, key: &CounterKey, day: i32, max_value: i64) -> Result<Taken, Miss> {
        let place = self.find(key).ok_or(Miss::Unknown)?;
        let counter = self.counters.get_mut(place as usize).ok_or(Miss::Unknown)?;
        if !counter.gives() {
            return Err(Miss::Unknown);
        } else if counter.day < day && holds(Guard::SeriesDay) {
            return Err(Miss::Over);
        } else if !counter.has_any() {
            return Err(Miss::Dry);
        }
        if counter.given >= max_value {
            return Err(Miss::Exhausted);
        }
        counter.given += 1;
        let number = counter.given;
        counter.referenced = true;
        let day = counter.day;
        let wants = number >= counter.low && !counter.wants && !counter.busy;
        let ahead = if wants || counter.state != State::Live { self.note_use(place, wants) } else { false };
        Ok(Taken { number, day, ahead })
    }

    /// Notes that a counter is used: one that is to be written back stays, one that wants more numbers is listed, unless there is no
    /// room for that. Whether it was.
    #[cold]
    fn note_use(&mut self, place: u32, wants: bool) -> bool {
        let Some(counter) = self.counters.get_mut(place as usize) else { return false };
        if counter.state == State::Leaving {
            counter.stay();
            self.leaving.remove(place);
        }
        let wants = wants && !self.unreached.contains(&counter.key.database);
        let listed = wants && self.wanting.push(place);
        counter.wants |= listed;
        listed
    }

    /// Takes a key's counter away, as the key is set: with the key's row locked by the caller's transaction, until it ends. How
    /// far it had come: [`Given::reached`] says what that means; None: the row says it.
    pub fn void(&mut self, key: &CounterKey) -> Option<Given> {
        let (place, given) = (self.find(key)?, self.look(key));
        if holds(Guard::SeriesVoid) {
            self.remove(place);
        }
        given
    }

    /// How far a key has given out numbers; None where it has no counter, or one without numbers.
    pub fn look(&self, key: &CounterKey) -> Option<Given> {
        let Counter { given, last, day, state, .. } = *self.counters.get(self.find(key)? as usize)?;
        (state != State::Held).then_some(Given { number: given, limit: last, day })
    }

    /// What the worker of a database is to reserve numbers for, as their counters want more of them, each with the day of its period.
    /// They are told once.
    pub fn wanting(&mut self, database: u32) -> Vec<(CounterKey, i32)> {
        let mut found = Vec::new();
        for place in self.wanting.as_slice().to_vec() {
            let Some(counter) = self.counters.get_mut(place as usize) else { continue };
            if counter.key.database == database {
                counter.wants = false;
                if !counter.busy {
                    found.push((counter.key, counter.day));
                }
                self.wanting.remove(place);
            }
        }
        found
    }

    /// Keeps a place for a key that numbers are about to be reserved for: its own, or a free one. None where none is free, or
    /// where the key's counter is to be written back first.
    pub fn hold(&mut self, key: &CounterKey, now: Duration) -> Option<Held> {
        let place = match self.find(key) {
            Some(place) => place,
            None => self.insert(key)?,
        };
        let counter = self.counters.get_mut(place as usize)?;
        match counter.state {
            State::Held | State::Live => {}
            State::Leaving if counter.was == State::Live => counter.state = State::Live,
            State::Leaving | State::Free | State::Unproven | State::Departing => return None,
        }
        counter.busy = true;
        counter.referenced = true;
        let ago = now.saturating_sub(Duration::from_millis(counter.since));
        let held = Held { step: counter.step, ago };
        self.leaving.remove(place);
        Some(held)
    }

    /// Whether a key has a place still: it was not set since.
    pub fn is_there(&self, key: &CounterKey) -> bool {
        self.find(key).is_some()
    }

    /// Publishes numbers that were reserved, `step` of them ahead, and ends the hold. Nothing is done where the key was set since.
    pub fn put(&mut self, key: &CounterKey, range: (i64, i64), day: i32, step: u32, now: Duration) {
        let Some(place) = self.find(key) else { return };
        // One that a stop left over may have been about to leave.
        self.leaving.remove(place);
        let Some(counter) = self.counters.get_mut(place as usize) else { return };
        let (first, last) = range;
        // What it has left of an earlier period is over; where its row was changed by hand, the row is right.
        let joins = counter.last.checked_add(1) == Some(first) || !holds(Guard::SeriesJoins);
        let goes_on = counter.state == State::Live && counter.day == day && joins;
        if !goes_on {
            (counter.given, counter.day) = (first.saturating_sub(1), day);
        }
        counter.last = last;
        let half = i64::from(step / 2);
        counter.low = last.saturating_sub(half);
        counter.step = step;
        counter.since = u64::try_from(now.as_millis()).unwrap_or(u64::MAX);
        counter.state = State::Live;
        counter.busy = false;
    }

    /// Ends a hold for which nothing was reserved.
    pub fn release(&mut self, key: &CounterKey) {
        let Some(place) = self.find(key) else { return };
        let Some(counter) = self.counters.get_mut(place as usize) else { return };
        counter.busy = false;
        if counter.state == State::Held {
            self.remove(place);
        }
    }

    /// Ends a hold as no number is left: no more are asked for before those that it has are used up.
    pub fn settle(&mut self, key: &CounterKey) {
        if let Some(place) = self.find(key)
            && let Some(counter) = self.counters.get_mut(place as usize)
        {
            counter.low = i64::MAX;
        }
        self.release(key);
    }

    /// Has a share of the counters leave where no place is free, so that some are the next time.
    pub fn make_room(&mut self) {
        let share = (self.len / 8).clamp(1, LISTED / 4);
        if self.len == self.counters.len() {
            self.evict(share.saturating_sub(self.leaving.len));
        }
    }

    /// Has as many of the counters leave that were not used lately, of the next few thousand. One that has nothing left goes at once;
    /// of the others as many are to be written back as there is room for in a list. How many leave.
    pub fn evict(&mut self, share: usize) -> usize {
        let mut gone = 0;
        // Twice around: the first time takes the marks away.
        for _ in 0..self.counters.len().saturating_mul(2).min(LOOKED_AT) {
            if gone >= share {
                break;
            }
            let place = self.hand;
            self.hand = (self.hand + 1) % self.counters.len().max(1);
            let Some(counter) = self.counters.get_mut(place) else { break };
            let can_leave = matches!(counter.state, State::Live | State::Unproven);
            let is_stuck = counter.has_any() && self.unreached.contains(&counter.key.database);
            if !can_leave || is_stuck || (counter.busy && holds(Guard::SeriesBusy)) {
                continue;
            }
            if std::mem::take(&mut counter.referenced) {
                continue;
            }
            let Ok(place) = u32::try_from(place) else { break };
            if !counter.has_any() {
                self.remove(place);
            } else if self.leaving.push(place) {
                counter.was = counter.state;
                counter.state = State::Leaving;
                counter.wants = false;
                self.wanting.remove(place);
            } else {
                break;
            }
            gone += 1;
        }
        gone
    }

    /// Whose counters are to be written back, or want more numbers: databases that need a worker.
    pub fn databases(&self) -> impl Iterator<Item = u32> {
        let listed = self.leaving.as_slice().iter().chain(self.wanting.as_slice());
        listed.filter_map(|place| self.counters.get(*place as usize)).map(|counter| counter.key.database)
    }

    /// The counters of a database that are to be written back now: from here on they give no numbers.
    pub fn depart(&mut self, database: u32) -> Vec<Left> {
        let mut found = Vec::new();
        for place in self.leaving.as_slice().to_vec() {
            found.extend(self.depart_from(place, |counter| {
                counter.state == State::Leaving && counter.key.database == database
            }));
        }
        found
    }

    /// The same of one that was left over by the last stop, as numbers of its key are wanted.
    pub fn depart_unproven(&mut self, key: &CounterKey) -> Option<Left> {
        let place = self.find(key)?;
        self.depart_from(place, Counter::is_unproven)
    }

    fn depart_from(&mut self, place: u32, departs: impl Fn(&Counter) -> bool) -> Option<Left> {
        let counter = self.counters.get_mut(place as usize).filter(|counter| departs(counter))?;
        if counter.state != State::Leaving {
            counter.was = counter.state;
        }
        counter.state = State::Departing;
        Some(counter.left())
    }

    /// Whether a key's counter is being written back: the key was not set since.
    pub fn departs(&self, key: &CounterKey) -> bool {
        let counter = self.find(key).and_then(|place| self.counters.get(place as usize));
        counter.is_some_and(|counter| counter.state == State::Departing)
    }

    /// A counter is in its row: it goes.
    pub fn written_back(&mut self, key: &CounterKey) {
        if let Some(place) = self.find(key) {
            self.remove(place);
        }
    }

    /// A counter is not in its row, which is locked, or could not be written: it stays, as it was before.
    pub fn not_written_back(&mut self, key: &CounterKey) {
        if let Some(place) = self.find(key)
            && let Some(counter) = self.counters.get_mut(place as usize)
            && counter.state == State::Departing
        {
            counter.stay();
            self.leaving.remove(place);
        }
    }

    /// It is not known whether a counter's numbers were given back: they are looked at before they are handed out.
    pub fn doubt(&mut self, key: &CounterKey) {
        if let Some(place) = self.find(key)
            && let Some(counter) = self.counters.get_mut(place as usize)
            && counter.state == State::Departing
        {
            if holds(Guard::NumbersDoubt) {
                counter.was = State::Unproven;
            }
            counter.stay();
            self.leaving.remove(place);
        }
    }

    /// Has the counters of a database stay that are to be written back, and want no more numbers: no worker can see to it. Until one
    /// begins, they are not listed again, so that the lists have room for those of other databases.
    pub fn stay(&mut self, database: u32) {
        if !self.unreached.contains(&database) {
            self.unreached.rotate_right(1);
            self.unreached[0] = database;
        }
        self.wanting(database);
        for place in self.leaving.as_slice().to_vec() {
            let Some(counter) = self.counters.get_mut(place as usize) else { continue };
            if counter.key.database == database && counter.state == State::Leaving {
                counter.stay();
                self.leaving.remove(place);
            }
        }
    }

    /// A worker is there, or the database is gone.
    fn note_reached(&mut self, database: u32) {
        for unreached in self.unreached.iter_mut().filter(|unreached| **unreached == database) {
            *unreached = 0;
        }
    }

    /// Frees what a worker of a database left that died: it may have reserved numbers, or written counters back. Of these it is
    /// not known whether their rows say so: those are looked at before they give numbers.
    pub fn sweep(&mut self, database: u32) {
        self.note_reached(database);
        for place in self.places(database) {
            let Some(counter) = self.counters.get_mut(place as usize) else { continue };
            counter.busy = false;
            if counter.state == State::Departing && !holds(Guard::SeriesSwept) {
                counter.stay();
                self.leaving.remove(place);
            } else if counter.state == State::Departing && counter.has_any() {
                counter.was = State::Unproven;
                counter.stay();
                self.leaving.remove(place);
            } else if matches!(counter.state, State::Held | State::Departing) {
                self.remove(place);
            }
        }
    }

    /// Forgets all counters of a database that is gone.
    pub fn forget(&mut self, database: u32) {
        self.note_reached(database);
        self.places(database).into_iter().for_each(|place| self.remove(place));
    }

    /// All counters that have numbers, of one database or of all: for the view, and for the file at a clean stop. Also those that a
    /// worker was writing back as it ended: whether it did, their rows say.
    pub fn iter(&self) -> impl Iterator<Item = Left> {
        let has_numbers =
            |counter: &&Counter| !matches!(counter.state, State::Free | State::Held) && counter.has_any();
        self.counters.iter().filter(has_numbers).map(Counter::left)
    }

    /// Takes up what was left at a clean stop; whether there was a place. It gives no numbers before its row was looked at.
    pub fn restore(&mut self, left: &Left) -> bool {
        if left.given >= left.limit || self.find(&left.key).is_some() {
            return false;
        }
        let Some(place) = self.insert(&left.key) else { return false };
        if let Some(counter) = self.counters.get_mut(place as usize) {
            counter.state = if holds(Guard::SeriesProven) { State::Unproven } else { State::Live };
            (counter.given, counter.last) = (left.given, left.limit);
            (counter.day, counter.low) = (left.day, left.limit);
        }
        true
    }

    fn places(&self, database: u32) -> Vec<u32> {
        let is_of = |counter: &Counter| counter.state != State::Free && counter.key.database == database;
        let all = (0..NOWHERE).zip(self.counters.iter());
        all.filter(|(_, counter)| is_of(counter)).map(|(place, _)| place).collect()
    }

    #[inline]
    fn find(&self, key: &CounterKey) -> Option<u32> {
        let is_it = |place: u32| self.counters.get(place as usize).is_some_and(|counter| counter.key == *key);
        self.index.find(key.hash(), is_it)
    }

    fn insert(&mut self, key: &CounterKey) -> Option<u32> {
        let place = self.free;
        let next = self.counters.get(place as usize)?.free;
        if !self.index.insert(key.hash(), place) {
            return None;
        }
        let counter = Counter { key: *key, state: State::Held, ..Counter::EMPTY };
        *self.counters.get_mut(place as usize)? = counter;
        self.free = next;
        self.len += 1;
        Some(place)
    }

    fn remove(&mut self, place: u32) {
        let Some(counter) = self.counters.get_mut(place as usize) else { return };
        let hash = counter.key.hash();
        *counter = Counter { free: self.free, ..Counter::EMPTY };
        self.free = place;
        self.len -= 1;
        self.wanting.remove(place);
        self.leaving.remove(place);
        let Self { counters, index, .. } = self;
        index.remove(hash, place, |other| counters.get(other as usize).map(|counter| counter.key.hash()));
    }
}
