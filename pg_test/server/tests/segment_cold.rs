//! A tag that nobody used yet is called from all sides at once, with a step that is far too small.

use anyhow::Result;
use snowflake_ids_server_tests::segments::{create, status, take};
use snowflake_ids_server_tests::sessions::at_once;
use snowflake_ids_server_tests::{Server, ids};
use std::time::{Duration, Instant};

const SESSIONS: usize = 32;

/// All sessions take ids by statements of `count` calls for a time; any error ends the test.
fn load(server: &Server, count: usize, time: Duration) -> Result<Vec<i64>> {
    let taken = at_once(server.sessions("postgres", SESSIONS)?, |_, mut client| {
        let end = Instant::now() + time;
        let mut taken = Vec::new();
        while Instant::now() < end {
            taken.extend(take(&mut client, "t", count)?);
        }
        ids::growing(&taken)?;
        Ok(taken)
    })?;
    Ok(taken.concat())
}

#[test]
fn thirty_two_sessions_meet_no_error_on_a_cold_tag_and_once_it_is_warm_none_waits() -> Result<()> {
    let server = Server::builder().small().start()?;
    let mut client = server.session()?;
    create(&mut client, "t", "step => 100")?;
    let mut taken = load(&server, 1, Duration::from_secs(2))?;

    let waits: i64 = status(&mut client, "t", "waits")?;
    let refills: i64 = status(&mut client, "t", "refills")?;
    taken.extend(load(&server, 1, Duration::from_secs(2))?);
    assert_eq!(status::<i64>(&mut client, "t", "waits")?, waits, "a caller waited for a warm tag");
    let step: i64 = status(&mut client, "t", "step::bigint")?;
    assert!(step >= 1600, "the step grew to {step} only");
    // With the step of the beginning it would have been one for every hundred ids.
    let more = status::<i64>(&mut client, "t", "refills")? - refills;
    assert!(more <= 5, "{more} refills of a warm tag");
    assert_eq!(status::<i64>(&mut client, "t", "ids_issued")?, i64::try_from(taken.len())?);
    ids::dense(taken)
}

#[test]
fn sessions_that_take_thousands_at_a_time_meet_no_error_either() -> Result<()> {
    let server = Server::builder().small().start()?;
    let mut client = server.session()?;
    create(&mut client, "t", "step => 100, max_step => 100000")?;
    let taken = load(&server, 2000, Duration::from_secs(2))?;
    let longest: f64 = status(&mut client, "t", "extract(epoch from longest_wait)::float8")?;
    assert!(longest < 2.0, "a caller waited {longest} s");
    ids::dense(taken)
}
