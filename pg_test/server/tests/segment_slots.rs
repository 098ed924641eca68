//! Servers that cannot start a worker, because all `max_worker_processes` are in use.

use snowflake_ids_server_tests::cluster::refused_with;
use snowflake_ids_server_tests::prelude::*;
use snowflake_ids_server_tests::segments::{create, next, status, take, wait_for_waiting};
use snowflake_ids_server_tests::sessions::PARALLEL;

/// A server with this number of worker processes. Logical replication uses none of these processes.
fn server(workers: u32) -> Builder {
    let workers = workers.to_string();
    Server::builder().set("max_logical_replication_workers", "0").set("max_worker_processes", &workers)
}

/// Calls for an id, and expects an error because no worker can start.
fn refused(client: &mut Client) -> Result<DbError> {
    client.run("set snowflake_ids.segment_wait_timeout = '500ms'")?;
    Ok(refused_with(client, "t", &["max_worker_processes"])?.1)
}

fn assert_names_max_worker_processes(error: &DbError) {
    assert_eq!(error.code(), &SqlState::INSUFFICIENT_RESOURCES, "{error:?}");
    let said = format!("{} {:?}", error.message(), error.detail());
    assert!(said.contains("max_worker_processes"), "{error:?}");
    assert!(error.hint().is_some_and(|hint| hint.contains("max_worker_processes")), "{error:?}");
}

#[test]
fn without_room_for_a_worker_calls_fail_in_time_and_name_the_setting() -> Result<()> {
    // The launcher is one of these processes. With zero processes not even the launcher runs.
    for workers in [1, 0] {
        let (_server, mut client) = server(workers).with_session()?;
        create(&mut client, "t", "")?;
        assert_names_max_worker_processes(&refused(&mut client)?);
        assert_eq!(status::<String>(&mut client, "t", "trouble")?, "no worker");
        let alarms = "select count(*) from snowflake_ids.attention
            where severity = 'alarm' and action ~ 'max_worker_processes' and subject in ('tag t', 'launcher')";
        assert_eq!(client.one::<i64>(alarms)?, if workers == 0 { 2 } else { 1 });
        // Calls that need no worker succeed.
        client.run("select snowflake_nextval(); begin")?;
        create(&mut client, "own", "")?;
        assert_eq!(next(&mut client, "own")?, 1);
        client.run("commit")?;
    }
    Ok(())
}

#[test]
fn service_resumes_by_itself_once_another_leaves_the_last_slot() -> Result<()> {
    let (server, mut client) = server(2).with_session()?;
    create(&mut client, "t", "")?;
    client.run("create table sleepers as select generate_series(1, 20000); analyze sleepers")?;
    let mut parallel = server.connect("postgres")?;
    parallel.run(PARALLEL)?;
    let cancel = parallel.cancel_token();
    let query = "select count(*) from sleepers where pg_sleep(3600) is null";
    let holder = thread::spawn(move || parallel.error(query));
    let held = "select count(*) > 0 from pg_stat_activity where backend_type = 'parallel worker'";
    client.becomes_true(held)?;
    assert_names_max_worker_processes(&refused(&mut client)?);

    // A caller that already waits is served, too.
    client.run("reset snowflake_ids.segment_wait_timeout")?;
    let waiting = thread::spawn(move || next(&mut client, "t"));
    wait_for_waiting(&server, 1)?;
    cancel.cancel_query(NoTls)?;
    assert_eq!(holder.ended()?.code(), &SqlState::QUERY_CANCELED);
    assert_eq!(waiting.ended().context("the call that waited")?, 1);
    Ok(())
}

#[test]
fn databases_take_turns_on_the_only_slot() -> Result<()> {
    let server = server(2).start()?;
    let databases = ["a", "b", "c"];
    for name in databases {
        create(&mut server.create_database(name)?, "t", "")?;
    }
    let clients = databases.iter().map(|name| server.connect(name)).collect::<Result<Vec<_>>>()?;
    let taken = at_once(clients, |_, mut client| take(&mut client, "t", 100))?;
    taken.into_iter().try_for_each(ids::dense)
}
