//! A registry's clock and its nodes' clocks.

use snowflake_ids_server_tests::cluster::{
    JOIN, NAME, node, refused_with, said, wait_as_long_as_it_takes, wait_at_most,
};
use snowflake_ids_server_tests::prelude::*;
use snowflake_ids_server_tests::segments::{next, settled, take};
use snowflake_ids_server_tests::snowflakes::{self, NEAR, now, refused, seconds, status, time};

const NO_ID: &str = "this server has no worker id yet";

#[test]
fn a_server_whose_clock_is_off_may_not_join() -> Result<()> {
    let registry = auto().start()?;
    registry.serve_nodes()?;
    let node = node().false_clock().start()?;
    let mut client = node.introduce(NAME, &[registry.port()])?;
    for clock in ["+1h", "-1h", "-20"] {
        node.set_clock(clock)?;
        let error = client.fails(JOIN, sql::NOT_IN_STATE)?;
        let said = said(&error);
        assert!(said.contains(NAME) && said.contains("snowflake_ids.max_clock_skew"), "{clock}: {said}");
    }
    node.set_clock("-2")?;
    client.run(JOIN)?;
    wait_for_id(&mut client).map(drop)
}

/// A node with a fixed worker id needs no lease. The registry checks a node's clock only when the node asks for a lease.
#[test]
fn a_node_whose_clock_is_off_gets_no_lease() -> Result<()> {
    let builder = node().false_clock().set("snowflake_ids.worker_id", "7");
    let mut cluster = Cluster::of(auto(), &builder, 1)?;
    cluster.create("t", "")?;
    let node = &mut cluster.nodes[0];
    node.set("snowflake_ids.worker_id", "auto")?;
    for clock in ["-10min", "+10min"] {
        node.set_clock(clock)?;
        node.restart()?;
        let mut client = node.connect("postgres")?;
        let error = refused(&mut client)?;
        sql::explains(&error, sql::NOT_IN_STATE, NO_ID)?;
        let said = said(&error);
        assert!(said.contains("clock") && said.contains("snowflake_ids.max_clock_skew"), "{said}");
        assert!(said.contains(NAME), "{said}");
        next(&mut client, "t")?;
    }
    node.set_clock("+0")?;
    let mut client = node.connect("postgres")?;
    wait_for_id(&mut client)?;
    assert_eq!(status::<String>(&mut client, "leased_from")?, NAME);
    Ok(())
}

/// The difference between the next id's time and true time, in seconds.
fn off(client: &mut Client, taken: &mut Vec<i64>) -> Result<f64> {
    let id = snowflakes::next(client)?;
    taken.push(id);
    Ok(time(client, id)? - now()?)
}

/// A clock that is suddenly hours ahead is believed only if the registry's clock agrees.
#[test]
fn a_jump_ahead_is_followed_when_the_registry_agrees() -> Result<()> {
    let cluster = Cluster::of(auto().false_clock(), &node().false_clock(), 1)?;
    cluster.create("t", "step => 10, max_step => 10")?;
    let mut client = cluster.session()?;
    let mut taken = vec![wait_for_id(&mut client)?];
    take(&mut client, "t", 50)?;
    cluster.nodes[0].set_clock("+3h")?;
    for _ in 0..5 {
        take(&mut client, "t", 50)?;
        let off = off(&mut client, &mut taken)?;
        assert!(NEAR.contains(&off), "an id of {off} s from now");
    }
    wait::until_true("the jump to be noticed", || Ok(seconds(&mut client, "clock_ahead")? > 10_000.0))?;
    cluster.registry.set_clock("+3h")?;
    wait::until_true("the jump to be followed", || {
        take(&mut client, "t", 50)?;
        let off = off(&mut client, &mut taken)? - 3.0 * 3600.0;
        Ok(NEAR.contains(&off))
    })?;
    assert!(seconds(&mut client, "clock_ahead")?.abs() < 1.0);
    ids::growing(&taken)
}

/// The jump exceeds a day, so by the accepted clock the lease has expired. The node first asks the registry, which must answer
/// and confirm the clock.
#[test]
fn a_node_accepts_a_clock_that_the_registry_confirms() -> Result<()> {
    let mut cluster = Cluster::of(auto().false_clock(), &node().false_clock(), 1)?;
    let mut client = cluster.session()?;
    let mut taken = vec![wait_for_id(&mut client)?];
    let worker = status::<i32>(&mut client, "worker_id")?;
    cluster.nodes[0].set_clock("+50h")?;
    let accept = "select snowflake_ids.clock_accept()";
    let differ = "the clocks of this server and its registry differ by 2.083 days";
    client.explained(accept, sql::NOT_IN_STATE, differ)?;
    cluster.registry.stop(Shutdown::Immediate)?;
    let silent = "cannot follow the clock because registry \"central\", which leases this server's worker id, does not answer";
    let error = client.explained(accept, sql::NOT_IN_STATE, silent)?;
    assert!(said(&error).contains(NAME), "{error:?}");
    // The refused calls changed nothing.
    let off_now = off(&mut client, &mut taken)?;
    assert!(NEAR.contains(&off_now), "an id of {off_now} s from now");
    cluster.registry.set_clock("+50h")?;
    cluster.registry.start_again()?;
    wait::until_true("the clock to be accepted", || Ok(client.batch_execute(accept).is_ok()))?;
    let off_then = off(&mut client, &mut taken)? - 50.0 * 3600.0;
    assert!(NEAR.contains(&off_then), "an id of {off_then} s from the accepted time");
    assert_eq!(status::<i32>(&mut client, "worker_id")?, worker);
    ids::growing(&taken)
}

/// When the lease arrives, it has already expired by the node's clock. The error blames the clocks, not the response.
#[test]
fn a_lease_by_another_clock_names_the_clocks() -> Result<()> {
    let cluster = Cluster::of(auto().false_clock(), &node().false_clock(), 1)?;
    let mut client = cluster.session()?;
    wait_for_id(&mut client)?;
    cluster.registry.set_clock("-10d")?;
    cluster.nodes[0].set_clock("+3h")?;
    let error = client.error("select snowflake_ids.clock_accept()")?;
    let said = said(&error);
    assert!(said.contains("the clocks of this server and its registry differ by 10"), "{said}");
    snowflakes::next(&mut client).map(drop)
}

/// The registry's clock alone changes no ids.
#[test]
fn a_registry_whose_clock_is_off_leaves_ids_alone() -> Result<()> {
    let cluster = Cluster::of(auto().false_clock(), &node(), 1)?;
    cluster.create("t", "step => 10, max_step => 10")?;
    let mut client = cluster.session()?;
    let mut taken = vec![wait_for_id(&mut client)?];
    let mut of_tag = Vec::new();
    for clock in ["+3h", "-3h", "+10y"] {
        cluster.registry.set_clock(clock)?;
        of_tag.extend(take(&mut client, "t", 50)?);
        let off = off(&mut client, &mut taken)?;
        assert!(NEAR.contains(&off), "an id of {off} s from now");
    }
    ids::growing(&of_tag)?;
    ids::growing(&taken)
}

/// Seconds until midnight, in UTC.
fn until_midnight() -> Result<f64> {
    Ok(86_400.0 - now()?.rem_euclid(86_400.0))
}

/// A tag whose numbers restart each day by the registry's clock, on a node whose clock is up to 2 s off.
fn over_midnight(ahead: f64) -> Result<()> {
    let any = |builder: Builder| builder.false_clock().set("snowflake_ids.max_clock_jump", "2d");
    let cluster = Cluster::of(any(auto()), &any(node()), 1)?;
    cluster.create("t", "reset => 'day', step => 10, max_step => 10")?;
    // One of the servers is some seconds before midnight, the other slightly later.
    let registry = until_midnight()? - 15.0 - ahead.max(0.0);
    cluster.registry.set_clock(&format!("+{registry:.3}"))?;
    cluster.nodes[0].set_clock(&format!("+{:.3}", registry + ahead))?;
    let mut client = cluster.session()?;
    let mut labels: Vec<String> = Vec::new();
    wait::until_true("fifty numbers of another day", || {
        labels.push(client.one("select segment_nextval_text('t')")?);
        Ok(labels.iter().filter(|label| label[..8] != labels[0][..8]).count() >= 50)
    })?;
    let days = labels.iter().map(|label| &label[..8]).collect::<BTreeSet<_>>();
    assert_eq!(days.len(), 2, "{days:?}");
    assert!(labels.is_sorted_by(|one, next| one < next), "{labels:?}");
    Ok(())
}

#[test]
fn a_node_ahead_of_the_registry_is_served_at_midnight() -> Result<()> {
    over_midnight(2.0)
}

#[test]
fn a_node_behind_the_registry_is_served_at_midnight() -> Result<()> {
    over_midnight(-2.0)
}

/// By the node's clock, each range arrives after the end of its day.
#[test]
fn a_day_lasts_until_the_registrys_clock_ends_it() -> Result<()> {
    const AN_HOUR: f64 = 3600.0;
    let any = |builder: Builder| builder.false_clock().set("snowflake_ids.max_clock_jump", "2d");
    let cluster = Cluster::of(any(auto()), &any(node().set("snowflake_ids.worker_id", "7")), 1)?;
    cluster.create("t", "reset => 'day', step => 10, max_step => 10")?;
    let midnight = until_midnight()?;
    cluster.registry.set_clock(&format!("+{:.3}", midnight - AN_HOUR))?;
    cluster.nodes[0].set_clock(&format!("+{:.3}", midnight + AN_HOUR))?;
    let labels: Vec<String> =
        cluster.session()?.column("select segment_nextval_text('t') from generate_series(1, 50)")?;
    let today: String =
        cluster.registry.connect("postgres")?.one("select to_char(now() at time zone 'utc', 'YYYYMMDD')")?;
    assert!(labels.iter().all(|label| label.starts_with(&today)), "{today}: {labels:?}");
    Ok(())
}

/// Rows at the registry keep their day, so that ids continue once the registry's clock is right.
#[test]
fn a_registry_whose_clock_is_days_ahead_begins_no_day() -> Result<()> {
    let cluster = Cluster::of(auto().false_clock(), &node(), 1)?;
    cluster.create("t", "reset => 'day', step => 10, max_step => 10")?;
    let (mut client, mut there) = (cluster.session()?, cluster.registry.connect("postgres")?);
    let mut taken = take(&mut client, "t", 1)?;
    settled(&mut client, "t")?;
    let row = "select (period, max_id, version)::text from snowflake_ids.segment where tag = 't'";
    let before: String = there.one(row)?;
    cluster.registry.set_clock("+9d")?;
    wait_at_most(&mut client, Duration::from_millis(1500))?;
    let (more, refused) = refused_with(&mut client, "t", &["the clock of this server shows"])?;
    assert!(refused.hint().is_some_and(|hint| hint.contains("segment_set('t', id, true)")), "{refused:?}");
    let mut there = cluster.registry.connect("postgres")?;
    assert_eq!(there.one::<String>(row)?, before);
    taken.extend(more);
    cluster.registry.set_clock("+0")?;
    wait_as_long_as_it_takes(&mut client)?;
    taken.extend(take(&mut client, "t", 50)?);
    ids::dense(taken)
}
