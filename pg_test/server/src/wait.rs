//! Waiting with a limit.

use anyhow::{Result, bail};
use std::panic::Location;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// A time limit for events that happen without a call, even on a busy machine.
pub const LONG: Duration = Duration::from_mins(2);

/// Asks until there is an answer.
///
/// # Errors
/// The question fails, or there is no answer within `limit`.
#[track_caller]
pub fn until<T>(limit: Duration, what: &str, mut ask: impl FnMut() -> Result<Option<T>>) -> Result<T> {
    let (start, asked_at) = (Instant::now(), Location::caller());
    while start.elapsed() < limit {
        if let Some(answer) = ask()? {
            return Ok(answer);
        }
        sleep(Duration::from_millis(10));
    }
    bail!("waited {limit:?} for {what}, at {asked_at}")
}

/// Asks until the answer is true.
///
/// # Errors
/// The question fails, or the answer is not true within [`LONG`].
#[track_caller]
pub fn until_true(what: &str, mut ask: impl FnMut() -> Result<bool>) -> Result<()> {
    until(LONG, what, || Ok(ask()?.then_some(())))
}
