//! The ends of a wait for a segment: a statement timeout, a cancel, the end of the session, a shutdown.

use snowflake_ids_server_tests::prelude::*;
use snowflake_ids_server_tests::segments::{create, next, take, wait_for_waiting};

const CALL: &str = "select segment_nextval('t')";

/// Creates a tag and locks its row, so that every call for the tag waits for longer than any test. Returns the session that holds
/// the lock.
fn locked(server: &Server) -> Result<Client> {
    create(&mut server.session()?, "t", "")?;
    server.locker("postgres", "t")
}

fn a_statement_s_time_out_ends_the_wait(server: &mut Server) -> Result<()> {
    let mut locker = locked(server)?;
    let mut client = server.connect("postgres")?;
    for call in [CALL, "select segment_nextvals('t', 10)"] {
        let error = client.error_within("300ms", call)?;
        assert_eq!(error.code(), &SqlState::QUERY_CANCELED, "{error:?}");
    }
    locker.run("rollback")?;
    assert_eq!(take(&mut client, "t", 5)?, [1, 2, 3, 4, 5], "the session goes on");
    Ok(())
}

fn a_cancel_ends_the_wait_of_one_and_not_of_another(server: &mut Server) -> Result<()> {
    let mut locker = locked(server)?;
    let (mut other, mut client) = (server.connect("postgres")?, server.connect("postgres")?);
    let cancel = client.cancel_token();
    let waiting = thread::spawn(move || client.error(CALL));
    let later = thread::spawn(move || next(&mut other, "t"));
    wait_for_waiting(server, 2)?;
    cancel.cancel_query(NoTls)?;
    let error = waiting.ended()?;
    assert_eq!(error.code(), &SqlState::QUERY_CANCELED, "{error:?}");
    assert!(!later.is_finished());
    locker.run("rollback")?;
    assert_eq!(later.ended()?, 1);
    Ok(())
}

fn a_terminated_session_leaves_the_others_waiting_and_served(server: &mut Server) -> Result<()> {
    let mut locker = locked(server)?;
    let mut client = server.connect("postgres")?;
    let pid = client.process()?;
    let ended = thread::spawn(move || client.simple_query(CALL).is_err());
    wait_for_waiting(server, 1)?;
    locker.execute("select pg_terminate_backend($1)", &[&pid])?;
    assert!(ended.ended(), "the call was ended");
    locker.run("rollback")?;
    assert_eq!(next(&mut locker, "t")?, 1);
    Ok(())
}

fn a_fast_shutdown_does_not_wait_for_callers_that_wait(server: &mut Server) -> Result<()> {
    let _locker = locked(server)?;
    let calls = server.sessions("postgres", 4)?.into_iter();
    let calls: Vec<_> =
        calls.map(|mut client| thread::spawn(move || client.simple_query(CALL).is_err())).collect();
    wait_for_waiting(server, 4)?;
    server.stop(Shutdown::Fast)?;
    assert!(calls.into_iter().all(Ends::ended), "every call was ended");

    server.start_again()?;
    assert_eq!(next(&mut server.connect("postgres")?, "t")?, 1);
    Ok(())
}

fn calls_that_fail_are_counted(server: &mut Server) -> Result<()> {
    let locker = locked(server)?;
    let mut client = server.session()?;
    let failed = "select (snowflake_ids.report() -> 'identity' ->> 'failed_calls')::bigint";
    let before: i64 = client.one(failed)?;
    client.run("set snowflake_ids.segment_wait_timeout = '100ms'")?;
    for _ in 0..2 {
        client.fails(CALL, &SqlState::INSUFFICIENT_RESOURCES)?;
    }
    assert_eq!(client.one::<i64>(failed)?, before + 2);
    drop(locker);
    Ok(())
}

#[test]
fn waits_end() -> Result<()> {
    Server::builder().set("snowflake_ids.segment_wait_timeout", "1h").cases(cases![
        a_statement_s_time_out_ends_the_wait,
        a_cancel_ends_the_wait_of_one_and_not_of_another,
        a_terminated_session_leaves_the_others_waiting_and_served,
        a_fast_shutdown_does_not_wait_for_callers_that_wait,
        calls_that_fail_are_counted
    ])
}
