//! A tag's place in shared memory, as the core sees it.

use crate::shared::slot::Slot;
use snowflake_ids_core::sequence::request::Request;
use snowflake_ids_core::sequence::reservation::Reserved;
use snowflake_ids_core::sequence::segment::Segment;
use snowflake_ids_core::sequence::step::{Pace, SlowStart};
use snowflake_ids_core::worker::refill::{TagSlot, Trouble};
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

impl TagSlot for Slot {
    fn segment(&self) -> &Segment {
        &self.segment
    }

    fn request(&self) -> &Request {
        &self.request
    }

    fn wake(&self) {
        self.answered.broadcast();
    }

    fn pace(&self) -> Pace {
        self.supplies.pace()
    }

    fn lasted(&self) -> Option<Duration> {
        self.supplies.lasted()
    }

    fn was_cut_short(&self) -> bool {
        self.supplies.cut_short.load(Relaxed)
    }

    fn waited_ago(&self) -> Option<Duration> {
        self.waits.ago()
    }

    fn clear(&self) {
        Self::clear(self);
    }

    fn note_published(&self, reserved: &Reserved, took: Duration) {
        self.on_trial.store(false, Relaxed);
        self.format.write(&reserved.format);
        self.supplies.note(reserved, took);
    }

    fn note_max_value(&self, max_value: i64) {
        self.supplies.max_value.store(max_value, Relaxed);
    }

    fn wanted(&self) -> u32 {
        u32::try_from(self.wanted.load(Relaxed)).unwrap_or(u32::MAX)
    }

    fn slow_start(&self) -> Option<SlowStart> {
        Self::slow_start(self)
    }

    fn set_slow_start(&self, slow_start: Option<SlowStart>) {
        Self::set_slow_start(self, slow_start);
    }

    fn trouble(&self) -> Option<Trouble> {
        self.trouble.get()
    }

    fn set_trouble(&self, trouble: Option<Trouble>) {
        match trouble {
            Some(trouble) => self.trouble.set(trouble),
            None => self.trouble.clear(),
        }
    }

    fn registry(&self) -> u32 {
        self.registry.load(Relaxed)
    }

    fn set_registry(&self, position: u32) {
        self.registry.store(position, Relaxed);
    }
}
