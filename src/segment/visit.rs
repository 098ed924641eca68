//! Waiting at a tag's place, which is not taken away meanwhile. It ends with the call, however that is: by ids, an error, a cancel, or
//! the end of the session.

use super::place;
use crate::pg::process::PerProcess;
use crate::pg::worker;
use crate::shared::slot::Slot;
use std::cell::Cell;
use std::num::NonZeroU32;
use std::sync::Once;

/// A place, its incarnation, and how many ids are waited for.
type VisitedSlot = (&'static Slot, u64, NonZeroU32);

/// Where this process waits.
static HERE: PerProcess<Cell<Option<VisitedSlot>>> = PerProcess::new(Cell::new(None));

/// A call that waits. Errors unwind through it; the end of the session does not, and is met by a hook.
pub struct Visit {
    /// True if it ends with this: not if the same call waits there already.
    ends: bool,
}

impl Visit {
    /// Begins to wait for so many ids at a place; None: it is another tag's by now.
    pub fn begin(slot: &'static Slot, incarnation: u64, want: NonZeroU32) -> Option<Self> {
        let is_here =
            HERE.get().is_some_and(|(here, since, _)| std::ptr::eq(here, slot) && since == incarnation);
        if is_here {
            return Some(Self { ends: false });
        }
        watch();
        place::enter(slot, incarnation, want).then(|| Self::at(slot, incarnation, want))
    }

    /// This process waits there since it was given the place.
    pub fn at(slot: &'static Slot, incarnation: u64, want: NonZeroU32) -> Self {
        HERE.set(Some((slot, incarnation, want)));
        Self { ends: true }
    }
}

impl Drop for Visit {
    fn drop(&mut self) {
        if self.ends {
            end();
        }
    }
}

/// Sees to it that a wait ends with the session. To be called before a place is given.
pub fn watch() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| worker::on_exit(end));
}

fn end() {
    if let Some((slot, incarnation, want)) = HERE.take() {
        place::go(slot, incarnation, want);
    }
}
