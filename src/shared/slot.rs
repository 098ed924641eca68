//! The slot of a segment tag in shared memory.

mod shared_text;

pub use shared_text::SharedText;

use crate::pg::clock::SystemClock;
use crate::pg::wait::Condition;
use snowflake_ids_core::Clock;
use snowflake_ids_core::series::monotonic::Section;
use snowflake_ids_core::tag::counts::TagCounts;
use snowflake_ids_core::tag::segment::BufferStates;
use snowflake_ids_core::tag::slot::{SlotState, TagSlot};
use std::ops::Deref;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

#[repr(C)]
#[derive(Default)]
pub struct Slot {
    state: SlotState,
    /// The database of the slot's tag; 0 for a free slot. Changed with the directory locked for writing. Who reads it without the
    /// lock may see that of another tag.
    database: AtomicU32,
    /// The condition variable that is signalled when a request was answered.
    pub answered: Condition,
    /// The format of the tag's numbers. Changed with the directory locked for writing.
    pub format: SharedText<8>,
    /// The section, if the tag belongs to a monotonic series: the range of numbers that some of the series' keys share.
    /// Processes lock the directory for writing to open the section, or to move a range from the buffers to the
    /// section. Emptying the buffers closes the section.
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
    /// Returns the database of the slot's tag; None for a free slot.
    pub fn database(&self) -> Option<u32> {
        Some(self.database.load(Relaxed)).filter(|database| *database != 0)
    }

    /// Gives the slot to a tag of a database, or frees the slot: see [`SlotState::hand_over`].
    pub fn hand_over(&self, database: Option<u32>, slot_generation: u64) -> TagCounts {
        self.database.store(database.unwrap_or(0), Relaxed);
        self.section.shut();
        self.state.hand_over(slot_generation, SystemClock.now())
    }

    /// Empties the buffers: see [`SlotState::clear`].
    pub fn clear(&self) -> BufferStates {
        // The section's range was taken out of the buffers, so the numbers of this range count as handed out.
        self.section.close();
        self.state.clear()
    }

    /// Records a visit of the clock sweep: see [`SlotState::visit`].
    pub fn visit(&self, uptime: Duration) -> Option<Duration> {
        // Taking a number from the section does not move the cursor of the buffers.
        self.state.visit(self.section.was_used(), uptime)
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
