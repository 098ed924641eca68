//! Faulty nodes in a Citus cluster: `use_citus` fails and names them, and `citus_status` shows them. A stand-in takes the place
//! of Citus.

use snowflake_ids_server_tests::citus::{self, Citus, SetUp, USE_CITUS, well};
use snowflake_ids_server_tests::cluster::ROLE;
use snowflake_ids_server_tests::prelude::*;

/// Checks that `citus_status` and then `use_citus` say these words about the first worker.
fn first_is_told(cluster: &Citus, words: &str) -> Result<()> {
    let mut client = cluster.session()?;
    let problem = citus::problems(&mut client)?[&2].clone().context("nothing is wrong")?;
    ensure!(problem.contains(words), "citus_status: {problem}");
    let detail = citus::failed(&mut client)?;
    let node = format!("node 2 (127.0.0.1:{}): ", cluster.workers[0].port());
    let line = detail.lines().find(|line| line.starts_with(&node)).with_context(|| detail.clone())?;
    ensure!(line.contains(words), "use_citus: {detail}");
    ensure!(detail.lines().count() == 1, "{detail}");
    Ok(())
}

/// Sets a setting that takes effect at a restart, and restarts.
fn restart_with(server: &mut Server, name: &str, value: &str) -> Result<()> {
    server.set(name, value)?;
    server.restart()
}

fn it_is_called_by_a_superuser_on_the_coordinator(cluster: &mut Citus) -> Result<()> {
    let port = cluster.coordinator.port().to_string();
    let error = cluster.workers[0].connect("postgres")?.explained(
        USE_CITUS,
        sql::NOT_IN_STATE,
        "this database is a worker of a Citus cluster",
    )?;
    ensure!(error.hint().is_some_and(|hint| hint.contains(&port)), "{error:?}");
    let mut client = cluster.session()?;
    client.run("create role plain login; set role plain")?;
    for call in [USE_CITUS, "select * from snowflake_ids.citus_status()"] {
        client.fails(call, &SqlState::INSUFFICIENT_PRIVILEGE)?;
    }
    client.run(
        "reset role; grant execute on procedure snowflake_ids.use_citus to plain;
         grant execute on function snowflake_ids.citus_status to plain; set role plain",
    )?;
    let message = "permission denied to set the registry of a cluster";
    client.explained(USE_CITUS, &SqlState::INSUFFICIENT_PRIVILEGE, message)?;
    ensure!(citus::problems(&mut client)?.len() == 3);
    Ok(())
}

#[test]
fn a_coordinator_that_workers_cannot_find_is_told_of() -> Result<()> {
    let coordinator = citus::node().start()?;
    let mut client = coordinator.create_citus("postgres")?;
    let worker = citus::node().start()?;
    worker.create_citus("postgres")?;
    citus::add(&mut client, &worker)?;
    client.run("create extension snowflake_ids")?;
    let error = client.fails(USE_CITUS, sql::NOT_IN_STATE)?;
    ensure!(error.hint().is_some_and(|hint| hint.contains("citus_set_coordinator_host")), "{error:?}");
    client.run(&format!(
        "select citus_set_coordinator_host('127.0.0.1', {}); {USE_CITUS}",
        coordinator.port()
    ))?;
    well(&mut client, 2)
}

/// If the extension was created before Citus, no worker has the extension. `use_citus` creates the extension on the workers.
#[test]
fn a_node_without_the_extension_is_given_it() -> Result<()> {
    let coordinator = citus::node().start()?;
    coordinator.session()?;
    let mut client = coordinator.create_citus("postgres")?;
    let worker = citus::node().start()?;
    worker.create_citus("postgres")?;
    client.run(&format!("select citus_set_coordinator_host('127.0.0.1', {})", coordinator.port()))?;
    citus::add(&mut client, &worker)?;
    worker
        .connect("postgres")?
        .run("set citus.enable_ddl_propagation = off; drop extension if exists snowflake_ids cascade")?;
    let problems = citus::problems(&mut client)?;
    ensure!(problems[&2].as_ref().is_some_and(|problem| problem.contains("not created")), "{problems:?}");
    client.run(USE_CITUS)?;
    well(&mut client, 2)
}

fn a_node_without_the_library_fails_the_call(cluster: &mut Citus) -> Result<()> {
    restart_with(&mut cluster.workers[0], "shared_preload_libraries", "")?;
    first_is_told(cluster, "snowflake_ids")?;
    restart_with(&mut cluster.workers[0], "shared_preload_libraries", "snowflake_ids")?;
    let mut client = cluster.session()?;
    client.run(USE_CITUS)?;
    well(&mut client, 3)
}

fn a_node_whose_layout_changes_is_told_of(cluster: &mut Citus) -> Result<()> {
    let layout: String = cluster.session()?.one("show snowflake_ids.layout")?;
    restart_with(&mut cluster.workers[0], "snowflake_ids.layout", "41/0/10/12")?;
    first_is_told(cluster, "layout")?;
    restart_with(&mut cluster.workers[0], "snowflake_ids.layout", &layout)?;
    let mut client = cluster.session()?;
    client.run(USE_CITUS)?;
    well(&mut client, 3)
}

/// If the calling transaction created the extension, the workers' sessions would wait for this transaction, and the transaction
/// would wait for these sessions. No server would detect this deadlock.
#[test]
fn the_transaction_that_creates_the_extension_is_another_one() -> Result<()> {
    let cluster = Citus::of(1, SetUp::Bare)?;
    let mut client = cluster.session()?;
    let message = "cannot set the registry of a cluster in the transaction that creates the extension";
    client.explained(
        &format!("create extension snowflake_ids; {USE_CITUS}"),
        &SqlState::ACTIVE_SQL_TRANSACTION,
        message,
    )?;
    client.run("create extension snowflake_ids")?;
    client.run(USE_CITUS)?;
    well(&mut client, 2)
}

fn a_node_of_another_version_fails_the_call(cluster: &mut Citus) -> Result<()> {
    let version = |set: &str| {
        cluster.workers[0]
            .connect("postgres")?
            .run(&format!("update pg_extension set extversion = {set} where extname = 'snowflake_ids'"))?;
        anyhow::Ok(())
    };
    version("'old ' || extversion")?;
    first_is_told(cluster, "version old")?;
    version("substr(extversion, 5)")?;
    let mut client = cluster.session()?;
    client.run(USE_CITUS)?;
    well(&mut client, 3)
}

/// The last node gives no ids, because they would be another node's ids.
#[test]
fn more_nodes_than_worker_ids() -> Result<()> {
    let node = || citus::node().set("snowflake_ids.layout", "41/0/1/21");
    let coordinator = node().start()?;
    coordinator.create_citus("postgres")?;
    let mut cluster = Citus { coordinator, workers: Vec::new() };
    cluster.set_coordinator("postgres")?;
    cluster.session()?.run("create extension snowflake_ids")?;
    wait_for_id(&mut cluster.session()?)?;
    for _ in 0..2 {
        let worker = node().start()?;
        worker.create_citus("postgres")?;
        cluster.add_server(worker)?;
    }
    let mut client = cluster.session()?;
    let detail = citus::failed(&mut client)?;
    ensure!(detail.lines().count() == 1 && detail.contains("worker id"), "{detail}");
    let mut taken = Vec::new();
    let mut without = 0;
    for server in cluster.servers() {
        match server.connect("postgres")?.column::<i64>("select snowflake_nextvals(10000)") {
            Ok(ids) => taken.extend(ids),
            Err(_) => without += 1,
        }
    }
    ensure!(without == 1, "{without} nodes give no ids");
    ids::unique(taken)
}

/// When another coordinator adds a worker, the worker keeps its registry. The other coordinator then reports the worker.
fn two_coordinators_of_one_worker(cluster: &mut Citus) -> Result<()> {
    let (one, other) = (cluster, Citus::joined(0)?);
    let mut taken = Vec::new();
    for server in one.servers() {
        let mut client = server.connect("postgres")?;
        wait_for_id(&mut client)?;
        taken.extend(client.column::<i64>("select snowflake_nextvals(10000)")?);
    }
    let mut client = other.session()?;
    citus::add(&mut client, &one.workers[0])?;
    // No call has changed the worker. It gives no ids, or ids from its first registry.
    for server in one.servers() {
        let more = server.connect("postgres")?.column::<i64>("select snowflake_nextvals(10000)");
        taken.extend(more.unwrap_or_default());
    }
    ids::unique(taken)?;
    ensure!(citus::problems(&mut client)?[&2].is_some(), "its registry is that of the first");
    // The worker does not change its registry, because it must leave the first registry before.
    refuses_to_move(&mut client, USE_CITUS, &[(2, one.workers[0].port())], "citus_coordinator")?;
    // The other coordinator has told the worker of its own nodes. Until the first coordinator's address is back in the worker's
    // catalog, the worker looks for its registry at the other coordinator.
    one.set_coordinator("postgres")?;
    well(&mut one.session()?, 3)
}

/// Checks that the call changes nothing and names the nodes that use another registry.
fn refuses_to_move(client: &mut Client, call: &str, nodes: &[(i32, u16)], registry: &str) -> Result<()> {
    let message = "some nodes of the cluster use another registry";
    let error = client.explained(call, sql::NOT_IN_STATE, message)?;
    let lines =
        nodes.iter().map(|(node, port)| format!("node {node} (127.0.0.1:{port}): registry \"{registry}\""));
    let lines = lines.collect::<Vec<_>>().join("\n");
    ensure!(error.detail() == Some(&lines), "{error:?}");
    ensure!(error.hint().is_some_and(|hint| hint.contains("use_local_registry")), "{error:?}");
    Ok(())
}

const OUTSIDE: &str = "call snowflake_ids.use_citus('central')";

/// A registry outside of the cluster, known to the coordinator.
fn outside(cluster: &Citus) -> Result<Server> {
    let registry = citus::node().start()?;
    registry.serve_nodes()?;
    cluster.coordinator.introduce("central", &[registry.port()])?;
    Ok(registry)
}

/// The new registry does not know the old registry's worker ids and numbers. Before each move, an administrator makes the nodes
/// leave the old registry.
#[test]
fn a_cluster_is_not_moved_from_one_registry_to_another() -> Result<()> {
    let cluster = Citus::joined(2)?;
    let _registry = outside(&cluster)?;
    let mut client = cluster.session()?;
    let workers = [(2, cluster.workers[0].port()), (3, cluster.workers[1].port())];
    let mut taken = Vec::new();
    let mut take = || -> Result<()> {
        for server in cluster.servers() {
            let mut client = server.connect("postgres")?;
            wait_for_id(&mut client)?;
            taken.extend(client.column::<i64>("select snowflake_nextvals(10000)")?);
        }
        Ok(())
    };
    take()?;
    refuses_to_move(&mut client, OUTSIDE, &workers, "citus_coordinator")?;
    for worker in &cluster.workers {
        let mapped = "select count(*) from pg_user_mappings";
        ensure!(worker.connect("postgres")?.one::<i64>(mapped)? == 0, "it was given a mapping");
    }
    well(&mut client, 3)?;
    let end = "select snowflake_ids.use_local_registry()";
    // A single remaining node is enough for a refusal.
    cluster.workers[0].connect("postgres")?.run(end)?;
    refuses_to_move(&mut client, OUTSIDE, &workers[1..], "citus_coordinator")?;
    cluster.workers[1].connect("postgres")?.run(end)?;
    client.run(OUTSIDE)?;
    well(&mut client, 3)?;
    take()?;
    // The move back needs the same steps.
    client.run(end)?;
    refuses_to_move(&mut client, USE_CITUS, &workers, "central")?;
    for worker in &cluster.workers {
        worker.connect("postgres")?.run(end)?;
    }
    client.run(USE_CITUS)?;
    well(&mut client, 3)?;
    take()?;
    ids::unique(taken)
}

/// A node whose catalog has an outdated address of the coordinator may find another registry there.
fn a_worker_that_finds_another_coordinator_is_not_joined(cluster: &mut Citus) -> Result<()> {
    let other = Citus::of(0, SetUp::Extension)?;
    let mut worker = cluster.workers[0].connect("postgres")?;
    worker
        .run(&format!("update pg_dist_node set nodeport = {} where groupid = 0", other.coordinator.port()))?;
    let detail = citus::failed(&mut cluster.session()?)?;
    let of_one = detail.lines().find(|line| line.starts_with("node 2 ")).with_context(|| detail.clone())?;
    ensure!(of_one.contains("is not the registry of that name on the coordinator"), "{detail}");
    ensure!(worker.one::<i64>("select count(*) from snowflake_ids.registry_server")? == 0);
    Ok(())
}

/// A worker that has seen an older timeline than the coordinator's may lease from a former primary. When `use_citus` runs, the
/// worker asks for a lease again.
fn a_worker_that_saw_its_registry_on_another_timeline_is_told_of(cluster: &mut Citus) -> Result<()> {
    let mut client = cluster.session()?;
    let mut worker = cluster.workers[0].connect("postgres")?;
    // The worker's lease worker records the timeline with each response.
    wait::until_true("the problem of the other timeline", || {
        worker.run("update snowflake_ids.registry_server set timeline = 0")?;
        let problem = citus::problems(&mut client)?[&2].clone();
        Ok(problem.is_some_and(|problem| problem.contains("on timeline 0")))
    })?;
    client.run(USE_CITUS)?;
    well(&mut client, 3)
}

/// Neither an error nor `log_min_duration_statement` writes the password to the log. The call fails, although the worker gives
/// ids.
fn a_password_that_a_worker_is_not_given_is_not_logged_there(cluster: &mut Citus) -> Result<()> {
    let registry = outside(cluster)?;
    let mut client = cluster.session()?;
    client.run(OUTSIDE)?;
    registry.connect("postgres")?.run(&format!("alter role {ROLE} password 'rotated-secret'"))?;
    client.run("alter user mapping for postgres server central options (set password 'rotated-secret')")?;
    let worker = &cluster.workers[0];
    worker.reload("log_min_duration_statement", "0")?;
    let mut session = worker.connect("postgres")?;
    session.run(
        "set citus.enable_ddl_propagation = off;
         create function refuse() returns event_trigger language plpgsql as $$ begin raise 'not today'; end $$;
         create event trigger refuse on ddl_command_start when tag in ('CREATE USER MAPPING') execute function refuse()",
    )?;
    let error = client.error(OUTSIDE)?;
    let line = format!("node 2 (127.0.0.1:{}): its user mapping was not made: not today", worker.port());
    ensure!(error.detail() == Some(&line), "{error:?}");
    ensure!(worker.logged("rotated-secret") == 0, "the password is in the log");
    session.run("drop event trigger refuse")?;
    client.run(OUTSIDE)?;
    ensure!(worker.logged("rotated-secret") == 0, "the password is in the log");
    well(&mut client, 3)?;
    // A worker that lacks the function would log the statement, with the password.
    registry.connect("postgres")?.run(&format!("alter role {ROLE} password 'newest-secret'"))?;
    client.run("alter user mapping for postgres server central options (set password 'newest-secret')")?;
    session.run(
        "alter extension snowflake_ids drop function snowflake_ids_internal.citus_map;
         alter function snowflake_ids_internal.citus_map rename to citus_other",
    )?;
    let message = "nodes of the cluster do not have this version of the extension";
    client.explained(OUTSIDE, sql::NOT_IN_STATE, message)?;
    ensure!(worker.logged("newest-secret") == 0, "the password is in the log");
    Ok(())
}

/// Trust, peer and certificate authentication need no options.
fn a_user_mapping_without_options_is_made_on_workers(cluster: &mut Citus) -> Result<()> {
    let _registry = outside(cluster)?;
    let mut client = cluster.session()?;
    client.run(
        "drop user mapping for postgres server central; create user mapping for postgres server central",
    )?;
    client.run("alter server central options (set dbname 'postgres')")?;
    client.run(OUTSIDE)?;
    well(&mut client, 3)
}

fn the_call_looks_at_what_nodes_do_meanwhile(cluster: &mut Citus) -> Result<()> {
    let mut client = cluster.session()?;
    let message = "cannot set the registry of a cluster at isolation level \"repeatable read\"";
    client.explained(
        &format!("begin isolation level repeatable read; {USE_CITUS}"),
        &SqlState::ACTIVE_SQL_TRANSACTION,
        message,
    )?;
    client.run("rollback")?;
    client.run(&format!("begin; {USE_CITUS}; commit"))?;
    well(&mut client, 3)
}

/// A worker that cannot connect to the coordinator keeps using the ids that it has, so nothing else reveals the fault.
fn a_worker_whose_registry_fails_is_told_of(cluster: &mut Citus) -> Result<()> {
    let mut client = cluster.session()?;
    client.run("select snowflake_ids.segment_create('t')")?;
    cluster.workers[0].reload("citus.node_conninfo", "sslmode=require")?;
    let mut worker = cluster.workers[0].connect("postgres")?;
    worker.run("set snowflake_ids.segment_wait_timeout = '1s'")?;
    ensure!(worker.batch_execute("select segment_nextval('t')").is_err());
    let problems = citus::problems(&mut client)?;
    let problem = problems[&2].as_ref().with_context(|| format!("{problems:?}"))?;
    ensure!(problem.starts_with("registry \"citus_coordinator\" failed when it asked last"), "{problem}");
    ensure!(problem.contains("does not support SSL"), "{problem}");
    cluster.workers[0].reload("citus.node_conninfo", "sslmode=prefer")
}

/// A worker may lack a generator that the cluster's defaults name, because it was added later or its extension was dropped. A
/// worker whose default was changed takes other ids.
fn nodes_whose_generators_or_defaults_differ_are_told_of_and_use_citus_makes_generators(
    cluster: &mut Citus,
) -> Result<()> {
    let mut client = cluster.session()?;
    client.run("select snowflake_ids.generator_create('web', 'javascript')")?;
    let said = citus::problems(&mut client)?;
    for node in [2, 3] {
        let problem = said[&node].as_deref().unwrap_or_default();
        ensure!(
            problem.contains("generators are not those of node 1") && problem.contains("use_citus"),
            "{said:?}"
        );
    }
    client.run(USE_CITUS)?;
    well(&mut client, 3)?;
    client.run(
        "create table t (id bigint default snowflake_nextval('web'), tenant int); select create_distributed_table('t', 'tenant')",
    )?;
    well(&mut client, 3)?;
    let mut worker = cluster.workers[0].connect("postgres")?;
    ensure!(worker.one::<i64>("select snowflake_nextval('web')")? > 0);
    worker.run("set citus.enable_ddl_propagation = off; alter table t alter id drop default")?;
    let said = citus::problems(&mut client)?;
    ensure!(
        said[&2].as_deref().unwrap_or_default().contains("other defaults for ids there than on node 1"),
        "{said:?}"
    );
    ensure!(said[&3].is_none(), "{said:?}");
    Ok(())
}

/// Rights are granted on the coordinator. If a worker's rights differ, a restricted tag may be open there.
fn rights_on_tags_are_passed_on_by_use_citus(cluster: &mut Citus) -> Result<()> {
    let mut client = cluster.session()?;
    let mut worker = cluster.workers[0].connect("postgres")?;
    for server in cluster.servers() {
        server.connect("postgres")?.run("set citus.enable_ddl_propagation = off; create role clerk login")?;
    }
    client.run(
        "select snowflake_ids.segment_create('secret'), snowflake_ids.segment_grant('secret', 'clerk', 'SELECT')",
    )?;
    let said = citus::problems(&mut client)?;
    ensure!(
        said[&2].as_deref().unwrap_or_default().contains("rights on segment tags are not those of node 1"),
        "{said:?}"
    );
    client.run(USE_CITUS)?;
    well(&mut client, 3)?;
    worker.run("set role clerk")?;
    worker.fails("select segment_nextval('secret')", &SqlState::INSUFFICIENT_PRIVILEGE)?;
    client.run("select snowflake_ids.segment_grant('secret', 'clerk', 'USAGE')")?;
    client.run(USE_CITUS)?;
    ensure!(worker.one::<i64>("select segment_nextval('secret')")? >= 1);
    client.run("select snowflake_ids.segment_revoke('secret', 'clerk', 'ALL')")?;
    client.run(USE_CITUS)?;
    worker.error("select segment_nextval('secret')")?;
    well(&mut client, 3)
}

/// The registry is another database on a node's server. That server leases its worker id from the same table as the other nodes.
#[test]
fn a_registry_on_the_server_of_a_node_serves_all_nodes() -> Result<()> {
    let mut cluster = Citus::of(1, SetUp::Extension)?;
    let host = citus::node().start()?;
    host.connect("postgres")?.run("create database ids")?;
    let mut registry = host.connect("ids")?;
    registry.run("create extension snowflake_ids; create role node login superuser")?;
    wait_for_id(&mut registry)?;
    host.create_citus("postgres")?;
    let port = host.port();
    cluster.add_server(host)?;
    let mut client = cluster.session()?;
    client.run(&format!(
        "create extension postgres_fdw;
         create server ids foreign data wrapper postgres_fdw options (host '127.0.0.1', port '{port}', dbname 'ids');
         create user mapping for current_user server ids options (user 'node', password_required 'false')"
    ))?;
    // The node joined the coordinator when it was added.
    let refused = client.error("call snowflake_ids.use_citus('ids')")?;
    ensure!(refused.hint().is_some_and(|hint| hint.contains("use_local_registry")), "{refused:?}");
    cluster.workers[1].connect("postgres")?.run("select snowflake_ids.use_local_registry()")?;
    client.run("call snowflake_ids.use_citus('ids')")?;
    well(&mut client, 3)
}

#[test]
fn a_node_is_told_of() -> Result<()> {
    Citus::cases(
        2,
        SetUp::Joined,
        cases![
            a_node_without_the_library_fails_the_call,
            a_node_whose_layout_changes_is_told_of,
            a_node_of_another_version_fails_the_call,
            two_coordinators_of_one_worker,
            a_worker_that_saw_its_registry_on_another_timeline_is_told_of,
            a_worker_whose_registry_fails_is_told_of,
            nodes_whose_generators_or_defaults_differ_are_told_of_and_use_citus_makes_generators,
            rights_on_tags_are_passed_on_by_use_citus
        ],
    )
}

#[test]
fn use_citus_looks_at_all_nodes() -> Result<()> {
    Citus::cases(
        2,
        SetUp::Extension,
        cases![
            it_is_called_by_a_superuser_on_the_coordinator,
            a_worker_that_finds_another_coordinator_is_not_joined,
            a_password_that_a_worker_is_not_given_is_not_logged_there,
            a_user_mapping_without_options_is_made_on_workers,
            the_call_looks_at_what_nodes_do_meanwhile
        ],
    )
}
