//! A Citus cluster whose ids come from its coordinator: `use_citus`, `citus_status`, and nodes that come, go and return. A
//! stand-in takes the place of Citus.

use snowflake_ids_server_tests::citus::{self, Citus, SetUp, USE_CITUS, well};
use snowflake_ids_server_tests::cluster::{row, said};
use snowflake_ids_server_tests::prelude::*;
use snowflake_ids_server_tests::{segments, snowflakes};

/// Checks that ids of both kinds are unique across all servers.
fn unique(cluster: &Citus, tag: &str) -> Result<()> {
    let (mut snowflakes, mut numbers) = (Vec::new(), Vec::new());
    for server in cluster.servers() {
        let mut client = server.connect("postgres")?;
        wait_for_id(&mut client)?;
        snowflakes.extend(client.column::<i64>("select snowflake_nextvals(10000)")?);
        numbers.extend(segments::take(&mut client, tag, 500)?);
    }
    ids::unique(snowflakes)?;
    ids::unique(numbers)
}

fn workers(cluster: &Citus) -> Result<Vec<i32>> {
    cluster
        .servers()
        .map(|server| snowflakes::status(&mut server.connect("postgres")?, "worker_id"))
        .collect()
}

/// Settings and one call of `use_citus` are enough. Before the call, workers give no ids.
fn one_call_makes_all_nodes_share_a_registry_and_a_second_one_changes_nothing(
    cluster: &mut Citus,
) -> Result<()> {
    let mut client = cluster.session()?;
    // The steps are large, so that no earlier refill is under way.
    client.run("select snowflake_ids.segment_create('t', step => 100000)")?;
    let mut worker = cluster.workers[0].connect("postgres")?;
    let refused = worker.fails(snowflakes::NEXT, sql::NOT_IN_STATE)?;
    ensure!(refused.hint().is_some_and(|hint| hint.contains("use_citus")), "{refused:?}");
    client.run(USE_CITUS)?;
    well(&mut client, 4)?;
    well(&mut worker, 4)?;
    let registry = "select server from snowflake_ids.registry_server";
    ensure!(worker.column::<String>(registry)? == ["citus_coordinator"]);
    ensure!(client.column::<String>(registry)?.is_empty(), "it is the registry itself");
    unique(cluster, "t")?;
    // The second call keeps a server's reserved ids and its worker id.
    let (before, number) = (workers(cluster)?, segments::next(&mut worker, "t")?);
    let reserved: i64 = row(&mut client, "t", "max_id")?;
    client.run(USE_CITUS)?;
    ensure!(workers(cluster)? == before, "worker ids have changed");
    ensure!(segments::next(&mut worker, "t")? == number + 1, "a gap");
    ensure!(row::<i64>(&mut client, "t", "max_id")? == reserved, "segments were given up");
    Ok(())
}

/// The new worker needs no call.
fn a_worker_that_is_added_joins_by_itself(cluster: &mut Citus) -> Result<()> {
    let mut client = cluster.session()?;
    client.run("select snowflake_ids.segment_create('t')")?;
    cluster.add()?;
    unique(cluster, "t")?;
    well(&mut client, 4)?;
    // The worker also needs no call after it was removed and added again.
    let port = cluster.workers[2].port();
    client.run(&format!("select citus_remove_node('127.0.0.1', {port})"))?;
    citus::add(&mut client, &cluster.workers[2])?;
    unique(cluster, "t")?;
    well(&mut client, 4)
}

fn a_worker_that_is_killed_comes_back_as_the_one_that_it_was(cluster: &mut Citus) -> Result<()> {
    let mut client = cluster.session()?;
    client.run("select snowflake_ids.segment_create('t')")?;
    unique(cluster, "t")?;
    let before = workers(cluster)?;
    cluster.workers[0].kill9()?;
    let problems = citus::problems(&mut client)?;
    ensure!(problems[&1].is_none() && problems[&3].is_none(), "{problems:?}");
    ensure!(
        problems[&2].as_ref().is_some_and(|problem| problem.contains("failed to connect")),
        "{problems:?}"
    );
    cluster.workers[0].start_again()?;
    unique(cluster, "t")?;
    ensure!(workers(cluster)? == before, "worker ids have changed");
    well(&mut client, 3)
}

/// Workers continue with the ids that they have, and find the coordinator at the address that Citus has.
fn the_coordinator_may_be_away_and_move(cluster: &mut Citus) -> Result<()> {
    cluster.session()?.run("select snowflake_ids.segment_create('t', step => 1000)")?;
    unique(cluster, "t")?;
    let mut taken = Vec::new();
    cluster.coordinator.kill9()?;
    for worker in &cluster.workers {
        let mut client = worker.connect("postgres")?;
        taken.extend(snowflakes::take(&mut client, 1000)?);
        segments::take(&mut client, "t", 100)?;
        let problems = citus::problems(&mut client)?;
        ensure!(problems[&1].is_some(), "{problems:?}");
    }
    cluster.coordinator.move_port()?;
    cluster.coordinator.start_again()?;
    cluster.set_coordinator("postgres")?;
    for worker in &cluster.workers {
        // The worker cannot have this many ids without the coordinator.
        segments::take(&mut worker.connect("postgres")?, "t", 50_000)?;
        taken.extend(snowflakes::take(&mut worker.connect("postgres")?, 1000)?);
    }
    ids::unique(taken)?;
    let mut client = cluster.session()?;
    client.run(USE_CITUS)?;
    well(&mut client, 3)
}

/// The nodes of both clusters are the same servers, with worker ids from the first cluster's registry. The second cluster's
/// registry does not know these worker ids.
#[test]
fn a_second_database_leases_no_worker_id_to_a_node_of_its_own() -> Result<()> {
    let cluster = Citus::joined(2)?;
    cluster.session()?.run("select snowflake_ids.segment_create('t')")?;
    unique(&cluster, "t")?;
    let before = workers(&cluster)?;
    let mut client = cluster.second()?;
    let detail = citus::failed(&mut client)?;
    ensure!(detail.lines().count() == 2 && detail.contains("for database \"postgres\""), "{detail}");
    ensure!(workers(&cluster)? == before, "worker ids have moved");
    let stranger = citus::node().start()?;
    stranger.connect("postgres")?.run("create database second")?;
    stranger.create_citus("second")?;
    citus::add(&mut client, &stranger)?;
    stranger.connect("second")?.fails(snowflakes::NEXT, sql::NOT_IN_STATE)?;
    wait::until_true("the registry's refusal", || {
        Ok(cluster.coordinator.logged("worker ids of this server are leased from another database") > 0)
    })
}

/// The registry is not a node of the cluster. Citus creates its foreign server on all nodes, but no user mappings.
fn a_registry_outside_the_cluster_serves_all_nodes(cluster: &mut Citus) -> Result<()> {
    let registry = citus::node().start()?;
    registry.serve_nodes()?.run("select snowflake_ids.segment_create('t')")?;
    let mut client = cluster.coordinator.introduce("central", &[registry.port()])?;
    let missing = client.error("call snowflake_ids.use_citus('nowhere')")?;
    ensure!(missing.code() == &SqlState::UNDEFINED_OBJECT && missing.hint().is_some(), "{missing:?}");
    for _ in 0..2 {
        client.run("call snowflake_ids.use_citus('central')")?;
        well(&mut client, 4)?;
    }
    for server in cluster.servers() {
        let used = "select server from snowflake_ids.registry_server";
        ensure!(server.connect("postgres")?.column::<String>(used)? == ["central"]);
    }
    unique(cluster, "t")?;
    // The coordinator uses a registry itself, so it cannot be the registry of a new worker. That worker needs another call.
    cluster.add()?;
    ensure!(cluster.workers[3].connect("postgres")?.error(snowflakes::NEXT)?.hint().is_some());
    client.run("call snowflake_ids.use_citus('central')")?;
    unique(cluster, "t")?;
    well(&mut client, 5)
}

/// Tags belong to the registry. A worker's error names the coordinator's address, also after a move.
fn tags_are_not_created_on_workers(cluster: &mut Citus) -> Result<()> {
    for moved in [false, true] {
        if moved {
            cluster.coordinator.stop(Shutdown::Fast)?;
            cluster.coordinator.move_port()?;
            cluster.coordinator.start_again()?;
            cluster.set_coordinator("postgres")?;
        }
        let place = format!("host 127.0.0.1, port {}", cluster.coordinator.port());
        let mut client = cluster.workers[0].connect("postgres")?;
        for statement in [
            "select snowflake_ids.segment_create('t')",
            "insert into snowflake_ids.segment (tag) values ('t')",
        ] {
            let error = client.error(statement)?;
            ensure!(error.hint().is_some_and(|hint| hint.contains(&place)), "{statement}: {error:?}");
        }
        let error = client.error("select segment_nextval('t')")?;
        ensure!(said(&error).contains("\"citus_coordinator\""), "{error:?}");
        ensure!(cluster.session()?.one::<i64>("select count(*) from snowflake_ids.segment")? == 0);
    }
    Ok(())
}

fn stop(server: &mut Server) -> Result<()> {
    server.stop(Shutdown::Immediate)
}

/// The other nodes stay joined. `use_citus` is called again when the failed node is back.
fn a_node_that_cannot_be_reached_fails_the_call_and_keeps_no_other_from_joining(
    cluster: &mut Citus,
) -> Result<()> {
    stop(&mut cluster.workers[1])?;
    let mut client = cluster.session()?;
    let detail = citus::failed(&mut client)?;
    let port = cluster.workers[1].port();
    ensure!(detail.starts_with(&format!("node 3 (127.0.0.1:{port}): ")), "{detail}");
    ensure!(detail.lines().count() == 1 && detail.contains("failed to connect"), "{detail}");
    for worker in [&cluster.workers[0], &cluster.workers[2]] {
        wait_for_id(&mut worker.connect("postgres")?)?;
    }
    cluster.workers[1].start_again()?;
    client.run(USE_CITUS)?;
    well(&mut client, 4)?;
    // A node that Citus does not use is left out, and shown.
    let disable = format!("select citus_disable_node('127.0.0.1', {port})");
    client.run(&disable)?;
    client.run(USE_CITUS)?;
    ensure!(citus::problems(&mut client)?[&3].as_ref().is_some_and(|problem| problem.contains("not active")));
    Ok(())
}

/// The statements of a worker only scan small tables, so they are cheap. With `enable_seqscan = off`, the statements' estimated cost
/// would exceed the limit for JIT compilation at each request.
#[test]
fn no_statement_of_a_worker_is_compiled() -> Result<()> {
    let mut cluster = Citus::joined(0)?;
    let worker = citus::node()
        .set("shared_preload_libraries", "auto_explain, snowflake_ids")
        .set("auto_explain.log_min_duration", "0")
        .set("auto_explain.log_nested_statements", "on")
        .set("auto_explain.log_settings", "on")
        .set("jit", "on")
        .start()?;
    worker.create_citus("postgres")?;
    cluster.add_server(worker)?;
    cluster.session()?.run("select snowflake_ids.segment_create('quick')")?;
    segments::take(&mut cluster.workers[0].connect("postgres")?, "quick", 300)?;
    let log = cluster.workers[0].log();
    // The plans of the query by which background workers look up the coordinator.
    let plans = log.split("duration: ").filter(|plan| plan.contains("citus.node_conninfo"));
    let plans: Vec<&str> = plans.filter(|plan| plan.contains("pg_dist_node")).collect();
    ensure!(!plans.is_empty(), "the coordinator was not looked for: {log}");
    // The plans list settings that differ from their defaults; jit is off by default since 19.
    let default: bool =
        cluster.session()?.one("select boot_val = 'on' from pg_settings where name = 'jit'")?;
    for plan in plans {
        let is_off = plan.contains("jit = 'off'") == default && !plan.contains("jit = 'on'");
        ensure!(is_off && !plan.contains("enable_seqscan"), "{plan}");
    }
    Ok(())
}

/// A recreated registry knows none of the nodes' leases. The registry learns of all leases before it grants one. Otherwise nodes
/// would exchange worker ids while they issue ids.
#[test]
fn a_registry_that_was_made_anew_leaves_nodes_their_worker_ids() -> Result<()> {
    let cluster = Citus::of(2, SetUp::Extension)?;
    let mut client = cluster.session()?;
    // Worker ids 0 to 9 are marked as leased, so the nodes lease other worker ids. A new registry that knew no leases would grant
    // lower worker ids first.
    client.run(
        "insert into snowflake_ids.worker_lease (datacenter_id, worker_id, token, expires_at)
         select 0, i, -i, now() + interval '1 day' from generate_series(0, 9) i",
    )?;
    client.run(USE_CITUS)?;
    let workers =
        "select node_id, worker_id from snowflake_ids.citus_status() where group_id <> 0 order by 1";
    let ids_of = |client: &mut Client| -> Result<Vec<(i32, Option<i32>)>> {
        Ok(client.query(workers, &[])?.iter().map(|row| (row.get(0), row.get(1))).collect())
    };
    let before = ids_of(&mut client)?;
    client.run("drop extension snowflake_ids cascade")?;
    client.run("create extension snowflake_ids")?;
    client.run(USE_CITUS)?;
    well(&mut client, 3)?;
    let after = ids_of(&mut client)?;
    ensure!(before == after, "{before:?} became {after:?}");
    Ok(())
}

#[test]
fn nodes_come_and_go() -> Result<()> {
    Citus::cases(
        2,
        SetUp::Joined,
        cases![
            a_worker_that_is_added_joins_by_itself,
            a_worker_that_is_killed_comes_back_as_the_one_that_it_was,
            the_coordinator_may_be_away_and_move,
            tags_are_not_created_on_workers
        ],
    )
}

#[test]
fn one_call_joins_all_nodes() -> Result<()> {
    Citus::cases(
        3,
        SetUp::Extension,
        cases![
            one_call_makes_all_nodes_share_a_registry_and_a_second_one_changes_nothing,
            a_registry_outside_the_cluster_serves_all_nodes,
            a_node_that_cannot_be_reached_fails_the_call_and_keeps_no_other_from_joining
        ],
    )
}
