//! Waiting at the place of a tag that no session has found yet. It is let go when the last call that waits there ends,
//! however that is: by an answer, an error, a cancel, or the end of the session.

use super::place;
use crate::pg::process::PerProcess;
use crate::pg::worker;
use crate::shared::slot::Slot;
use std::cell::Cell;
use std::sync::Once;
use std::sync::atomic::Ordering::Relaxed;

/// Where this process waits, and in which incarnation.
static HERE: PerProcess<Cell<Option<(&'static Slot, u64)>>> = PerProcess::new(Cell::new(None));

/// A call that waits. Errors unwind through it; the end of the session does not, and is met by a hook.
pub struct Visit {
    /// Whether it ends with this: not if the same call waits there already.
    ends: bool,
}

impl Visit {
    /// Begins to wait at a place. Costs nothing where the tag is known.
    pub fn begin(slot: &'static Slot, incarnation: u64) -> Self {
        static ONCE: Once = Once::new();
        let is_here =
            HERE.get().is_some_and(|(here, since)| std::ptr::eq(here, slot) && since == incarnation);
        if !is_here && slot.on_trial.load(Relaxed) {
            ONCE.call_once(|| worker::on_exit(end));
            if place::enter(slot, incarnation) {
                HERE.set(Some((slot, incarnation)));
            }
        }
        Self { ends: !is_here }
    }
}

impl Drop for Visit {
    fn drop(&mut self) {
        if self.ends {
            end();
        }
    }
}

fn end() {
    if let Some((slot, incarnation)) = HERE.take() {
        place::go(slot, incarnation);
    }
}
