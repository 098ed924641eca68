//! Slots are a cache: which tag gives its slot up.
//!
//! The hand of a clock goes over the slots, as in the buffer manager of Postgres. A slot whose cursor has not moved since the
//! hand's last visit may go, so that takers write nothing for it. Of those that may, one of the database that has most goes
//! first: all databases have the same share. A place where calls wait for ids never goes.

use crate::sequence::reservation::HighWaterMark;
use crate::sequence::segment::{BufferStates, Period};

/// Number of further slots that the hand looks at, for one of a database with more of them.
const LOOK_ON: usize = 1_024;

/// The hand holds others up: after so many slots, one that was used will do.
const FAR: usize = 4_096;

/// One slot, as the hand finds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SweptSlot {
    /// True if calls wait there for ids.
    pub awaited: bool,
    /// True if ids were taken since the hand's last visit.
    pub moved: bool,
    /// Number of slots the tags of its database have.
    pub slots: u32,
}

/// Moves the hand on until a slot is found that may go: two turns at most, and not much further than `FAR`, so in the end one
/// from which ids were taken just now. None: calls wait at all of them. `most` is what the database with most slots has; `look`
/// notes the visit, and gives None for a slot that is free.
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

/// The highest id of a tag that was handed out. It takes the tag's buffers, how far transactions came that were rolled back,
/// and what its row says, which is in this generation. The buffers can tell only if they end where the row does: a transaction
/// handed out by itself what is beyond them.
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

/// The highest id handed out of the buffers; of a tag that counts anew they don't tell. What lies before a range, or
/// between the two, was not theirs to give, and may be in use.
fn last_issued(buffer_states: &BufferStates) -> Option<i64> {
    let buffer = match (buffer_states.current, buffer_states.next) {
        (Some(current), Some(next)) if current.range.is_followed_by(&next.range) => current,
        (_, Some(next)) => next,
        (current, None) => current?,
    };
    let before = || buffer.range.first.checked_sub(1);
    Some(buffer).filter(|buffer| buffer.period == Period::FOREVER)?.last_used().or_else(before)
}
