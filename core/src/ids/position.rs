//! The numbers that form an id: tick, position and node bits.

use serde::{Deserialize, Serialize};

/// A tick: the number of units since the layout's epoch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tick(pub u64);

/// A tick and a sequence number: `tick << sequence_bits | sequence`. Each node issues its positions in ascending order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Position(pub u64);

impl Position {
    /// The first position.
    pub const ZERO: Self = Self(0);
    /// A value above all positions of all layouts.
    pub const MAX: Self = Self(u64::MAX);

    /// Returns true for the first position.
    pub fn is_zero(&self) -> bool {
        *self == Self::ZERO
    }
}

/// The bits of a node, at their place in an id.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct NodeBits(pub u64);

/// A position and the bits of the node that issued it. The position and the bits determine an id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Issued {
    /// The position, which no other call gets.
    pub position: Position,
    /// The node's bits.
    pub node_bits: NodeBits,
}

/// The positions from `from` (inclusive) to `to` (exclusive).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PositionRange {
    /// The lowest position.
    pub from: Position,
    /// The position after the range's last position.
    pub to: Position,
}

impl PositionRange {
    /// A range without positions.
    pub const EMPTY: Self = Self { from: Position::ZERO, to: Position::ZERO };

    /// Returns the number of positions.
    pub const fn count(self) -> u64 {
        self.to.0 - self.from.0
    }

    /// Removes the first position from the range and returns it. The range must not be empty.
    #[inline]
    pub const fn take_first(&mut self) -> Position {
        let first = self.from;
        self.from.0 += 1;
        first
    }
}
