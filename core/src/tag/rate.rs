//! The rate at which ids of a tag were taken in the last hour.
//!
//! The launcher notes every half hour how many ids were taken. The slower of the last two half hours counts, so a load of some
//! minutes does not make a forecast. Notes need no lock: a note that races with a change of the slot's owner only makes the
//! next half hour seem slower.

use crate::clock::micros;
use crate::sync::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// The time between two notes.
pub const HALF_HOUR: Duration = Duration::from_mins(30);

/// Notes in shared memory.
#[derive(Debug, Default)]
pub struct Rate {
    /// The instant of the last note, in microseconds; 0 for never.
    noted_at: AtomicU64,
    /// The number of ids taken up to the last note.
    noted: AtomicU64,
    /// The number of ids taken in the last half hour and in the half hour before, plus 1; 0 if unknown.
    halves: [AtomicU64; 2],
}

impl Rate {
    /// Returns true if half an hour has passed since the last note.
    pub fn is_due(&self, uptime: Duration) -> bool {
        let noted_at = self.noted_at.load(Relaxed);
        noted_at == 0 || uptime >= Duration::from_micros(noted_at) + HALF_HOUR
    }

    /// Notes that `issued` ids were taken up to now. Only one process calls this function.
    pub fn note(&self, issued: u64, uptime: Duration) {
        let now = micros(uptime).max(1);
        let (noted_at, noted) = (self.noted_at.swap(now, Relaxed), self.noted.swap(issued, Relaxed));
        if noted_at > 0 {
            let taken = u128::from(issued.saturating_sub(noted));
            let in_half_hour =
                taken * HALF_HOUR.as_micros() / u128::from(now.saturating_sub(noted_at).max(1));
            let last = u64::try_from(in_half_hour).unwrap_or(u64::MAX).saturating_add(1);
            self.halves[1].store(self.halves[0].swap(last, Relaxed), Relaxed);
        }
    }

    /// Returns the number of ids taken in half an hour; None until an hour was noted.
    pub fn in_half_hour(&self) -> Option<u64> {
        let [last, before] = self.halves.each_ref().map(|half| half.load(Relaxed));
        last.min(before).checked_sub(1)
    }

    /// Forgets the notes, because the slot gets another tag.
    pub fn clear(&self) {
        for cell in [&self.noted_at, &self.noted].into_iter().chain(&self.halves) {
            cell.store(0, Relaxed);
        }
    }
}
