//! Turns: the waiting one that is served next, and the serving one that makes room, if more wait than can be served at once.
//!
//! A *turn* is the time that one is served, a database by a worker. The one that has waited longest is next. One that is
//! served and has nothing to do, or has had its turn, leaves; where it hangs it is ended. So a turn is bounded, and with
//! it the time that one waits for it.
//!
//! One that had to be cut short is *slow*. All slow ones come to no more than half of the slots until a turn of theirs
//! ends well: many that hang cannot keep the others from being served. One that was served in vain waits a little before
//! it comes again, longer each time.

use crate::worker::backoff::Backoff;
use std::collections::BTreeMap;
use std::time::Duration;

/// For how long one is served before it has to make room for others.
pub const TIME_SLICE: Duration = Duration::from_millis(100);
/// Time that one that has to make room may take to end what it is doing: at first, and where it is known to be slow.
pub const GIVE_WAY: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(3));
/// By how much later it is ended by force.
pub const FORCE: Duration = Duration::from_secs(1);
/// A request that no session waits for counts as this much later.
pub const AHEAD: Duration = Duration::from_secs(1);
/// The pause before one comes again that was served in vain.
pub const PAUSE: Backoff = Backoff::new(Duration::from_millis(100), Duration::from_secs(1));
/// And of one that could not even be reached.
pub const PAUSE_OUT_OF_REACH: Backoff = Backoff::new(PAUSE.first, Duration::from_secs(5));

/// The urgency of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Urgency {
    /// A session waits for it.
    Now,
    /// No session waits for it yet.
    Ahead,
}

/// The end of a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SliceEnd {
    /// Something was served, or nothing was left to be.
    Served,
    /// Nothing was, but it ended when it had to.
    InVain,
    /// It was cut short.
    Cut,
    /// It did not even begin.
    OutOfReach,
}

/// Those that wait (`W`), and the slots (`S`) at which one is served. Times are of any clock that only goes forward.
#[derive(Clone, Debug)]
pub struct TimeSlices<W, S> {
    waiting: BTreeMap<W, DatabaseWait>,
    served: BTreeMap<S, TimeSlice<W>>,
    /// Of those whose last turn did not end well.
    past: BTreeMap<W, PastSlice>,
    /// True if a slow one had the last turn: on the only place they take turns with the others.
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
    /// True if there is nothing to do there.
    idle: bool,
    /// By when it is to have made room; None where it was not asked to.
    leaves_by: Option<Duration>,
    ended: bool,
}

#[derive(Clone, Copy, Debug)]
struct PastSlice {
    slow: bool,
    pause: Duration,
    /// Time at which it may come again.
    again: Duration,
}

/// The next steps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SlicePlan<W, S> {
    /// Whose turn begins, in this order.
    pub begin: Vec<W>,
    /// Those that are to make room, and by when.
    pub leave: Vec<(S, Duration)>,
    /// Those that were to and have not, and are to be ended.
    pub end: Vec<S>,
    /// True if one goes on waiting for a slot.
    pub short: bool,
    /// Time at which something is due though nothing has changed.
    pub due: Option<Duration>,
}

impl<W, S> Default for TimeSlices<W, S> {
    fn default() -> Self {
        Self { waiting: BTreeMap::new(), served: BTreeMap::new(), past: BTreeMap::new(), slow_last: false }
    }
}

impl<W: Ord + Copy, S: Ord + Copy> TimeSlices<W, S> {
    /// Notes all that wait now, and for what, and all places where one is served: which one, and whether it is idle there.
    pub fn record(
        &mut self,
        waiting: impl IntoIterator<Item = (W, Urgency)>,
        served: impl IntoIterator<Item = (S, W, bool)>,
        now: Duration,
    ) {
        let wait = |(one, want): (W, Urgency)| {
            let mut wait = self.waiting.get(&one).copied().unwrap_or(DatabaseWait { since: now, want });
            if wait.want != want {
                // Now that a session waits for it, it is no later than it was, and no earlier than just now.
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

    /// Notes how a turn ended.
    pub fn ended(&mut self, whose: W, end: SliceEnd, now: Duration) {
        // It waits anew if it wants more at once: else it would come before all that have waited meanwhile.
        self.waiting.remove(&whose);
        if end == SliceEnd::Served {
            self.past.remove(&whose);
            return;
        }
        let past = self.past.get(&whose).copied();
        let backoff = if end == SliceEnd::OutOfReach { PAUSE_OUT_OF_REACH } else { PAUSE };
        let pause = backoff.next(past.map(|past| past.pause));
        // One that ends in vain in time holds no other up.
        let slow = end != SliceEnd::InVain;
        self.past.insert(whose, PastSlice { slow, pause, again: now + pause });
    }

    /// Forgets how the turns of those ended that are gone.
    pub fn forget(&mut self, is_gone: impl Fn(W) -> bool) {
        self.past.retain(|one, _| !is_gone(*one));
    }

    /// Those that wait, in the order in which they come.
    pub fn queue(&self) -> Vec<W> {
        let mut queue: Vec<_> = self.waiting.iter().map(|(one, wait)| (wait.rank(), *one)).collect();
        queue.sort_unstable();
        queue.into_iter().map(|(_, one)| one).collect()
    }

    /// Returns what is to be done with so many slots in all, of which so many are free. So many others wait for one of
    /// them too, and come first. Each is asked to leave once, and ended once.
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
        // For those that may not have another slot, only one of their own makes room.
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

    /// The instant at which it may come again, if not yet.
    fn pause_of(&self, one: W, now: Duration) -> Option<Duration> {
        self.past.get(&one).map(|past| past.again).filter(|again| *again > now)
    }

    /// Returns whether a turn of its may begin, of those that are left, when `slow` slow ones are served.
    fn may_begin(&self, one: W, left: &[W], slots: usize, slow: usize) -> bool {
        let alternates = slots > 1 || !self.slow_last || left.iter().all(|other| self.is_slow(*other));
        !self.is_slow(one) || slow < most_slow(slots) && alternates
    }

    /// Asks as many to leave as it takes to have so many slots, of those that fit: those with nothing to do, and those
    /// whose turn is over, the longest first.
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
        let of_turn = |time_slice: &TimeSlice<W>| match time_slice.leaves_by {
            _ if !short || time_slice.ended => None,
            Some(by) => Some(by + FORCE),
            None => Some(time_slice.since + TIME_SLICE),
        };
        let time_slices = self.served.values().filter_map(of_turn);
        let pauses = self.waiting.keys().filter_map(|one| self.pause_of(*one, now));
        // An overdue one already waits for another to leave.
        time_slices.chain(pauses).filter(|due| *due > now).min()
    }
}

impl DatabaseWait {
    /// The lower, the sooner it comes.
    fn rank(self) -> Duration {
        match self.want {
            Urgency::Now => self.since,
            Urgency::Ahead => self.since + AHEAD,
        }
    }
}

/// Returns the number of slow ones that may be served at once.
fn most_slow(slots: usize) -> usize {
    (slots / 2).max(1)
}
