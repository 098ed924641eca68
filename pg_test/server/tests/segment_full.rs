//! More tags than shared memory has room for.

use anyhow::Result;
use postgres::Client;
use postgres::error::SqlState;
use snowflake_ids_server_tests::segments::{TIMEOUT, create, next, take};
use snowflake_ids_server_tests::sessions::at_once;
use snowflake_ids_server_tests::{Server, ids, sql, wait};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::Duration;

const TAGS: usize = 4;

/// A server with room for a few tags, which are in use, and one tag more.
fn full() -> Result<(Server, Client)> {
    let server = Server::builder().small().set("snowflake_ids.max_tags", &TAGS.to_string()).start()?;
    let mut client = server.session()?;
    for number in 0..=TAGS {
        create(&mut client, &format!("t{number}"), "step => 10")?;
    }
    for number in 0..TAGS {
        assert_eq!(next(&mut client, &format!("t{number}"))?, 1);
    }
    Ok((server, client))
}

/// Takes an id as soon as there is a place for the tag.
fn next_in_time(client: &mut Client, tag: &str) -> Result<i64> {
    wait::until(TIMEOUT, "a place", || match next(client, tag) {
        Ok(id) => Ok(Some(id)),
        Err(error) => {
            let code = error.downcast_ref::<postgres::Error>().and_then(postgres::Error::code).cloned();
            if code == Some(SqlState::CONFIGURATION_LIMIT_EXCEEDED) { Ok(None) } else { Err(error) }
        }
    })
}

#[test]
fn while_all_tags_are_in_use_one_more_is_refused_and_takes_the_place_of_the_one_that_idles() -> Result<()> {
    let (server, mut client) = full()?;
    let error = sql::error(&mut client, "select segment_nextval('t4')")?;
    assert_eq!(error.code(), &SqlState::CONFIGURATION_LIMIT_EXCEEDED, "{error:?}");
    assert!(error.hint().is_some_and(|hint| hint.contains("snowflake_ids.max_tags")), "{error:?}");

    // The others stay in use, by sessions of their own; t0 does not.
    let stop = AtomicBool::new(false);
    let used = at_once(server.sessions("postgres", TAGS)?, |number, mut client| {
        let mut taken = vec![1];
        if number == 0 {
            let in_time = next_in_time(&mut client, "t4");
            stop.store(true, Ordering::Relaxed);
            return in_time.map(|id| vec![id]);
        }
        while !stop.load(Ordering::Relaxed) {
            taken.push(next(&mut client, &format!("t{number}"))?);
            sleep(Duration::from_millis(200));
        }
        Ok(taken)
    })?;
    used.into_iter().try_for_each(ids::dense)?;
    let error = sql::error(&mut client, "select segment_nextval('t0')")?;
    assert_eq!(error.code(), &SqlState::CONFIGURATION_LIMIT_EXCEEDED, "{error:?}");
    Ok(())
}

#[test]
fn a_dropped_tag_and_a_dropped_database_leave_their_places_at_once() -> Result<()> {
    let (server, mut client) = full()?;
    client.batch_execute("select snowflake_ids.segment_drop('t2')")?;
    assert_eq!(next(&mut client, "t4")?, 1);
    for name in ["t0", "t1", "t3", "t4"] {
        client.batch_execute(&format!("select snowflake_ids.segment_drop('{name}')"))?;
    }
    server.create_database("a")?;
    {
        let mut in_a = server.connect("a")?;
        for number in 0..TAGS {
            create(&mut in_a, &format!("t{number}"), "")?;
            next(&mut in_a, &format!("t{number}"))?;
        }
    }
    client.batch_execute("drop database a")?;
    create(&mut client, "last", "")?;
    assert_eq!(next(&mut client, "last")?, 1);
    Ok(())
}

#[test]
fn tags_that_take_turns_on_one_place_go_on_where_they_were() -> Result<()> {
    let server = Server::builder().small().set("snowflake_ids.max_tags", "1").start()?;
    let mut client = server.session()?;
    for tag in ["a", "b"] {
        create(&mut client, tag, "step => 10")?;
    }
    let (mut of_a, mut of_b) = (take(&mut client, "a", 15)?, Vec::new());
    // The same sessions have used the place for the other tag before.
    let mut clients = server.sessions("postgres", 4)?;
    for (tag, taken) in [("b", &mut of_b), ("a", &mut of_a)] {
        taken.push(next_in_time(&mut client, tag)?);
        for client in &mut clients {
            taken.extend(take(client, tag, 15)?);
        }
    }
    ids::growing(&of_a)?;
    ids::growing(&of_b)
}

#[test]
fn a_rolled_back_transaction_keeps_no_places_for_good() -> Result<()> {
    let server = Server::builder().small().set("snowflake_ids.max_tags", &TAGS.to_string()).start()?;
    let mut client = server.session()?;
    for number in 0..=2 * TAGS {
        create(&mut client, &format!("t{number}"), "")?;
    }
    client.batch_execute("begin; update snowflake_ids.segment set max_id = 100")?;
    for number in 0..2 * TAGS {
        assert_eq!(next(&mut client, &format!("t{number}"))?, 101);
    }
    client.batch_execute("rollback")?;
    assert_eq!(next_in_time(&mut client, &format!("t{}", 2 * TAGS))?, 1);
    Ok(())
}
