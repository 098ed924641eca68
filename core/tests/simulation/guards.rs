//! The rules that the protocol rests on, each of which a run can leave out.

/// One rule of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Guard {
    /// The mark is in the file before anybody issues below it.
    WriteFirst,
    /// The file is on the disk before anybody issues below its mark.
    SyncFirst,
    /// A term begins at the mark, not at the clock.
    StartAtMark,
    /// What is noted at the end of a term is read when nobody can take any more.
    CloseFirst,
    /// It is noted only where a term of that very node ended.
    SettleOwnTerm,
    /// An id is made with the bits that were read with its position, not with those read before it,
    TermRead,
    /// nor with those that are there when it is used.
    BlockKeepsBits,
    /// Nothing is reserved beyond the expiry of the lease.
    ExpiryClamps,
    /// The next holder begins at the expiry of the one before.
    StartAtExpiry,
    /// Every change of a row is a compare-and-swap.
    CompareAndSwap,
    /// A row found by its claim was begun when it was leased.
    ClaimStart,
    /// The claim is in the file before the registry sees it.
    ClaimFirst,
    /// A claim is kept until its answer has come.
    KeepClaim,
    /// A worker id is given back after another one is in the file.
    ReleaseLast,
    /// A promoted server leaves the lease to the one that it was a copy of.
    PromotionForgets,
    /// So does a copied directory,
    CopyForgets,
    /// and with a number it does not issue at all.
    CopyRefused,
    /// A file that was put back from a copy is not the one that was written.
    FileKnown,
    /// A promoted server with a number begins above the last commit.
    PromotionRises,
    /// A file that is gone is not a server that is new.
    Witness,
    /// The marks of other nodes than the one that issues are kept.
    MarksKept,
    /// A server that is its own registry keeps to the worker ids of its timeline.
    Shares,
    /// A clock that jumped ahead is not followed.
    JumpNotFollowed,
    /// What a holder tells of its ids is not further ahead of its clock than ids may be.
    PeersBounded,
}

/// What a run keeps to: everything, or all but one.
pub type Guards = super::leave_out::Guards<Guard>;
