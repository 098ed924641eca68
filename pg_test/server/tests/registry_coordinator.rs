//! A worker of a Citus cluster, whose registry is the coordinator at the address in Citus's catalog. The catalog consists of
//! tables with the right names.

use snowflake_ids_server_tests::cluster;
use snowflake_ids_server_tests::prelude::*;

const JOIN: &str = "select snowflake_ids.use_registry('citus_coordinator')";
/// A port on which nothing listens.
const NOWHERE: u16 = 1;

/// Creates the tables of Citus on a server of this group, before the extension.
fn worker(server: &Server, group: i32, coordinator: u16) -> Result<Client> {
    worker_in(server, "postgres", group, coordinator)
}

fn worker_in(server: &Server, database: &str, group: i32, coordinator: u16) -> Result<Client> {
    let mut client = server.connect(database)?;
    client.run(&format!(
        "set allow_system_table_mods = on;
         create table pg_catalog.pg_dist_local_group (groupid integer not null primary key);
         insert into pg_catalog.pg_dist_local_group values ({group});
         create table pg_catalog.pg_dist_node (nodeid integer, groupid integer, nodename text, nodeport integer,
             isactive boolean default true, noderole text default 'primary');
         insert into pg_catalog.pg_dist_node values (1, 0, '127.0.0.1', {coordinator}), (2, 1, '127.0.0.1', {});
         reset allow_system_table_mods",
        server.port()
    ))?;
    Ok(client)
}

fn move_coordinator(client: &mut Client, port: u16) -> Result<()> {
    Ok(client
        .execute("update pg_catalog.pg_dist_node set nodeport = $1 where groupid = 0", &[&i32::from(port)])
        .map(drop)?)
}

fn registries(client: &mut Client) -> Result<Vec<String>> {
    client.column("select server::text from snowflake_ids.registry_server")
}

#[test]
fn a_worker_joins_when_the_extension_is_created_there() -> Result<()> {
    let (coordinator, node) = (auto().start()?, cluster::node().start()?);
    coordinator.session()?.run("select snowflake_ids.segment_create('numbers')")?;
    let mut client = worker(&node, 1, coordinator.port())?;
    client.run("create extension snowflake_ids")?;
    ensure!(registries(&mut client)? == ["citus_coordinator"]);
    wait_for_id(&mut client)?;
    ensure!(client.one::<i64>("select segment_nextval('numbers')")? == 1);
    ensure!(coordinator.session()?.one::<i64>("select segment_nextval('numbers')")? > 1);
    Ok(())
}

/// Citus prepares the transaction that creates the extension on a new worker, and commits it from another session.
#[test]
fn a_worker_joins_by_a_prepared_transaction() -> Result<()> {
    let (coordinator, node) =
        (auto().start()?, cluster::node().set("max_prepared_transactions", "2").start()?);
    coordinator.session()?;
    let mut client = worker(&node, 1, coordinator.port())?;
    for end in ["rollback prepared 'node'", "commit prepared 'node'"] {
        client.run("begin; create extension snowflake_ids")?;
        client.run("prepare transaction 'node'")?;
        node.connect("postgres")?.run(end)?;
    }
    ensure!(registries(&mut client)? == ["citus_coordinator"]);
    wait_for_id(&mut client)?;
    // Any other transaction that changes the registry cannot be prepared.
    client.run(&format!("begin; {JOIN}"))?;
    client.fails("prepare transaction 'node'", &SqlState::FEATURE_NOT_SUPPORTED)?;
    Ok(())
}

/// The session that commits the prepared transaction does not change the worker id.
#[test]
fn a_worker_that_joins_in_a_prepared_transaction_leases_with_its_first_call() -> Result<()> {
    let (coordinator, node) =
        (auto().start()?, cluster::node().set("max_prepared_transactions", "1").start()?);
    coordinator.create_database("app")?;
    wait_for_id(&mut coordinator.connect("app")?)?;
    wait_for_id(&mut node.session()?)?;
    node.create_database("app")?;
    let mut client = worker_in(&node, "app", 1, coordinator.port())?;
    client.run("drop extension snowflake_ids")?;
    client.run("begin; create extension snowflake_ids")?;
    client.run("prepare transaction 'node'")?;
    client.run("commit prepared 'node'")?;
    ensure!(!registries(&mut client)?.is_empty(), "it has not joined");
    wait_for_id(&mut client)?;
    let mut registry = coordinator.connect("app")?;
    let leased = || Ok(registry.one::<i64>("select count(*) from snowflake_ids.worker_lease")? == 2);
    wait::until_true("worker ids of both from the registry", leased)
}

/// While the coordinator's extension is being created, a worker cannot join. The worker then has the extension, but gives no ids.
#[test]
fn a_worker_that_cannot_join_has_the_extension_and_gives_no_ids() -> Result<()> {
    let (coordinator, node) = (auto().start()?, cluster::node().start()?);
    let mut client = worker(&node, 1, coordinator.port())?;
    client.run("create extension snowflake_ids")?;
    let error = client.error("select snowflake_nextval()")?;
    ensure!(error.hint().is_some_and(|hint| hint.contains("use_citus")), "{error:?}");
    coordinator.session()?;
    client.run(JOIN)?;
    wait_for_id(&mut client)?;
    Ok(())
}

#[test]
fn the_coordinator_is_where_the_catalog_says_it_is_now() -> Result<()> {
    let (coordinator, node) = (auto().start()?, cluster::node().start()?);
    let mut registry = coordinator.session()?;
    registry.run("select snowflake_ids.segment_create(t) from unnest(array['one', 'two']) as t")?;
    let mut client = worker(&node, 1, coordinator.port())?;
    client.run("create extension snowflake_ids")?;
    ensure!(client.one::<i64>("select segment_nextval('one')")? == 1);
    // None of these rows describes the primary coordinator.
    client.run(&format!(
        "insert into pg_catalog.pg_dist_node values (0, 0, '127.0.0.1', {NOWHERE}, false, 'primary'),
             (-1, 0, '127.0.0.1', {NOWHERE}, true, 'secondary'), (3, 2, '127.0.0.1', {NOWHERE}, true, 'primary')"
    ))?;
    client.run(JOIN)?;
    client.run("delete from pg_catalog.pg_dist_node where nodeport = 1")?;
    move_coordinator(&mut client, NOWHERE)?;
    ensure!(client.error(JOIN)?.message().contains("cannot be reached"));
    move_coordinator(&mut client, coordinator.port())?;
    client.run(JOIN)?;
    ensure!(client.one::<i64>("select segment_nextval('two')")? == 1);
    client.run("delete from pg_catalog.pg_dist_node")?;
    let error = client.error(JOIN)?;
    ensure!(error.hint().is_some_and(|hint| hint.contains("citus_set_coordinator_host")), "{error:?}");
    Ok(())
}

/// A foreign server with the coordinator's reserved name is ignored.
#[test]
fn a_worker_connects_as_citus_does() -> Result<()> {
    let (coordinator, node) = (auto().start()?, cluster::node().start()?);
    let mut registry = coordinator.session()?;
    registry.run("alter role postgres password 'of the owner'")?;
    coordinator.rule("host all postgres 127.0.0.1/32 scram-sha-256")?;
    let mut client = worker(&node, 1, coordinator.port())?;
    client.run("create extension snowflake_ids; create extension postgres_fdw")?;
    client.run(&format!(
        "create server citus_coordinator foreign data wrapper postgres_fdw
             options (host '127.0.0.1', port '{}', dbname 'postgres');
         create user mapping for postgres server citus_coordinator
             options (user 'postgres', password 'of the owner')",
        coordinator.port()
    ))?;
    ensure!(client.error(JOIN)?.message().contains("cannot be reached"));
    client.run(
        "set allow_system_table_mods = on;
         create table pg_catalog.pg_dist_authinfo (nodeid integer, rolename name, authinfo text);
         reset allow_system_table_mods;
         insert into pg_catalog.pg_dist_authinfo values (0, 'postgres', 'password=''of all nodes'''),
             (1, 'postgres', 'password=''of the owner'''), (2, 'postgres', 'password=''of another node''')",
    )?;
    client.run(JOIN)?;
    wait_for_id(&mut client)?;
    // The options for all connections apply too, after the role's options.
    client.run("set citus.node_conninfo = 'password=none sslmode=nonsense'")?;
    let error = client.error(JOIN)?;
    ensure!(error.message().contains("sslmode"), "{error:?}");
    client.run("set citus.node_conninfo = 'password=none sslmode=prefer'")?;
    client.run(JOIN)?;
    Ok(())
}
