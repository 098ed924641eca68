//! Trouble with one tag: whatever blocks the tag, the other tags of its database are served.

use snowflake_ids_server_tests::cluster::refused_with;
use snowflake_ids_server_tests::prelude::*;
use snowflake_ids_server_tests::segments::{create, next, take, wait_for_waiting};

/// Opens a session whose calls wait at most 700 ms, and creates a tag. Calls of other sessions wait as long as necessary.
fn session(server: &Server) -> Result<Client> {
    let mut client = server.session()?;
    create(&mut client, "good", "step => 10, max_step => 10")?;
    client.run("set snowflake_ids.segment_wait_timeout = '700ms'")?;
    Ok(client)
}

fn assert_served(server: &Server) -> Result<()> {
    take(&mut server.connect("postgres")?, "good", 200).map(drop)
}

fn refusal(client: &mut Client, tag: &str) -> Result<DbError> {
    let error =
        client.fails(&format!("select segment_nextval('{tag}')"), &SqlState::INSUFFICIENT_RESOURCES)?;
    Ok(error)
}

fn a_row_whose_refill_fails(server: &mut Server) -> Result<()> {
    let mut client = session(server)?;
    create(&mut client, "bad", "")?;
    client.run(
        "create function fail() returns trigger language plpgsql as
             $$ begin raise 'no ids for you' using errcode = '22012'; end $$;
         create trigger fail before update on snowflake_ids.segment
             for each row when (new.tag = 'bad') execute function fail()",
    )?;
    refused_with(&mut client, "bad", &["22012"])?;
    // Another call waits at the same time.
    let waiting = {
        let mut client = server.connect("postgres")?;
        thread::spawn(move || next(&mut client, "bad"))
    };
    wait_for_waiting(server, 1)?;
    assert_served(server)?;
    client.run("drop trigger fail on snowflake_ids.segment")?;
    assert_eq!(waiting.ended()?, 1, "service resumes by itself");
    Ok(())
}

fn the_log_is_told_of_a_failure_once_however_many_calls_wait(server: &mut Server) -> Result<()> {
    const SESSIONS: usize = 10;
    const TOLD: &str = "could not reserve ids";
    let mut client = session(server)?;
    let fails = |client: &mut Client, message: &str| {
        client.batch_execute(&format!(
            "create or replace function fail() returns trigger language plpgsql as
                 $$ begin raise '{message}'; end $$"
        ))
    };
    fails(&mut client, "no ids for you")?;
    client.run(
        "create trigger fail before update on snowflake_ids.segment for each row execute function fail()",
    )?;
    for number in 0..SESSIONS {
        create(&mut client, &format!("bad {number}"), "")?;
    }
    let all_are_refused = || {
        at_once(server.sessions("postgres", SESSIONS)?, |number, mut client| {
            client.run("set snowflake_ids.segment_wait_timeout = '2s'")?;
            refusal(&mut client, &format!("bad {number}"))
        })
    };
    let is_told = |lines| {
        wait::until_true("the log to be told", || Ok(server.logged(TOLD) >= lines))?;
        assert_eq!(server.logged(TOLD), lines, "{}", server.log());
        anyhow::Ok(())
    };
    all_are_refused()?;
    is_told(1)?;
    fails(&mut client, "none for anybody")?;
    all_are_refused()?;
    is_told(2)?;
    assert_eq!(server.logged("none for anybody"), 1, "{}", server.log());
    Ok(())
}

fn a_tag_to_be_made_on_first_use_that_another_transaction_is_making(server: &mut Server) -> Result<()> {
    let mut client = session(server)?;
    let mut making = server.connect("postgres")?;
    making.run("begin")?;
    create(&mut making, "new", "")?;
    client.run("set snowflake_ids.segment_auto_create = on")?;
    refusal(&mut client, "new")?;
    assert_served(server)?;
    assert_eq!(next(&mut making, "new")?, 1);
    making.run("commit")?;
    client.run("reset snowflake_ids.segment_wait_timeout")?;
    assert_eq!(next(&mut client, "new")?, 2, "service resumes by itself");
    Ok(())
}

fn a_table_that_is_locked_is_every_calls_trouble_until_the_lock_ends(server: &mut Server) -> Result<()> {
    let mut client = session(server)?;
    let mut other = server.create_database("other")?;
    create(&mut other, "good", "step => 10, max_step => 10")?;
    let mut locker = server.connect("postgres")?;
    locker.run("begin; lock table snowflake_ids.segment")?;
    refused_with(&mut client, "good", &["or the whole table"])?;
    take(&mut other, "good", 200)?;
    locker.run("rollback")?;
    client.run("reset snowflake_ids.segment_wait_timeout")?;
    assert_eq!(next(&mut client, "good")?, 1);
    Ok(())
}

#[test]
fn tags_that_do_not_exist_take_no_place_from_those_that_do() -> Result<()> {
    let (_server, mut client) = Server::builder().set("snowflake_ids.max_tags", "4").with_session()?;
    create(&mut client, "good", "")?;
    for number in 0..20 {
        client.fails(&format!("select segment_nextval('unknown {number}')"), &SqlState::UNDEFINED_OBJECT)?;
    }
    assert_eq!(next(&mut client, "good")?, 1);
    Ok(())
}

fn settings_of_the_database_do_not_keep_the_worker_from_its_work(server: &mut Server) -> Result<()> {
    let mut client = session(server)?;
    client.run(
        "create schema evil; create function evil.greatest_trap() returns int language sql as 'select 1';
         alter database postgres set default_transaction_read_only = on;
         alter database postgres set default_transaction_isolation = serializable;
         alter database postgres set statement_timeout = '1ms';
         alter database postgres set lock_timeout = '1ms';
         alter database postgres set search_path = evil;
         alter database postgres set session_replication_role = replica;
         alter database postgres set datestyle = 'SQL, DMY';
         alter database postgres set row_security = off",
    )?;
    client.run("reset snowflake_ids.segment_wait_timeout")?;
    assert_eq!(take(&mut client, "good", 100)?, (1..=100).collect::<Vec<i64>>());
    // Both the present worker and this session connected after these settings were made.
    let mut affected = server.config("postgres").options("-c statement_timeout=0").connect(NoTls)?;
    assert_eq!(affected.one::<i64>("select segment_nextval('good')")?, 101);
    Ok(())
}

#[test]
fn other_tags_are_served() -> Result<()> {
    Server::builder().cases(cases![
        the_log_is_told_of_a_failure_once_however_many_calls_wait,
        a_row_whose_refill_fails,
        a_tag_to_be_made_on_first_use_that_another_transaction_is_making,
        a_table_that_is_locked_is_every_calls_trouble_until_the_lock_ends,
        settings_of_the_database_do_not_keep_the_worker_from_its_work
    ])
}
