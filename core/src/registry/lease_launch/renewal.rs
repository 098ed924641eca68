//! When the launcher asks for a renewal: after a start, a failure or a jump of the clock; and messages about missing renewals.
//! `core/src/server/lease.rs` says when a renewal is due.

use crate::backoff::Backoff;
use std::time::Duration;

/// The time from the launcher's first sight of a lease to the first renewal. This renewal reveals a copy of the server
/// that uses the same lease.
const AFTER_START: Duration = Duration::from_secs(10);
const BACKOFF: Backoff = Backoff::new(Duration::from_secs(1), Duration::from_secs(15));
/// The time between two log messages while renewals fail.
const REMIND: Duration = Duration::from_hours(1);

/// The launcher's memory of renewals. Times are readings of a monotonic clock.
#[derive(Debug, Default)]
pub struct Renewal {
    /// The time at which a lease was first seen, and the last seen setting for the length of leases.
    seen: Option<(Duration, Duration)>,
    /// True if the renewal after the start was requested.
    after_start: bool,
    /// The time of the last request without an answer, and the pause after this request.
    asked: Option<(Duration, Duration)>,
    /// The time of the last request that a clock jump caused.
    compared: Option<Duration>,
    /// The time of the last log message about a missing renewal.
    told: Option<Duration>,
}

/// The present lease.
#[derive(Clone, Copy, Debug)]
pub struct Lapse {
    /// The remaining time of the lease.
    pub left: Duration,
    /// The time until the next renewal is due.
    pub until_renewal: Duration,
    /// The length of the lease.
    pub length: Duration,
    /// The length of leases according to the setting.
    pub setting: Duration,
    /// True if a requested renewal has not been answered.
    pub is_asked: bool,
    /// True if the clock has jumped, and a registry on another server can confirm the time.
    pub has_jumped: bool,
}

/// The next action for a lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RenewalRound {
    /// True if a renewal is to be requested.
    pub ask: bool,
    /// True if the log is to say that renewals fail.
    pub remind: bool,
    /// The time until the next round.
    pub due: Duration,
}

impl Renewal {
    /// Returns the next action for a lease.
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

    /// Returns the next action if the registry granted no lease.
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

    /// Returns the time until the next renewal. If the setting for the length of leases has changed, a renewal is due
    /// immediately.
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

    /// Decides whether to request a renewal now. Also returns the time until the next request.
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

    /// Returns whether to write a log message: once half of the lease has passed, and again after each [`REMIND`].
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
