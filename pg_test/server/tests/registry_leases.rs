//! Worker ids leased from a registry: released, used up, and requested in vain.

use snowflake_ids_server_tests::cluster::{self, NAME, registry_status, said};
use snowflake_ids_server_tests::load::Load;
use snowflake_ids_server_tests::prelude::*;
use snowflake_ids_server_tests::segments::TIMEOUT;
use snowflake_ids_server_tests::snowflakes::{NEXT, refused, status, take};
use std::thread::sleep;

const NO_ID: &str = "this server has no worker id yet";

fn worker_of(server: &Server) -> Result<i32> {
    let mut client = server.connect("postgres")?;
    wait_for_id(&mut client)?;
    status(&mut client, "worker_id")
}

/// An operator releases a node's worker id at the registry, under load. The node continues under another one.
#[test]
fn a_worker_id_that_was_given_up_is_exchanged_for_another() -> Result<()> {
    let cluster = Cluster::of(auto().set("snowflake_ids.worker_id", "31"), &cluster::node(), 2)?;
    let workers = [worker_of(&cluster.nodes[0])?, worker_of(&cluster.nodes[1])?];
    let loads = cluster.nodes.iter().map(|node| node.load(2)).collect::<Result<Vec<_>>>()?;
    let mut operator = cluster.registry.connect("postgres")?;
    operator.run(&format!("select snowflake_ids.worker_release({})", workers[0]))?;
    // A changed duration triggers a renewal.
    cluster.nodes[0].reload("snowflake_ids.lease_duration", "2h")?;
    let mut client = cluster.session()?;
    let another = wait::until(TIMEOUT, "another worker id", || {
        Ok(status::<Option<i32>>(&mut client, "worker_id")?.filter(|worker| *worker != workers[0]))
    })?;
    assert_eq!(status::<String>(&mut client, "scope")?, "shared registry");
    assert!(!workers.contains(&another), "{another} is one of {workers:?}");
    Load::all_go_on(&loads)?;
    let taken = Load::end_all(loads);
    assert!(taken.refusals.is_empty(), "{:?}", taken.refusals);
    taken.unique()
}

/// Four nodes share four worker ids, but the registry itself uses one of them.
#[test]
fn without_a_free_worker_id_a_node_is_told_who_has_them_until_one_is_free() -> Result<()> {
    let layout = |builder: Builder| builder.set("snowflake_ids.layout", "41/0/2/12");
    let cluster =
        Cluster::of(layout(auto()).set("snowflake_ids.worker_id", "0"), &layout(cluster::node()), 3)?;
    let mut taken = Vec::new();
    for node in &cluster.nodes {
        taken.push(wait_for_id(&mut node.connect("postgres")?)?);
    }
    let late = layout(cluster::node()).start()?;
    let mut last = late.join(&cluster.registry)?;
    let error = refused(&mut last)?;
    assert_eq!(error.code(), sql::NOT_IN_STATE, "{error:?}");
    for node in &cluster.nodes {
        assert!(said(&error).contains(&node.port().to_string()), "{error:?}");
    }
    assert!(said(&error).contains("The registry's own server uses worker ids 0,"), "{error:?}");
    assert!(error.hint().is_some_and(|hint| hint.contains("worker_release")), "{error:?}");

    let mut first = cluster.session()?;
    let own: i32 = status(&mut first, "worker_id")?;
    drop(first);
    let mut nodes = cluster.nodes.into_iter();
    drop(nodes.next());
    let release = format!("select snowflake_ids.worker_release({own}, holder_is_down => true)");
    let mut operator = cluster.registry.connect("postgres")?;
    operator.run(&release)?;
    // The former holder's ids may be up to max_drift ahead of the holder's clock, and that clock may be up to max_clock_skew ahead.
    operator.run("update snowflake_ids.worker_lease set expires_at = now() where released_at is not null")?;
    taken.push(wait_for_id(&mut last)?);
    taken.extend(take(&mut last, 1000)?);
    ids::unique(taken)
}

/// Four pairs of datacenter and worker id serve four servers. A node that joins keeps its pair if the pair is free.
#[test]
fn nodes_without_a_datacenter_id_lease_in_all_datacenters() -> Result<()> {
    let layout = |builder: Builder| {
        builder.set("snowflake_ids.layout", "41/1/1/12").set("snowflake_ids.datacenter_id", "-1")
    };
    let cluster =
        Cluster::of(layout(auto()).set("snowflake_ids.worker_id", "0"), &layout(cluster::node()), 3)?;
    let mut pairs = BTreeSet::from([(0, 0)]);
    for node in &cluster.nodes {
        let mut client = node.connect("postgres")?;
        wait_for_id(&mut client)?;
        assert_eq!(status::<String>(&mut client, "scope")?, "shared registry");
        pairs
            .insert((status::<i32>(&mut client, "datacenter_id")?, status::<i32>(&mut client, "worker_id")?));
    }
    assert_eq!(pairs, BTreeSet::from([(0, 0), (0, 1), (1, 0), (1, 1)]));
    let late = layout(cluster::node()).start()?;
    let error = refused(&mut late.join(&cluster.registry)?)?;
    assert!(said(&error).contains("has 2 worker ids"), "{error:?}");
    Ok(())
}

#[test]
fn a_node_without_a_lease_is_refused_while_the_registry_hangs() -> Result<()> {
    // A call waits five seconds for a lease. The node stops waiting for the registry earlier.
    let node = cluster::node().set("snowflake_ids.registry_timeout", "3s");
    let mut cluster = Cluster::of(auto(), &node.set("snowflake_ids.worker_id_policy", "disposable"), 1)?;
    let paused = cluster.registry.pause()?;
    // Under the policy `disposable`, the node does not use its former worker id again.
    cluster.nodes[0].restart()?;
    let mut client = cluster.session()?;
    let error = client.error_within("300ms", NEXT)?;
    assert_eq!(error.code(), &SqlState::QUERY_CANCELED, "{error:?}");
    wait::until_true("the refusal to name the registry", || {
        let error = refused(&mut client)?;
        sql::explains(&error, sql::NOT_IN_STATE, NO_ID)?;
        Ok(error.detail().is_some_and(|detail| detail.contains(NAME)))
    })?;
    drop(paused);
    wait_for_id(&mut client).map(drop)
}

/// A registry may grant a shorter lease than requested, however often it is asked.
#[test]
fn a_registry_that_grants_less_than_is_asked_for_is_not_asked_all_the_time() -> Result<()> {
    /// The duration of the registry's leases. A renewal is due after a quarter of it.
    const GRANTED: &str = "10 min";
    let cluster = Cluster::start(1)?;
    let mut client = cluster.session()?;
    wait_for_id(&mut client)?;
    let lie = format!(
        r#"regexp_replace(told, '"Renewed":"[^"]*"', format('"Renewed":"%s"',
               to_char(clock_timestamp() + interval '{GRANTED}', 'YYYY-MM-DD"T"HH24:MI:SS"Z"')))"#
    );
    cluster.registry.lies("registry_serve", &lie)?;
    cluster.registry.set_mood("short")?;
    cluster.nodes[0].reload("snowflake_ids.lease_duration", "500d")?;
    let short = format!("lease_expires_at < now() + interval '{GRANTED}'");
    wait::until_true("a lease that is shorter", || status(&mut client, &short))?;
    let calls = |client: &mut Client| registry_status::<i64>(client, NAME, "calls");
    let before = calls(&mut client)?;
    sleep(Duration::from_secs(2));
    // One further call is allowed, because the renewal after the start may come late.
    let after = calls(&mut client)?;
    assert!(after - before <= 1, "asked {} times in vain", after - before);
    Ok(())
}
