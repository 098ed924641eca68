//! The extension, dropped and created again during calls.

use snowflake_ids_server_tests::prelude::*;
use snowflake_ids_server_tests::segments::{create, next};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};

const SESSIONS: usize = 6;
const ROUNDS: usize = 8;
const DEFINITION: &str = "step => 1, max_step => 1";
/// A statement with many calls, most of which wait. The statement must notice changes while it runs.
const CALLS: &str = "select count(segment_nextval('t')) from generate_series(1, 30)";

/// Drops and creates the extension in one transaction, as `pg_restore --clean --single-transaction` does.
fn make_anew(client: &mut Client) -> Result<()> {
    client.run(&format!(
        "begin; drop extension snowflake_ids cascade; create extension snowflake_ids;
         select snowflake_ids.segment_create('t', {DEFINITION}); commit"
    ))
}

fn server(segment_wait_timeout: &str) -> Result<(Server, Client)> {
    let builder = Server::builder().set("snowflake_ids.segment_wait_timeout", segment_wait_timeout);
    let (server, mut client) = builder.with_session()?;
    create(&mut client, "t", DEFINITION)?;
    Ok((server, client))
}

#[test]
fn every_call_ends_while_the_extension_is_made_anew_again_and_again() -> Result<()> {
    let (server, mut client) = server("5s")?;
    let stop = AtomicBool::new(false);
    let ended: Vec<AtomicUsize> = (0..SESSIONS).map(|_| AtomicUsize::new(0)).collect();
    let sessions = server.sessions("postgres", SESSIONS)?;
    thread::scope(|scope| -> Result<()> {
        for (ended, mut session) in ended.iter().zip(sessions) {
            let stop = &stop;
            scope.spawn(move || {
                while !stop.load(Relaxed) {
                    // The statement gives ids or an error. Both outcomes occur, and both are correct.
                    drop(session.one::<i64>(CALLS));
                    ended.fetch_add(1, Relaxed);
                }
            });
        }
        let now = || ended.iter().map(|ended| ended.load(Relaxed)).collect::<Vec<_>>();
        let done = (0..ROUNDS).try_for_each(|_| -> Result<()> {
            make_anew(&mut client)?;
            let before = now();
            wait::until_true("a statement of every session to end", || {
                Ok(now().iter().zip(&before).all(|(now, before)| now > before))
            })
        });
        stop.store(true, Relaxed);
        if done.is_err() {
            // If these sessions were not ended, their threads would not end either.
            client.run("set statement_timeout = 0; select pg_terminate_backend(pid) from pg_stat_activity where query ~ 'segment_nextval' and pid <> pg_backend_pid()")?;
        }
        done
    })?;
    let mut session = server.connect("postgres")?;
    session.run("set snowflake_ids.segment_wait_timeout = '1min'")?;
    assert!(next(&mut session, "t")? > 0, "the new table serves");
    Ok(())
}

/// The transaction also locks the tables of rights, which a session reads before its first id.
#[test]
fn a_call_ends_in_time_while_a_transaction_has_dropped_the_extension() -> Result<()> {
    let (server, mut dropper) = server("500ms")?;
    dropper.run("begin; drop extension snowflake_ids cascade")?;
    let mut client = server.connect("postgres")?;
    client.run("set statement_timeout = '20s'")?;
    let error = client.explained(
        "select segment_nextval('t')",
        &SqlState::INSUFFICIENT_RESOURCES,
        "no ids for segment tag \"t\" within 500 ms",
    )?;
    assert!(error.detail().is_some_and(|detail| detail.contains("privilege tables")), "{error:?}");
    client.fails("select segment_currval('t')", &SqlState::INSUFFICIENT_RESOURCES)?;
    // The user's own lock_timeout is shorter, so the call ends with the error of lock_timeout.
    client.run("set lock_timeout = '100ms'")?;
    client.fails("select segment_nextval('t')", &SqlState::LOCK_NOT_AVAILABLE)?;
    client.run("reset lock_timeout; begin; set local snowflake_ids.segment_wait_timeout = '1min'")?;
    let own: String = client.one("show lock_timeout")?;
    assert_eq!(own, "0", "it is as it was");

    let waiting = thread::spawn(move || next(&mut client, "t"));
    dropper.becomes_true("select count(*) > 0 from pg_locks where not granted")?;
    dropper.run("rollback")?;
    assert_eq!(waiting.ended()?, 1, "it goes on once the transaction has ended");
    Ok(())
}
