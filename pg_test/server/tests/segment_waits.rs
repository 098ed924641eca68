//! What ends the wait for a segment: a statement's time-out, a cancel, the end of the session, a shutdown.

use anyhow::Result;
use postgres::Client;
use postgres::error::SqlState;
use snowflake_ids_server_tests::segments::{TIMEOUT, create, next, take};
use snowflake_ids_server_tests::sessions::timed;
use snowflake_ids_server_tests::{Server, Shutdown, sql, wait};
use std::thread;
use std::time::Duration;

const SOON: Duration = Duration::from_secs(3);
const CALL: &str = "select segment_nextval('t')";

/// A server with a tag whose row is locked, so that every call for it waits, and the session that locks it.
fn locked() -> Result<(Server, Client)> {
    let server = Server::builder().small().set("snowflake_ids.segment_wait_timeout", "60s").start()?;
    create(&mut server.session()?, "t", "")?;
    let locker = server.locker("postgres", "t")?;
    Ok((server, locker))
}

/// Waits until so many calls wait.
fn wait_for_waiting(server: &Server, count: i64) -> Result<()> {
    let mut observer = server.connect("postgres")?;
    let waiting = format!(
        "select count(*) = {count} from pg_stat_activity
         where backend_type = 'client backend' and query like '%segment_nextval%' and pid <> pg_backend_pid()
           and state = 'active' and wait_event is not null"
    );
    wait::until(TIMEOUT, "the calls to wait", || Ok(sql::one::<bool>(&mut observer, &waiting)?.then_some(())))
}

#[test]
fn a_statement_s_time_out_ends_the_wait() -> Result<()> {
    let (server, mut locker) = locked()?;
    let mut client = server.connect("postgres")?;
    client.batch_execute("set statement_timeout = '300ms'")?;
    for call in [CALL, "select segment_nextvals('t', 10)"] {
        let (error, time) = timed(|| sql::error(&mut client, call))?;
        assert_eq!(error.code(), &SqlState::QUERY_CANCELED, "{error:?}");
        assert!(time < SOON, "{call}: timed out after {time:?}");
    }
    client.batch_execute("set statement_timeout = 0")?;
    locker.batch_execute("rollback")?;
    assert_eq!(take(&mut client, "t", 5)?, [1, 2, 3, 4, 5], "the session goes on");
    Ok(())
}

#[test]
fn a_cancel_ends_the_wait_of_one_and_not_of_another() -> Result<()> {
    let (server, mut locker) = locked()?;
    let mut clients = server.sessions("postgres", 2)?;
    let (mut other, mut client) = (clients.pop().unwrap(), clients.pop().unwrap());
    let cancel = client.cancel_token();
    let waiting = thread::spawn(move || sql::error(&mut client, CALL));
    let later = thread::spawn(move || next(&mut other, "t"));
    wait_for_waiting(&server, 2)?;
    let (error, time) = timed(|| {
        cancel.cancel_query(postgres::NoTls)?;
        waiting.join().unwrap()
    })?;
    assert_eq!(error.code(), &SqlState::QUERY_CANCELED, "{error:?}");
    assert!(time < SOON, "cancelled after {time:?}");
    assert!(!later.is_finished());
    locker.batch_execute("rollback")?;
    assert_eq!(later.join().unwrap()?, 1);
    Ok(())
}

#[test]
fn a_terminated_session_leaves_the_others_waiting_and_served() -> Result<()> {
    let (server, mut locker) = locked()?;
    let mut client = server.connect("postgres")?;
    let pid: i32 = sql::one(&mut client, "select pg_backend_pid()")?;
    let ended = thread::spawn(move || client.simple_query(CALL).is_err());
    wait_for_waiting(&server, 1)?;
    locker.execute("select pg_terminate_backend($1)", &[&pid])?;
    assert!(ended.join().unwrap(), "the call was ended");
    locker.batch_execute("rollback")?;
    assert_eq!(next(&mut locker, "t")?, 1);
    Ok(())
}

#[test]
fn a_fast_shutdown_does_not_wait_for_callers_that_wait() -> Result<()> {
    let (mut server, _locker) = locked()?;
    let calls = server.sessions("postgres", 4)?.into_iter();
    let calls: Vec<_> =
        calls.map(|mut client| thread::spawn(move || client.simple_query(CALL).is_err())).collect();
    wait_for_waiting(&server, 4)?;
    let ((), time) = timed(|| server.stop(Shutdown::Fast))?;
    assert!(time < Duration::from_secs(5), "shut down after {time:?}");
    assert!(calls.into_iter().all(|call| call.join().unwrap()), "every call was ended");

    server.start_again()?;
    assert_eq!(next(&mut server.connect("postgres")?, "t")?, 1);
    Ok(())
}
