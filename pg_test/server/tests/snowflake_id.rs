//! The type `snowflake_id` between servers that have it and columns of bigint: replication, foreign tables, dumps.

use snowflake_ids_server_tests::prelude::*;

const AS_JSON: &str = "select string_agg(row_to_json(t)::text, ' ' order by id) from t";

/// True if the first column of `t` is of the type.
fn is_typed(client: &mut Client) -> Result<bool> {
    client.one(
        "select atttypid = 'snowflake_id'::regtype from pg_attribute where attrelid = 't'::regclass and attnum = 1",
    )
}

/// Columns are replicated from bigint to the type, from the type to bigint, and between columns of the type.
#[test]
fn rows_are_replicated_to_and_from_bigint() -> Result<()> {
    let server = Server::builder().set("wal_level", "logical").start()?;
    let (plain, typed) = ("bigint", "snowflake_id");
    for (number, (of_publisher, of_subscriber)) in
        [(plain, typed), (typed, plain), (typed, typed)].into_iter().enumerate()
    {
        let mut clients = Vec::new();
        for (side, of) in [("publisher", of_publisher), ("subscriber", of_subscriber)] {
            let mut client = server.create_database(&format!("{side}_{number}"))?;
            client.run(&format!("create table t (id {of} primary key, v text)"))?;
            clients.push(client);
        }
        let [publisher, subscriber] = &mut clients[..] else { unreachable!() };
        publisher.run(
            "insert into t values (911811189128851456, 'copied'); create publication p for all tables",
        )?;
        publisher.run(&format!("select pg_create_logical_replication_slot('s_{number}', 'pgoutput')"))?;
        subscriber.run(&format!(
            "create subscription s_{number} connection 'host={} port={} user=postgres dbname=publisher_{number}'
                 publication p with (create_slot = false, slot_name = 's_{number}')",
            server.socket_folder().display(),
            server.port()
        ))?;
        wait::until_true("the copy", || Ok(subscriber.one::<i64>("select count(*) from t")? == 1))?;
        publisher.run(
            "insert into t values (911811189128851457, 'old'), (911811189128851458, 'gone');
             update t set v = 'new' where id = 911811189128851457; delete from t where id = '911811189128851458';
             insert into t values (1, 'last')",
        )?;
        wait::until_true("the last row", || {
            Ok(subscriber.one::<i64>("select count(*) from t where id = 1")? == 1)
        })?;
        let rows = "select string_agg(id || v, ' ' order by id) from t";
        assert_eq!(subscriber.one::<String>(rows)?, publisher.one::<String>(rows)?);
    }
    Ok(())
}

#[test]
fn foreign_tables_have_the_type_on_either_side() -> Result<()> {
    let (server, mut client) = Server::builder().with_session()?;
    server.connect_from(&mut client, "here", "postgres")?;
    client.run(
        "create table typed (id snowflake_id primary key, v text); create table plain (id bigint primary key, v text);
         create foreign table far_typed (id snowflake_id, v text) server here options (table_name 'plain');
         create foreign table far_plain (id bigint, v text) server here options (table_name 'typed')",
    )?;
    for table in ["far_typed", "far_plain"] {
        client.run(&format!(
            "insert into {table} values (911811189128851457, 'a'), (5, 'b');
             update {table} set v = 'c' where id = 911811189128851457; delete from {table} where id = '5'"
        ))?;
        let row = format!("select id || v from {table} where id >= 911811189128851457");
        assert_eq!(client.column::<String>(&row)?, ["911811189128851457c"]);
    }
    assert_eq!(
        client.one::<String>("select row_to_json(t)::text from far_typed t")?,
        r#"{"id":"911811189128851457","v":"c"}"#
    );
    // A foreign table's column also keeps the extension.
    client.run("drop table typed")?;
    client.fails("drop extension snowflake_ids cascade", &SqlState::DEPENDENT_OBJECTS_STILL_EXIST)?;
    Ok(())
}

/// DROP EXTENSION would also remove a column that the transaction's snapshot does not see.
#[test]
fn a_column_made_meanwhile_keeps_the_extension() -> Result<()> {
    let (server, mut client) = Server::builder().with_session()?;
    client.run("begin isolation level repeatable read; select 1")?;
    server.session()?.run("create table t (id snowflake_id)")?;
    client.fails("drop extension snowflake_ids cascade", &SqlState::DEPENDENT_OBJECTS_STILL_EXIST)?;
    client.run("rollback; drop table t; drop extension snowflake_ids cascade")
}

#[test]
fn a_dump_is_restored_by_the_owner_of_the_database() -> Result<()> {
    let (server, mut client) = Server::builder().with_session()?;
    for statement in
        ["create role app login", "create database app owner app", "create database restored owner app"]
    {
        client.run(statement)?;
    }
    let mut app = server.config("app").user("app").connect(NoTls)?;
    app.run(
        "create extension snowflake_ids;
         create table t (id snowflake_id primary key default snowflake_nextval(), v text);
         create table refers (t_id snowflake_id references t);
         insert into t (v) values ('a'), ('b'); insert into refers select id from t",
    )?;
    app.fails("drop extension snowflake_ids cascade", &SqlState::DEPENDENT_OBJECTS_STILL_EXIST)?;
    let dump = server.dump_as("app", "app", &[])?;
    server.restore_as("app", "restored", &dump)?;
    let mut restored = server.config("restored").user("app").connect(NoTls)?;
    assert!(is_typed(&mut restored)?);
    assert_eq!(restored.one::<String>(AS_JSON)?, app.one::<String>(AS_JSON)?);
    restored.run("insert into t (v) values ('c'); alter table t alter id type bigint; drop table refers")?;
    assert!(!is_typed(&mut restored)?);
    restored.run("drop extension snowflake_ids cascade")?;
    assert_eq!(restored.one::<i64>("select count(*) from t")?, 3);
    Ok(())
}
