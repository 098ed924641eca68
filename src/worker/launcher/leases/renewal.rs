//! When the lease is to be renewed, and what the log is told where it is not.

use crate::lease;
use crate::pg::clock::uptime;
use crate::shared::generator::Shared;
use crate::shared::leases::Leases as Board;
use crate::{issuer, settings};
use pgrx::pg_sys::panic::ErrorReport;
use pgrx::{PgLogLevel, PgSqlErrorCode, function_name};
use snowflake_ids_core::UnixMicros;
use snowflake_ids_core::clock::{human, micros};
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::time::Duration;

/// How soon after the server's start, so that two servers with one lease are noticed.
const AFTER_START: Duration = Duration::from_secs(10);
/// How soon it is tried again, at first and in the end.
const BACKOFF: (Duration, Duration) = (Duration::from_secs(1), Duration::from_mins(1));
/// How often the log is told while the end of the lease comes nearer.
const REMIND: Duration = Duration::from_hours(1);

/// What is remembered of it. Times are of uptime.
#[derive(Default)]
pub struct Renewal {
    /// When a lease was first seen, and for how long ids are leased by the setting as it was looked at last.
    seen: Option<(Duration, Duration)>,
    /// Whether the renewal after the start was asked for.
    after_start: bool,
    /// When one was asked for last that did not come yet, and the pause before it is asked for again.
    asked: Option<(Duration, Duration)>,
    /// When the registry was asked last because the clock has jumped.
    compared: Option<Duration>,
    /// When the log was told last that it did not come.
    told: Option<Duration>,
}

impl Renewal {
    /// Asks for a renewal where one is due; gives the time until it should look again, None where there is no lease.
    pub fn round(&mut self, shared: &Shared, board: &Board) -> Option<Duration> {
        let expiry = shared.counts.expiry().filter(|_| shared.generator.limit() > 0)?;
        let believed = issuer::believed_now(shared);
        let left = Duration::from_micros(expiry.since(believed));
        let now = uptime();
        if self.asked.is_some() && !board.renew.load(Acquire) {
            (self.asked, self.told) = (None, None);
        }
        let due = self.due(lease::until_renewal(expiry, believed), now);
        if self.asked.is_none() && !due.is_zero() && !self.wants_to_compare(shared, now) {
            return Some(due);
        }
        self.remind(expiry, left, now);
        Some(self.ask(board, now))
    }

    /// Whether the clock has jumped, and a registry on another server may know better.
    fn wants_to_compare(&mut self, shared: &Shared, now: Duration) -> bool {
        let jumped = shared.counts.clock_ahead.load(Relaxed) > 0 && lease::origin().is_some();
        let wants = jumped && self.compared.is_none_or(|compared| now >= compared + BACKOFF.1);
        if wants || !jumped {
            self.compared = jumped.then_some(now);
        }
        wants
    }

    /// The time until the next renewal.
    fn due(&mut self, quarter_gone: Duration, now: Duration) -> Duration {
        let asked_for = settings::lease_duration();
        let (began, before) = *self.seen.get_or_insert((now, asked_for));
        self.seen = Some((began, asked_for));
        let at_start = (began + AFTER_START).saturating_sub(now);
        match (before == asked_for, self.after_start) {
            (false, _) => Duration::ZERO,
            (true, false) => at_start.min(quarter_gone),
            (true, true) => quarter_gone,
        }
    }

    /// Asks, unless that was just done; gives the pause before it is done again.
    fn ask(&mut self, board: &Board, now: Duration) -> Duration {
        let (at, pause) = match self.asked {
            Some((at, pause)) if now < at + pause => (at, pause),
            before => {
                self.after_start = true;
                board.renew.store(true, Release);
                board.request.ask();
                lease::call(board);
                (now, before.map_or(BACKOFF.0, |(_, pause)| (pause * 2).min(BACKOFF.1)))
            }
        };
        self.asked = Some((at, pause));
        (at + pause).saturating_sub(now)
    }

    /// Tells the log that the lease is not renewed when half of its time is gone, and again once in a while.
    fn remind(&mut self, expiry: UnixMicros, left: Duration, now: Duration) {
        let in_vain = self.asked.is_some_and(|(_, pause)| pause > BACKOFF.0);
        let told = self.told.is_some_and(|told| now < told + REMIND);
        if !in_vain || told || left >= lease::length() / 2 {
            return;
        }
        self.told = Some(now);
        let why = lease::trouble().map(|none| format!(" {}", none.detail)).unwrap_or_default();
        let left = human(micros(left));
        ErrorReport::new(
            PgSqlErrorCode::ERRCODE_WARNING,
            format!(
                "the registry has not renewed the lease of this server's worker id, which ends in {left}"
            ),
            function_name!(),
        )
        .set_detail(format!("Ids are issued until {expiry}.{why}"))
        .report(PgLogLevel::WARNING);
    }
}
