//! Rules that a test may leave out, to see that a run of the simulation fails without them.
//!
//! The code that ships asks [`holds`] about each rule of a protocol. Without the feature `guards`, which only
//! `make test-core` sets, that is the constant `true`.

/// A rule of a protocol, named after what it keeps up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Guard {
    // Leases of worker ids.
    /// The next holder of a worker id begins at the end of the lease before.
    StartAtExpiry,
    /// A row of the registry is written only if it is still as it was seen.
    CompareAndSwap,
    /// A row that is found by its claim was begun when it was leased.
    PendingTokenStart,
    /// The claim is in the state before the registry sees it.
    PendingTokenFirst,
    /// A claim is kept until its answer has come.
    KeepPendingToken,
    /// A worker id is given back after another one is in the state.
    ReleaseLast,
    /// A server that was promoted, or has had another worker id, keeps to those of its timeline.
    Shares,
    /// A worker id that is chosen is none that a mark names.
    UsedNamed,
    /// Nor one that a table of the cluster names.
    RecordedNamed,
    /// A worker id that is chosen is given up as a database begins to draw from a registry.
    ChosenLeft,
    /// A worker id is leased that has room in all layouts in use.
    LeaseFits,
    /// A holder's report of its ids is not ahead of its clock,
    LastBounded,
    /// nor, to others that share a registry, ahead of the registry's clock.
    PeersBounded,
    /// A registry leases nothing that its own server issues under.
    OwnWorkerTaken,
    /// A registry that was made anew leases nothing that a node may have of the former one.
    FormerLeases,

    // The issuer's.
    /// The mark is in the file before any session issues below it.
    WriteFirst,
    /// The file's content is on the disk before the file gets its name,
    SyncFile,
    /// and its name before any session issues below its mark.
    SyncDirectory,
    /// A term begins at the mark, not at the clock.
    StartAtHighWaterMark,
    /// The position noted at the end of a term is read when no session can take any more.
    CloseFirst,
    /// Positions that sessions hold are stale then.
    HeldStale,
    /// It is noted only where a term of that very node ended.
    SettleOwnTerm,
    /// An id is made with the bits that were read with its position, not with those read before it,
    TermRead,
    /// nor with those that are there when it is handed out.
    BlockKeepsBits,
    /// Nothing is reserved beyond the expiry of the lease.
    ExpiryClamps,
    /// A promoted server leaves the lease to the one that it was a copy of.
    PromotionForgets,
    /// A promoted server with a number begins above the last commit.
    PromotionRises,
    /// A copied directory is not the one that was written in.
    CopyKnown,
    /// A file that was put back from a copy is not the one that was written.
    FileKnown,
    /// A file that is gone is not a server that is new.
    MarkerFile,
    /// The marks of other nodes than the one that issues are kept.
    HighWaterMarksKept,
    /// A raise of the marks of the server's own layout raises those of all others,
    OthersRise,
    /// a worker id that was given back is another's only after the ids of all layouts,
    OthersEnd,
    /// and one that was another's begins in all layouts where that one ended.
    OthersStart,
    /// Ids of a new layout of the server's own begin above those of the former.
    LayoutRises,
    /// A position that a session takes is of its layout only if the slot was that layout's before and after.
    SlotHeld,
    /// A clock that jumped ahead is not followed.
    JumpNotFollowed,
    /// A new state in place of one that is lost begins above what the clock shows, followed or not.
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
    /// Each reservation gives the row a version that it never had.
    NewVersion,
    /// A range taken up of the file is noted as such before any of it is handed out.
    RecordedFirst,
    /// The ids that rolled-back transactions handed out are noted at a stop.
    HighWaterMarkSaved,
    /// It counts in one generation of the tag.
    HighWaterMarkOfGeneration,

    // What a transaction hands out itself.
    /// An id that it hands out is noted at once, should it be rolled back.
    OwnHighWaterMark,
    /// Buffered ids of a tag are taken from others when a change of it is committed.
    OwnCloses,
    /// Its last id is written into the row.
    OwnWritten,

    // Handing tags over.
    /// A database that comes to registries raises them above all ids that it has,
    HandOverRaises,
    /// notes that as received,
    HandOverRecorded,
    /// and reserves nothing elsewhere meanwhile.
    HandOverLocks,
    /// Nothing is handed over to a registry whose row of the tag is behind what was received of it: raised to that, it would
    /// not be noticed that it was set back.
    HandOverCompares,
    /// Rows of several registries are raised to the highest of them when they become shares.
    SharesRaised,
    /// A database that attaches a column that has ids empties its buffers when the registry is raised above them.
    AttachDiscards,
    /// The registries in use stay the same from when they are raised for a column until it is attached.
    AttachKeepsEndpoints,
    /// A database that leaves its registries goes on above all that it received.
    LeaveRaises,

    // Keys of monotonic series.
    /// A key that leaves memory raises its section's base to its number before.
    BaseFirst,
    /// A key comes into memory only if it is not there by the time that its bucket is locked,
    KeyOnce,
    /// and only if its section has not been given to another by then.
    SectionSeen,
    /// A number counts only if its section was not given to another meanwhile.
    SectionHeld,

    // Refills through a registry.
    /// A registry is told what was received from it, and refuses if its row is behind.
    Received,
    /// The note of it is durable before any of it is handed out.
    ReceivedFirst,
    /// A registry on an earlier timeline than was seen is refused.
    Timeline,
    /// So is another registry than was seen.
    Identity,
    /// A row that is not of the registry's share is refused.
    Share,
    /// After a promotion ids that the standby may not know of are passed over.
    SkipAhead,
    /// A tag that ids were received of is not made anew where it is gone.
    Dropped,
    /// A connection that gave no response in time is not used again.
    LateResponses,
    /// A saved range is taken up only if it is of what was received last.
    SavedRangeIsLast,
    /// Ids of the database's own table are given out only where no registry is used by the time that they are reserved.
    StillLocal,
    /// Ids of a registry are given out only where it is still used by the time that they are noted.
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

    /// Leaves a rule out, for what this thread runs from now on; None: all hold.
    pub fn leave_out(guard: Option<Guard>) {
        LEFT_OUT.set(guard);
    }
}

#[cfg(feature = "guards")]
pub use switch::{holds, leave_out};

/// Returns whether the rule holds.
#[cfg(not(feature = "guards"))]
#[inline]
#[must_use]
pub const fn holds(_: Guard) -> bool {
    true
}
