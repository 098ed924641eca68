//! A hung registry: it accepts and keeps connections, but never answers.

use snowflake_ids_server_tests::cluster::{NAME, becomes, refused_with, registry_status, wait_at_most};
use snowflake_ids_server_tests::prelude::*;
use snowflake_ids_server_tests::segments::{next, status, take, wait_for_waiting};
use snowflake_ids_server_tests::snowflakes;

/// Longer than any test.
const FOR_EVER: &str = "1h";

/// A session of a node, with a tag in use that has this many ids per segment. The node waits for the registry until `timeout`.
fn in_use(cluster: &Cluster, step: usize, timeout: &str) -> Result<Client> {
    cluster.create("t", &format!("step => {step}, max_step => {step}"))?;
    let mut client = cluster.session()?;
    next(&mut client, "t")?;
    cluster.nodes[0].reload("snowflake_ids.registry_timeout", timeout)?;
    Ok(client)
}

fn callers_do_not_notice_while_buffers_last(cluster: &mut Cluster) -> Result<()> {
    const STEP: usize = 1000;
    let mut client = in_use(cluster, STEP, "1s")?;
    let waits = |client: &mut Client| status::<i64>(client, "t", "waits");
    let (mut taken, before) = (vec![1], waits(&mut client)?);
    let paused = cluster.registry.pause()?;
    // The node asks when half of a segment is used, unless it already has the next segment.
    taken.extend(take(&mut client, "t", STEP * 6 / 10)?);
    wait::until_true("the node to ask in vain", || {
        if status::<Option<i64>>(&mut client, "t", "next_first")?.is_some() {
            taken.extend(take(&mut client, "t", STEP)?);
        }
        let state = registry_status::<String>(&mut client, NAME, "state")?;
        Ok(state == "failing")
    })?;
    let sessions = cluster.nodes[0].sessions("postgres", 4)?;
    taken.extend(at_once(sessions, |_, mut client| take(&mut client, "t", STEP / 20))?.concat());
    assert_eq!(waits(&mut client)?, before, "a call waited");
    drop(paused);
    ids::dense(taken)
}

fn empty_buffers_fail_calls_in_time_and_its_return_mends_all(cluster: &mut Cluster) -> Result<()> {
    let mut client = in_use(cluster, 10, "1s")?;
    wait_for_id(&mut client)?;
    let paused = cluster.registry.pause()?;
    wait_at_most(&mut client, Duration::from_millis(1500))?;
    let (mut taken, _) = refused_with(&mut client, "t", &[NAME])?;
    becomes(&mut client, NAME, "failing")?;
    ids::growing(&snowflakes::take(&mut client, 1000)?)?;

    client.run(&format!("set snowflake_ids.segment_wait_timeout = '{FOR_EVER}'"))?;
    for call in ["select segment_nextval('t')", "select segment_nextval('unknown')"] {
        let error = client.error_within("300ms", call)?;
        assert_eq!(error.code(), &SqlState::QUERY_CANCELED, "{error:?}");
    }
    let waiting = thread::spawn(move || next(&mut client, "t").map(|id| (id, client)));
    wait_for_waiting(&cluster.nodes[0], 1)?;
    let cancelled = cancel_a_call(&cluster.nodes[0])?;
    assert_eq!(cancelled.code(), &SqlState::QUERY_CANCELED, "{cancelled:?}");
    assert!(!waiting.is_finished());

    drop(paused);
    let (id, mut client) = waiting.ended()?;
    taken.push(id);
    becomes(&mut client, NAME, "up")?;
    taken.extend(take(&mut client, "t", 100)?);
    ids::growing(&taken)
}

/// Two calls wait. One of them is cancelled.
fn cancel_a_call(node: &Server) -> Result<DbError> {
    let mut client = node.connect("postgres")?;
    client.run(&format!("set snowflake_ids.segment_wait_timeout = '{FOR_EVER}'"))?;
    let cancel = client.cancel_token();
    let call = thread::spawn(move || client.error("select segment_nextval('t')"));
    wait_for_waiting(node, 2)?;
    cancel.cancel_query(NoTls)?;
    call.ended()
}

/// Calls are waiting, and the node's worker is in the middle of a request.
fn a_node_shuts_down_and_starts_without_it(cluster: &mut Cluster) -> Result<()> {
    let mut client = in_use(cluster, 10, FOR_EVER)?;
    let mut taken = vec![wait_for_id(&mut client)?];
    let paused = cluster.registry.pause()?;
    wait_at_most(&mut client, Duration::from_millis(700))?;
    // The first request is still pending.
    let (mut of_tag, _) = refused_with(&mut client, "t", &[NAME])?;
    client.run(&format!("set snowflake_ids.segment_wait_timeout = '{FOR_EVER}'"))?;
    let waiting = thread::spawn(move || next(&mut client, "t").is_err());
    let node = &mut cluster.nodes[0];
    wait_for_waiting(node, 1)?;
    node.stop(Shutdown::Fast)?;
    assert!(waiting.ended());

    node.start_again()?;
    let mut client = node.connect("postgres")?;
    taken.push(snowflakes::next(&mut client)?);
    // This time the registry hangs before a connection exists.
    wait_at_most(&mut client, Duration::from_millis(700))?;
    of_tag.extend(refused_with(&mut client, "t", &[NAME])?.0);
    node.restart_by(Shutdown::Fast)?;
    drop(paused);
    let mut client = node.connect("postgres")?;
    of_tag.extend(take(&mut client, "t", 50)?);
    taken.push(wait_for_id(&mut client)?);
    ids::growing(&of_tag)?;
    ids::growing(&taken)
}

/// While one session waits for a slow response, other tags wait no longer than the registry needs.
fn a_registry_that_is_slow_holds_no_call_up_for_longer_than_it_is(cluster: &mut Cluster) -> Result<()> {
    let mut client = in_use(cluster, 10, FOR_EVER)?;
    cluster.create("other", "step => 10, max_step => 10")?;
    let mut taken = Vec::new();
    for _ in 0..5 {
        let paused = cluster.registry.pause()?;
        let resume = thread::spawn(move || {
            thread::sleep(Duration::from_millis(300));
            drop(paused);
        });
        taken.extend(take(&mut client, "t", 30)?);
        resume.ended();
        next(&mut client, "other")?;
    }
    ids::growing(&taken)?;
    assert_eq!(registry_status::<i64>(&mut client, NAME, "failures::bigint")?, 0, "slow is no failure");
    Ok(())
}

#[test]
fn a_registry_hangs() -> Result<()> {
    Cluster::cases(
        1,
        cases![
            callers_do_not_notice_while_buffers_last,
            empty_buffers_fail_calls_in_time_and_its_return_mends_all,
            a_node_shuts_down_and_starts_without_it,
            a_registry_that_is_slow_holds_no_call_up_for_longer_than_it_is
        ],
    )
}
