//! The outside world of a refill worker, beside tables and registries.

use super::job::Job;
use super::settings::RefillSettings;
use super::slot::{SharedMemory, TagSlot};
use super::tables::Database;
use crate::sequence::directory::Tag;
use crate::sequence::reservation::{CarryOver, Reserved};
use std::time::Duration;

/// The worker's process, and the memory that it shares with sessions.
pub trait RefillHost: SharedMemory {
    /// What it knows of a tag's place.
    type Slot: TagSlot;
    /// The tables of its database.
    type Database: Database;

    /// Its database.
    fn database(&self) -> &Self::Database;
    /// A clock that only goes forward.
    fn uptime(&self) -> Duration;
    /// Returns what the settings say now.
    fn settings(&self) -> RefillSettings;
    /// The tags of its database with requests that have no answer.
    fn jobs(&self) -> Vec<Job<'_, Self::Slot>>;
    /// Returns whether a registry of its database gave no answer last, and is to be asked again by now.
    fn has_registry_to_probe(&self) -> bool;
    /// Takes all places away from tags of a table that is gone.
    fn leave_table(&self, source: u32);

    /// Returns whether it is to leave after this round, as other databases wait for its place.
    fn is_dismissed(&self) -> bool;
    /// Returns whether it should have left already.
    fn is_overdue(&self) -> bool;
    /// Returns whether databases wait for a place: a worker with nothing to do leaves then.
    fn is_crowded(&self) -> bool;
    /// Notes that its turn was not in vain.
    fn note_served(&self);
    /// Sleeps where there was nothing to do since an instant of its uptime; false: it is to leave.
    fn rest(&self, last_work: Duration) -> bool;
    /// Sleeps until it is woken, and no longer than this.
    fn sleep(&self, limit: Duration);

    /// Shows for how many tags it reserves ids now.
    fn show_activity(&self, tags: usize);
    /// Tells the log, unless the same was said lately.
    fn say_once(&self, warning: String);
    /// A tag as messages show it.
    fn shown(&self, tag: &Tag) -> String;
}

/// Ids that were reserved when the server stopped and that no session got.
pub trait CarryOvers {
    /// Those of a tag.
    fn of(&self, source: u32, tag: &Tag) -> Option<CarryOver>;

    /// Notes what was taken up of it, whatever becomes of the rows: durable when this returns true. Else nothing of it may be
    /// handed out.
    fn take_up<'a>(&self, reserved: impl Iterator<Item = (u32, &'a Tag, &'a Reserved)>) -> bool;
}
