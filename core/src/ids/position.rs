//! The numbers that an id is made of: ticks, positions, and the bits of the node.

use serde::{Deserialize, Serialize};

/// A tick: how many units of the layout have passed since its epoch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tick(pub u64);

/// A tick and the sequence in it, `tick << sequence_bits | sequence`: what grows while one node issues.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Position(pub u64);

impl Position {
    /// The first of all.
    pub const ZERO: Self = Self(0);
    /// Above all that a layout has.
    pub const MAX: Self = Self(u64::MAX);
}

/// The bits of a node, where they are in an id.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct NodeBits(pub u64);

/// A position that is handed out, and the bits of the node that issues it: what an id is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Issued {
    /// A position that no other call gets.
    pub position: Position,
    /// The node's bits.
    pub node_bits: NodeBits,
}

/// Positions from `from` up to but not including `to`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PositionRange {
    /// The lowest position.
    pub from: Position,
    /// The position after the last; above `from`.
    pub to: Position,
}

impl PositionRange {
    /// One that has none.
    pub const EMPTY: Self = Self { from: Position::ZERO, to: Position::ZERO };

    /// Returns the number of positions there are.
    pub const fn count(self) -> u64 {
        self.to.0 - self.from.0
    }

    /// The first position, which is no more in the range from now on. The range must not be empty.
    #[inline]
    pub const fn take_first(&mut self) -> Position {
        let first = self.from;
        self.from.0 += 1;
        first
    }
}
