//! Which tags have a place where there are fewer places than tags, and which give one up.
//!
//! A tag whose row was seen has a right to a place. One that no session has seen yet, and that may not exist, is *on
//! trial*: it has a place only while a session waits for its ids. The first ids end the trial. Tags on trial have a small
//! share of the places: no user that asks for any number of names takes more.

use crate::reservation::Floor;
use crate::segment::{Period, Shelves};
use std::cmp::Reverse;
use std::time::Duration;

/// A tag that was not used for this long may lose its place to another one.
pub const IDLE: Duration = Duration::from_secs(10);

/// One of so many places may be on trial,
const SHARE: usize = 16;
/// and at least so many.
const FEW: usize = 8;

/// What speaks for a tag that wants a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Claim {
    /// Its row was seen.
    Known,
    /// It may not exist.
    Trial,
}

/// What a place is used for. Lengths of time are those for which no session has used it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Use {
    /// A tag of which it is not known yet whether there is a row.
    Trial {
        /// Whether a caller waits for its ids.
        awaited: bool,
    },
    /// Ids of a known tag are asked for.
    Awaited,
    /// A known tag's buffers.
    Buffers(Duration),
    /// A note of the ids that a transaction gave out by itself, which it may roll back or has.
    Floor(Duration),
}

/// Why a tag gets no place now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlaceError {
    /// All places are in use.
    Full,
    /// As many tags as may be are on trial.
    Trials,
}

/// How many of these places may be on trial.
pub fn most_on_trial(places: usize) -> usize {
    (places / SHARE).max(FEW).min(places)
}

/// What there is to go by.
#[derive(Clone, Copy, Debug)]
pub struct Occupancy {
    /// How many places there are.
    pub places: usize,
    /// Whether one of them is free.
    pub has_free: bool,
    /// How many tags are on trial.
    pub on_trial: usize,
}

/// Which place a tag gets: a free one (None), or that of another tag, which loses it. `uses` are all places
/// that are not free; they are only looked at where none is.
pub fn admit(
    claim: Claim,
    occupancy: Occupancy,
    uses: impl Iterator<Item = (usize, Use)>,
) -> Result<Option<usize>, PlaceError> {
    if claim == Claim::Trial && occupancy.on_trial >= most_on_trial(occupancy.places) {
        return Err(PlaceError::Trials);
    }
    if occupancy.has_free {
        return Ok(None);
    }
    let least = uses.filter_map(|(place, used)| Some((worth(claim, used)?, place))).min();
    least.map(|(_, place)| Some(place)).ok_or(PlaceError::Full)
}

/// What it would cost that a place is given to another tag: the least is let go. None: it is not given away for this.
fn worth(claim: Claim, used: Use) -> Option<(u8, Reverse<Duration>)> {
    let (rank, idle) = match (used, claim) {
        (Use::Trial { awaited: false }, _) => (0, Duration::ZERO),
        // Nothing is lost with it: a session that waits there asks again.
        (Use::Trial { awaited: true }, Claim::Known) => (1, Duration::ZERO),
        (Use::Buffers(idle), _) if idle >= IDLE => (2, idle),
        // Ids that a session saw may come again then, so all else goes first.
        (Use::Floor(idle), Claim::Known) if idle >= IDLE => (3, idle),
        _ => return None,
    };
    Some((rank, Reverse(idle)))
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
