//! A tag's place, in the memory of a test.

use snowflake_ids_core::sequence::request::Request;
use snowflake_ids_core::sequence::reservation::Reserved;
use snowflake_ids_core::sequence::segment::Segment;
use snowflake_ids_core::sequence::step::{Pace, SlowStart};
use snowflake_ids_core::worker::refill::{TagSlot, Trouble};
use std::cell::Cell;
use std::time::Duration;

#[derive(Default)]
pub struct Slot {
    pub segment: Segment,
    pub request: Request,
    pub pace: Cell<Pace>,
    pub slow_start: Cell<Option<SlowStart>>,
    pub wanted: Cell<u32>,
    pub trouble: Cell<Option<Trouble>>,
    pub lasted: Cell<Option<Duration>>,
}

impl TagSlot for Slot {
    fn segment(&self) -> &Segment {
        &self.segment
    }

    fn request(&self) -> &Request {
        &self.request
    }

    fn wake(&self) {}

    fn pace(&self) -> Pace {
        self.pace.get()
    }

    fn lasted(&self) -> Option<Duration> {
        self.lasted.get()
    }

    fn was_cut_short(&self) -> bool {
        false
    }

    fn waited_ago(&self) -> Option<Duration> {
        self.lasted.get()
    }

    fn clear(&self) {
        self.segment.clear();
    }

    fn note_published(&self, reserved: &Reserved, _: Duration) {
        self.pace.set(reserved.pace);
        self.lasted.set(Some(Duration::from_millis(1)));
    }

    fn note_max_value(&self, _: i64) {}

    fn wanted(&self) -> u32 {
        self.wanted.get()
    }

    fn slow_start(&self) -> Option<SlowStart> {
        self.slow_start.get()
    }

    fn set_slow_start(&self, slow_start: Option<SlowStart>) {
        self.slow_start.set(slow_start);
    }

    fn trouble(&self) -> Option<Trouble> {
        self.trouble.get()
    }

    fn set_trouble(&self, trouble: Option<Trouble>) {
        self.trouble.set(trouble);
    }

    fn registry(&self) -> u32 {
        0
    }

    fn set_registry(&self, _: u32) {}
}
