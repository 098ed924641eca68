//! A tag's place in the memory that the worker shares with sessions.

use crate::clock::Clock;
use crate::sequence::directory::Tag;
use crate::sequence::request::Request;
use crate::sequence::reservation::{Floor, Reached, Reserved};
use crate::sequence::segment::Segment;
use crate::sequence::step::{Pace, SlowStart};
use std::time::Duration;

/// The memory that the worker shares with sessions, and the clock by which periods end there.
pub trait SharedMemory: Clock {
    /// Does something that changes what is in buffers, or whose they are: one process at a time. It must not fail.
    fn with_directory_locked<T>(&self, work: impl FnOnce() -> T) -> T;

    /// Returns how far transactions came that were rolled back, of a tag in a table of tags.
    fn floor(&self, source: u32, tag: &Tag) -> Option<Floor>;
    /// The row knows of ids up to this one by now; None: what was noted is of no more use.
    fn clear_floor(&self, source: u32, tag: &Tag, known: Option<Reached>);
}

/// Reason why the last attempt at a refill failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// Another transaction has the tag's row locked.
    RowLocked,
    /// No worker could be started.
    NoWorker,
    /// The worker's transaction failed; with its SQLSTATE.
    Failed(i32),
    /// A registry on another server gave none.
    Registry,
    /// The worker could not connect to the database; with the SQLSTATE, or 0 where it waited until it was ended.
    OutOfReach(i32),
}

/// A tag's place in shared memory.
pub trait TagSlot {
    /// The two buffers.
    fn segment(&self) -> &Segment;
    /// The requests for a refill.
    fn request(&self) -> &Request;
    /// Wakes the calls that wait for an answer.
    fn wake(&self);

    /// The pace of the last reservation.
    fn pace(&self) -> Pace;
    /// The time since the last reservation, None before the first.
    fn lasted(&self) -> Option<Duration>;
    /// Returns whether what was published last was taken away: then how long it lasted says nothing.
    fn was_cut_short(&self) -> bool;
    /// The time since a call last had to wait; None where none had.
    fn waited_ago(&self) -> Option<Duration>;
    /// Takes away what is in the buffers. Only with the directory locked.
    fn clear(&self);
    /// Notes a reservation that was published, how long it took, and that the tag exists. Only with the directory locked.
    fn note_published(&self, reserved: &Reserved, took: Duration);
    /// Notes the row's largest id, for calls that are told that there is no more.
    fn note_max_value(&self, max_value: i64);

    /// Returns the number of ids that calls wait for.
    fn wanted(&self) -> u32;
    /// Returns how far it is where it starts slowly.
    fn slow_start(&self) -> Option<SlowStart>;
    /// Notes it. Only with the directory locked.
    fn set_slow_start(&self, slow_start: Option<SlowStart>);

    /// Why the last attempt at a refill failed, if it did.
    fn trouble(&self) -> Option<Trouble>;
    /// Notes it.
    fn set_trouble(&self, trouble: Option<Trouble>);
    /// Returns which of several registries the ids came from last.
    fn registry(&self) -> u32;
    /// Notes it.
    fn set_registry(&self, position: u32);
}
