//! A clock that is set far ahead by mistake. If ids followed the clock, the server could issue no more ids, once the clock is right
//! again, until that time comes. So ids do not follow such a clock, unless an operator confirms it.

use snowflake_ids_server_tests::prelude::*;
use snowflake_ids_server_tests::snowflakes::{NEAR, next, now, refused, seconds, status, take, time};
use snowflake_ids_server_tests::state_file::Fault;
use std::fs;
use std::thread::sleep;

const YEAR: f64 = 365.0 * 86_400.0;
const NOT_FOLLOWED: &str = "and is not followed";
const TIMEOUT: Duration = wait::LONG;

fn builder() -> Builder {
    Server::builder().false_clock()
}

/// Checks that the server issues ids of the true time.
fn issues_true_time(client: &mut Client, taken: &mut Vec<i64>) -> Result<()> {
    for id in take(client, 100)? {
        taken.push(id);
        let off = time(client, id)? - now()?;
        assert!(NEAR.contains(&off), "an id of {off} s from now");
    }
    Ok(())
}

/// Checks that the launcher has noticed and logged this many jumps.
fn warned(server: &Server, times: usize) -> Result<()> {
    wait::until_true("the warning", || Ok(server.logged(NOT_FOLLOWED) >= times))?;
    sleep(Duration::from_millis(300));
    assert_eq!(server.logged(NOT_FOLLOWED), times, "{}", server.log());
    Ok(())
}

#[test]
fn ten_years_ahead_and_back_under_load_leave_the_ids_at_the_true_time() -> Result<()> {
    let (server, mut client) = builder().set("snowflake_ids.reserve", "300ms").with_session()?;
    let load = server.load(6)?;
    load.goes_on()?;
    server.set_clock("+10y")?;
    load.run(Duration::from_secs(1));
    load.goes_on()?;
    let mut taken = Vec::new();
    issues_true_time(&mut client, &mut taken)?;
    let ahead = wait::until(TIMEOUT, "the jump to be noticed", || {
        Ok(Some(seconds(&mut client, "clock_ahead")?).filter(|ahead| *ahead > 0.0))
    })?;
    assert!((9.9 * YEAR..10.1 * YEAR).contains(&ahead), "clock ahead by {ahead} s");
    assert_eq!(status::<i64>(&mut client, "steps_forward")?, 0, "it was not followed");
    warned(&server, 1)?;

    server.set_clock("+0")?;
    load.goes_on()?;
    load.run(Duration::from_millis(300));
    let load = load.end();
    assert!(load.refusals.is_empty(), "{:?}", load.refusals);
    wait::until_true("the return to be noticed", || Ok(seconds(&mut client, "clock_ahead")? == 0.0))?;
    issues_true_time(&mut client, &mut taken)?;
    taken.extend(load.ids);
    ids::unique(taken)?;
    warned(&server, 1)
}

#[test]
fn a_jump_while_no_session_asks_is_not_followed() -> Result<()> {
    let (server, mut client) = builder().with_session()?;
    let mut taken = vec![next(&mut client)?];
    server.set_clock("+10y")?;
    sleep(Duration::from_secs(1));
    issues_true_time(&mut client, &mut taken)?;
    // A second jump, from the clock that is ahead already, is not followed either, even beyond the end of the layout. A shorter jump
    // after a long step back is not followed either.
    for clock in ["+30y", "+90y", "+2h"] {
        server.set_clock(clock)?;
        issues_true_time(&mut client, &mut taken)?;
        client.run("select * from snowflake_ids.status")?;
    }
    ids::growing(&taken)
}

#[test]
fn a_jump_before_the_first_id_is_not_followed() -> Result<()> {
    let (server, mut client) = builder().with_session()?;
    server.set_clock("+10y")?;
    issues_true_time(&mut client, &mut Vec::new())
}

#[test]
fn a_jump_across_a_restart_is_not_followed() -> Result<()> {
    let mut server = builder().start()?;
    let mut taken = vec![next(&mut server.session()?)?];
    for (stop, clock) in [(Shutdown::Fast, "+10y"), (Shutdown::Immediate, "+11y"), (Shutdown::Fast, "+11y")] {
        server.stop(stop)?;
        server.set_clock(clock)?;
        server.start_again()?;
        issues_near_true_time(&server, &mut taken)?;
    }
    server.stop(Shutdown::Fast)?;
    server.set_clock("+0")?;
    server.start_again()?;
    issues_near_true_time(&server, &mut taken)?;
    ids::growing(&taken)
}

/// Checks for ids near true time. After a crash they may be up to `reserve` ahead.
fn issues_near_true_time(server: &Server, taken: &mut Vec<i64>) -> Result<()> {
    let mut client = server.session()?;
    let id = next(&mut client)?;
    let off = time(&mut client, id)? - now()?;
    assert!(NEAR.contains(&off), "an id of {off} s from now");
    taken.push(id);
    Ok(())
}

#[test]
fn a_reset_under_a_clock_far_ahead_does_not_follow_it() -> Result<()> {
    let (server, mut client) = builder().with_session()?;
    let mut taken = vec![next(&mut client)?];
    server.set_clock("+10y")?;
    issues_true_time(&mut client, &mut taken)?;
    client.run("select snowflake_ids.state_reset()")?;
    taken.push(next(&mut client)?);
    let off = time(&mut client, taken[taken.len() - 1])? - now()?;
    assert!((0.0..70.0).contains(&off), "an id of {off} s from now");
    ids::growing(&taken)
}

/// The clock was behind when the server started. It is then set right, by more than a jump that ids follow.
#[test]
fn a_lost_file_is_begun_anew_above_what_the_clock_shows() -> Result<()> {
    let mut server = builder().set("snowflake_ids.clock_wait_timeout", "0").start()?;
    server.stop(Shutdown::Fast)?;
    server.set_clock("-3h")?;
    server.start_again()?;
    let mut client = server.session()?;
    // The last checkpoint is three hours old, so it does not reveal the right time.
    client.run("checkpoint")?;
    server.set_clock("+0")?;
    client.run("select snowflake_ids.clock_accept()")?;
    let mut taken = take(&mut client, 100)?;
    drop(client);

    server.stop(Shutdown::Immediate)?;
    fs::remove_file(server.state_file())?;
    server.set_clock("-3h")?;
    server.start_again()?;
    server.set_clock("+0")?;
    let mut client = server.session()?;
    client.run("select snowflake_ids.state_reset()")?;
    assert_eq!(server.logged("no snowflake ids are issued before"), 1, "{}", server.log());
    assert_eq!(refused(&mut client)?.code(), sql::NOT_IN_STATE);
    client.run("select snowflake_ids.clock_accept()")?;
    taken.push(next(&mut client)?);
    ids::growing(&taken)
}

#[test]
fn an_accepted_clock_is_followed() -> Result<()> {
    let (server, mut client) = builder().set("snowflake_ids.clock_wait_timeout", "0").with_session()?;
    let mut taken = vec![next(&mut client)?];
    server.set_clock("+2y")?;
    issues_true_time(&mut client, &mut taken)?;
    client.run("select snowflake_ids.clock_accept()")?;
    let id = next(&mut client)?;
    let off = time(&mut client, id)? - now()? - 2.0 * YEAR;
    assert!(NEAR.contains(&off), "{off} s from the accepted time");
    assert!(seconds(&mut client, "clock_ahead")?.abs() < 0.001);
    taken.push(id);
    taken.extend(take(&mut server.session()?, 100)?);
    ids::growing(&taken)?;
    // The return to true time is a step back like any other.
    server.set_clock("+0")?;
    assert_eq!(refused(&mut client)?.code(), sql::NOT_IN_STATE);
    Ok(())
}

/// By a clock this far ahead, the lease from the server's own table has expired. The server gets another lease at once.
#[test]
fn an_accepted_clock_ends_a_lease_and_another_is_leased() -> Result<()> {
    let (server, mut client) = auto().false_clock().with_session()?;
    let mut taken = vec![wait_for_id(&mut client)?];
    server.set_clock("+50h")?;
    issues_true_time(&mut client, &mut taken)?;
    client.run("select snowflake_ids.clock_accept()")?;
    let id = next(&mut client)?;
    let off = time(&mut client, id)? - now()? - 50.0 * 3600.0;
    assert!(NEAR.contains(&off), "{off} s from the accepted time");
    taken.push(id);
    ids::growing(&taken)
}

#[test]
fn a_clock_that_could_not_be_recorded_is_not_followed() -> Result<()> {
    let (server, mut client) = builder().with_session()?;
    let mut taken = vec![next(&mut client)?];
    server.set_clock("+2y")?;
    issues_true_time(&mut client, &mut taken)?;
    wait::until_true("the jump to be noticed", || Ok(seconds(&mut client, "clock_ahead")? > YEAR))?;
    let obstacle = server.obstruct_state_file(Fault::Unwritable)?;
    assert!(client.batch_execute("select snowflake_ids.clock_accept()").is_err());
    obstacle.remove()?;
    assert!(seconds(&mut client, "clock_ahead")? > YEAR);
    taken.push(wait::until(TIMEOUT, "an id after the fault", || Ok(next(&mut client).ok()))?);
    issues_true_time(&mut client, &mut taken)?;
    ids::growing(&taken)
}

#[test]
fn an_accepted_clock_is_followed_by_the_next_start_too() -> Result<()> {
    let (mut server, mut client) = builder().with_session()?;
    let mut taken = vec![next(&mut client)?];
    server.set_clock("+2y")?;
    client.run("select snowflake_ids.clock_accept()")?;
    taken.push(next(&mut client)?);
    server.stop(Shutdown::Fast)?;
    // The launcher may have noticed the jump earlier.
    let warned = server.logged(NOT_FOLLOWED);
    server.start_again()?;
    taken.push(next(&mut server.session()?)?);
    server.restart_by(Shutdown::Immediate)?;
    taken.push(next(&mut server.session()?)?);
    ids::growing(&taken)?;
    assert_eq!(server.logged(NOT_FOLLOWED), warned, "{}", server.log());
    Ok(())
}

#[test]
fn a_jump_within_max_clock_jump_is_followed_and_counted() -> Result<()> {
    let (server, mut client) = builder().with_session()?;
    let before = next(&mut client)?;
    server.set_clock("+30m")?;
    let id = next(&mut client)?;
    let off = time(&mut client, id)? - now()? - 1800.0;
    assert!(NEAR.contains(&off), "{off} s from the clock");
    ids::growing(&[before, id])?;
    assert_eq!(server.logged(NOT_FOLLOWED), 0, "{}", server.log());
    wait::until_true("the count", || Ok(status::<i64>(&mut client, "steps_forward")? == 1))
}

#[test]
fn max_clock_jump_counts_from_a_reload_on() -> Result<()> {
    let (server, mut client) = builder().with_session()?;
    let mut taken = vec![next(&mut client)?];
    server.reload("snowflake_ids.max_clock_jump", "10min")?;
    // The test cannot see when the launcher has read the clock, so it waits.
    sleep(Duration::from_secs(1));
    server.set_clock("+30m")?;
    issues_true_time(&mut client, &mut taken)
}
