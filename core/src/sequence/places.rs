//! Places are a cache: which tag gives its place up.
//!
//! The hand of a clock goes over the places, as in the buffer manager of Postgres. A place whose cursor has not moved since the
//! hand's last visit may go, so that takers write nothing for it. Of those that may, one of the database that has most goes
//! first: all databases have the same share. A place where calls wait for ids never goes.

use crate::sequence::reservation::Floor;
use crate::sequence::segment::{Period, Shelves};

/// Number of further places that the hand looks at, for one of a database with more of them.
const LOOK_ON: usize = 1_024;

/// The hand holds others up: after so many places, one that was used will do.
const FAR: usize = 4_096;

/// One place, as the hand finds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sight {
    /// True if calls wait there for ids.
    pub awaited: bool,
    /// True if ids were taken since the hand's last visit.
    pub moved: bool,
    /// Number of places the tags of its database have.
    pub places: u32,
}

/// Moves the hand on until a place is found that may go: two turns at most, and not much further than `FAR`, so in the end one
/// from which ids were taken just now. None: calls wait at all of them. `most` is what the database with most places has; `look`
/// notes the visit, and gives None for a place that is free.
pub fn sweep(
    hand: &mut usize,
    places: usize,
    most: u32,
    mut look: impl FnMut(usize) -> Option<Sight>,
) -> Option<usize> {
    let (mut found, mut moved, mut looks) = (None::<(u32, usize)>, None, 0..2 * places);
    while let Some(looked) = looks.next() {
        if looked >= FAR && moved.is_some() {
            break;
        }
        let place = *hand % places;
        *hand = (place + 1) % places;
        let Some(sight) = look(place).filter(|sight| !sight.awaited) else { continue };
        if sight.moved {
            moved = Some(place);
        } else if found.is_none_or(|(places, _)| sight.places > places) {
            if found.is_none() {
                looks.end = looks.end.min(looked + LOOK_ON);
            }
            found = Some((sight.places, place));
            if sight.places >= most {
                break;
            }
        }
    }
    found.map(|(_, place)| place).or(moved)
}

/// The highest id of a tag that was handed out. It takes the tag's buffers, how far transactions came that were rolled back,
/// and what its row says, which is in this life. The buffers can tell only if they end where the row does: a transaction
/// handed out by itself what is beyond them.
pub fn highest(shelves: &Shelves, floor: Option<Floor>, reserved: i64, life: i64) -> i64 {
    let end = shelves.next.or(shelves.current).map(|shelf| shelf.range.last());
    let issued = last_issued(shelves).filter(|_| end == Some(reserved)).unwrap_or(reserved);
    let floor = floor.filter(|floor| floor.life == life);
    floor.map_or(issued, |floor| issued.max(floor.id))
}

/// The highest id handed out of the buffers; of a tag that counts anew they don't tell. What lies before a range, or
/// between the two, was not theirs to give, and may be in use.
fn last_issued(shelves: &Shelves) -> Option<i64> {
    let shelf = match (shelves.current, shelves.next) {
        (Some(current), Some(next)) if current.range.is_followed_by(&next.range) => current,
        (_, Some(next)) => next,
        (current, None) => current?,
    };
    let before = || shelf.range.first.checked_sub(1);
    Some(shelf).filter(|shelf| shelf.period == Period::FOREVER)?.last_used().or_else(before)
}
