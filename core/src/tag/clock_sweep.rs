//! The choice of a tag (a named id range) that loses its slot in shared memory to another tag. Slots are a cache.
//!
//! The clock sweep visits one slot after another, as in the buffer manager of Postgres. A slot may be reused if its cursor
//! has not moved since the sweep's last visit of the slot. Sessions that take ids therefore write nothing for the
//! sweep. Slots that have not moved for [`IDLE`] are reused first, then slots of the database with the most slots, so
//! that all databases get the same share of the slots that they use. A slot for which calls wait is never reused.
//!
//! **Why a time.** A hostile role that calls for thousands of tags makes the hand go round in milliseconds, so the number of
//! visits shows nothing about a tag of another database. If such a tag is evicted, its next call waits for a refill, which
//! takes a small part of `IDLE`.

use crate::tag::reservation::HighWaterMark;
use crate::tag::segment::{BufferStates, Period};
use std::ops::Range;
use std::time::Duration;

/// The time after which a slot whose cursor does not move loses the protection of its database's share.
pub const IDLE: Duration = Duration::from_millis(250);

/// The number of further visits after the sweep has found a reusable slot. During these visits, the sweep looks for a
/// reusable slot whose database has more slots.
const LOOK_ON: usize = 1_024;

/// The number of further visits, in search of an idle slot, after the sweep has found a slot of the database with the most slots.
const LOOK_FOR_IDLE: usize = 16;

/// The number of visits after which the sweep takes a recently used slot, because other processes wait for the sweep's
/// end.
const FAR: usize = 4_096;

/// The state of one slot when the sweep visits it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SweptSlot {
    /// True if calls wait for ids of the slot.
    pub awaited: bool,
    /// The time for which visits have found the slot's cursor unmoved; None if it has moved since the last visit.
    pub unmoved: Option<Duration>,
    /// The number of slots that all tags of the slot's database have; the highest number if no other database has slots.
    pub slots: u32,
}

/// A search for a slot to reuse. The sweep visits each slot at most twice, and stops soon after `FAR` visits. If all visited
/// slots were used recently, finds a recently used slot.
#[derive(Debug)]
pub struct Sweep {
    found: Option<(u32, usize)>,
    moved: Option<usize>,
    looks: Range<usize>,
    slots: usize,
}

impl Sweep {
    /// Begins a sweep of this number of slots.
    pub const fn new(slots: usize) -> Self {
        Self { found: None, moved: None, looks: 0..2 * slots, slots }
    }

    /// Visits at most `visits` slots. Returns None if the sweep is not over yet, and Some(None) if calls
    /// wait for ids of every slot. Slots may change between two calls.
    ///
    /// `most` is the number of slots of the database with the most slots. `look` records the visit of a slot, and returns
    /// None for a free slot.
    pub fn go_on(
        &mut self,
        visits: usize,
        hand: &mut usize,
        most: u32,
        mut look: impl FnMut(usize) -> Option<SweptSlot>,
    ) -> Option<Option<usize>> {
        for _ in 0..visits {
            let Some(looked) = self.looks.next().filter(|looked| *looked < FAR || self.moved.is_none())
            else {
                return Some(self.choice());
            };
            let slot_index = *hand % self.slots;
            *hand = (slot_index + 1) % self.slots;
            let Some(sight) = look(slot_index).filter(|sight| !sight.awaited) else { continue };
            let Some(unmoved) = sight.unmoved else {
                self.moved = Some(slot_index);
                continue;
            };
            let slots = if unmoved < IDLE { sight.slots } else { u32::MAX };
            if self.found.is_none_or(|(found, _)| slots > found) {
                let further = match slots {
                    u32::MAX => 0,
                    slots if slots >= most => LOOK_FOR_IDLE,
                    _ => LOOK_ON,
                };
                self.looks.end = self.looks.end.min(looked + 1 + further);
                self.found = Some((slots, slot_index));
            }
        }
        None
    }

    fn choice(&self) -> Option<usize> {
        self.found.map(|(_, slot_index)| slot_index).or(self.moved)
    }
}

/// Returns the highest id of a tag that any session has received. `reserved` is the highest id in the tag's row, and
/// `tag_generation` the row's generation. The buffers count only if they end at the row's highest id. If the buffers do
/// not end there, a transaction has handed out higher ids directly from the row.
pub fn highest(
    buffer_states: &BufferStates,
    high_water_mark: Option<HighWaterMark>,
    reserved: i64,
    tag_generation: i64,
) -> i64 {
    let end = buffer_states.next.or(buffer_states.current).map(|buffer| buffer.range.last());
    let issued = last_issued(buffer_states).filter(|_| end == Some(reserved)).unwrap_or(reserved);
    let high_water_mark =
        high_water_mark.filter(|high_water_mark| high_water_mark.tag_generation == tag_generation);
    high_water_mark.map_or(issued, |high_water_mark| issued.max(high_water_mark.id))
}

/// Returns the highest id handed out of the buffers; None for a tag with periods. Ids below the first range, or between the
/// two ranges, may be in use on another server, so they count as handed out.
fn last_issued(buffer_states: &BufferStates) -> Option<i64> {
    let buffer = match (buffer_states.current, buffer_states.next) {
        (Some(current), Some(next)) if current.range.is_followed_by(&next.range) => current,
        (_, Some(next)) => next,
        (current, None) => current?,
    };
    let before = || buffer.range.first.checked_sub(1);
    Some(buffer).filter(|buffer| buffer.period == Period::FOREVER)?.last_used().or_else(before)
}
