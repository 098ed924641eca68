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
    /// The call fails at once.
    Error,
    /// The call waits for the clock, within its timeout.
    Wait,
    /// The call issues as another node whose high-water mark the clock has passed, or waits if none exists.
    Switch,
}

/// The first sequence number of a tick.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SequenceStart {
    /// Zero: a tick holds as many ids as possible.
    #[default]
    Zero,
    /// A number in the lower half that depends on the tick. With a start at zero, ids at a low rate all end in the same
    /// bits, so `id % n` does not spread them over shards.
    Random,
    /// The number after the last one of the previous tick, within the lower half. This choice spreads ids evenly over
    /// shards.
    Rotate,
}
