//! Several databases of one server, and several registries: the server's worker id comes from one of them.

use snowflake_ids_server_tests::cluster::{self, JOIN, NAME, PASSWORD, ROLE};
use snowflake_ids_server_tests::prelude::*;
use snowflake_ids_server_tests::snowflakes::status;

/// A second database of this server that knows another server's database as its registry.
fn second(server: &Server, registry: &Server, database: &str) -> Result<Client> {
    let mut client = server.create_database("second")?;
    client.run(&format!(
        "create extension postgres_fdw;
         create server {NAME} foreign data wrapper postgres_fdw
             options (host '127.0.0.1', port '{}', dbname '{database}');
         create user mapping for postgres server {NAME} options (user '{ROLE}', password '{PASSWORD}')",
        registry.port()
    ))?;
    Ok(client)
}

fn registry() -> Result<Server> {
    let registry = auto().start()?;
    registry.serve_nodes()?;
    Ok(registry)
}

fn worker_of(server: &Server) -> Result<i32> {
    let mut client = server.connect("postgres")?;
    wait_for_id(&mut client)?;
    status(&mut client, "worker_id")
}

/// Two nodes use one registry. The first node's second database tries to join another registry, which would lease it the second
/// node's worker id.
#[test]
fn a_second_database_does_not_move_a_node_to_another_registry() -> Result<()> {
    let (one, two) = (registry()?, registry()?);
    let nodes = [cluster::node().start()?, cluster::node().start()?];
    for node in &nodes {
        node.join(&one)?;
    }
    let workers = [worker_of(&nodes[0])?, worker_of(&nodes[1])?];
    let mut database = second(&nodes[0], &two, "postgres")?;
    let error = database.fails(JOIN, sql::NOT_IN_STATE)?;
    ensure!(error.message().contains("for database \"postgres\""), "{error:?}");
    ensure!(error.hint().is_some_and(|hint| hint.contains("in this database, too")), "{error:?}");
    let port = |registry: &Server| format!("alter server {NAME} options (set port '{}')", registry.port());
    database.run(&format!("{}; {JOIN}", port(&one)))?;
    let mut taken = Vec::new();
    for (node, worker) in nodes.iter().zip(workers) {
        ensure!(worker_of(node)? == worker, "the worker id has changed");
        taken.extend(node.session()?.column::<i64>("select snowflake_nextvals(10000)")?);
    }
    ids::unique(taken)
}

/// The server has its worker id from another registry, and leases worker ids to others in another database.
#[test]
fn a_registry_does_not_lease_the_worker_id_that_its_own_server_has_from_another_one() -> Result<()> {
    let one = registry()?;
    let middle = cluster::node().start()?;
    middle.serve_nodes()?;
    middle.join(&one)?;
    let mut workers = vec![worker_of(&middle)?];
    middle.create_database("second")?.run(&format!(
        "grant execute on function snowflake_ids.registry_serve(text),
             snowflake_ids.registry_take_over(text) to {ROLE}"
    ))?;
    // This registry has no row for its own server, so it could lease that server's worker id to the node.
    let node = cluster::node().start()?;
    let mut client = node.introduce(NAME, &[middle.port()])?;
    client.run(&format!("alter server {NAME} options (set dbname 'second'); {JOIN}"))?;
    workers.push(worker_of(&node)?);
    ensure!(workers[0] != workers[1], "both are worker {}", workers[0]);
    Ok(())
}

/// Citus's catalog on a worker, which has a group of its own.
const CITUS_WORKER: &str = "set allow_system_table_mods = on;
    create table pg_catalog.pg_dist_local_group (groupid integer not null primary key);
    insert into pg_catalog.pg_dist_local_group values (1);
    reset allow_system_table_mods";

/// Nobody has called `use_registry` on this worker of a Citus cluster.
#[test]
fn a_worker_of_a_citus_cluster_gives_no_ids_before_it_has_a_registry() -> Result<()> {
    let registry = registry()?;
    let node = cluster::node().start()?;
    let mut client = node.introduce(NAME, &[registry.port()])?;
    client.run("select snowflake_ids.segment_create('early')")?;
    client.run(CITUS_WORKER)?;
    for call in [
        "select snowflake_nextval()",
        "select segment_nextval('early')",
        "select snowflake_ids.segment_create('numbers')",
    ] {
        let error = client.fails(call, sql::NOT_IN_STATE)?;
        ensure!(error.message().contains("is a worker of a Citus cluster"), "{call}: {error:?}");
        ensure!(error.hint().is_some_and(|hint| hint.contains("use_citus")), "{call}: {error:?}");
    }
    client.run(JOIN)?;
    wait_for_id(&mut client)?;
    ensure!(client.one::<i64>("select segment_nextval('early')")? == 1);
    Ok(())
}

/// The coordinator is in group 0, and gives ids from its own tables.
#[test]
fn a_citus_coordinator_needs_no_registry() -> Result<()> {
    let (_server, mut client) = auto().with_session()?;
    client.run(CITUS_WORKER)?;
    client.run("update pg_catalog.pg_dist_local_group set groupid = 0")?;
    wait_for_id(&mut client)?;
    client.run("select snowflake_ids.segment_create('numbers')")?;
    ensure!(client.one::<i64>("select segment_nextval('numbers')")? == 1);
    Ok(())
}
