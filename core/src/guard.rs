//! Rules that a test may leave out, to show that the simulation fails without the rule.
//!
//! Production code asks [`holds`] about each rule of a protocol. Without the feature `guards`, [`holds`] is the constant
//! `true`. Only `make test-core` sets the feature.

/// A rule of a protocol, named after the property that the rule protects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Guard {
    // Leases of worker ids.
    /// The next holder of a worker id begins at the end of the previous lease.
    StartAtExpiry,
    /// A row of the registry is written only if the row has not changed since it was read.
    CompareAndSwap,
    /// A lease that is found by its pending token begins at the instant of its grant, not at zero.
    PendingTokenStart,
    /// The pending token is in the state file before the registry sees the token.
    PendingTokenFirst,
    /// A pending token is kept until the registry has answered.
    KeepPendingToken,
    /// The old worker id is given back only after the new one is in the state file.
    ReleaseLast,
    /// A server that was promoted, or has had another worker id, chooses only from the share of its timeline.
    Shares,
    /// A server does not choose a worker id that has a high-water mark in the state file.
    UsedNamed,
    /// A server does not choose a worker id that a table of the cluster names.
    RecordedNamed,
    /// A chosen worker id is given up when a database begins to use a registry.
    ChosenLeft,
    /// A leased worker id fits all layouts in use.
    LeaseFits,
    /// A holder does not report a last id that is ahead of its own clock.
    LastBounded,
    /// A shared registry records no last id that is ahead of the registry's clock.
    PeersBounded,
    /// A registry does not lease the worker id that its own server issues under.
    OwnWorkerTaken,
    /// A rebuilt registry leases no worker id that a node may still hold from the previous registry.
    FormerLeases,

    // The issuer.
    /// The high-water mark is in the state file before any session issues ids below the mark.
    WriteFirst,
    /// The state file's content is synced before the file is renamed into place.
    SyncFile,
    /// The state file's directory is synced before any session issues ids below the new high-water mark.
    SyncDirectory,
    /// A term begins at the high-water mark, not at the clock.
    StartAtHighWaterMark,
    /// The last position of a term is read only after the generator is closed to sessions.
    CloseFirst,
    /// Positions that sessions hold become stale at the end of a term.
    HeldStale,
    /// The end position is recorded only for the node of the term that ended.
    SettleOwnTerm,
    /// An id gets the node bits that were read with its position, not bits that were read earlier.
    TermRead,
    /// A buffered id keeps the node bits that its position was taken with.
    BlockKeepsBits,
    /// Nothing is reserved beyond the expiry of the lease.
    ExpiryClamps,
    /// A promoted server leaves the lease to the former primary.
    PromotionForgets,
    /// A promoted server with a fixed worker id begins above the last replayed commit.
    PromotionRises,
    /// A copied data directory is not taken for the original.
    CopyKnown,
    /// A state file that was restored from a copy is not taken for the original.
    FileKnown,
    /// A lost state file is not taken for a new server.
    MarkerFile,
    /// The high-water marks of nodes that the server no longer issues as are kept.
    HighWaterMarksKept,
    /// A raise of the high-water marks of the server's own layout raises those of all other layouts.
    OthersRise,
    /// A released worker id becomes free only after the last ids of all layouts.
    OthersEnd,
    /// A worker id that another server held before begins above that server's ids in all layouts.
    OthersStart,
    /// After a change of the server's layout, ids begin above those of the previous layout.
    LayoutRises,
    /// A position is used only if the slot had the same layout before and after the session took the position.
    SlotHeld,
    /// The generator does not follow a clock that jumped ahead.
    JumpNotFollowed,
    /// A state that replaces a lost one begins above the wall clock, even if the clock is not trusted.
    ResetAtClock,

    // A safe place to read from.
    /// A transaction announces itself before it takes a position.
    AnnouncedFirst,
    /// A reader makes held positions stale before it moves the frontier.
    FrontierStales,
    /// All nodes begin above the positions that readers were told.
    ReadsRaise,
    /// A transaction that is dropped from the record is known to be missing.
    DroppedKnown,
    /// A snapshot has one answer.
    OneAnswer,

    // The saved-range file.
    /// Each reservation gives the row a version that no row had before.
    NewVersion,
    /// A saved range is marked as consumed in the file before any of its ids is handed out.
    RecordedFirst,
    /// At a server stop, the ids that rolled-back transactions handed out are saved.
    HighWaterMarkSaved,
    /// A saved high-water mark counts only for the generation of the tag that it was recorded with.
    HighWaterMarkOfGeneration,

    // Ids that a transaction takes from a tag that it changed.
    /// The tag's high-water mark is raised to such an id at once, in case the transaction is rolled back.
    OwnHighWaterMark,
    /// The commit of a change of a tag discards the tag's buffered ids.
    OwnCloses,
    /// At commit, the last id that the transaction took is written into the row.
    OwnWritten,

    // Handing tags over.
    /// A database that begins to use registries raises the registries above all its ids.
    HandOverRaises,
    /// A database that begins to use registries records its highest ids as received.
    HandOverRecorded,
    /// A database that begins to use registries reserves no ids during the hand-over.
    HandOverLocks,
    /// Tags are not handed over to a registry if its row is below the ids that were received from it. A raise of the row
    /// would hide that the registry was restored from an older state.
    HandOverCompares,
    /// Registries that begin to share tags raise a tag's row on each of them to the highest of these rows.
    SharesRaised,
    /// A database that attaches a column empties the tag's buffers after the registry is raised above the column's ids.
    AttachDiscards,
    /// The registries in use do not change between the raise for a column and the end of the attach.
    AttachKeepsEndpoints,
    /// A database that stops using registries continues above all ids that it received.
    LeaveRaises,

    // Keys of monotonic series.
    /// A key that is evicted raises its section's base to the key's last number.
    BaseFirst,
    /// A key is added to memory only if it is still missing once its bucket is locked.
    KeyOnce,
    /// A key is added to memory only if its section still has the same owner once the bucket is locked.
    SectionSeen,
    /// A number is valid only if its section still had the same owner after the number was taken.
    SectionHeld,

    // Refills through a registry.
    /// A node tells the registry the highest id that it received; the registry refuses if its row is lower.
    Received,
    /// The highest received id is stored durably before any received id is handed out.
    ReceivedFirst,
    /// A registry on an earlier timeline than the last seen one is refused.
    Timeline,
    /// A registry with another identity than the last seen one is refused.
    Identity,
    /// A row that does not belong to the registry's share is refused.
    Share,
    /// A promoted registry skips the ids that may not have reached it before the promotion.
    SkipAhead,
    /// A registry does not recreate a missing tag if ids of the tag were received from it.
    Dropped,
    /// A connection that gave no response in time is not used again.
    LateResponses,
    /// A saved range is consumed only if it comes from the last reservation that was received.
    SavedRangeIsLast,
    /// Ids of the database's own table are handed out only if no registry is in use when the row is locked.
    StillLocal,
    /// Ids of a registry are handed out only if the registry is still in use when they are recorded.
    StillUsed,
}

#[cfg(feature = "guards")]
mod switch {
    use super::Guard;
    use std::cell::Cell;

    thread_local! {
        static LEFT_OUT: Cell<Option<Guard>> = const { Cell::new(None) };
    }

    /// Returns whether the rule holds on this thread.
    pub fn holds(guard: Guard) -> bool {
        LEFT_OUT.get() != Some(guard)
    }

    /// Leaves a rule out on this thread from now on. None restores all rules.
    pub fn leave_out(guard: Option<Guard>) {
        LEFT_OUT.set(guard);
    }
}

#[cfg(feature = "guards")]
pub use switch::{holds, leave_out};

/// Returns true: all rules hold.
#[cfg(not(feature = "guards"))]
#[inline]
#[must_use]
pub const fn holds(_: Guard) -> bool {
    true
}
