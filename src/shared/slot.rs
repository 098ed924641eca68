//! A tag's slot in shared memory.

mod shared_text;

pub use shared_text::SharedText;

use crate::pg::clock::SystemClock;
use crate::pg::wait::Condition;
use snowflake_ids_core::Clock;
use snowflake_ids_core::sequence::counts::TagCounts;
use snowflake_ids_core::sequence::segment::BufferStates;
use snowflake_ids_core::sequence::slot::{SlotState, TagSlot};
use snowflake_ids_core::series::monotonic::Section;
use std::ops::Deref;

/// The shared state of one tag.
#[repr(C)]
#[derive(Default)]
pub struct Slot {
    state: SlotState,
    /// Condition variable, signalled when a request was answered.
    pub answered: Condition,
    /// The format of the tag's numbers. Changed with the directory locked for writing.
    pub format: SharedText<8>,
    /// The section of a monotonic series, if the tag belongs to one. With the directory locked for writing, a process opens
    /// the section and moves ranges from the buffers into it. The section closes when the buffers are emptied.
    pub section: Section,
}

impl Deref for Slot {
    type Target = SlotState;

    #[inline]
    fn deref(&self) -> &SlotState {
        &self.state
    }
}

impl Slot {
    /// Gives the slot to another tag, or frees it: see [`SlotState::hand_over`].
    pub fn hand_over(&self, slot_generation: u64) -> TagCounts {
        self.section.shut();
        self.state.hand_over(slot_generation, SystemClock.now())
    }

    /// Empties the buffers: see [`SlotState::clear`].
    pub fn clear(&self) -> BufferStates {
        // The section's range was taken out of the buffers, so it counts as handed out.
        self.section.close();
        self.state.clear()
    }

    /// Returns whether ids were taken since the last visit of the clock-sweep hand: see [`SlotState::has_moved`].
    pub fn has_moved(&self) -> bool {
        // A section's numbers leave the buffers before they are used, so the section has its own flag.
        self.section.was_used() | self.state.has_moved()
    }
}

impl TagSlot for Slot {
    fn state(&self) -> &SlotState {
        &self.state
    }

    fn wake(&self) {
        self.answered.broadcast();
    }

    fn clear(&self) {
        Self::clear(self);
    }

    fn set_format(&self, format: &str) {
        self.format.write(format);
    }
}
