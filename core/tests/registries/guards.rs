//! The rules that the protocol rests on, each of which a run can leave out.

/// One rule of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Guard {
    /// A registry is told what was received from it, and refuses if its row is behind.
    Received,
    /// That is durable before any of it is handed out.
    ReceivedFirst,
    /// A registry on an earlier timeline than was seen is refused.
    Timeline,
    /// So is another registry than was seen.
    Identity,
    /// A row that is not of the registry's share is refused.
    Share,
    /// After a promotion ids that the standby may not know of are passed over.
    SkipAhead,
    /// Who comes to a registry raises it above all ids that it has,
    HandOverRaises,
    /// notes that as received,
    HandOverNoted,
    /// and reserves nothing elsewhere meanwhile.
    HandOverLocks,
    /// Who attaches a column that has ids empties its buffers when the registry is raised above them.
    AttachDiscards,
    /// Who leaves its registry goes on above all that it received.
    LeaveRaises,
    /// An answer counts once, and only while it is waited for.
    AnswerOnce,
    /// Left over is only what was received last.
    CarryOverIsLast,
    /// Rows of several registries are raised to the highest of them when they become shares.
    SharesRaised,
}

/// What a run keeps to: everything, or all but one.
pub type Guards = super::leave_out::Guards<Guard>;
