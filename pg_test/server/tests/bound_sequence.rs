//! Sequences that give ids of ours: over sessions, and over a dump.

use anyhow::{Result, ensure};
use postgres::error::SqlState;
use snowflake_ids_server_tests::{Server, programs, sql};
use std::collections::HashSet;
use std::thread;

const INCREMENT: i64 = 50;

#[test]
fn blocks_of_many_sessions_never_meet() -> Result<()> {
    let server = Server::builder().small().start()?;
    let mut client = server.session()?;
    client.batch_execute(
        "create sequence pooled increment by 50;
         select snowflake_ids.bind_sequence('pooled', 'segment', 'pooled')",
    )?;
    let take = || -> Result<Vec<i64>> {
        let mut session = server.session()?;
        let mut taken = Vec::new();
        for _ in 0..40 {
            let number: i64 = sql::one(&mut session, "select nextval('pooled')")?;
            taken.extend(number - INCREMENT..number + INCREMENT);
            taken.push(sql::one(&mut session, "select segment_nextval('pooled')")?);
        }
        Ok(taken)
    };
    let taken = thread::scope(|scope| {
        let sessions: Vec<_> = (0..8).map(|_| scope.spawn(take)).collect();
        sessions
            .into_iter()
            .map(|session| session.join().map_err(|_| anyhow::anyhow!("a session panicked"))?)
            .collect::<Result<Vec<_>>>()
    })?;
    let mut seen = HashSet::new();
    for id in taken.into_iter().flatten() {
        ensure!(seen.insert(id), "{id} twice");
    }
    Ok(())
}

#[test]
fn plans_of_other_sessions_are_made_anew() -> Result<()> {
    let server = Server::builder().small().start()?;
    let (mut client, mut other) = (server.session()?, server.session()?);
    client.batch_execute("create sequence first; create sequence second")?;
    // From then on they know that there are bound sequences, and which table says so.
    client.batch_execute("select snowflake_ids.bind_sequence('first', 'segment', 'first')")?;
    other.batch_execute(
        "prepare named as select nextval('second'); prepare given(regclass) as select nextval($1);
         execute named; execute given('second')",
    )?;
    client.batch_execute("select snowflake_ids.bind_sequence('second', 'segment', 'second')")?;
    other.batch_execute("execute named; execute given('second')")?;
    ensure!(sql::one::<i64>(&mut other, "select currval('second')")? == 4);
    ensure!(sql::one::<i64>(&mut client, "select segment_nextval('second')")? == 5);
    client.batch_execute("select snowflake_ids.unbind_sequence('second')")?;
    other.batch_execute("execute named; execute given('second')")?;
    ensure!(sql::one::<i64>(&mut client, "select last_value from second")? == 7);
    Ok(())
}

#[test]
fn a_dump_carries_what_is_bound() -> Result<()> {
    let server = Server::builder().small().start()?;
    let mut client = server.session()?;
    client.batch_execute(
        "create sequence numbers; create sequence \"Odd name\";
         select nextval('numbers');
         select snowflake_ids.bind_sequence('numbers', 'segment', 'numbers');
         select snowflake_ids.bind_sequence('\"Odd name\"');
         create sequence gone; select snowflake_ids.bind_sequence('gone'); drop sequence gone",
    )?;
    client.batch_execute("create database copy")?;
    let last: i64 = sql::one(&mut client, "select nextval('numbers')")?;
    let dump = programs::output(server.command("pg_dump").arg("postgres"))?;
    let file = server.socket_folder().join("dump.sql");
    std::fs::write(&file, dump)?;
    let mut psql = server.command("psql");
    psql.args(["--quiet", "--no-psqlrc", "--set=ON_ERROR_STOP=1", "--dbname=copy"]);
    programs::output(psql.arg("--file").arg(file))?;
    let mut copy = server.connect("copy")?;
    let bound = "select sequence::text || ' ' || kind from snowflake_ids.sequence_status order by 1";
    ensure!(sql::column::<String>(&mut copy, bound)? == ["\"Odd name\" snowflake", "numbers segment"]);
    let next: i64 = sql::one(&mut copy, "select nextval('numbers')")?;
    ensure!(next > last && next < 1_000_000, "{next} after {last}");
    ensure!(sql::one::<bool>(&mut copy, "select snowflake_worker_id(nextval('\"Odd name\"')) >= 0")?);
    // The sequence itself stands at its end there, too.
    copy.batch_execute("create table t (id bigint default nextval('numbers'), a int)")?;
    let error = sql::error(&mut copy, "copy t (a) from program 'echo 1'")?;
    ensure!(error.code() == &SqlState::SEQUENCE_GENERATOR_LIMIT_EXCEEDED, "{error:?}");
    Ok(())
}
