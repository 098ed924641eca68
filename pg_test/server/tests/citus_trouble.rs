//! Nodes of a Citus cluster that are not as they should be: `use_citus` fails and says which, `citus_status` shows it. Citus is
//! a stand-in here.

use anyhow::{Context, Result, ensure};
use postgres::error::SqlState;
use snowflake_ids_server_tests::citus::{self, Citus, USE_CITUS, well};
use snowflake_ids_server_tests::registry::{auto, wait_for_id};
use snowflake_ids_server_tests::{Server, ids, sql};

/// What is wrong with the first worker, as the coordinator's `citus_status` and then `use_citus` say it.
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

/// Sets a setting of a server that counts from its next start.
fn restart_with(server: &mut Server, name: &str, value: &str) -> Result<()> {
    server.set(name, value)?;
    server.restart()
}

#[test]
fn where_there_is_no_citus_the_call_is_refused() -> Result<()> {
    let server = auto().start()?;
    let mut client = server.session()?;
    for call in [USE_CITUS, "select * from snowflake_ids.citus_status()"] {
        let error = sql::error(&mut client, call)?;
        let code = &SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE;
        sql::explains(&error, code, "this database does not have Citus")?;
    }
    let error = sql::error(&mut client, "select snowflake_ids.use_registry('citus_coordinator')")?;
    ensure!(error.code() == &SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE, "{error:?}");
    Ok(())
}

#[test]
fn it_is_called_by_a_superuser_on_the_coordinator() -> Result<()> {
    let cluster = Citus::start(1)?;
    let port = cluster.coordinator.port().to_string();
    let error = sql::error(&mut cluster.workers[0].connect("postgres")?, USE_CITUS)?;
    sql::explains(
        &error,
        &SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE,
        "this database is a worker of a Citus cluster",
    )?;
    ensure!(error.hint().is_some_and(|hint| hint.contains(&port)), "{error:?}");
    let mut client = cluster.session()?;
    client.batch_execute("create role plain login; set role plain")?;
    for call in [USE_CITUS, "select * from snowflake_ids.citus_status()"] {
        let error = sql::error(&mut client, call)?;
        ensure!(error.code() == &SqlState::INSUFFICIENT_PRIVILEGE, "{error:?}");
    }
    client.batch_execute(
        "reset role; grant execute on procedure snowflake_ids.use_citus to plain;
         grant execute on function snowflake_ids.citus_status to plain; set role plain",
    )?;
    let error = sql::error(&mut client, USE_CITUS)?;
    let message = "permission denied to set the registry of a cluster";
    sql::explains(&error, &SqlState::INSUFFICIENT_PRIVILEGE, message)?;
    ensure!(citus::problems(&mut client)?.len() == 2);
    Ok(())
}

#[test]
fn a_coordinator_that_workers_cannot_find_is_told_of() -> Result<()> {
    let coordinator = citus::node().start()?;
    let mut client = coordinator.create_citus("postgres")?;
    let worker = citus::node().start()?;
    worker.create_citus("postgres")?;
    citus::add(&mut client, &worker)?;
    client.batch_execute("create extension snowflake_ids")?;
    let error = sql::error(&mut client, USE_CITUS)?;
    ensure!(error.code() == &SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE, "{error:?}");
    ensure!(error.hint().is_some_and(|hint| hint.contains("citus_set_coordinator_host")), "{error:?}");
    client.batch_execute(&format!(
        "select citus_set_coordinator_host('127.0.0.1', {}); {USE_CITUS}",
        coordinator.port()
    ))?;
    well(&mut client, 2)
}

/// The extension may have been created before Citus was: then no worker has it. The call creates it there.
#[test]
fn a_node_without_the_extension_is_given_it() -> Result<()> {
    let coordinator = citus::node().start()?;
    coordinator.session()?;
    let mut client = coordinator.create_citus("postgres")?;
    let worker = citus::node().start()?;
    worker.create_citus("postgres")?;
    client
        .batch_execute(&format!("select citus_set_coordinator_host('127.0.0.1', {})", coordinator.port()))?;
    citus::add(&mut client, &worker)?;
    worker.connect("postgres")?.batch_execute(
        "set citus.enable_ddl_propagation = off; drop extension if exists snowflake_ids cascade",
    )?;
    let problems = citus::problems(&mut client)?;
    ensure!(problems[&2].as_ref().is_some_and(|problem| problem.contains("not created")), "{problems:?}");
    client.batch_execute(USE_CITUS)?;
    well(&mut client, 2)
}

#[test]
fn a_node_without_the_library_fails_the_call() -> Result<()> {
    let mut cluster = Citus::joined(2)?;
    restart_with(&mut cluster.workers[0], "shared_preload_libraries", "")?;
    first_is_told(&cluster, "snowflake_ids")?;
    restart_with(&mut cluster.workers[0], "shared_preload_libraries", "snowflake_ids")?;
    let mut client = cluster.session()?;
    client.batch_execute(USE_CITUS)?;
    well(&mut client, 3)
}

#[test]
fn a_node_of_another_layout_fails_the_call() -> Result<()> {
    let mut cluster = Citus::start(2)?;
    restart_with(&mut cluster.workers[0], "snowflake_ids.layout", "41/0/10/12")?;
    let detail = citus::failed(&mut cluster.session()?)?;
    ensure!(detail.starts_with("node 2 ") && detail.lines().count() == 1, "{detail}");
    ensure!(detail.contains("layout"), "{detail}");
    Ok(())
}

#[test]
fn a_node_whose_layout_changes_is_told_of() -> Result<()> {
    let mut cluster = Citus::joined(2)?;
    let layout: String = sql::one(&mut cluster.session()?, "show snowflake_ids.layout")?;
    restart_with(&mut cluster.workers[0], "snowflake_ids.layout", "41/0/10/12")?;
    first_is_told(&cluster, "layout")?;
    restart_with(&mut cluster.workers[0], "snowflake_ids.layout", &layout)?;
    let mut client = cluster.session()?;
    client.batch_execute(USE_CITUS)?;
    well(&mut client, 3)
}

/// The workers' sessions would wait for the transaction, which waits for them: no deadlock that a server sees.
#[test]
fn the_transaction_that_creates_the_extension_is_another_one() -> Result<()> {
    let cluster = Citus::bare(1)?;
    let mut client = cluster.session()?;
    let error = sql::error(&mut client, &format!("create extension snowflake_ids; {USE_CITUS}"))?;
    let message = "cannot set the registry of a cluster in the transaction that creates the extension";
    sql::explains(&error, &SqlState::ACTIVE_SQL_TRANSACTION, message)?;
    client.batch_execute("create extension snowflake_ids")?;
    client.batch_execute(USE_CITUS)?;
    well(&mut client, 2)
}

#[test]
fn a_node_of_another_version_fails_the_call() -> Result<()> {
    let cluster = Citus::joined(2)?;
    let version = |set: &str| {
        cluster.workers[0].connect("postgres")?.batch_execute(&format!(
            "update pg_extension set extversion = {set} where extname = 'snowflake_ids'"
        ))?;
        anyhow::Ok(())
    };
    version("'old ' || extversion")?;
    first_is_told(&cluster, "version old")?;
    version("substr(extversion, 5)")?;
    let mut client = cluster.session()?;
    client.batch_execute(USE_CITUS)?;
    well(&mut client, 3)
}

/// The last of them gives no ids, rather than those of another.
#[test]
fn more_nodes_than_worker_ids() -> Result<()> {
    let node = || citus::node().set("snowflake_ids.layout", "41/0/1/21");
    let coordinator = node().start()?;
    coordinator.create_citus("postgres")?;
    let mut cluster = Citus { coordinator, workers: Vec::new() };
    cluster.set_coordinator("postgres")?;
    cluster.session()?.batch_execute("create extension snowflake_ids")?;
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
        match sql::column::<i64>(&mut server.connect("postgres")?, "select snowflake_nextvals(10000)") {
            Ok(ids) => taken.extend(ids),
            Err(_) => without += 1,
        }
    }
    ensure!(without == 1, "{without} nodes give no ids");
    ids::unique(taken)
}

/// A worker that another coordinator adds has its ids from there at most when it is told so; then the first one says it.
#[test]
fn two_coordinators_of_one_worker() -> Result<()> {
    let (one, other) = (Citus::joined(2)?, Citus::joined(0)?);
    let mut taken = Vec::new();
    for server in one.servers() {
        let mut client = server.connect("postgres")?;
        wait_for_id(&mut client)?;
        taken.extend(sql::column::<i64>(&mut client, "select snowflake_nextvals(10000)")?);
    }
    let mut client = other.session()?;
    citus::add(&mut client, &one.workers[0])?;
    // Nobody has called anything for it: it gives no ids, or those of the registry that it has.
    for server in one.servers() {
        let more = sql::column::<i64>(&mut server.connect("postgres")?, "select snowflake_nextvals(10000)");
        taken.extend(more.unwrap_or_default());
    }
    ids::unique(taken)?;
    ensure!(citus::problems(&mut client)?[&2].is_some(), "its registry is that of the first");
    if let Err(error) = client.batch_execute(USE_CITUS) {
        // It is not moved: the first one has to let it go.
        ensure!(error.code() == Some(&SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE), "{error}");
        return Ok(());
    }
    well(&mut client, 2)?;
    // It may have another's worker id now, who is told of, too.
    let detail = citus::failed(&mut one.session()?)?;
    let stranger = "its registry, \"citus_coordinator\", is not the cluster's";
    ensure!(detail.starts_with("node 2 ") && detail.contains(stranger), "{detail}");
    ensure!(citus::problems(&mut one.session()?)?[&2].as_deref() == Some(stranger));
    Ok(())
}
