//! The stand-in behaves like Citus 13.2 wherever this extension and its tests depend on the behaviour.

use snowflake_ids_server_tests::citus::{self, Citus, SetUp};
use snowflake_ids_server_tests::prelude::*;

/// The results of a command on each worker: `success` and `result`, in the order of the workers' ports.
fn on_workers(client: &mut Client, command: &str) -> Result<Vec<(bool, Option<String>)>> {
    let rows = client.query("select success, result from run_command_on_workers($1)", &[&command])?;
    Ok(rows.iter().map(|row| (row.get(0), row.get(1))).collect())
}

fn refused(client: &mut Client, statement: &str, message: &str) -> Result<()> {
    let error = client.error(statement)?;
    ensure!(error.message() == message, "{statement}: {error:?}");
    Ok(())
}

/// A result is the text of the first statement's single value. A statement without a value gives an empty text, never NULL.
fn commands_on_workers_give_one_text_each(cluster: &mut Citus) -> Result<()> {
    let mut client = cluster.session()?;
    for (command, success, result) in [
        ("select 42", true, "42"),
        ("select null::int", true, ""),
        ("select 1 where false", true, ""),
        ("set work_mem = '8MB'", true, "SET"),
        ("do $$begin raise warning 'well'; end$$", true, "DO"),
        ("select 1, 2", false, "expected a single column in query target"),
        ("select generate_series(1, 2)", false, "expected a single row in query result"),
        ("select 1/0", false, "ERROR:  division by zero"),
        ("do $$begin raise 'one\ntwo' using detail = 'd', hint = 'h'; end$$", false, "ERROR:  one"),
        ("", false, ""),
        ("select 1; select 2", true, "1"),
        // An error in a later statement is not reported, and undoes the statements before it.
        ("set lock_timeout = 0; create table lost (a int); select 1/0", true, "SET"),
        ("select to_regclass('lost')", true, ""),
        ("show citus.enable_ddl_propagation", true, "on"),
    ] {
        let seen = on_workers(&mut client, command)?;
        ensure!(seen == vec![(success, Some(result.to_owned())); 2], "{command}: {seen:?}");
    }
    refused(
        &mut client,
        "select run_command_on_workers(null)",
        "worker array object cannot contain null values",
    )?;
    // Commands run outside the caller's transaction, as the calling role.
    client.run("begin; select run_command_on_workers('create table kept (a int)'); rollback")?;
    ensure!(cluster.workers[1].connect("postgres")?.one::<bool>("select to_regclass('kept') is not null")?);
    for server in cluster.servers() {
        server.connect("postgres")?.run("create role plain login")?;
    }
    client.run("set role plain")?;
    ensure!(on_workers(&mut client, "select session_user")? == vec![(true, Some("plain".to_owned())); 2]);
    Ok(())
}

/// A node that is down has a row with its error. Inactive and removed nodes have no rows.
fn nodes_that_cannot_be_reached_are_told_of(cluster: &mut Citus) -> Result<()> {
    let mut client = cluster.session()?;
    let port = cluster.workers[1].port();
    cluster.workers[1].stop(Shutdown::Immediate)?;
    let seen = on_workers(&mut client, "select 1")?;
    let failed = (false, Some(format!("failed to connect to 127.0.0.1:{port}")));
    ensure!(seen.contains(&failed) && seen.contains(&(true, Some("1".to_owned()))), "{seen:?}");
    let all = "select string_agg(nodeid || ' ' || success, ', ' order by nodeid)
        from run_command_on_all_nodes('select 1')";
    ensure!(client.one::<String>(all)? == "1 true, 2 true, 3 false");
    let error = client.error("create extension snowflake_ids")?;
    ensure!(error.message().starts_with("connection to the remote node"), "{error:?}");
    ensure!(client.error("select citus_add_node('127.0.0.1', 1)")?.message().contains("failed"));
    client.run(&format!("select citus_disable_node('127.0.0.1', {port})"))?;
    ensure!(client.one::<String>(all)? == "1 true, 2 true");
    cluster.workers[1].start_again()?;
    client.run(&format!("select citus_activate_node('127.0.0.1', {port})"))?;
    ensure!(client.one::<String>(all)? == "1 true, 2 true, 3 true");
    client.run(&format!("select citus_remove_node('127.0.0.1', {port})"))?;
    ensure!(client.one::<String>(all)? == "1 true, 2 true");
    // The removed node does not learn of its removal.
    let mut removed = cluster.workers[1].connect("postgres")?;
    ensure!(removed.one::<i32>("select groupid from pg_dist_local_group")? == 2);
    ensure!(citus::add(&mut client, &cluster.workers[1])? > 3);
    ensure!(removed.one::<i32>("select groupid from pg_dist_local_group")? > 2);
    Ok(())
}

/// Workers know the coordinator's address, also after the coordinator has moved.
fn workers_run_commands_on_the_coordinator(cluster: &mut Citus) -> Result<()> {
    let mut worker = cluster.workers[0].connect("postgres")?;
    let port = "select result from run_command_on_coordinator('show port')";
    ensure!(worker.one::<String>(port)? == cluster.coordinator.port().to_string());
    ensure!(!worker.one::<bool>("select citus_is_coordinator()")?);
    let mut client = cluster.session()?;
    ensure!(client.one::<bool>("select citus_is_coordinator()")?);
    client.run("select citus_update_node(1, '127.0.0.1', 1)")?;
    ensure!(
        worker.one::<String>("select result from run_command_on_coordinator('select 1')")?
            == "failed to connect to 127.0.0.1:1"
    );
    refused(&mut worker, "select citus_add_node('127.0.0.1', 1)", "operation is not allowed on this node")?;
    let lone = citus::node().start()?;
    let mut lone = lone.create_citus("postgres")?;
    ensure!(!lone.one::<bool>("select citus_is_coordinator()")?);
    ensure!(lone.one::<String>("select nodeid || result from run_command_on_all_nodes('select 1')")? == "01");
    refused(
        &mut lone,
        "select run_command_on_coordinator('select 1')",
        "the coordinator is not added to the metadata",
    )
}

fn count(server: &Server, of: &str) -> Result<i64> {
    server.connect("postgres")?.one(&format!("select count(*) from {of}"))
}

/// Extensions and foreign servers reach the workers, also workers added later. User mappings and privileges do not.
fn what_is_created_reaches_the_workers_or_does_not(cluster: &mut Citus) -> Result<()> {
    let mut client = cluster.session()?;
    client.run(
        "create extension postgres_fdw; create server far foreign data wrapper postgres_fdw options (host 'a');
         alter server far options (set host 'b');
         create user mapping for postgres server far options (user 'x')",
    )?;
    cluster.add()?;
    for worker in &cluster.workers {
        ensure!(count(worker, "pg_foreign_server where srvoptions = '{host=b}'")? == 1);
        ensure!(count(worker, "pg_user_mappings")? == 0);
        let mut client = worker.connect("postgres")?;
        for statement in ["create extension hstore", "drop server far"] {
            refused(&mut client, statement, "operation is not allowed on this node")?;
        }
    }
    let seen = on_workers(&mut client, "create extension hstore")?;
    ensure!(seen == vec![(false, Some("ERROR:  operation is not allowed on this node".to_owned())); 3]);
    client.run("set citus.enable_ddl_propagation = off; create extension hstore")?;
    ensure!(count(&cluster.workers[0], "pg_extension where extname = 'hstore'")? == 0);
    client.run("set citus.enable_ddl_propagation = on; drop server far cascade")?;
    ensure!(count(&cluster.workers[2], "pg_foreign_server")? == 0);
    Ok(())
}

/// Defaults of distributed tables reach the workers. Identity columns and distribution columns must be changed on each node
/// separately.
fn defaults_of_distributed_tables_are_propagated_or_refused(cluster: &mut Citus) -> Result<()> {
    let mut client = cluster.session()?;
    client.run(
        "create table t (id bigint generated by default as identity primary key, k bigint default 1, s bigserial);
         select create_distributed_table('t', 'k'); alter table t alter s set default 7",
    )?;
    cluster.add()?;
    for (group, worker) in (1i64..).zip(&cluster.workers) {
        let mut worker = worker.connect("postgres")?;
        let row = worker.query_one("insert into t default values returning id, k, s", &[])?;
        let row: [i64; 3] = [row.get(0), row.get(1), row.get(2)];
        ensure!(row == [(group << 48) + 1, 1, 7], "{row:?}");
        refused(&mut worker, "alter table t alter s set default 8", "operation is not allowed on this node")?;
    }
    refused(
        &mut client,
        "alter table t alter k set default 8",
        "cannot execute ALTER TABLE command involving partition column",
    )?;
    refused(
        &mut client,
        "alter table t alter id drop identity",
        "alter table command is currently unsupported",
    )?;
    client.run("set citus.enable_ddl_propagation = off; alter table t alter id drop identity")?;
    client.run("alter table t alter k set default 8; drop table t")?;
    ensure!(count(&cluster.workers[0], "pg_dist_partition")? == 1, "this was for the coordinator alone");
    Ok(())
}

#[test]
fn it_does_what_citus_does() -> Result<()> {
    Citus::cases(
        2,
        SetUp::Bare,
        cases![
            commands_on_workers_give_one_text_each,
            nodes_that_cannot_be_reached_are_told_of,
            workers_run_commands_on_the_coordinator,
            what_is_created_reaches_the_workers_or_does_not,
            defaults_of_distributed_tables_are_propagated_or_refused
        ],
    )
}
