//! The reasons for which refills fail.

pub use snowflake_ids_core::worker::refill::Trouble;

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// A place for a [`Trouble`].
#[derive(Default)]
pub struct TroubleCell(AtomicU64);

impl TroubleCell {
    /// Notes it.
    pub fn set(&self, trouble: Trouble) {
        let number = match trouble {
            Trouble::RowLocked => 1,
            Trouble::NoWorker => 2,
            Trouble::Registry => 4,
            Trouble::Failed(code) => 3 | u64::from(code.cast_unsigned()) << 32,
            Trouble::OutOfReach(code) => 5 | u64::from(code.cast_unsigned()) << 32,
        };
        self.0.store(number, Relaxed);
    }

    /// It is over.
    pub fn clear(&self) {
        self.0.store(0, Relaxed);
    }

    /// Returns what it is, if anything.
    pub fn get(&self) -> Option<Trouble> {
        let number = self.0.load(Relaxed);
        #[allow(clippy::cast_possible_truncation, reason = "the half that holds it")]
        let code = ((number >> 32) as u32).cast_signed();
        match number & 7 {
            1 => Some(Trouble::RowLocked),
            2 => Some(Trouble::NoWorker),
            3 => Some(Trouble::Failed(code)),
            4 => Some(Trouble::Registry),
            5 => Some(Trouble::OutOfReach(code)),
            _ => None,
        }
    }
}
