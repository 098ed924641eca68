//! A registry that is stopped, restarted, killed, down for hours, or refuses requests.

use snowflake_ids_server_tests::cluster::{
    self, NAME, ROLE, becomes, exhaust, only_for_want_of_ids, refused_with, registry_status, said,
    wait_as_long_as_it_takes, wait_at_most,
};
use snowflake_ids_server_tests::load::Load;
use snowflake_ids_server_tests::prelude::*;
use snowflake_ids_server_tests::segments::{TIMEOUT, WORKER, next, settled, take};
use snowflake_ids_server_tests::{full, snowflakes};
use std::thread::sleep;

/// A session of a node, with a tag in use that has ten ids per segment. Calls wait half a second at most.
fn small_segments(cluster: &Cluster) -> Result<Client> {
    cluster.create("t", "step => 10, max_step => 10")?;
    let mut client = cluster.session()?;
    next(&mut client, "t")?;
    wait_at_most(&mut client, Duration::from_millis(500))?;
    Ok(client)
}

/// The node's pause before its next attempt, in seconds.
fn backoff(client: &mut Client) -> Result<f64> {
    registry_status(client, NAME, "coalesce(extract(epoch from retry_at - last_failure), 0)::float8")
}

fn a_stopped_registry_is_tried_again_less_and_less_often_until_it_is_back(
    cluster: &mut Cluster,
) -> Result<()> {
    let mut client = small_segments(cluster)?;
    cluster.registry.stop(Shutdown::Fast)?;
    let (mut taken, _) = refused_with(&mut client, "t", &[NAME])?;
    assert!(taken.len() >= 9, "{} ids were left of a segment of 10", taken.len());
    becomes(&mut client, NAME, "failing")?;
    let failing = "error is not null and last_failure > now() - interval '1 min' and retry_at > last_failure
                   and failures_in_a_row > 0 and failures >= failures_in_a_row";
    assert!(registry_status::<bool>(&mut client, NAME, failing)?);
    let mut longest = 0.0;
    for seconds in [0.9, 1.8, 3.6] {
        longest = wait::until(TIMEOUT, "a longer pause", || {
            Ok(Some(backoff(&mut client)?).filter(|pause| *pause > seconds))
        })?;
    }
    assert!(longest <= 15.0, "{longest} s");

    cluster.registry.start_again()?;
    wait_as_long_as_it_takes(&mut client)?;
    taken.push(next(&mut client, "t")?);
    becomes(&mut client, NAME, "up")?;
    assert!(registry_status::<bool>(&mut client, NAME, "failures_in_a_row = 0 and retry_at is null")?);
    taken.extend(take(&mut client, "t", 100)?);
    ids::growing(&taken)
}

/// Calls do not each wait for a registry that is known to be down.
fn calls_give_up_soon_once_the_registry_is_known_to_be_down(cluster: &mut Cluster) -> Result<()> {
    let mut client = small_segments(cluster)?;
    cluster.registry.stop(Shutdown::Fast)?;
    refused_with(&mut client, "t", &[NAME])?;
    client.becomes_true(
        "select coalesce(trouble like 'registry:%', false) from snowflake_ids.segment_status where tag = 't'",
    )?;
    client.run("set snowflake_ids.registry_down_timeout = '100ms'")?;
    wait_at_most(&mut client, TIMEOUT)?;
    for tag in ["t", "another"] {
        let error = client.error(&format!("select segment_nextval('{tag}')"))?;
        ensure!(error.message().ends_with("within 100 ms"), "{error:?}");
    }
    cluster.registry.start_again()?;
    wait::until(TIMEOUT, "an id", || Ok(client.query_one("select segment_nextval('t')", &[]).ok()))?;
    Ok(())
}

/// No session calls while the registry is down. The node asks again by itself.
fn buffers_are_filled_again_without_a_caller(cluster: &mut Cluster) -> Result<()> {
    let mut client = small_segments(cluster)?;
    cluster.registry.stop(Shutdown::Fast)?;
    let (mut taken, _) = exhaust(&mut client, "t")?;
    cluster.registry.start_again()?;
    settled(&mut client, "t")?;
    cluster.registry.stop(Shutdown::Fast)?;
    wait_as_long_as_it_takes(&mut client)?;
    taken.push(next(&mut client, "t")?);
    cluster.registry.start_again()?;
    ids::growing(&taken)
}

/// The refill worker has ended meanwhile, and no session calls.
fn an_idle_node_sees_that_its_registry_is_back(cluster: &mut Cluster) -> Result<()> {
    let mut client = small_segments(cluster)?;
    cluster.registry.stop(Shutdown::Fast)?;
    exhaust(&mut client, "t")?;
    becomes(&mut client, NAME, "failing")?;
    let wrong =
        "select coalesce(string_agg(subject || ': ' || problem, ', '), '') from snowflake_ids.attention";
    wait::until_true("one row for all that comes of it", || {
        let problem: String = client.one(wrong)?;
        Ok(problem.starts_with("registry central:")
            && problem.contains("tag t is without ids")
            && !problem.contains(", tag t"))
    })?;
    let workers = format!("select count(*) = 0 from pg_stat_activity where backend_type = '{WORKER}'");
    wait::until_true("the end of the worker", || client.one(&workers))?;
    cluster.registry.start_again()?;
    wait::until_true("nothing that is wrong", || Ok(client.one::<String>(wrong)?.is_empty()))?;
    let buffered =
        "select sum(used) is not null from snowflake_ids.segment_status where tag = 't' and trouble is null";
    ensure!(client.one::<bool>(buffered)?, "it was not refilled");
    ensure!(registry_status::<String>(&mut client, NAME, "state")? == "up");
    Ok(())
}

/// The error quotes the registry. Ids continue once the cause is mended.
fn a_registry_that_refuses_is_quoted_and_mended_by_what_it_asks_for(cluster: &mut Cluster) -> Result<()> {
    const SAID: &str = "permission denied";
    let mut client = small_segments(cluster)?;
    let mut registry = cluster.registry.connect("postgres")?;
    registry.run(&format!("revoke execute on function snowflake_ids.registry_serve(text) from {ROLE}"))?;
    cluster.registry.end_nodes_sessions()?;
    let (mut taken, _) = refused_with(&mut client, "t", &[NAME, SAID])?;
    wait::until_true("the trouble to be shown", || {
        let trouble: Option<String> = registry_status(&mut client, NAME, "error")?;
        Ok(trouble.is_some_and(|trouble| trouble.contains(SAID)))
    })?;
    registry.run(&format!("grant execute on function snowflake_ids.registry_serve(text) to {ROLE}"))?;
    wait_as_long_as_it_takes(&mut client)?;
    taken.extend(take(&mut client, "t", 100)?);
    becomes(&mut client, NAME, "up")?;
    ids::growing(&taken)
}

/// The registry is killed at any moment while two nodes take ids. Sessions only wait.
fn a_registry_killed_under_load_repeats_nothing(cluster: &mut Cluster) -> Result<()> {
    cluster.create("t", "step => 10, max_step => 1000")?;
    let of_tag = cluster.nodes.iter().map(|node| node.load_of_tag("t", 1)).collect::<Result<Vec<_>>>()?;
    let snowflakes = cluster.nodes.iter().map(|node| node.load(1)).collect::<Result<Vec<_>>>()?;
    // A node without a worker id needs the registry for its first id.
    Load::all_go_on(&snowflakes)?;
    for round in 0..if full() { 40 } else { 3 } {
        Load::all_go_on(&of_tag)?;
        sleep(Duration::from_millis(round * 37 % 150));
        cluster.registry.crash()?;
    }
    for loads in [of_tag, snowflakes] {
        Load::all_go_on(&loads)?;
        let taken = Load::end_all(loads);
        assert!(taken.refusals.is_empty(), "{:?}", taken.refusals);
        taken.unique()?;
    }
    Ok(())
}

fn a_connection_cut_in_the_middle_of_a_request_costs_a_gap_at_most(cluster: &mut Cluster) -> Result<()> {
    cluster.create("t", "step => 10, max_step => 10")?;
    let load = cluster.nodes[0].load_of_tag("t", 2)?;
    for _ in 0..if full() { 300 } else { 30 } {
        cluster.registry.end_nodes_sessions()?;
        sleep(Duration::from_millis(20));
    }
    load.goes_on()?;
    let taken = load.end();
    only_for_want_of_ids(&taken)?;
    taken.unique()
}

/// The node is killed while it processes responses.
fn a_node_killed_under_load_repeats_nothing(cluster: &mut Cluster) -> Result<()> {
    cluster.create("t", "step => 10, max_step => 100")?;
    let other = cluster.nodes[1].load_of_tag("t", 1)?;
    let mut taken = Taken::default();
    for round in 0..if full() { 40 } else { 3 } {
        let load = cluster.nodes[0].load_of_tag("t", 1)?;
        load.goes_on()?;
        sleep(Duration::from_millis(round * 37 % 150));
        cluster.nodes[0].kill9()?;
        taken.add(load.end());
        cluster.nodes[0].start_again()?;
    }
    other.goes_on()?;
    taken.add(other.end());
    only_for_want_of_ids(&taken)?;
    taken.unique()
}

fn a_restart_of_a_node_leaves_no_gap(cluster: &mut Cluster) -> Result<()> {
    let mut client = small_segments(cluster)?;
    let mut taken = vec![1];
    for _ in 0..3 {
        wait_as_long_as_it_takes(&mut client)?;
        taken.extend(take(&mut client, "t", 33)?);
        // The ids of a pending response would become a gap.
        settled(&mut client, "t")?;
        cluster.nodes[0].restart()?;
        client = cluster.session()?;
    }
    ids::dense(taken)
}

/// Snowflake ids continue until the lease expires. The clocks are set forward instead of waiting.
#[test]
fn a_registry_away_for_hours_ends_ids_at_the_expiry_and_not_for_good() -> Result<()> {
    let node = cluster::node().false_clock().set("snowflake_ids.lease_duration", "20min");
    let mut cluster = Cluster::of(auto().false_clock(), &node, 1)?;
    cluster.create("t", "step => 10, max_step => 10")?;
    let mut client = cluster.session()?;
    let mut of_tag = vec![next(&mut client, "t")?];
    wait_for_id(&mut client)?;
    cluster.registry.stop(Shutdown::Fast)?;
    let mut taken = Vec::new();
    for clock in ["+4m", "+9m", "+14m", "+19m"] {
        cluster.nodes[0].set_clock(clock)?;
        taken.extend(snowflakes::take(&mut client, 1000)?);
    }
    let node = &cluster.nodes[0];
    wait::until_true("a warning", || {
        let log = node.log();
        let says = |kind: &str, words: &str| {
            log.lines().any(|line| line.contains(kind) && line.contains("lease") && line.contains(words))
        };
        Ok(says("WARNING", "has not renewed") && says("DETAIL", NAME))
    })
    .with_context(|| node.log())?;
    cluster.nodes[0].set_clock("+21m")?;
    let error = snowflakes::refused(&mut client)?;
    assert_eq!(error.code(), sql::NOT_IN_STATE, "{error:?}");
    assert!(said(&error).contains(NAME), "{error:?}");

    cluster.registry.set_clock("+21m")?;
    cluster.registry.start_again()?;
    taken.push(wait_for_id(&mut client)?);
    taken.extend(snowflakes::take(&mut client, 1000)?);
    of_tag.extend(take(&mut client, "t", 100)?);
    ids::growing(&of_tag)?;
    ids::growing(&taken)
}

/// After a long pause, the first call uses a connection that was cut without notice.
fn a_session_that_the_registry_has_ended_is_replaced_without_an_error(cluster: &mut Cluster) -> Result<()> {
    let mut client = small_segments(cluster)?;
    wait_as_long_as_it_takes(&mut client)?;
    let mut taken = Vec::new();
    for _ in 0..3 {
        cluster.registry.end_nodes_sessions()?;
        sleep(Duration::from_millis(50));
        taken.extend(take(&mut client, "t", 100)?);
    }
    assert_eq!(client.one::<i32>("select 1")?, 1);
    ids::growing(&taken)
}

#[test]
fn a_registry_is_away_and_comes_back() -> Result<()> {
    Cluster::cases(
        2,
        cases![
            a_stopped_registry_is_tried_again_less_and_less_often_until_it_is_back,
            calls_give_up_soon_once_the_registry_is_known_to_be_down,
            buffers_are_filled_again_without_a_caller,
            an_idle_node_sees_that_its_registry_is_back,
            a_registry_that_refuses_is_quoted_and_mended_by_what_it_asks_for,
            a_registry_killed_under_load_repeats_nothing,
            a_connection_cut_in_the_middle_of_a_request_costs_a_gap_at_most,
            a_node_killed_under_load_repeats_nothing,
            a_restart_of_a_node_leaves_no_gap,
            a_session_that_the_registry_has_ended_is_replaced_without_an_error
        ],
    )
}
