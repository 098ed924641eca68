//! The launcher, which starts the other background workers. The launcher also keeps the high-water marks ahead of the ids,
//! and samples the server's counters.

mod high_water_marks;
mod leases;
mod pool;
mod samples;

use crate::pg::clock::uptime;
use crate::pg::process::{self, Sleep};
use crate::pg::wait::Event;
use crate::pg::{database, server};
use crate::shared::registries;
use crate::shared::segments::{SEGMENTS, Segments};
use crate::tag::slot;
use high_water_marks::HighWaterMarkKeeper;
use leases::LeaseLauncher;
use pool::Pool;
use samples::Samples;
use std::time::{Duration, Instant};

/// The longest pause between two rounds of the main loop.
const LOOK_AROUND: Duration = Duration::from_secs(5);
/// The shortest interval between two checks of all tags.
const LOOK_AT_TAGS: Duration = Duration::from_secs(1);

pub fn run() {
    let Some(segments) = SEGMENTS.get() else { return };
    // A server that pg_upgrade has started serves no users.
    if server::upgrading() || !segments.launcher.enter() {
        return;
    }
    process::on_exit(|| {
        if let Some(segments) = SEGMENTS.get() {
            segments.launcher.leave();
        }
    });
    let mut launcher = Launcher {
        segments,
        pool: Pool::new(segments),
        looked: None,
        high_water_marks: HighWaterMarkKeeper::default(),
        leases: LeaseLauncher::new(),
        samples: Samples::default(),
    };
    launcher.high_water_marks.begin();
    loop {
        let pause = launcher.round();
        if process::sleep(Event::Launcher, pause) == Sleep::Stopped {
            launcher.high_water_marks.end();
            process::end();
        }
    }
}

struct Launcher {
    segments: &'static Segments,
    pool: Pool,
    /// The time of the last check of all tags.
    looked: Option<Instant>,
    high_water_marks: HighWaterMarkKeeper,
    leases: LeaseLauncher,
    samples: Samples,
}

impl Launcher {
    /// Does all work that is due. Returns the time until the next round.
    fn round(&mut self) -> Duration {
        // Leases come first, because all databases need the server's worker id.
        let lease_due = self.leases.round();
        if self.looked.is_none_or(|looked| looked.elapsed() >= LOOK_AT_TAGS) {
            self.looked = Some(Instant::now());
            self.segments.record_pending();
            self.look_at_tags();
            self.pool.retry();
        }
        let pool_due = self.pool.round(usize::from(self.leases.launch.is_short()));
        let due = [self.high_water_marks.round(), lease_due, pool_due, self.samples.round()]
            .into_iter()
            .flatten()
            .min();
        due.unwrap_or(LOOK_AROUND).min(LOOK_AROUND)
    }

    fn look_at_tags(&self) {
        if server::in_recovery() {
            return;
        }
        let dropped = registries::databases().into_iter().filter(|database| !database::may_exist(*database));
        dropped.for_each(registries::forget);
        slot::forget_dropped_databases(self.segments, database::may_exist);
        self.segments.slots.iter().for_each(|slot| slot.note(uptime()));
    }
}
