//! How long calls take.

use crate::server::Server;
use crate::sessions::at_once;
use anyhow::{Context, Result};
use postgres::{Client, Statement};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// How long a session waits between its calls.
const PAUSE: Duration = Duration::from_millis(1);

/// The ids that sessions were given, and how long each call took.
#[derive(Debug, Default)]
pub struct Timed {
    /// The ids.
    pub ids: Vec<i64>,
    times: Vec<Duration>,
}

impl Timed {
    /// The time that all calls but a share of them took at most.
    ///
    /// # Errors
    /// There was no call.
    pub fn quantile(&self, share: f64) -> Result<Duration> {
        let mut times = self.times.clone();
        times.sort_unstable();
        #[allow(
            clippy::cast_precision_loss,
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "the number of calls of a test is small"
        )]
        let place = (times.len() as f64 * share) as usize;
        times.get(place.min(times.len().saturating_sub(1))).copied().context("no call was timed")
    }
}

impl Server {
    /// Lets sessions take ids of a tag one by one, at most a thousand each second, for a while.
    ///
    /// # Errors
    /// The first call that fails.
    pub fn time_calls(&self, tag: &str, sessions: usize, time: Duration) -> Result<Timed> {
        let of_sessions = at_once(self.sessions("postgres", sessions)?, |_, mut client| {
            let call = client.prepare(&format!("select segment_nextval('{tag}')"))?;
            time_calls(&mut client, &call, Instant::now() + time)
        })?;
        let mut all = Timed::default();
        for timed in of_sessions {
            all.ids.extend(timed.ids);
            all.times.extend(timed.times);
        }
        Ok(all)
    }
}

fn time_calls(client: &mut Client, call: &Statement, end: Instant) -> Result<Timed> {
    let mut timed = Timed::default();
    while Instant::now() < end {
        let start = Instant::now();
        let row = client.query_one(call, &[])?;
        timed.times.push(start.elapsed());
        timed.ids.push(row.try_get(0)?);
        sleep(PAUSE);
    }
    Ok(timed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quantile_is_the_time_that_a_share_of_the_calls_took_at_most() -> Result<()> {
        let calls = Timed { times: (0..1000).rev().map(Duration::from_millis).collect(), ..Timed::default() };
        assert_eq!(calls.quantile(0.99)?, Duration::from_millis(990));
        assert_eq!(calls.quantile(1.0)?, Duration::from_millis(999));
        assert!(Timed::default().quantile(0.5).is_err());
        Ok(())
    }
}
