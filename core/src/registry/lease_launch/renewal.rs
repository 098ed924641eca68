//! The times at which the lease is renewed, and at which the log is told that it is not.

use crate::worker::backoff::Backoff;
use std::time::Duration;

/// Time from the server's start to a renewal, by which two servers with one lease are noticed.
const AFTER_START: Duration = Duration::from_secs(10);
/// The pauses between attempts.
const BACKOFF: Backoff = Backoff::new(Duration::from_secs(1), Duration::from_secs(15));
/// Interval at which the log is told while the end of the lease comes nearer.
const REMIND: Duration = Duration::from_hours(1);

/// The launcher's memory of renewals. Times are of any clock that only goes forward.
#[derive(Debug, Default)]
pub struct Renewal {
    /// The time at which a lease was first seen, and the setting of its length as it was read last.
    seen: Option<(Duration, Duration)>,
    /// True if the renewal after the start was asked for.
    after_start: bool,
    /// The time of the last request without a response, and the pause after it.
    asked: Option<(Duration, Duration)>,
    /// Time at which the registry was asked last because the clock has jumped.
    compared: Option<Duration>,
    /// The time at which the log was last told that no renewal has come.
    told: Option<Duration>,
}

/// The lease that there is.
#[derive(Clone, Copy, Debug)]
pub struct Lapse {
    /// The time that it is still good.
    pub left: Duration,
    /// The time until it has to be renewed.
    pub until_renewal: Duration,
    /// Its length from one renewal to the next.
    pub length: Duration,
    /// The length by the setting.
    pub setting: Duration,
    /// True if a renewal that was asked for has not come yet.
    pub is_asked: bool,
    /// True if the clock has jumped, and a registry on another server may know better.
    pub has_jumped: bool,
}

/// The next act about a lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RenewalRound {
    /// True if a renewal is to be asked for.
    pub ask: bool,
    /// True if the log is to know that none came.
    pub remind: bool,
    /// The time until it should look again.
    pub due: Duration,
}

impl Renewal {
    /// Returns the next act about a lease.
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

    /// Returns the next act where there is no lease, as the registry gave none.
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

    /// Asks, unless that was just done; with the pause before it is done again.
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
