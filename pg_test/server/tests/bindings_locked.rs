//! The table of bound sequences is locked, as `VACUUM FULL` and `LOCK TABLE` lock it. No answer changes, and a session waits only
//! if it needs the table.

use snowflake_ids_server_tests::prelude::*;
use std::sync::atomic::{AtomicBool, Ordering};

/// An attached table, and three sequences: bound to the table's tag, bound to another tag, and not bound.
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
    client.run(MADE)?;
    Ok(client)
}

/// Makes all sessions read the table again, and locks it while the returned session lives.
fn lock(server: &Server) -> Result<Client> {
    let mut locker = server.connect("postgres")?;
    locker.run("vacuum full snowflake_ids.sequence_binding")?;
    locker.run("begin; lock table snowflake_ids.sequence_binding")?;
    Ok(locker)
}

/// Checks that `lastval` and `currval` return the id of an INSERT, also between uses of a plain sequence.
fn check_inserts(client: &mut Client) -> Result<()> {
    for (insert, sequence) in [("item", "items_id_seq"), ("identity", "identities_id_seq")] {
        let plain: i64 = client.one("select nextval('plain')")?;
        ensure!(client.one::<i64>("select lastval()")? == plain);
        let id: i64 = client.query_one(&format!("execute {insert}"), &[])?.get(0);
        let said = client.query_one(&format!("select lastval(), currval('{sequence}')"), &[])?;
        let said: (i64, i64) = (said.get(0), said.get(1));
        ensure!(said == (id, id), "{insert} gave {id}, then {said:?}");
    }
    Ok(())
}

/// Checks that a statement fails on the lock.
fn refused(client: &mut Client, statement: &str) -> Result<()> {
    client.run("set lock_timeout = '10ms'")?;
    let error = client.error(statement)?;
    client.run("reset lock_timeout")?;
    ensure!(error.code() == &SqlState::LOCK_NOT_AVAILABLE, "{statement}: {error:?}");
    Ok(())
}

fn a_session_goes_on_by_what_it_knew(server: &mut Server) -> Result<()> {
    session(server)?;
    let mut session = server.connect("postgres")?;
    session.run(INSERTS)?;
    check_inserts(&mut session)?;
    let mut locker = lock(server)?;
    for _ in 0..3 {
        check_inserts(&mut session)?;
    }
    // The INSERT statements are planned again while the table is locked.
    session.run(&format!("deallocate all; {INSERTS}"))?;
    check_inserts(&mut session)?;
    ensure!(session.one::<i64>("select setval('plain', 100)")? == 100);
    locker.run("rollback")?;
    check_inserts(&mut session)
}

fn a_new_session_waits_only_for_what_it_cannot_know(server: &mut Server) -> Result<()> {
    session(server)?;
    let mut locker = lock(server)?;
    let mut session = server.connect("postgres")?;
    session.run(INSERTS)?;
    ensure!(session.one::<i64>("select nextval('plain')")? == 1);
    ensure!(session.one::<i64>("select setval('plain', 5)")? == 5);
    for statement in [
        "select currval('plain'), lastval()",
        "alter table dropped alter column note type varchar(9)",
        "reindex table concurrently dropped",
        "vacuum full dropped",
        "drop table dropped",
    ] {
        session.run(statement)?;
    }
    for statement in ["execute identity", "select nextval('numbers')", "select currval('numbers')"] {
        refused(&mut session, statement)?;
    }
    let error = session.error_within("10ms", "select nextval('numbers')")?;
    ensure!(error.code() == &SqlState::QUERY_CANCELED, "{error:?}");
    ensure!(session.one::<i64>("select lastval()")? == 5);
    // The default returns an id. Only `lastval` looks up whether the id counts as a number of the sequence.
    let id: i64 = session.query_one("execute item", &[])?.get(0);
    refused(&mut session, "select lastval()")?;
    locker.run("rollback")?;
    ensure!(session.one::<i64>("select lastval()")? == id);
    ensure!(session.one::<i64>("select currval('items_id_seq')")? == id);
    // The plans of the INSERT statements were made while the table was locked.
    check_inserts(&mut session)
}

fn an_insert_beside_a_lock_leaves_lastval_where_no_sequence_is_bound(server: &mut Server) -> Result<()> {
    let mut client = session(server)?;
    client.run(
        "create sequence used_up; select setval('used_up', 9223372036854775807);
         create table by_hand (id bigint default segment_nextval('first'), note text);
         alter sequence used_up owned by by_hand.id",
    )?;
    let mut locker = lock(server)?;
    let mut session = server.connect("postgres")?;
    let plain: i64 = session.one("select nextval('plain')")?;
    session.run("insert into by_hand (note) values ('x')")?;
    let id: i64 = session.one("insert into items (note) values ('x') returning id")?;
    session.run("insert into by_hand (note) values ('x')")?;
    locker.run("rollback")?;
    ensure!(session.one::<i64>("select lastval()")? == id, "the number was {plain} before");
    Ok(())
}

fn what_was_known_before_a_change_does_not_serve(server: &mut Server) -> Result<()> {
    let mut client = session(server)?;
    let mut session = server.connect("postgres")?;
    ensure!(session.one::<i64>("select nextval('numbers')")? == 1);
    client.run(
        "select snowflake_ids.unbind_sequence('numbers');
         select snowflake_ids.segment_create('second', start => 5000);
         select snowflake_ids.bind_sequence('numbers', 'segment', 'second');
         select snowflake_ids.unbind_sequence('identities_id_seq')",
    )?;
    let mut locker = lock(server)?;
    refused(&mut session, "select nextval('numbers')")?;
    // The sequence is not at its end, because it is not bound.
    let own: i64 = session.one("insert into identities (note) values ('x') returning id")?;
    ensure!(session.one::<i64>("select last_value from identities_id_seq")? == own);
    locker.run("rollback")?;
    ensure!(session.one::<i64>("select nextval('numbers')")? >= 5000);
    Ok(())
}

fn what_was_rolled_back_does_not_serve(server: &mut Server) -> Result<()> {
    session(server)?;
    let mut session = server.connect("postgres")?;
    session
        .run("begin; select snowflake_ids.unbind_sequence('numbers'); select nextval('numbers'); rollback")?;
    let mut locker = lock(server)?;
    refused(&mut session, "select nextval('numbers')")?;
    locker.run("rollback")?;
    ensure!(session.one::<i64>("select nextval('numbers')")? == 1);
    Ok(())
}

fn a_restart_beside_a_lock_is_followed(server: &mut Server) -> Result<()> {
    session(server)?;
    let mut locker = lock(server)?;
    let mut session = server.connect("postgres")?;
    refused(&mut session, "alter sequence numbers restart")?;
    locker.run("rollback")?;
    session.run("alter sequence numbers restart")?;
    ensure!(session.one::<i64>("select nextval('numbers')")? == 1);
    ensure!(session.one::<bool>("select last_value = 9223372036854775807 from numbers")?);
    Ok(())
}

fn a_drop_commits_beside_a_lock(server: &mut Server) -> Result<()> {
    let mut client = session(server)?;
    let rows = "select count(*) from snowflake_ids.sequence_binding";
    let mut locker = lock(server)?;
    client.run("drop table items; drop sequence numbers")?;
    locker.run("rollback")?;
    ensure!(client.one::<i64>(rows)? == 3);
    client.run("select snowflake_ids.bind_sequence('plain')")?;
    ensure!(client.one::<i64>(rows)? == 2);
    // A row that another transaction has locked does not block a commit either.
    locker.run("begin; select from snowflake_ids.sequence_binding for update")?;
    client.run("drop sequence plain")?;
    locker.run("rollback")?;
    Ok(())
}

/// Bindings are known to sessions that read them before PREPARE TRANSACTION, and between it and COMMIT PREPARED.
fn what_was_prepared_is_followed(server: &mut Server) -> Result<()> {
    let mut client = server.session()?;
    client.run("create sequence first; create sequence beside")?;
    let mut sessions = vec![server.connect("postgres")?, server.connect("postgres")?];
    sessions[0].run("select nextval('beside')")?;
    client.run("begin; select snowflake_ids.bind_sequence('first'); prepare transaction 'p'")?;
    sessions[1].run("select nextval('beside')")?;
    sessions.push(client);
    server.connect("postgres")?.run("commit prepared 'p'")?;
    let mut locker = lock(server)?;
    for session in &mut sessions {
        refused(session, "select nextval('first')")?;
    }
    locker.run("rollback")?;
    for end in ["rollback", "commit"] {
        for session in &mut sessions {
            ensure!(session.one::<i64>("select nextval('first')")? > i64::from(u32::MAX));
        }
        let change = "begin; select snowflake_ids.unbind_sequence('first'); prepare transaction 'p'";
        sessions[0].run(change)?;
        sessions[0].run(&format!("{end} prepared 'p'"))?;
    }
    for kind in ["bound", "snowflake", "segment"] {
        sessions[0].run(&format!(
            "begin; set local snowflake_ids.new_columns = {kind}; create table made (id bigserial);
             insert into made default values; prepare transaction 'p'"
        ))?;
        sessions[0].run("commit prepared 'p'")?;
        for session in &mut sessions {
            let insert = "insert into made default values returning id = currval('made_id_seq')";
            ensure!(session.one::<bool>(insert)?, "{kind}");
        }
        ensure!(sessions[1].one::<i64>("select count(distinct id) from made")? == 4, "{kind}");
        sessions[0].run("begin; drop table made; prepare transaction 'p'")?;
        sessions[0].run("commit prepared 'p'")?;
    }
    ensure!(sessions[0].one::<i64>("select count(*) from snowflake_ids.segment")? == 0);
    Ok(())
}

/// `VACUUM FULL` runs again and again beside some thousands of inserts.
fn vacuum_full_changes_no_answer(server: &mut Server) -> Result<()> {
    let mut client = session(server)?;
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let inserters: Vec<_> = (0..2)
            .map(|_| {
                let mut session = server.connect("postgres")?;
                Ok(scope.spawn(move || {
                    session.run(INSERTS)?;
                    (0..500).try_for_each(|_| check_inserts(&mut session))
                }))
            })
            .collect::<Result<_>>()?;
        let vacuum = scope.spawn(|| -> Result<()> {
            while !is_over.load(Ordering::Relaxed) {
                client.run("vacuum full snowflake_ids.sequence_binding")?;
            }
            Ok(())
        });
        let results: Vec<_> = inserters.into_iter().map(thread::ScopedJoinHandle::join).collect();
        is_over.store(true, Ordering::Relaxed);
        vacuum.ended()?;
        results.into_iter().try_for_each(|result| result.ok().context("an inserter panicked")?)
    })
}

/// Predicate locks on the extension's tables would make serializable transactions fail that never named these tables. A gapless
/// series takes them: its counters are rows that the transaction changes.
fn no_predicate_lock_is_taken(server: &mut Server) -> Result<()> {
    session(server)?.run(
        "select snowflake_ids.generator_create('web', 'twitter');
         select snowflake_ids.series_create('orders', 'monotonic')",
    )?;
    let mut session = server.connect("postgres")?;
    session.run(
        "begin isolation level serializable;
         select nextval('numbers'), segment_nextval('items'), snowflake_nextval('web'), series_nextval('orders', 1::bigint);
         insert into items (note) values ('x');
         create table made (id bigserial, no bigint generated always as identity)",
    )?;
    let locked: Vec<String> = session.column(
        "select relation::regclass::text from pg_locks, pg_class c
         where mode = 'SIReadLock' and relation = c.oid and relnamespace = 'snowflake_ids'::regnamespace",
    )?;
    ensure!(locked.is_empty(), "predicate locks on {locked:?}");
    session.run("commit")
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
        what_was_prepared_is_followed,
        vacuum_full_changes_no_answer,
        no_predicate_lock_is_taken
    ])
}
