//! Limits of a generator that an administrator sets.

use crate::clock::UnixMicros;
use crate::ids::layout::Layout;
use crate::ids::position::Position;

/// Limits of a generator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// The largest allowed drift in microseconds. It limits the steps back of the clock that are tolerated, and the
    /// ticks that are used ahead of the clock.
    pub max_drift: u64,
    /// The start of the sequence in a fresh tick.
    pub start: SequenceStart,
}

impl Rules {
    /// Returns the position that ids issued at `at` must stay below, so that they are not too far ahead of the clock.
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
    /// A number in the lower half that depends on the tick. If ids are made at a low rate and all start at zero, they
    /// end in the same bits, and `id % n` does not spread them over shards.
    Random,
    /// The number after the last one of the previous tick, within the lower half. It spreads ids evenly over shards.
    Rotate,
}
