//! A tag's slot in the test's memory.

use snowflake_ids_core::tag::slot::{SlotState, TagSlot};
use std::ops::Deref;

#[derive(Default)]
pub struct Slot(SlotState);

impl Deref for Slot {
    type Target = SlotState;

    fn deref(&self) -> &SlotState {
        &self.0
    }
}

impl TagSlot for Slot {
    fn state(&self) -> &SlotState {
        &self.0
    }

    fn wake(&self) {}

    fn clear(&self) {
        self.0.clear();
    }

    fn set_format(&self, _: &str) {}
}
