//! A tag that no session has used yet, with a step that is far too small. All sessions call the tag at once.

use snowflake_ids_server_tests::prelude::*;
use snowflake_ids_server_tests::segments::{create, status, take};

const SESSIONS: usize = 32;

/// Lets all sessions take ids for a time, by statements of `count` calls. Any error ends the test.
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

fn thirty_two_sessions_meet_no_error_on_a_cold_tag_and_once_it_is_warm_none_waits(
    server: &mut Server,
) -> Result<()> {
    let mut client = server.session()?;
    create(&mut client, "t", "step => 100")?;
    let mut taken = load(server, 1, Duration::from_secs(2))?;

    // On a busy machine the worker may be late once, but not again and again.
    wait::until_true("a while in which no caller waits for the warm tag", || {
        let counts = |client: &mut Client| -> Result<[i64; 2]> {
            Ok([status(client, "t", "waits")?, status(client, "t", "refills")?])
        };
        let before = counts(&mut client)?;
        let more = load(server, 1, Duration::from_secs(1))?;
        let issued = i64::try_from(more.len())?;
        taken.extend(more);
        let after = counts(&mut client)?;
        // The first step would need a refill for every hundred ids.
        Ok(after[0] == before[0] && (after[1] - before[1]) * 500 <= issued.max(500))
    })?;
    assert_eq!(status::<i64>(&mut client, "t", "ids_issued")?, i64::try_from(taken.len())?);
    ids::dense(taken)
}

fn sessions_that_take_thousands_at_a_time_meet_no_error_either(server: &mut Server) -> Result<()> {
    let mut client = server.session()?;
    create(&mut client, "t", "step => 100, max_step => 100000")?;
    let taken = load(server, 2000, Duration::from_secs(2))?;
    ids::dense(taken)
}

#[test]
fn a_cold_tag_serves() -> Result<()> {
    Server::builder().cases(cases![
        thirty_two_sessions_meet_no_error_on_a_cold_tag_and_once_it_is_warm_none_waits,
        sessions_that_take_thousands_at_a_time_meet_no_error_either
    ])
}
