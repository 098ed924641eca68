//! Protocol rules that a test can leave out one at a time, to show that the simulation then finds a fault.
//!
//! Production code follows a rule only if [`holds`] returns true for it. Without the feature `guards`, [`holds`] is the
//! constant `true`. Only `make test-core` sets the feature.

/// A rule of a protocol, named after the property that the rule protects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Guard {
    // Leases of worker ids.
    /// A server that leases a worker id issues only ids later than the expiry of the previous lease.
    StartAtExpiry,
    /// A registry writes a worker id's row only if the row has not changed since it was read.
    CompareAndSwap,
    /// A server that finds its pending token in a registry row issues only ids later than the row's grant.
    PendingTokenStart,
    /// A new lease token is written to the state file, as pending, before it is sent to the registry.
    PendingTokenFirst,
    /// A server repeats an unanswered lease request with the same pending token.
    KeepPendingToken,
    /// The old worker id is given back only after the new one is in the state file.
    ReleaseLast,
    /// A server that was promoted, or has had another worker id, chooses only from its timeline's share of the worker
    /// ids.
    Shares,
    /// A server does not choose a worker id that has a high-water mark in the state file.
    UsedNamed,
    /// A server does not choose a worker id that another server has recorded in a table of the cluster.
    RecordedNamed,
    /// A server gives up a worker id that it chose itself, or leased elsewhere, when one of its databases begins to use a
    /// registry.
    ForeignLeft,
    /// A leased worker id fits the worker field of all layouts in use.
    LeaseFits,
    /// A server reports no last id to the registry that is ahead of the server's own clock.
    LastBounded,
    /// A shared registry records no last id that is ahead of the registry's clock.
    PeersBounded,
    /// A registry does not lease the worker id that its own server issues under.
    OwnWorkerIdTaken,
    /// A rebuilt registry leases no worker id that a node may still hold from the previous registry.
    FormerLeases,

    // The issuer.
    /// The high-water mark is in the state file before any session issues ids below the mark.
    WriteFirst,
    /// The state file's content is synced before the file is renamed into place.
    SyncFile,
    /// The state file's directory is synced before any session issues ids below the new high-water mark.
    SyncDirectory,
    /// A term (a period in which one node issues) begins at the node's high-water mark, not at the clock's time.
    StartAtHighWaterMark,
    /// The last position of a term is read only after the generator is closed to sessions.
    CloseFirst,
    /// Positions that sessions hold become stale at the end of a term.
    HeldStale,
    /// The position that a term reached is recorded only for the node of that term.
    SettleOwnTerm,
    /// An id gets the node bits that were read with its position, not bits that were read earlier.
    TermRead,
    /// An id of a session's block gets the node bits that were read when its position was taken.
    BlockKeepsBits,
    /// No positions are reserved beyond the expiry of the lease.
    ExpiryClamps,
    /// A promoted standby gives up the former primary's lease, because that server may still run.
    PromotionForgets,
    /// A promoted server with a fixed worker id issues only ids later than the last replayed commit.
    PromotionRises,
    /// A promoted server whose clock is behind the last replayed commit replicates that commit's time, for its standbys.
    PromotionReplicated,
    /// A server in a copied data directory does not issue under the original's worker id.
    CopyKnown,
    /// A server does not issue under the worker id of another machine or container whose data directory has the same inode.
    MachineKnown,
    /// A server does not trust a state file that was restored from a copy, because the copy may be out of date.
    FileKnown,
    /// A server that has lost its state file does not start anew as if it had never issued an id.
    MarkerFile,
    /// A server keeps the high-water marks of nodes under which it no longer issues.
    HighWaterMarksKept,
    /// A promotion or a restore raises the high-water marks in all layouts, not only in the server's own layout.
    OthersRise,
    /// A released worker id becomes free only after the server's last ids in all layouts.
    OthersEnd,
    /// A worker id that another server held before begins above that server's ids in all layouts.
    OthersStart,
    /// After a change of the server's layout, ids begin above those of the previous layout.
    LayoutRises,
    /// A position is used only if its slot served the same layout before and after the session took the position.
    SlotHeld,
    /// The generator does not follow a clock that jumped ahead.
    JumpNotFollowed,
    /// A state that replaces a lost one begins above the wall clock's time, even if the clock is not trusted.
    ResetAtClock,

    // A safe place to read from.
    /// A transaction announces the frontier before it takes a position.
    AnnouncedFirst,
    /// Publishing makes held positions stale before it moves the frontier (the readers' bound).
    FrontierStales,
    /// All nodes begin above the safe positions that readers were given.
    ToldKept,
    /// When the record of ended transactions drops one, it remembers that transactions may be missing.
    DroppedKnown,
    /// A reader uses the record of an ended transaction only if no commit changed the record during the copy.
    WholeRecord,
    /// All calls with one snapshot get the same safe position.
    OneAnswer,

    // The saved-range file.
    /// Each reservation of a tag's ids gives the tag's row a version that no row had before.
    NewVersion,
    /// A saved range is marked as consumed in the file before any of its ids is handed out.
    RecordedFirst,
    /// A server stop saves the highest ids that rolled-back transactions handed out.
    HighWaterMarkSaved,
    /// A saved high-water mark is ignored if the tag was created anew or set back since.
    HighWaterMarkOfGeneration,

    // Ids that a transaction takes from a tag that it changed.
    /// An id from a tag that the transaction changed raises the tag's high-water mark in shared memory at once. A
    /// rollback thus does not free the id.
    OwnHighWaterMark,
    /// A commit that changes a tag discards the tag's buffered ids.
    OwnCloses,
    /// A transaction that takes ids from a tag that it changed writes the last id into the tag's row at commit.
    OwnWritten,

    // Handing tags over.
    /// A database that begins to use registries raises each of its tags there above all ids that the database has issued.
    HandOverRaises,
    /// A database that begins to use registries records each tag's highest id as if the registries had supplied it.
    HandOverRecorded,
    /// A database that begins to use registries reserves no ids during the hand-over.
    HandOverLocks,
    /// A tag is not handed over to a registry if the registry's row is below ids that came from this registry earlier.
    /// Raising the row would hide that the registry was restored from an older state.
    HandOverCompares,
    /// Before several registries share tags, each tag's row is raised at all registries to the highest of these rows.
    SharesRaised,
    /// A database that attaches a column empties the tag's buffers after the registry is raised above the column's ids.
    AttachDiscards,
    /// The registries in use do not change between the raise of a tag above a column's ids and the commit that attaches
    /// the column.
    AttachKeepsEndpoints,
    /// A database that stops using registries continues above all ids that it received.
    LeaveRaises,

    // Keys of monotonic series. Each key belongs to a section, and the keys of a section share one range of numbers.
    /// Before a key is evicted from memory, its last number becomes the lower bound for keys that are added later.
    BaseFirst,
    /// A key is added to memory only if it is still missing once its bucket is locked.
    KeyOnce,
    /// After a bucket is locked, a key is added to it only if the key's section still owns its slot.
    SectionSeen,
    /// After a number is taken, it is used only if its section still owns the slot from which the number came.
    SectionHeld,
    /// A sweep begins for no section that another process is opening.
    OpenNotLeft,
    /// A section counts as swept only if it had no owner when the sweep began.
    WholeSweep,

    // Refills through a registry.
    /// A node sends the registry the highest id that it received from there. A registry whose row is lower has lost a
    /// reservation, and refuses the request.
    Received,
    /// The highest received id is stored durably before any received id is handed out.
    ReceivedFirst,
    /// A registry on an earlier timeline than the last seen one is refused.
    Timeline,
    /// A registry with another identity than the last seen one is refused.
    Identity,
    /// If several registries serve a tag, a registry does not use a row whose ids belong to another registry's share.
    Share,
    /// A promoted registry skips ids that its former primary may have reserved without replicating the row.
    SkipAhead,
    /// A promoted server skips such ids once for each promotion since it last wrote the row.
    SkipEach,
    /// A registry skips such ids also for each promotion that a node saw and the registry's history lacks.
    ForkCounts,
    /// A node does not return to a registry's server from which the node went to another promoted server.
    ForkLeft,
    /// A server whose tables were copied or put back skips such ids once.
    CopySkips,
    /// A promoted server skips such ids before it changes the properties by which they are counted.
    SkipFirst,
    /// A promoted server begins the next period of a dated tag early if its primary may have begun it.
    PeriodAhead,
    /// A restored row of a tag raises the row that it meets.
    RestoreRaises,
    /// A registry does not recreate a missing tag if ids of the tag were received from it.
    Dropped,
    /// A connection whose response did not come in time is not used again.
    LateResponses,
    /// A range saved at a server stop is used only if it comes from the last reservation that the registry granted.
    SavedRangeIsLast,
    /// Ids reserved in the database's own table are handed out only if no registry is in use when the row is locked.
    StillLocal,
    /// Ids from a registry are handed out only if the registry is still in use when the ids are recorded as received.
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
