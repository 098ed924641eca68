//! Calls for tags that do not exist: how many slots the calls may use, and that they leave nothing behind.

use postgres::CancelToken;
use snowflake_ids_server_tests::prelude::*;
use snowflake_ids_server_tests::processes::memory;
use snowflake_ids_server_tests::segments::{create, next};
use std::thread::{self, JoinHandle};

const PLACES: &str = "16";
/// A number of unknown tags, above the number of slots.
const TRIALS: usize = 20;

/// A server with few slots for tags.
fn server() -> Result<Server> {
    Server::builder().set("snowflake_ids.max_tags", PLACES).start()
}

/// Opens a session, and creates the tags t0 to t9. The tags t0 to t4 are in use.
fn session(server: &Server) -> Result<Client> {
    let mut client = server.session()?;
    for number in 0..10 {
        create(&mut client, &format!("t{number}"), "step => 10")?;
    }
    for number in 0..5 {
        assert_eq!(next(&mut client, &format!("t{number}"))?, 1);
    }
    Ok(client)
}

/// The tags that have slots.
fn places(client: &mut Client) -> Result<BTreeSet<String>> {
    Ok(client
        .column::<String>("select tag from snowflake_ids_internal.segment_slots(false)")?
        .into_iter()
        .collect())
}

fn tags(numbers: std::ops::Range<u32>) -> BTreeSet<String> {
    numbers.map(|number| format!("t{number}")).collect()
}

/// Opens a session whose calls create unknown tags, unless the table is locked.
fn creating(server: &Server) -> Result<Client> {
    let mut client = server.connect("postgres")?;
    client
        .run("set snowflake_ids.segment_auto_create = on; set snowflake_ids.segment_wait_timeout = '60s'")?;
    Ok(client)
}

/// Locks the table of tags. In mode `exclusive` its rows can be read, but not written.
fn lock(server: &Server, mode: &str) -> Result<Client> {
    let mut client = server.connect("postgres")?;
    client.run(&format!("begin; lock table snowflake_ids.segment in {mode} mode"))?;
    Ok(client)
}

/// Makes 1,000 calls from four sessions, each for another tag. Each call ends before a worker could answer.
fn impatient_calls(server: &Server, settings: &str) -> Result<()> {
    at_once(server.sessions("postgres", 4)?, |session, mut client| {
        client.run(settings)?;
        for call in 0..250 {
            let error = client.error(&format!("select segment_nextval('no {session} {call}')"))?;
            let expected =
                [SqlState::UNDEFINED_OBJECT, SqlState::INSUFFICIENT_RESOURCES, SqlState::QUERY_CANCELED];
            assert!(expected.contains(error.code()), "{error:?}");
        }
        Ok(())
    })
    .map(drop)
}

#[test]
fn calls_that_are_over_soon_leave_no_place_behind_and_push_no_tag_out() -> Result<()> {
    let server = &server()?;
    let mut client = session(server)?;
    impatient_calls(server, "set snowflake_ids.segment_wait_timeout = '1ms'")?;
    assert_eq!(places(&mut client)?, tags(0..5));
    assert_eq!(next(&mut client, "t5")?, 1);
    // The result is the same if calls cannot see whether the tags exist, and if calls would create the tags.
    for (mode, settings) in [
        ("access exclusive", "set snowflake_ids.segment_wait_timeout = '1ms'"),
        ("access exclusive", "set statement_timeout = '2ms'"),
        ("exclusive", "set snowflake_ids.segment_auto_create = on; set statement_timeout = '2ms'"),
    ] {
        let mut locker = lock(server, mode)?;
        impatient_calls(server, settings)?;
        locker.run("rollback")?;
        assert_eq!(places(&mut client)?, tags(0..6), "{mode}, {settings}");
    }
    for number in 0..5 {
        assert_eq!(next(&mut client, &format!("t{number}"))?, 2, "t{number} lost its ids");
    }
    Ok(())
}

/// Calls that wait for tags that cannot be created, each in its own session.
struct Waiting {
    calls: Vec<JoinHandle<Result<postgres::Error>>>,
    cancel: Vec<CancelToken>,
    pids: Vec<i32>,
}

fn waiting(server: &Server) -> Result<Waiting> {
    let mut waiting = Waiting { calls: Vec::new(), cancel: Vec::new(), pids: Vec::new() };
    for number in 0..TRIALS {
        let mut client = creating(server)?;
        waiting.cancel.push(client.cancel_token());
        waiting.pids.push(client.process()?);
        waiting.calls.push(thread::spawn(move || {
            let call = format!("select segment_nextval('new {number}')");
            client.simple_query(&call).err().context("the call was served")
        }));
    }
    Ok(waiting)
}

#[test]
fn while_many_calls_wait_for_tags_that_are_not_there_those_that_are_get_ids() -> Result<()> {
    let server = &server()?;
    let mut client = session(server)?;
    let mut in_a = server.create_database("a")?;
    for number in 0..7 {
        create(&mut in_a, &format!("a{number}"), "")?;
    }
    let mut locker = lock(server, "exclusive")?;
    let waiting = waiting(server)?;
    wait::until_true("the calls to wait", || Ok(places(&mut client)?.len() == 5 + TRIALS))?;

    // A further call waits like the others.
    let mut another = creating(server)?;
    another.run("set snowflake_ids.segment_wait_timeout = '300ms'")?;
    another.explained(
        "select segment_nextval('new one')",
        &SqlState::INSUFFICIENT_RESOURCES,
        "no ids for segment tag \"new one\" within 300 ms",
    )?;
    // Nobody looks for a tag that is known to be missing.
    client.fails("select segment_nextval('unknown')", &SqlState::UNDEFINED_OBJECT)?;
    // Existing tags can use all slots.
    for number in 0..7 {
        assert_eq!(next(&mut in_a, &format!("a{number}"))?, 1);
    }
    for number in 0..5 {
        assert_eq!(next(&mut client, &format!("t{number}"))?, 2);
    }

    // The calls leave nothing behind, however they end.
    for (number, cancel) in waiting.cancel.iter().enumerate() {
        match number % 2 {
            0 => cancel.cancel_query(NoTls)?,
            _ => drop(client.execute("select pg_terminate_backend($1)", &[&waiting.pids[number]])?),
        }
    }
    for call in waiting.calls {
        let error = call.ended()?;
        let ended = [SqlState::QUERY_CANCELED, SqlState::ADMIN_SHUTDOWN];
        assert!(error.is_closed() || error.code().is_some_and(|code| ended.contains(code)), "{error:?}");
    }
    wait::until_true("the places of calls that were ended", || {
        Ok(!places(&mut client)?.iter().any(|tag| tag.starts_with("new")))
    })?;
    assert_eq!(places(&mut client)?.len(), 5 + 7);

    locker.run("rollback")?;
    another.run("reset snowflake_ids.segment_wait_timeout")?;
    assert_eq!(next(&mut another, "new one")?, 1);
    assert!(places(&mut client)?.contains("new one"), "a tag that was made keeps its place");
    Ok(())
}

#[test]
fn a_session_s_memory_does_not_grow_with_the_names_that_it_tries() -> Result<()> {
    let server = &server()?;
    session(server)?;
    let mut client = server.connect("postgres")?;
    let pid = client.process()?;
    let mut try_names = |first: u32, last: u32| {
        client.batch_execute(&format!(
            "do $$ begin for n in {first}..{last} loop
                 begin perform segment_nextval(repeat('x', 100) || n);
                 exception when undefined_object then end;
             end loop; end $$"
        ))
    };
    try_names(1, 1_000)?;
    let before = memory(pid, "RssAnon")?.context("the session is gone")?;
    try_names(1_001, 21_000)?;
    let grown = memory(pid, "RssAnon")?.context("the session is gone")?.saturating_sub(before);
    assert!(grown < 500, "20,000 names took {grown} kB");
    Ok(())
}
