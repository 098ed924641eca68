//! The times at which the lease is renewed, and at which the log is told that it is not.

use crate::worker::backoff::Backoff;
use std::time::Duration;

/// How soon after the server's start, so that two servers with one lease are noticed.
const AFTER_START: Duration = Duration::from_secs(10);
/// How soon it is tried again, at first and in the end.
const BACKOFF: Backoff = Backoff::new(Duration::from_secs(1), Duration::from_secs(15));
/// Interval at which the log is told while the end of the lease comes nearer.
const REMIND: Duration = Duration::from_hours(1);

/// What is remembered of it. Times are of any clock that only goes forward.
#[derive(Debug, Default)]
pub struct Renewal {
    /// When a lease was first seen, and for how long ids are leased by the setting as it was looked at last.
    seen: Option<(Duration, Duration)>,
    /// True if the renewal after the start was asked for.
    after_start: bool,
    /// When one was asked for last that did not come yet, and the pause before it is asked for again.
    asked: Option<(Duration, Duration)>,
    /// Time at which the registry was asked last because the clock has jumped.
    compared: Option<Duration>,
    /// Time at which the log was told last that it did not come.
    told: Option<Duration>,
}

/// The lease that there is.
#[derive(Clone, Copy, Debug)]
pub struct Lapse {
    /// How much longer it is good.
    pub left: Duration,
    /// The time until it has to be renewed.
    pub until_renewal: Duration,
    /// For how long it is good from one renewal to the next.
    pub length: Duration,
    /// For how long ids are leased by the setting.
    pub setting: Duration,
    /// True if a renewal that was asked for has not come yet.
    pub is_asked: bool,
    /// True if the clock has jumped, and a registry on another server may know better.
    pub has_jumped: bool,
}

/// What is to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RenewalRound {
    /// Whether to ask for a renewal.
    pub ask: bool,
    /// Whether to tell the log that none came.
    pub remind: bool,
    /// The time until it should look again.
    pub due: Duration,
}

impl Renewal {
    /// Returns what is to be done about a lease.
    pub fn round(&mut self, lease: Lapse, now: Duration) -> RenewalRound {
        if !lease.is_asked {
            self.told = self.told.filter(|_| self.asked.is_none());
            self.asked = None;
        }
        let due = self.due(lease, now);
        if self.asked.is_none() && !due.is_zero() && !self.wants_to_compare(lease.has_jumped, now) {
            return RenewalRound { ask: false, remind: false, due };
        }
        let remind = self.wants_to_remind(lease, now);
        let (ask, due) = self.ask(now);
        RenewalRound { ask, remind, due }
    }

    /// Returns what is to be done where there is no lease, as the registry gave none when it was asked last.
    pub fn round_without(&mut self, now: Duration) -> RenewalRound {
        let (ask, due) = self.ask(now);
        RenewalRound { ask, remind: false, due }
    }

    fn wants_to_compare(&mut self, has_jumped: bool, now: Duration) -> bool {
        let wants = has_jumped && self.compared.is_none_or(|compared| now >= compared + BACKOFF.most);
        if wants || !has_jumped {
            self.compared = has_jumped.then_some(now);
        }
        wants
    }

    /// The time until the next renewal.
    fn due(&mut self, lease: Lapse, now: Duration) -> Duration {
        let (began, before) = *self.seen.get_or_insert((now, lease.setting));
        self.seen = Some((began, lease.setting));
        let at_start = (began + AFTER_START).saturating_sub(now);
        match (before == lease.setting, self.after_start) {
            (false, _) => Duration::ZERO,
            (true, false) => at_start.min(lease.until_renewal),
            (true, true) => lease.until_renewal,
        }
    }

    /// Asks, unless that was just done; gives the pause before it is done again.
    fn ask(&mut self, now: Duration) -> (bool, Duration) {
        let before = self.asked;
        let waits = before.filter(|(at, pause)| now < *at + *pause);
        let (at, pause) = waits.unwrap_or_else(|| {
            self.after_start = true;
            (now, BACKOFF.next(before.map(|(_, pause)| pause)))
        });
        self.asked = Some((at, pause));
        (waits.is_none(), (at + pause).saturating_sub(now))
    }

    /// Returns whether the log is told: when half of the lease's time is gone, and again once in a while.
    fn wants_to_remind(&mut self, lease: Lapse, now: Duration) -> bool {
        let in_vain = self.asked.is_some_and(|(_, pause)| pause > BACKOFF.first);
        let told = self.told.is_some_and(|told| now < told + REMIND);
        let wants = in_vain && !told && lease.left < lease.length / 2;
        if wants {
            self.told = Some(now);
        }
        wants
    }
}
