//! Locks on the tables that define series and named generators, as VACUUM FULL takes them. Calls that must read a locked table
//! wait at most for `segment_wait_timeout`; their error names the table. Calls of sessions that have cached the table's content
//! do not wait.

use snowflake_ids_server_tests::prelude::*;

/// Opens a session that will lock a table, and creates the objects of the calls.
fn locker(server: &Server) -> Result<Client> {
    server.session()?.run(
        "create role app login;
         select snowflake_ids.series_create('gapless'), snowflake_ids.series_create('other'), snowflake_ids.series_create('monotonic', 'monotonic'),
             snowflake_ids.series_create('restricted', owner => 'app'), snowflake_ids.generator_create('web', 'twitter')",
    )?;
    server.connect("postgres")
}

/// A table, and a call that reads the table in a new session.
const CALLS: [(&str, &str); 6] = [
    ("series", "select series_nextval('gapless', 1::bigint)"),
    ("series", "select snowflake_ids.has_series_privilege('gapless', 'USAGE')"),
    ("registry_server", "select series_nextval('gapless', 1::bigint)"),
    ("registry_server", "select series_nextval('monotonic', 1::bigint)"),
    ("series_privilege", "select series_nextval('restricted', 1::bigint)"),
    ("generator", "select snowflake_nextval('web')"),
];

fn calls_that_have_to_look_say_what_they_waited_for(server: &mut Server) -> Result<()> {
    let mut locker = locker(server)?;
    for (table, call) in CALLS {
        locker.run(&format!("begin; lock table snowflake_ids.{table}"))?;
        let mut client = server.connect("postgres")?;
        client.run("set snowflake_ids.segment_wait_timeout = '700ms'")?;
        let error = client.error(call).with_context(|| format!("{table}: {call}"))?;
        let message = format!("could not read table \"snowflake_ids.{table}\" within 700 ms");
        sql::explains(&error, &SqlState::LOCK_NOT_AVAILABLE, &message)?;
        let named = error.detail().is_some_and(|detail| detail.contains(&format!("snowflake_ids.{table}")));
        ensure!(named, "{error:?}");
        // Ids of the server's own layout do not wait.
        client.run("select snowflake_nextval()")?;
        locker.run("commit")?;
        client.batch_execute(call).with_context(|| format!("{table}, once it is free: {call}"))?;
    }
    Ok(())
}

fn a_lock_timeout_that_is_shorter_holds(server: &mut Server) -> Result<()> {
    let mut locker = locker(server)?;
    locker.run("begin; lock table snowflake_ids.generator")?;
    let mut client = server.connect("postgres")?;
    client.run("set lock_timeout = '10ms'")?;
    let error = client.error("select snowflake_nextval('web')")?;
    assert_eq!(
        (error.code(), error.message()),
        (&SqlState::LOCK_NOT_AVAILABLE, "canceling statement due to lock timeout")
    );
    Ok(())
}

fn a_session_that_knows_the_registries_does_not_wait_for_them(server: &mut Server) -> Result<()> {
    let mut locker = locker(server)?;
    let mut client = server.connect("postgres")?;
    client.run("select series_nextval('gapless', 1::bigint)")?;
    locker.run("begin; lock table snowflake_ids.registry_server")?;
    // The session has not used the series `other` yet, and the series `gapless` changes. Both calls look up the series, but do
    // not read the locked table.
    assert_eq!(client.one::<i64>("select series_nextval('other', 1::bigint)")?, 1);
    server.connect("postgres")?.run("update snowflake_ids.series set description = 'changed'")?;
    assert_eq!(client.one::<i64>("select series_nextval('gapless', 1::bigint)")?, 2);
    locker.run("rollback")?;
    // The session notices a change of the registries.
    locker.run("insert into snowflake_ids.registry_server (position, server, identity, timeline) values (0, 'elsewhere', 'r', 1)")?;
    client.fails("select series_nextval('gapless', 1::bigint)", &SqlState::FEATURE_NOT_SUPPORTED)?;
    locker.run("delete from snowflake_ids.registry_server")?;
    assert_eq!(client.one::<i64>("select series_nextval('gapless', 1::bigint)")?, 3);
    // Also a change of which the session gets only the message for the table of registries, and none for the table of series.
    locker.run(
        "begin; alter table snowflake_ids.registry_server disable trigger all;
         insert into snowflake_ids.registry_server (position, server, identity, timeline) values (0, 'elsewhere', 'r', 1); commit",
    )?;
    client.fails("select series_nextval('gapless', 1::bigint)", &SqlState::FEATURE_NOT_SUPPORTED)?;
    Ok(())
}

#[test]
fn calls_wait_for_what_they_do_not_know() -> Result<()> {
    Server::builder().cases(cases![
        calls_that_have_to_look_say_what_they_waited_for,
        a_lock_timeout_that_is_shorter_holds,
        a_session_that_knows_the_registries_does_not_wait_for_them
    ])
}
