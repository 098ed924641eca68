//! The choice of a tag (a named id range) that loses its slot in shared memory to another tag. Slots are a cache.
//!
//! The clock sweep visits the slots in turn, as in the buffer manager of Postgres. A slot may be reused if its cursor has
//! not moved since the last visit. Takers therefore write nothing for the sweep. Slots of the database with the most
//! slots are reused first, so that all databases get the same share. A slot for which calls wait is never reused.

use crate::sequence::reservation::HighWaterMark;
use crate::sequence::segment::{BufferStates, Period};

/// Number of further visits after the sweep has found a reusable slot. The sweep then looks for a slot whose database
/// has more slots.
const LOOK_ON: usize = 1_024;

/// Number of visits after which a recently used slot is taken, because other processes wait for the sweep.
const FAR: usize = 4_096;

/// The state of one slot when the sweep visits it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SweptSlot {
    /// True if calls wait for ids of the slot.
    pub awaited: bool,
    /// True if ids were taken since the last visit.
    pub moved: bool,
    /// Number of slots that the tags of the slot's database have.
    pub slots: u32,
}

/// Finds a slot to reuse. The sweep visits each slot at most twice, and stops soon after `FAR` visits. The result is a
/// recently used slot if all slots are in use. None if calls wait for ids of every slot.
///
/// `most`: the number of slots of the database with the most slots. `look` records the visit, and returns None for a free
/// slot.
pub fn sweep(
    hand: &mut usize,
    slots: usize,
    most: u32,
    mut look: impl FnMut(usize) -> Option<SweptSlot>,
) -> Option<usize> {
    let (mut found, mut moved, mut looks) = (None::<(u32, usize)>, None, 0..2 * slots);
    while let Some(looked) = looks.next() {
        if looked >= FAR && moved.is_some() {
            break;
        }
        let slot_index = *hand % slots;
        *hand = (slot_index + 1) % slots;
        let Some(sight) = look(slot_index).filter(|sight| !sight.awaited) else { continue };
        if sight.moved {
            moved = Some(slot_index);
        } else if found.is_none_or(|(slots, _)| sight.slots > slots) {
            if found.is_none() {
                looks.end = looks.end.min(looked + LOOK_ON);
            }
            found = Some((sight.slots, slot_index));
            if sight.slots >= most {
                break;
            }
        }
    }
    found.map(|(_, slot_index)| slot_index).or(moved)
}

/// Returns the highest id of a tag that any session has got. `reserved` is the highest id in the tag's row, and
/// `tag_generation` the row's generation. The buffers count only if they end at the row's highest id. If they do not, a
/// transaction has handed out higher ids directly from the row.
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
