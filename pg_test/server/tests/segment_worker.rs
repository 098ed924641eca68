//! The processes that reserve segments: how views show them, when they end by themselves, and what follows when an operator ends
//! them.

use anyhow::{Context, Result};
use snowflake_ids_server_tests::segments::{LAUNCHER, WORKER, create, next, process, processes, take};
use snowflake_ids_server_tests::{Server, cases, sql::Session, wait};

fn pg_stat_activity_shows_the_launcher_always_and_a_worker_while_there_is_work(
    server: &mut Server,
) -> Result<()> {
    let mut client = server.session()?;
    let launcher = process(&mut client, LAUNCHER)?;
    assert_eq!(processes(&mut client, WORKER)?, [], "a worker without work");
    let mut in_a = server.create_database("a")?;
    create(&mut in_a, "t", "")?;
    let databases = format!("select datname::text from pg_stat_activity where backend_type = '{WORKER}'");
    wait::until_true("a worker in the database", || {
        next(&mut in_a, "t")?;
        Ok(client.column::<String>(&databases)? == ["a"])
    })?;
    wait::until_true("the worker to leave", || Ok(processes(&mut client, WORKER)?.is_empty()))?;
    assert_eq!(processes(&mut client, LAUNCHER)?, [launcher], "the launcher stays");
    assert!(!server.log().contains("ERROR"), "{}", server.log());
    Ok(())
}

fn a_database_can_be_renamed_copied_and_dropped_right_after_use(server: &mut Server) -> Result<()> {
    let mut client = server.session()?;
    // Postgres itself waits five seconds for other processes to leave the database, and then refuses the command.
    let mut change = |command: &str| client.batch_execute(command).context(command.to_owned());
    create(&mut server.create_database("a")?, "t", "")?;
    let mut taken = take(&mut server.connect("a")?, "t", 5)?;
    change("alter database a rename to b")?;
    taken.extend(take(&mut server.connect("b")?, "t", 5)?);
    assert_eq!(taken, (1..=10).collect::<Vec<i64>>());
    change("create database c template b")?;
    let of_c = next(&mut server.connect("c")?, "t")?;
    assert!(of_c > 10, "the copy's first id is {of_c}");
    assert_eq!(next(&mut server.connect("b")?, "t")?, 11);
    change("drop database c")?;
    change("drop database b")
}

fn callers_do_not_notice_that_the_worker_and_the_launcher_are_terminated(server: &mut Server) -> Result<()> {
    const TIMES: usize = 16;
    let mut client = server.session()?;
    create(&mut client, "t", "step => 10, max_step => 50")?;
    let load = server.load_of_tag("t", 8)?;
    for time in 0..TIMES {
        let victim = process(&mut client, if time % 4 == 3 { LAUNCHER } else { WORKER })?;
        client.execute("select pg_terminate_backend($1)", &[&victim])?;
        load.goes_on()?;
    }
    let taken = load.end();
    assert!(taken.refusals.is_empty(), "{:?}", taken.refusals);
    taken.growing()?;
    taken.unique()?;
    process(&mut client, LAUNCHER).map(drop)
}

fn sessions_of_a_database_that_takes_no_new_ones_get_ids(server: &mut Server) -> Result<()> {
    let mut in_a = server.create_database("a")?;
    create(&mut in_a, "t", "step => 10")?;
    server.connect("postgres")?.run("alter database a allow_connections false")?;
    assert_eq!(take(&mut in_a, "t", 25)?, (1..=25).collect::<Vec<i64>>());
    Ok(())
}

#[test]
fn workers_come_and_go() -> Result<()> {
    Server::builder().cases(cases![
        pg_stat_activity_shows_the_launcher_always_and_a_worker_while_there_is_work,
        a_database_can_be_renamed_copied_and_dropped_right_after_use,
        callers_do_not_notice_that_the_worker_and_the_launcher_are_terminated,
        sessions_of_a_database_that_takes_no_new_ones_get_ids
    ])
}
