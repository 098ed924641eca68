//! Dense series in a Citus cluster, whose coordinator is the registry of its workers. Citus is a stand-in here.

use anyhow::{Result, ensure};
use postgres::Client;
use postgres::error::SqlState;
use snowflake_ids_server_tests::citus::{Citus, USE_CITUS};
use snowflake_ids_server_tests::cluster::said;
use snowflake_ids_server_tests::series::{next, take};
use snowflake_ids_server_tests::{ids, sql};

const EXACT: &str = "select snowflake_ids.series_create('d', 'dense', step => 1, max_step => 1)";

/// A session on each node, the coordinator first, all of which have a series.
fn sessions(cluster: &Citus, create: &str) -> Result<Vec<Client>> {
    let mut clients = Vec::new();
    for server in cluster.servers() {
        let mut client = server.connect("postgres")?;
        client.batch_execute(&format!("set client_min_messages = warning; {create}"))?;
        clients.push(client);
    }
    Ok(clients)
}

#[test]
fn coordinator_and_workers_count_a_key_together() -> Result<()> {
    let cluster = Citus::joined(2)?;
    let mut clients = sessions(&cluster, EXACT)?;
    let mut taken = Vec::new();
    for round in 0..4 {
        for client in &mut clients[1..] {
            taken.extend(take(client, "d", 7, 1 + round)?);
        }
    }
    assert_eq!(taken, (1..=20).collect::<Vec<_>>());
    for round in 0..4 {
        for client in &mut clients {
            taken.extend(take(client, "d", 7, 1 + round)?);
        }
    }
    // The coordinator's own sessions have at most one number ahead.
    let highest = taken.iter().max().copied().unwrap_or(0);
    ensure!(highest <= i64::try_from(taken.len())? + 1, "{taken:?}");
    ids::unique(taken)
}

/// A worker that is not told of its registry counts for nobody: others would give the same numbers.
#[test]
fn a_worker_without_a_registry_gives_none() -> Result<()> {
    let cluster = Citus::start(1)?;
    let mut clients = sessions(&cluster, EXACT)?;
    // It joined as the extension came.
    clients[1].batch_execute("select snowflake_ids.use_local_registry()")?;
    let error = sql::error(&mut clients[1], "select series_nextval('d', 7::bigint)")?;
    ensure!(error.code() == &SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE, "{error:?}");
    ensure!(said(&error).contains("worker of a Citus cluster"), "{error:?}");
    let mut taken = vec![next(&mut clients[0], "d", 7)?];
    clients[0].batch_execute(USE_CITUS)?;
    taken.push(next(&mut clients[1], "d", 7)?);
    taken.push(next(&mut clients[0], "d", 7)?);
    ids::dense(taken)
}

/// After a failover of the coordinator workers ask the server that Citus names then.
#[test]
fn workers_follow_a_coordinator_that_moves() -> Result<()> {
    let mut cluster = Citus::joined(2)?;
    let mut clients = sessions(&cluster, EXACT)?;
    let mut taken = Vec::new();
    for client in &mut clients[1..] {
        taken.extend(take(client, "d", 7, 3)?);
    }
    let standby = cluster.coordinator.standby()?;
    standby.catch_up(&cluster.coordinator)?;
    cluster.coordinator.kill9()?;
    standby.promote()?;
    cluster.coordinator = standby;
    let port = cluster.coordinator.port();
    for client in &mut clients[1..] {
        client.batch_execute(&format!(
            "update pg_catalog.pg_dist_node set nodeport = {port} where groupid = 0"
        ))?;
        taken.extend(take(client, "d", 7, 3)?);
    }
    assert_eq!(taken, (1..=12).collect::<Vec<_>>());
    Ok(())
}
