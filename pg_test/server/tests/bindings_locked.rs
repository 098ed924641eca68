//! The table of bound sequences is locked, as `VACUUM FULL` and `LOCK TABLE` lock it: no answer is another one than without, and who
//! does not need the table waits for nothing.

use anyhow::{Context, Result, ensure};
use postgres::Client;
use postgres::error::SqlState;
use snowflake_ids_server_tests::{Server, cases, sql};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

/// An attached table, and sequences that are bound to a tag, to another one, and to nothing.
const MADE: &str = "create table items (id bigserial primary key, note text);
    create table identities (id bigint generated always as identity primary key, note text);
    create sequence plain; create sequence numbers; create table dropped (id serial, note text unique);
    select snowflake_ids.attach('items', 'id', 'segment', 'items');
    select snowflake_ids.bind_sequence('identities_id_seq', 'segment', 'identities');
    select snowflake_ids.bind_sequence('numbers', 'segment', 'first')";

const INSERTS: &str = "prepare item as insert into items (note) values ('x') returning id;
    prepare identity as insert into identities (note) values ('x') returning id";

fn session(server: &Server) -> Result<Client> {
    let mut client = server.session()?;
    client.batch_execute(MADE)?;
    Ok(client)
}

/// Has all sessions look at the table anew, and locks it for as long as the session given lives.
fn lock(server: &Server) -> Result<Client> {
    let mut locker = server.connect("postgres")?;
    locker.batch_execute("vacuum full snowflake_ids.sequence_binding")?;
    locker.batch_execute("begin; lock table snowflake_ids.sequence_binding")?;
    Ok(locker)
}

/// What an INSERT gives is what `lastval` and `currval` say, between uses of a plain sequence.
fn check_inserts(client: &mut Client) -> Result<()> {
    for (insert, sequence) in [("item", "items_id_seq"), ("identity", "identities_id_seq")] {
        let plain: i64 = sql::one(client, "select nextval('plain')")?;
        ensure!(sql::one::<i64>(client, "select lastval()")? == plain);
        let id: i64 = client.query_one(&format!("execute {insert}"), &[])?.get(0);
        let said = client.query_one(&format!("select lastval(), currval('{sequence}')"), &[])?;
        let said: (i64, i64) = (said.get(0), said.get(1));
        ensure!(said == (id, id), "{insert} gave {id}, then {said:?}");
    }
    Ok(())
}

/// Fails where the lock is not to be had.
fn refused(client: &mut Client, statement: &str) -> Result<()> {
    client.batch_execute("set lock_timeout = '10ms'")?;
    let error = sql::error(client, statement)?;
    client.batch_execute("reset lock_timeout")?;
    ensure!(error.code() == &SqlState::LOCK_NOT_AVAILABLE, "{statement}: {error:?}");
    Ok(())
}

fn a_session_goes_on_by_what_it_knew(server: &mut Server) -> Result<()> {
    session(server)?;
    let mut session = server.connect("postgres")?;
    session.batch_execute(INSERTS)?;
    check_inserts(&mut session)?;
    let mut locker = lock(server)?;
    for _ in 0..3 {
        check_inserts(&mut session)?;
    }
    // Statements that are planned now.
    session.batch_execute(&format!("deallocate all; {INSERTS}"))?;
    check_inserts(&mut session)?;
    ensure!(sql::one::<i64>(&mut session, "select setval('plain', 100)")? == 100);
    locker.batch_execute("rollback")?;
    check_inserts(&mut session)
}

fn a_new_session_waits_only_for_what_it_cannot_know(server: &mut Server) -> Result<()> {
    session(server)?;
    let mut locker = lock(server)?;
    let mut session = server.connect("postgres")?;
    session.batch_execute(INSERTS)?;
    ensure!(sql::one::<i64>(&mut session, "select nextval('plain')")? == 1);
    ensure!(sql::one::<i64>(&mut session, "select setval('plain', 5)")? == 5);
    for statement in [
        "select currval('plain'), lastval()",
        "alter table dropped alter column note type varchar(9)",
        "reindex table concurrently dropped",
        "vacuum full dropped",
        "drop table dropped",
    ] {
        session.batch_execute(statement)?;
    }
    for statement in ["execute identity", "select nextval('numbers')", "select currval('numbers')"] {
        refused(&mut session, statement)?;
    }
    let error = sql::error_within(&mut session, "10ms", "select nextval('numbers')")?;
    ensure!(error.code() == &SqlState::QUERY_CANCELED, "{error:?}");
    ensure!(sql::one::<i64>(&mut session, "select lastval()")? == 5);
    // The default gives an id; whether that is the sequence's number is asked later.
    let id: i64 = session.query_one("execute item", &[])?.get(0);
    refused(&mut session, "select lastval()")?;
    locker.batch_execute("rollback")?;
    ensure!(sql::one::<i64>(&mut session, "select lastval()")? == id);
    ensure!(sql::one::<i64>(&mut session, "select currval('items_id_seq')")? == id);
    // By plans that were made beside the lock.
    check_inserts(&mut session)
}

fn an_insert_beside_a_lock_leaves_lastval_where_no_sequence_is_bound(server: &mut Server) -> Result<()> {
    let mut client = session(server)?;
    client.batch_execute(
        "create sequence used_up; select setval('used_up', 9223372036854775807);
         create table by_hand (id bigint default segment_nextval('first'), note text);
         alter sequence used_up owned by by_hand.id",
    )?;
    let mut locker = lock(server)?;
    let mut session = server.connect("postgres")?;
    let plain: i64 = sql::one(&mut session, "select nextval('plain')")?;
    session.batch_execute("insert into by_hand (note) values ('x')")?;
    let id: i64 = sql::one(&mut session, "insert into items (note) values ('x') returning id")?;
    session.batch_execute("insert into by_hand (note) values ('x')")?;
    locker.batch_execute("rollback")?;
    ensure!(sql::one::<i64>(&mut session, "select lastval()")? == id, "the number was {plain} before");
    Ok(())
}

fn what_was_known_before_a_change_does_not_serve(server: &mut Server) -> Result<()> {
    let mut client = session(server)?;
    let mut session = server.connect("postgres")?;
    ensure!(sql::one::<i64>(&mut session, "select nextval('numbers')")? == 1);
    client.batch_execute(
        "select snowflake_ids.unbind_sequence('numbers');
         select snowflake_ids.segment_create('second', start => 5000);
         select snowflake_ids.bind_sequence('numbers', 'segment', 'second');
         select snowflake_ids.unbind_sequence('identities_id_seq')",
    )?;
    let mut locker = lock(server)?;
    refused(&mut session, "select nextval('numbers')")?;
    // It does not stand at its end: it is bound to nothing.
    let own: i64 = sql::one(&mut session, "insert into identities (note) values ('x') returning id")?;
    ensure!(sql::one::<i64>(&mut session, "select last_value from identities_id_seq")? == own);
    locker.batch_execute("rollback")?;
    ensure!(sql::one::<i64>(&mut session, "select nextval('numbers')")? >= 5000);
    Ok(())
}

fn what_was_rolled_back_does_not_serve(server: &mut Server) -> Result<()> {
    session(server)?;
    let mut session = server.connect("postgres")?;
    session.batch_execute(
        "begin; select snowflake_ids.unbind_sequence('numbers'); select nextval('numbers'); rollback",
    )?;
    let mut locker = lock(server)?;
    refused(&mut session, "select nextval('numbers')")?;
    locker.batch_execute("rollback")?;
    ensure!(sql::one::<i64>(&mut session, "select nextval('numbers')")? == 1);
    Ok(())
}

fn a_restart_beside_a_lock_is_followed(server: &mut Server) -> Result<()> {
    session(server)?;
    let mut locker = lock(server)?;
    let mut session = server.connect("postgres")?;
    refused(&mut session, "alter sequence numbers restart")?;
    locker.batch_execute("rollback")?;
    session.batch_execute("alter sequence numbers restart")?;
    ensure!(sql::one::<i64>(&mut session, "select nextval('numbers')")? == 1);
    ensure!(sql::one::<bool>(&mut session, "select last_value = 9223372036854775807 from numbers")?);
    Ok(())
}

fn a_drop_commits_beside_a_lock(server: &mut Server) -> Result<()> {
    let mut client = session(server)?;
    let rows = "select count(*) from snowflake_ids.sequence_binding";
    let mut locker = lock(server)?;
    client.batch_execute("drop table items; drop sequence numbers")?;
    locker.batch_execute("rollback")?;
    ensure!(sql::one::<i64>(&mut client, rows)? == 3);
    client.batch_execute("select snowflake_ids.bind_sequence('plain')")?;
    ensure!(sql::one::<i64>(&mut client, rows)? == 2);
    // A row that another transaction has locked does not hold up a commit either.
    locker.batch_execute("begin; select from snowflake_ids.sequence_binding for update")?;
    client.batch_execute("drop sequence plain")?;
    locker.batch_execute("rollback")?;
    Ok(())
}

fn a_transaction_that_binds_is_not_prepared(server: &mut Server) -> Result<()> {
    let mut client = session(server)?;
    for change in
        ["select snowflake_ids.bind_sequence('plain')", "select snowflake_ids.unbind_sequence('numbers')"]
    {
        client.batch_execute(&format!("begin; {change}"))?;
        sql::fails(&mut client, "prepare transaction 'p'", &SqlState::FEATURE_NOT_SUPPORTED)?;
    }
    client.batch_execute("begin; insert into items (note) values ('x'); prepare transaction 'p'")?;
    client.batch_execute("commit prepared 'p'")?;
    Ok(())
}

/// In turns with `VACUUM FULL`, as many as take for some thousands of inserts.
fn vacuum_full_changes_no_answer(server: &mut Server) -> Result<()> {
    let mut client = session(server)?;
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let inserters: Vec<_> = (0..2)
            .map(|_| {
                let mut session = server.connect("postgres")?;
                Ok(scope.spawn(move || {
                    session.batch_execute(INSERTS)?;
                    (0..500).try_for_each(|_| check_inserts(&mut session))
                }))
            })
            .collect::<Result<_>>()?;
        let vacuum = scope.spawn(|| -> Result<()> {
            while !is_over.load(Ordering::Relaxed) {
                client.batch_execute("vacuum full snowflake_ids.sequence_binding")?;
            }
            Ok(())
        });
        let results: Vec<_> = inserters.into_iter().map(thread::ScopedJoinHandle::join).collect();
        is_over.store(true, Ordering::Relaxed);
        vacuum.join().ok().context("the vacuum panicked")??;
        results.into_iter().try_for_each(|result| result.ok().context("an inserter panicked")?)
    })
}

#[test]
fn a_lock_changes_no_answer() -> Result<()> {
    Server::builder().set("max_prepared_transactions", "2").cases(cases![
        a_session_goes_on_by_what_it_knew,
        a_new_session_waits_only_for_what_it_cannot_know,
        an_insert_beside_a_lock_leaves_lastval_where_no_sequence_is_bound,
        what_was_known_before_a_change_does_not_serve,
        what_was_rolled_back_does_not_serve,
        a_restart_beside_a_lock_is_followed,
        a_drop_commits_beside_a_lock,
        a_transaction_that_binds_is_not_prepared,
        vacuum_full_changes_no_answer
    ])
}
