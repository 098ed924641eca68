//! The rules of a generator, which an administrator sets.

use crate::clock::UnixMicros;
use crate::ids::layout::Layout;
use crate::ids::position::Position;

/// The largest drift of a generator, and its sequence start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// The largest time in microseconds by which ids may be ahead of the clock, because the clock stepped back, or
    /// because calls take ids faster than the layout's ticks provide them.
    pub max_drift: u64,
    /// The rule for the first sequence number of a tick.
    pub start: SequenceStart,
}

impl Rules {
    /// Returns the first position that is too far ahead of a clock that shows `at`.
    pub fn drift_end(&self, layout: &Layout, at: UnixMicros) -> Position {
        layout.position_after(at.plus_micros(self.max_drift))
    }
}

/// The reaction to a clock that stepped back by more than the largest allowed drift.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClockRollback {
    /// The call fails immediately.
    Error,
    /// The call waits for the clock, within its timeout.
    Wait,
    /// The server issues ids as another node, whose high-water mark the clock has passed. If no such node exists, the
    /// call waits.
    Switch,
}

/// The rule that determines the first sequence number of a tick.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SequenceStart {
    /// Zero: each tick gives as many ids as possible.
    #[default]
    Zero,
    /// A number in the lower half of the sequence numbers, computed from the tick. If every tick started at zero, ids
    /// issued at a low rate would all end in the same bits, and `id % n` would not spread these ids over shards.
    Random,
    /// The number after the last sequence number taken in an earlier tick, reduced to the lower half of the sequence
    /// numbers. This choice spreads ids evenly over shards.
    Rotate,
}
