//! Ids too far ahead of the wall clock: how long a call waits, and when it fails. Other errors of a generator.

use crate::clock::{UnixMicros, human};
use crate::error::Explain;
use crate::generator::rules::ClockRollback;
use crate::ids::layout::TickError;
use std::time::Duration;

/// Reason why ids run ahead of the clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The clock was stepped back, and has not caught up with the issued ids yet.
    StepBack,
    /// The term (the period in which one node issues ids) begins at a time that the clock has not reached yet, because
    /// ids up to this time were reserved before a crash.
    Start,
    /// Ids are taken faster than the layout's ticks provide them.
    Demand,
}

/// The drift of a generator that is too far ahead of the clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Drift {
    /// The reason why the generator is ahead.
    pub cause: Cause,
    /// The time by which the next id is ahead of the clock.
    pub ahead: Duration,
    /// The largest allowed value of `ahead`: the setting `snowflake_ids.max_drift`.
    pub max_drift: Duration,
}

impl Drift {
    /// Returns the time that the call sleeps before its next attempt; None if the call must fail. `left` is the time
    /// that the call may still wait. `rollback` counts only if the clock stepped back. For the other causes, the call
    /// waits for the clock to advance.
    pub fn pause(&self, rollback: ClockRollback, left: Duration) -> Option<Duration> {
        if left.is_zero() || (rollback == ClockRollback::Error && self.cause == Cause::StepBack) {
            return None;
        }
        let excess = self.ahead.saturating_sub(self.max_drift);
        Some(excess.max(Duration::from_micros(1)).min(left))
    }
}

/// The remedy if the clock is behind the ids.
pub const CATCH_UP: &str = "Check the server's clock. Ids continue once the clock has caught up. If the clock was ahead and is now \
                            correct, set snowflake_ids.clock_rollback to switch, or set another snowflake_ids.worker_id.";

/// Reason why a generator returned no positions.
#[expect(missing_docs, reason = "each message names its figures")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error, Explain)]
pub enum GeneratorError {
    #[error("{}", match .0.cause {
        Cause::StepBack => "the clock is behind the ids already issued",
        Cause::Start => "the clock is still behind the time reserved for earlier ids",
        Cause::Demand => "ids are requested faster than the layout provides them",
    })]
    #[explain(kind_with = match _0.cause {
        Cause::StepBack => Kind::ClockBehind,
        Cause::Start => Kind::WaitedTooLong,
        Cause::Demand => Kind::WaitedTooLong,
    })]
    #[explain(detail = "The next id would be {} ahead of the clock; snowflake_ids.max_drift is {}.",
              human(_0.ahead), human(_0.max_drift))]
    #[explain(hint = "{}", match _0.cause {
        Cause::StepBack => CATCH_UP,
        Cause::Start => "Try again later, or raise snowflake_ids.clock_wait_timeout or snowflake_ids.max_drift.",
        Cause::Demand => {
            "Raise snowflake_ids.clock_wait_timeout or snowflake_ids.max_drift, or use a layout with more \
             sequence bits."
        }
    })]
    Drift(Drift),
    /// No positions are reserved, so the high-water mark must be raised first.
    #[error("no ids are reserved")]
    #[explain(
        NotReady,
        detail = "The high-water mark was raised several times, but never far enough for this call."
    )]
    #[explain(hint = "Check snowflake_ids.status and the server's log.")]
    Unreserved,
    #[error("the clock is before the epoch of the layout")]
    #[explain(ClockBehind, detail = "The clock shows {at}; the layout begins at {epoch}.")]
    #[explain(hint = "Set the server's clock, or use a layout with an earlier epoch.")]
    BeforeEpoch { at: UnixMicros, epoch: UnixMicros },
    #[error("the ticks of the layout are used up")]
    #[explain(Exhausted, detail = "The layout ends at {last}.")]
    #[explain(hint = "Use a layout with more ticks or a later epoch for new tables.")]
    Exhausted { last: UnixMicros },
}

impl From<TickError> for GeneratorError {
    #[cold]
    fn from(error: TickError) -> Self {
        match error {
            TickError::BeforeEpoch { at, epoch } => Self::BeforeEpoch { at, epoch },
            TickError::AfterLast { last, .. } => Self::Exhausted { last },
        }
    }
}
