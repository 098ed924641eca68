//! Limits of a generator that an operator sets.

use crate::clock::UnixMicros;
use crate::ids::layout::Layout;
use crate::ids::position::Position;

/// Limits of a generator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// The largest drift in microseconds: tolerated steps back and borrowed future alike.
    pub max_drift: u64,
    /// The start of the sequence of a fresh tick.
    pub start: SequenceStart,
}

impl Rules {
    /// The position that an id issued at `at` must stay below, so as not to run too far ahead of the clock.
    pub fn drift_end(&self, layout: &Layout, at: UnixMicros) -> Position {
        layout.position_after(at.plus_micros(self.max_drift))
    }
}

/// The reaction to a clock that stepped back by more than the largest drift.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClockRollback {
    /// Fail at once.
    Error,
    /// Wait for the clock, as long as a call may wait.
    Wait,
    /// Issue as another node whose high-water mark the clock has passed; where there is none, wait.
    Switch,
}

/// The sequence that a fresh tick starts with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SequenceStart {
    /// Zero: a tick holds as many ids as it can.
    #[default]
    Zero,
    /// Anywhere in the lower half, scattered by the tick, so that ids made at low rates do not all end in the
    /// same bits and `id % n` spreads them over shards.
    Random,
    /// One more than where the last tick stopped, within the lower half: even shards without chance.
    Rotate,
}
