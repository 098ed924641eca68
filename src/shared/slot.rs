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

/// Everything about one tag.
#[repr(C)]
#[derive(Default)]
pub struct Slot {
    state: SlotState,
    /// Broadcast when a request was answered.
    pub answered: Condition,
    /// How the tag's numbers are written. Changed with the directory locked for writing.
    pub format: SharedText<8>,
    /// The section of a monotonic series that the tag is for. Opened and given ranges with the directory locked for writing, out of
    /// the buffers; closed where they are emptied.
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
    /// Makes it another tag's, or free: see [`SlotState::hand_over`].
    pub fn hand_over(&self, slot_generation: u64) -> TagCounts {
        self.section.shut();
        self.state.hand_over(slot_generation, SystemClock.now())
    }

    /// Takes away what is in the buffers: see [`SlotState::clear`].
    pub fn clear(&self) -> BufferStates {
        // Its range was taken out of the buffers before, and counts as handed out.
        self.section.close();
        self.state.clear()
    }

    /// Returns whether ids were taken since the hand's last visit: see [`SlotState::has_moved`].
    pub fn has_moved(&self) -> bool {
        // A section's numbers were taken out of the buffers before.
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
