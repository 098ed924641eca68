//! Clocks that step: back a little, back a lot, far ahead and back, to before the layout's epoch, and to after its end.

use snowflake_ids_server_tests::prelude::*;
use snowflake_ids_server_tests::snowflakes::{BEHIND, NEXT, next, now, seconds, status};

fn server() -> Result<Server> {
    Server::builder().false_clock().start()
}

/// Sets the clock to an instant, in seconds since 1970. An offset is used, because an absolute time would count from the start of
/// each process.
fn set_clock_to(server: &Server, instant: f64) -> Result<()> {
    server.set_clock(&format!("{:+.3}", instant - now()?))
}

fn count(client: &mut Client, column: &str) -> Result<i64> {
    status(client, column)
}

fn assert_clock_behind(error: &DbError) {
    assert_eq!(error.code(), sql::NOT_IN_STATE);
    assert_eq!(error.message(), BEHIND);
    assert!(error.detail().is_some_and(|detail| detail.contains("snowflake_ids.max_drift")), "{error:?}");
    assert!(error.hint().is_some_and(|hint| hint.contains("clock")), "{error:?}");
}

#[test]
fn ids_go_on_growing_through_a_step_back_within_max_drift() -> Result<()> {
    let server = server()?;
    let mut client = server.session()?;
    let mut taken = vec![next(&mut client)?];
    server.set_clock("-50")?;
    for _ in 0..100 {
        taken.push(next(&mut client)?);
    }
    ids::growing(&taken)?;
    let drift = seconds(&mut client, "drift")?;
    assert!(drift > 0.0 && drift <= 50.1, "drift {drift}");
    assert_eq!(count(&mut client, "steps_back")?, 1);
    let step = seconds(&mut client, "largest_step_back")?;
    assert!(step > 20.0 && step <= 50.0, "largest step back {step}");

    server.set_clock("+0")?;
    taken.push(next(&mut client)?);
    ids::growing(&taken)?;
    assert!(seconds(&mut client, "drift")? < 0.1);
    assert_eq!(count(&mut client, "steps_back")?, 1);
    Ok(())
}

#[test]
fn with_error_a_step_back_beyond_max_drift_fails_at_once() -> Result<()> {
    let server = server()?;
    let mut client = server.session()?;
    client.run("set snowflake_ids.clock_rollback = error; set snowflake_ids.clock_wait_timeout = '1h'")?;
    let before = next(&mut client)?;
    server.set_clock("-1h")?;
    assert_clock_behind(&client.error(NEXT)?);
    assert_eq!(count(&mut client, "ids_issued")?, 1, "a refused call takes nothing");
    assert_eq!(count(&mut client, "steps_back")?, 1, "one step back is counted once");

    server.set_clock("+0")?;
    assert!(next(&mut client)? > before);
    Ok(())
}

#[test]
fn with_wait_a_small_overrun_is_waited_out() -> Result<()> {
    let server = server()?;
    let mut client = server.session()?;
    client.run("set snowflake_ids.max_drift = '1s'; set snowflake_ids.clock_wait_timeout = '1h'")?;
    let before = next(&mut client)?;
    server.set_clock("-3")?;
    assert!(next(&mut client)? > before);
    let drift = seconds(&mut client, "drift")?;
    assert!(drift <= 1.0, "the call did not wait: the drift is {drift} s");
    Ok(())
}

#[test]
fn timeout_cancel_and_shutdown_end_the_wait() -> Result<()> {
    let mut server = server()?;
    let mut client = server.session()?;
    client.run("set snowflake_ids.clock_wait_timeout = '1h'")?;
    next(&mut client)?;
    server.set_clock("-1h")?;

    assert_eq!(client.error_within("300ms", NEXT)?.code(), &SqlState::QUERY_CANCELED);

    let pid = client.process()?;
    let mut other = server.connect("postgres")?;
    let waiting = thread::spawn(move || (client.error(NEXT), client));
    let active = format!(
        "select count(*) > 0 from pg_stat_activity where pid = {pid} and state = 'active' and wait_event is not null"
    );
    other.becomes_true(&active)?;
    assert!(other.one::<bool>(&format!("select pg_cancel_backend({pid})"))?);
    let (error, mut client) = waiting.ended();
    assert_eq!(error?.code(), &SqlState::QUERY_CANCELED);

    let waiting = thread::spawn(move || client.simple_query(NEXT).map(drop));
    other.becomes_true(&active)?;
    server.stop(Shutdown::Fast)?;
    assert!(waiting.ended().is_err(), "the waiting call was ended");
    Ok(())
}

/// The jump is within `max_clock_jump`, so ids follow it.
const HALF_AN_HOUR_AHEAD: &str = "+30m";

#[test]
fn after_half_an_hour_ahead_calls_fail_with_an_explanation_whatever_is_restarted() -> Result<()> {
    let mut server = server()?;
    let mut client = server.session()?;
    client.run("set snowflake_ids.clock_wait_timeout = '200ms'")?;
    let mut taken: Vec<i64> = client.column("select snowflake_nextvals(100)")?;
    server.set_clock(HALF_AN_HOUR_AHEAD)?;
    taken.push(next(&mut client)?);
    server.set_clock("+0")?;

    for session in [&mut client, &mut server.session()?] {
        for call in [NEXT, "select snowflake_nextvals(1000)"] {
            let error = session.error(call)?;
            assert_clock_behind(&error);
            assert!(error.detail().is_some_and(|detail| detail.contains("min")), "{error:?}");
        }
    }

    server.restart()?;
    assert_clock_behind(&server.session()?.error(NEXT)?);
    server.set_clock(HALF_AN_HOUR_AHEAD)?;
    let after: Vec<i64> = server.session()?.column("select snowflake_nextvals(100)")?;
    taken.extend(after);
    ids::growing(&taken)
}

#[test]
fn ids_from_ahead_in_a_sessions_cache_are_thrown_away_once_any_session_meets_the_step_back() -> Result<()> {
    let server = server()?;
    let (mut holder, mut other) = (server.session()?, server.session()?);
    for client in [&mut holder, &mut other] {
        client.run("set snowflake_ids.clock_wait_timeout = 0")?;
        next(client)?;
    }
    holder.run("set snowflake_ids.cache = 1000")?;
    server.set_clock(HALF_AN_HOUR_AHEAD)?;
    next(&mut holder)?;
    server.set_clock("+0")?;
    assert_clock_behind(&other.error(NEXT)?);
    assert_clock_behind(&holder.error(NEXT)?);
    assert_clock_behind(&holder.error("select snowflake_nextvals(900)")?);
    Ok(())
}

#[test]
fn ids_from_ahead_end_within_a_few_in_a_session_that_is_alone_with_its_cache() -> Result<()> {
    let server = server()?;
    let mut client = server.session()?;
    client.run("set snowflake_ids.clock_wait_timeout = 0")?;
    next(&mut client)?;
    server.set_clock(HALF_AN_HOUR_AHEAD)?;
    client.run("set snowflake_ids.cache = 1000000")?;
    next(&mut client)?;
    server.set_clock("+0")?;
    let mut late = 0;
    while next(&mut client).is_ok() {
        late += 1;
        assert!(late <= 64, "{late} ids from ahead after the clock was set right");
    }
    assert_clock_behind(&client.error(NEXT)?);
    Ok(())
}

/// The end of Baidu's layout: 2^28 s after 2016-05-20, which is 2024-11-20 21:24:16 UTC.
const END: f64 = 1_463_702_400.0 + 268_435_456.0;
const SEQUENCE_AND_TICKS_USED_UP: &SqlState = &SqlState::SEQUENCE_GENERATOR_LIMIT_EXCEEDED;

fn baidu() -> Result<Server> {
    Server::builder().false_clock().set("snowflake_ids.layout", "baidu").start()
}

#[test]
fn ids_flow_until_the_last_tick_of_a_layout_and_not_beyond() -> Result<()> {
    let server = baidu()?;
    let mut client = server.session()?;
    set_clock_to(&server, END - 30.0)?;
    let mut taken = vec![next(&mut client)?];
    set_clock_to(&server, END + 10.0)?;
    for call in [NEXT, "select snowflake_nextvals(10)"] {
        let error = client.error(call)?;
        assert_eq!(error.code(), SEQUENCE_AND_TICKS_USED_UP);
        assert!(error.detail().is_some_and(|detail| detail.contains("2024-11-20T21:24:15")), "{error:?}");
        assert!(error.hint().is_some(), "{error:?}");
    }
    let left: f64 = client.one("select years_left from snowflake_ids.status")?;
    assert!(left.abs() < f64::EPSILON, "{left} years left");
    set_clock_to(&server, END - 20.0)?;
    taken.push(next(&mut client)?);
    ids::growing(&taken)
}
