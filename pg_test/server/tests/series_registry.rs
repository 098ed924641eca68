//! Dense series whose numbers come from a registry: no number twice, from whichever node, and none missing where nothing is lost.

use anyhow::{Context, Result, ensure};
use postgres::Client;
use postgres::error::{DbError, SqlState};
use snowflake_ids_server_tests::cluster::{
    Cluster, JOIN, LEAVE, NAME, becomes, node, said, strangers, wait_as_long_as_it_takes, wait_at_most,
};
use snowflake_ids_server_tests::registry::auto;
use snowflake_ids_server_tests::segments::TIMEOUT;
use snowflake_ids_server_tests::series::{
    Load, Numbers, add, create_at_all, load, next, refused_with, take, unique, without_gaps,
};
use snowflake_ids_server_tests::{Server, Shutdown, ids, sql, wait};
use std::thread;
use std::time::Duration;

const CREATE: &str = "select snowflake_ids.series_create('d', 'dense')";
/// One that reserves nothing ahead.
const CREATE_EXACT: &str = "select snowflake_ids.series_create('d', 'dense', step => 1, max_step => 1)";

/// A registry and nodes, each of them with the same series.
fn cluster(nodes: usize, create: &str) -> Result<Cluster> {
    with_series(Cluster::start(nodes)?, create)
}

fn with_series(cluster: Cluster, create: &str) -> Result<Cluster> {
    create_at_all(&cluster, create)?;
    Ok(cluster)
}

/// Takes numbers until a call is refused with a word; calls fail soon.
fn is_refused(client: &mut Client, key: i64, word: &str) -> Result<(Vec<i64>, DbError)> {
    wait_at_most(client, Duration::from_secs(1))?;
    let refused = refused_with(client, "d", key, word)?;
    wait_as_long_as_it_takes(client)?;
    Ok(refused)
}

/// What the row of a key says.
fn last(client: &mut Client, key: i64) -> Result<i64> {
    sql::one(
        client,
        &format!("select last_value from snowflake_ids.series_key where series = 'd' and key_bigint = {key}"),
    )
}

#[test]
fn nodes_count_a_key_together() -> Result<()> {
    let cluster = cluster(2, CREATE_EXACT)?;
    let servers = [&cluster.nodes[0], &cluster.nodes[1]];
    let each = |server| load(server, "postgres", "d", Load { sessions: 2, statements: 2, keys: 30, seed: 1 });
    let mut all = Numbers::new();
    thread::scope(|scope| -> Result<()> {
        let loads = servers.map(|server| scope.spawn(move || each(server)));
        for load in loads {
            for (key, numbers) in load.join().map_err(|_| anyhow::anyhow!("a load failed"))?? {
                add(&mut all, numbers.into_iter().map(|number| (key, number)));
            }
        }
        Ok(())
    })?;
    without_gaps(&all)
}

/// Each that has not reserved the last number gets as many as wait, whatever the step is.
#[test]
fn nodes_that_take_turns_leave_nothing_between() -> Result<()> {
    let cluster = cluster(2, CREATE)?;
    let mut clients = [cluster.session()?, cluster.nodes[1].connect("postgres")?];
    let mut taken = Vec::new();
    for _ in 0..5 {
        for client in &mut clients {
            taken.push(next(client, "d", 7)?);
        }
    }
    assert_eq!(taken, (1..=10).collect::<Vec<_>>());
    // One alone reserves ahead, and the other one goes on above that.
    taken.extend(take(&mut clients[0], "d", 7, 3)?);
    assert_eq!(taken[10..], [11, 12, 13]);
    taken.push(next(&mut clients[1], "d", 7)?);
    ensure!(taken[13] > 14, "{taken:?}");
    taken.extend(take(&mut clients[0], "d", 7, 40)?);
    ids::unique(taken)
}

/// More keys than memory has room for: what they have left goes back to the registry; at a stop it goes to a file.
#[test]
fn a_node_alone_leaves_no_gap_in_little_memory_and_over_restarts() -> Result<()> {
    let mut cluster = Cluster::of(auto(), &node().set("snowflake_ids.series_memory", "64kB"), 1)?;
    cluster = with_series(cluster, CREATE)?;
    let mut all = Numbers::new();
    for seed in 0..2 {
        let more =
            load(&cluster.nodes[0], "postgres", "d", Load { sessions: 4, statements: 8, keys: 400, seed })?;
        for (key, numbers) in more {
            add(&mut all, numbers.into_iter().map(|number| (key, number)));
        }
        cluster.nodes[0].stop(Shutdown::Fast)?;
        cluster.nodes[0].start_again()?;
    }
    without_gaps(&all)
}

#[test]
fn memory_goes_on_without_the_registry_and_calls_fail_as_those_of_tags() -> Result<()> {
    let mut cluster = cluster(1, CREATE)?;
    let mut client = cluster.session()?;
    let mut taken = take(&mut client, "d", 7, 2)?;
    cluster.registry.stop(Shutdown::Fast)?;
    let (more, error) = is_refused(&mut client, 7, &format!("Registry \"{NAME}\""))?;
    ensure!(!more.is_empty(), "memory has none");
    taken.extend(more);
    assert_eq!(error.code(), &SqlState::INSUFFICIENT_RESOURCES, "{error:?}");
    becomes(&mut client, NAME, "failing")?;
    cluster.registry.start_again()?;
    wait::until_true("numbers to go on", || {
        let number = next(&mut client, "d", 7).ok();
        taken.extend(number);
        Ok(number.is_some())
    })?;
    taken.extend(take(&mut client, "d", 7, 30)?);
    // What was asked for when it stopped may be lost.
    ids::growing(&taken)
}

#[test]
fn kill_9_of_a_node_repeats_nothing() -> Result<()> {
    let mut cluster = cluster(2, CREATE)?;
    let mut all = Numbers::new();
    for round in 0..3 {
        for server in &cluster.nodes {
            let mut client = server.connect("postgres")?;
            for key in 0..5 {
                let count = 1 + round * 7;
                let numbers = take(&mut client, "d", key, count)?;
                add(&mut all, numbers.into_iter().map(|number| (key, number)));
            }
        }
        cluster.nodes[0].kill9()?;
        cluster.nodes[0].start_again()?;
    }
    unique(&all)
}

/// A copy of a registry as it is now.
fn copy(registry: &mut Server) -> Result<Server> {
    registry.stop(Shutdown::Fast)?;
    let copy = registry.copy()?;
    registry.start_again()?;
    Ok(copy)
}

#[test]
fn a_registry_that_was_set_back_goes_on_above_what_a_node_received() -> Result<()> {
    let mut cluster = cluster(2, CREATE)?;
    let mut client = cluster.session()?;
    let mut taken = take(&mut client, "d", 7, 20)?;
    let old = copy(&mut cluster.registry)?;
    taken.extend(take(&mut client, "d", 7, 50)?);
    cluster.registry.replace_by(old)?;
    // So that it asks.
    cluster.nodes[0].kill9()?;
    cluster.nodes[0].start_again()?;
    let mut client = cluster.session()?;
    taken.push(next(&mut client, "d", 7)?);
    taken.push(next(&mut cluster.nodes[1].connect("postgres")?, "d", 7)?);
    ids::growing(&taken)
}

#[test]
fn one_that_was_set_back_further_gives_none_until_the_key_is_set() -> Result<()> {
    let mut cluster = cluster(1, CREATE_EXACT)?;
    let mut client = cluster.session()?;
    let mut taken = take(&mut client, "d", 7, 2)?;
    let old = copy(&mut cluster.registry)?;
    taken.extend(take(&mut client, "d", 7, 10)?);
    cluster.registry.replace_by(old)?;
    let error = wait::until(TIMEOUT, "the registry to be refused", || {
        let refused = client.query_one("select series_nextval('d', 7::bigint)", &[]).err();
        let refused = refused.and_then(|error| error.as_db_error().cloned()).context("a number was given")?;
        Ok(Some(refused).filter(|error| error.code() != &SqlState::INSUFFICIENT_RESOURCES))
    })?;
    assert_eq!(error.code(), &SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE, "{error:?}");
    ensure!(said(&error).contains("restored from a backup"), "{error:?}");
    ensure!(said(&error).contains("series_set"), "{error:?}");
    let last = last(&mut client, 7)?;
    assert_eq!(last, 12);
    let set = format!("select snowflake_ids.series_set('d', 7::bigint, {last})");
    cluster.registry.connect("postgres")?.batch_execute(&set)?;
    taken.push(next(&mut client, "d", 7)?);
    assert_eq!(taken, (1..=13).collect::<Vec<_>>());
    Ok(())
}

/// What a registry makes of its first, or its last, number.
const LIE: &str = r#"regexp_replace(told, '"first":\d+', '"first":' || mood)"#;

#[test]
fn a_registry_that_lies_repeats_no_number() -> Result<()> {
    let cluster = Cluster::of(auto(), &node(), 1)?;
    cluster.registry.lies(LIE)?;
    let cluster = with_series(cluster, CREATE_EXACT)?;
    let mut client = cluster.session()?;
    let mut taken = take(&mut client, "d", 7, 5)?;
    for mood in ["1", "0", "-9223372036854775808", "9223372036854775807", "\"\\u001b[31m\"", "null"] {
        cluster.registry.set_mood(mood)?;
        let (some, error) = is_refused(&mut client, 7, "makes no sense")?;
        ensure!(some.is_empty(), "{mood}: {some:?}");
        assert_eq!(error.code(), &SqlState::INSUFFICIENT_RESOURCES, "{mood}: {error:?}");
        ensure!(!said(&error).replace('\n', "").contains(char::is_control), "{mood}: {error:?}");
    }
    cluster.registry.set_mood("")?;
    taken.push(wait::until(TIMEOUT, "a number of a registry that is honest again", || {
        Ok(next(&mut client, "d", 7).ok())
    })?);
    ids::growing(&taken)
}

#[test]
fn what_stands_in_the_way_is_told() -> Result<()> {
    let cluster = Cluster::start(1)?;
    let mut client = cluster.session()?;
    let mut registry = cluster.registry.connect("postgres")?;
    client.batch_execute(CREATE)?;
    let refused = |client: &mut Client, statement: &str, code: &SqlState, word: &str| -> Result<()> {
        let error = sql::error(client, statement)?;
        ensure!(error.code() == code && said(&error).contains(word), "{statement}: {error:?}");
        Ok(())
    };
    let take = "select series_nextval('d', 7::bigint)";
    refused(&mut client, take, &SqlState::UNDEFINED_OBJECT, "has no dense series of this name")?;
    registry.batch_execute("select snowflake_ids.series_create('d', 'dense', start => 5)")?;
    let not_ready = SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE;
    refused(&mut client, take, &not_ready, "another key type, start, reset or time zone")?;
    registry.batch_execute(&format!("select snowflake_ids.series_drop('d'); {CREATE}"))?;
    assert_eq!(next(&mut client, "d", 7)?, 1);
    refused(
        &mut client,
        "select snowflake_ids.series_set('d', 7::bigint, 100)",
        &not_ready,
        "at the registry",
    )?;
    let own =
        "begin; select snowflake_ids.series_create('own', 'dense'); select series_nextval('own', 1::bigint)";
    refused(&mut client, own, &not_ready, "Commit the transaction")?;
    client.batch_execute("rollback")?;
    registry.batch_execute("select snowflake_ids.series_set('d', 7::bigint, 100)")?;
    assert_eq!(next(&mut client, "d", 7)?, 101);
    registry.batch_execute("select snowflake_ids.series_alter('d', max_value => 102)")?;
    assert_eq!(next(&mut client, "d", 7)?, 102);
    refused(&mut client, take, &SqlState::SEQUENCE_GENERATOR_LIMIT_EXCEEDED, "used up")
}

#[test]
fn a_database_with_numbers_of_its_own_does_not_join() -> Result<()> {
    let (_registry, _node, mut client) = strangers()?;
    client.batch_execute(CREATE)?;
    next(&mut client, "d", 7)?;
    let error = sql::error(&mut client, JOIN)?;
    assert_eq!(error.code(), &SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE, "{error:?}");
    ensure!(said(&error).contains("dense series \"d\"") && said(&error).contains("series_key"), "{error:?}");
    client.batch_execute("select snowflake_ids.series_drop('d')")?;
    client.batch_execute(JOIN)?;
    Ok(())
}

/// On its own again a node goes on above what it received; what it has in memory is its own still.
#[test]
fn a_node_that_leaves_goes_on_above_what_it_received() -> Result<()> {
    let cluster = cluster(1, CREATE)?;
    let mut client = cluster.session()?;
    let mut taken = take(&mut client, "d", 7, 5)?;
    client.batch_execute(&format!("set client_min_messages = warning; {LEAVE}"))?;
    taken.extend(take(&mut client, "d", 7, 50)?);
    assert_eq!(taken, (1..=55).collect::<Vec<_>>());
    Ok(())
}
