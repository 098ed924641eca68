//! Limits of a generator that an administrator sets.

use crate::clock::UnixMicros;
use crate::ids::layout::Layout;
use crate::ids::position::Position;

/// Limits of a generator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// The largest allowed drift in microseconds. The limit applies to steps back of the clock, and to ticks that are
    /// used ahead of the clock.
    pub max_drift: u64,
    /// The start of the sequence in a fresh tick.
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
    /// The call issues as another node whose high-water mark the clock has passed, or waits if no such node exists.
    Switch,
}

/// The first sequence number of a tick.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SequenceStart {
    /// Zero: a tick holds as many ids as possible.
    #[default]
    Zero,
    /// A number that depends on the tick, in the lower half of the sequence. If every tick started at zero, ids issued
    /// at a low rate would all end in the same bits, and `id % n` would not spread these ids over shards.
    Random,
    /// The number after the previous tick's last sequence number, within the lower half of the sequence. This choice
    /// spreads ids evenly over shards.
    Rotate,
}
