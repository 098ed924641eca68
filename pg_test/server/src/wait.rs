//! Waiting, but not for ever.

use anyhow::{Result, bail};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Asks until there is an answer.
///
/// # Errors
/// The question's own, at once; no answer within `limit`.
pub fn until<T>(limit: Duration, what: &str, mut ask: impl FnMut() -> Result<Option<T>>) -> Result<T> {
    let start = Instant::now();
    while start.elapsed() < limit {
        if let Some(answer) = ask()? {
            return Ok(answer);
        }
        sleep(Duration::from_millis(10));
    }
    bail!("waited {limit:?} for {what}")
}
