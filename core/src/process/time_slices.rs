//! Time slices: the choice of the database that gets the next worker slot, and of the worker that leaves its slot.
//!
//! A *time slice* is the time in which one worker serves one database. The database that has waited longest is next. If
//! other databases wait, a worker that has nothing to do, or whose time slice is over, is asked to leave. A worker that
//! does not leave is terminated. The termination bounds the length of a time slice and the time that databases wait.
//!
//! A database is *slow* if its worker had to be terminated or could not connect. The database stays slow until one of
//! its time slices ends in time. Slow databases get at most half of the slots, so that many hanging databases do not
//! block the other databases. A database pauses after a time slice without success. The pause grows with each
//! consecutive failure.

use crate::backoff::Backoff;
use std::collections::BTreeMap;
use std::time::Duration;

/// The length of a time slice. The worker leaves after this time if other databases wait.
pub const TIME_SLICE: Duration = Duration::from_millis(100);
/// The time in which a worker has to finish its work after it was asked to leave. The second value is for slow databases.
pub const GIVE_WAY: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(3));
/// The time between the end of [`GIVE_WAY`] and the termination of the worker.
pub const FORCE: Duration = Duration::from_secs(1);
/// The delay in the rank of a request without a waiting session. The request ranks as if it had been made later by this
/// time.
pub const AHEAD: Duration = Duration::from_secs(1);
/// The pause of a database after a time slice without success.
pub const PAUSE: Backoff = Backoff::new(Duration::from_millis(100), Duration::from_secs(1));
/// The pause of a database to which the worker could not connect.
pub const PAUSE_OUT_OF_REACH: Backoff = Backoff::new(PAUSE.first, Duration::from_secs(5));

/// The urgency of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Urgency {
    /// A session waits for ids.
    Now,
    /// No session waits yet.
    Ahead,
}

/// The end of a time slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SliceEnd {
    /// The worker served a request, or there was no request.
    Served,
    /// The worker served no request, but ended in time.
    InVain,
    /// The worker was terminated.
    Cut,
    /// The worker could not connect to the database.
    OutOfReach,
}

/// The waiting databases (`W`), and the worker slots (`S`) that serve a database now. Times are readings of any clock
/// that only goes forward.
#[derive(Clone, Debug)]
pub struct TimeSlices<W, S> {
    waiting: BTreeMap<W, DatabaseWait>,
    served: BTreeMap<S, TimeSlice<W>>,
    /// The databases whose last time slice was without success.
    past: BTreeMap<W, PastSlice>,
    /// True if a slow database had the last time slice. With a single slot, slow databases and other databases
    /// alternate.
    slow_last: bool,
}

#[derive(Clone, Copy, Debug)]
struct DatabaseWait {
    since: Duration,
    want: Urgency,
}

#[derive(Clone, Copy, Debug)]
struct TimeSlice<W> {
    whose: W,
    since: Duration,
    slow: bool,
    idle: bool,
    /// The time by which the worker has to leave. None if the worker was not asked to leave.
    leaves_by: Option<Duration>,
    ended: bool,
}

#[derive(Clone, Copy, Debug)]
struct PastSlice {
    slow: bool,
    pause: Duration,
    /// The end of the pause.
    again: Duration,
}

/// The next actions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SlicePlan<W, S> {
    /// The databases whose time slice begins now, in order.
    pub begin: Vec<W>,
    /// The workers to be asked to leave, each with its time limit.
    pub leave: Vec<(S, Duration)>,
    /// The workers to be terminated, because they did not leave in time.
    pub end: Vec<S>,
    /// True if a database still waits for a slot.
    pub short: bool,
    /// The time of the next action if nothing changes.
    pub due: Option<Duration>,
}

impl<W, S> Default for TimeSlices<W, S> {
    fn default() -> Self {
        Self { waiting: BTreeMap::new(), served: BTreeMap::new(), past: BTreeMap::new(), slow_last: false }
    }
}

impl<W: Ord + Copy, S: Ord + Copy> TimeSlices<W, S> {
    /// Records the waiting databases with their urgency, and the busy slots. `served` gives each busy slot with its
    /// database, and true if the slot's worker is idle.
    pub fn record(
        &mut self,
        waiting: impl IntoIterator<Item = (W, Urgency)>,
        served: impl IntoIterator<Item = (S, W, bool)>,
        now: Duration,
    ) {
        let wait = |(one, want): (W, Urgency)| {
            let mut wait = self.waiting.get(&one).copied().unwrap_or(DatabaseWait { since: now, want });
            if wait.want != want {
                // A request that becomes urgent keeps its rank in the queue, unless a new request would rank higher.
                wait = DatabaseWait { since: now.min(wait.rank()), want };
            }
            (one, wait)
        };
        self.waiting = waiting.into_iter().map(wait).collect();
        let time_slice = |(slot, whose, idle): (S, W, bool)| {
            let slow = self.past.get(&whose).is_some_and(|past| past.slow);
            let fresh = TimeSlice { whose, since: now, slow, idle, leaves_by: None, ended: false };
            let time_slice = self.served.get(&slot).filter(|time_slice| time_slice.whose == whose).copied();
            (slot, TimeSlice { idle, ..time_slice.unwrap_or(fresh) })
        };
        self.served = served.into_iter().map(time_slice).collect();
    }

    /// Records the end of a database's time slice.
    pub fn ended(&mut self, whose: W, end: SliceEnd, now: Duration) {
        // The database joins the queue anew. With its old rank it would come before databases that have waited in the
        // meantime.
        self.waiting.remove(&whose);
        if end == SliceEnd::Served {
            self.past.remove(&whose);
            return;
        }
        let past = self.past.get(&whose).copied();
        let backoff = if end == SliceEnd::OutOfReach { PAUSE_OUT_OF_REACH } else { PAUSE };
        let pause = backoff.next(past.map(|past| past.pause));
        // A time slice without success that ends in time does not delay other databases, so the database is not slow.
        let slow = end != SliceEnd::InVain;
        self.past.insert(whose, PastSlice { slow, pause, again: now + pause });
    }

    /// Forgets dropped databases.
    pub fn forget(&mut self, is_gone: impl Fn(W) -> bool) {
        self.past.retain(|one, _| !is_gone(*one));
    }

    /// Returns the waiting databases, in the order of service.
    pub fn queue(&self) -> Vec<W> {
        let mut queue: Vec<_> = self.waiting.iter().map(|(one, wait)| (wait.rank(), *one)).collect();
        queue.sort_unstable();
        queue.into_iter().map(|(_, one)| one).collect()
    }

    /// Returns the next actions. `slots` is the number of all slots, and `free` the number of free slots. `others` is
    /// the number of other waiters, which get slots before databases. Each worker is asked to leave once, and
    /// terminated once.
    pub fn plan(&mut self, slots: usize, free: usize, others: usize, now: Duration) -> SlicePlan<W, S> {
        let mut left: Vec<W> =
            self.queue().into_iter().filter(|one| self.pause_of(*one, now).is_none()).collect();
        let mut begin = Vec::new();
        let mut slow = self.served.values().filter(|time_slice| time_slice.slow).count();
        for _ in others..free {
            let next = left.iter().position(|one| self.may_begin(*one, &left, slots, slow));
            let Some(next) = next else { break };
            let one = left.remove(next);
            self.slow_last = self.is_slow(one);
            slow += usize::from(self.slow_last);
            begin.push(one);
        }
        // Slow databases beyond the limit wait until another slow database leaves its slot.
        let allowed = most_slow(slots).saturating_sub(slow);
        let (slow_left, sound_left): (Vec<W>, Vec<W>) = left.iter().partition(|one| self.is_slow(**one));
        let wanted = sound_left.len() + slow_left.len().min(allowed) + others.saturating_sub(free);
        let wanted_slow = slow_left.len().saturating_sub(allowed);
        let mut leave = self.ask_to_leave(wanted_slow, now, |time_slice| time_slice.slow);
        leave.extend(self.ask_to_leave(wanted, now, |_| true));
        let short = wanted + wanted_slow > 0;
        let end = if short { self.overdue(now) } else { Vec::new() };
        SlicePlan { begin, leave, end, short, due: self.due(short, now) }
    }

    fn is_slow(&self, one: W) -> bool {
        self.past.get(&one).is_some_and(|past| past.slow)
    }

    /// Returns the end of a database's pause. Returns None if the database does not pause.
    fn pause_of(&self, one: W, now: Duration) -> Option<Duration> {
        self.past.get(&one).map(|past| past.again).filter(|again| *again > now)
    }

    /// Returns whether a database's time slice may begin. `left` are the waiting databases, and `slow` is the number of
    /// slow databases in service.
    fn may_begin(&self, one: W, left: &[W], slots: usize, slow: usize) -> bool {
        let alternates = slots > 1 || !self.slow_last || left.iter().all(|other| self.is_slow(*other));
        !self.is_slow(one) || slow < most_slow(slots) && alternates
    }

    /// Asks workers to leave until `wanted` slots become free. Only workers that `fits` accepts are asked. Idle workers
    /// come first. Workers whose time slice is over follow, the longest time slice first.
    fn ask_to_leave(
        &mut self,
        wanted: usize,
        now: Duration,
        fits: impl Fn(&TimeSlice<W>) -> bool,
    ) -> Vec<(S, Duration)> {
        let leaving = self
            .served
            .values()
            .filter(|time_slice| time_slice.leaves_by.is_some() && fits(time_slice))
            .count();
        let mut all: Vec<_> = self
            .served
            .iter_mut()
            .filter(|(_, time_slice)| time_slice.leaves_by.is_none() && fits(time_slice))
            .filter(|(_, time_slice)| time_slice.idle || now.saturating_sub(time_slice.since) >= TIME_SLICE)
            .collect();
        all.sort_unstable_by_key(|(slot, time_slice)| (!time_slice.idle, time_slice.since, **slot));
        all.truncate(wanted.saturating_sub(leaving));
        let ask = |(slot, time_slice): (&S, &mut TimeSlice<W>)| {
            let by = now + if time_slice.slow { GIVE_WAY.1 } else { GIVE_WAY.0 };
            time_slice.leaves_by = Some(by);
            (*slot, by)
        };
        all.into_iter().map(ask).collect()
    }

    fn overdue(&mut self, now: Duration) -> Vec<S> {
        let over = |time_slice: &TimeSlice<W>| {
            !time_slice.ended && time_slice.leaves_by.is_some_and(|by| now >= by + FORCE)
        };
        let overdue = self.served.iter_mut().filter(|(_, time_slice)| over(time_slice));
        let end = |(slot, time_slice): (&S, &mut TimeSlice<W>)| {
            time_slice.ended = true;
            *slot
        };
        overdue.map(end).collect()
    }

    fn due(&self, short: bool, now: Duration) -> Option<Duration> {
        let next_check = |time_slice: &TimeSlice<W>| match time_slice.leaves_by {
            _ if !short || time_slice.ended => None,
            Some(by) => Some(by + FORCE),
            None => Some(time_slice.since + TIME_SLICE),
        };
        let time_slices = self.served.values().filter_map(next_check);
        let pauses = self.waiting.keys().filter_map(|one| self.pause_of(*one, now));
        // Times in the past need no wake-up, because this plan has already counted them.
        time_slices.chain(pauses).filter(|due| *due > now).min()
    }
}

impl DatabaseWait {
    /// Returns the database's rank in the queue. A database with a lower rank is served sooner.
    fn rank(self) -> Duration {
        match self.want {
            Urgency::Now => self.since,
            Urgency::Ahead => self.since + AHEAD,
        }
    }
}

/// Returns the number of slow databases that may be served at the same time.
fn most_slow(slots: usize) -> usize {
    (slots / 2).max(1)
}
