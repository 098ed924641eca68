//! Dense series that draw from a registry, when a standby of the registry takes over, or one of a node: no number twice.

use anyhow::Result;
use postgres::Client;
use snowflake_ids_server_tests::cluster::{Cluster, JOIN, NAME, node, registry_status};
use snowflake_ids_server_tests::registry::auto;
use snowflake_ids_server_tests::series::{create_at_all, next, take};
use snowflake_ids_server_tests::{Server, Shutdown, ids, sql, wait};

const CREATE: &str = "select snowflake_ids.series_create('d', 'dense')";
/// One that reserves nothing ahead: each number is asked for.
const CREATE_EXACT: &str = "select snowflake_ids.series_create('d', 'dense', step => 1, max_step => 1)";

/// A registry, its standby, and a session at a node that knows both.
struct Pair {
    primary: Server,
    standby: Server,
    node: Server,
}

fn pair(create: &str) -> Result<(Pair, Client)> {
    let primary = auto().start()?;
    primary.serve_nodes()?.batch_execute(create)?;
    let standby = primary.standby()?;
    let node = node().start()?;
    let mut client = node.introduce(NAME, &[primary.port(), standby.port()])?;
    client.batch_execute(&format!("{JOIN}; {create}"))?;
    Ok((Pair { primary, standby, node }, client))
}

/// What a server's row of a key says.
fn last(server: &Server, key: i64) -> Result<i64> {
    let row =
        format!("select coalesce(max(last_value), 0) from snowflake_ids.series_key where key_bigint = {key}");
    sql::one(&mut server.connect("postgres")?, &row)
}

#[test]
fn numbers_go_on_at_the_new_registry_and_not_at_the_former_one() -> Result<()> {
    let (mut pair, mut client) = pair(CREATE_EXACT)?;
    let mut taken = take(&mut client, "d", 7, 5)?;
    pair.standby.catch_up(&pair.primary)?;
    pair.primary.kill9()?;
    pair.standby.promote()?;
    taken.extend(take(&mut client, "d", 7, 5)?);
    assert_eq!(registry_status::<i32>(&mut client, NAME, "timeline")?, 2);
    // The former primary comes first in the list, takes writes, and knows of fewer numbers.
    pair.primary.start_again()?;
    pair.standby.end_nodes_sessions()?;
    taken.extend(take(&mut client, "d", 7, 5)?);
    // A node that starts knows it, too.
    pair.node.stop(Shutdown::Fast)?;
    pair.node.start_again()?;
    taken.extend(take(&mut pair.node.connect("postgres")?, "d", 7, 5)?);
    assert_eq!(last(&pair.primary, 7)?, 5, "the former primary was asked");
    assert_eq!(taken, (1..=20).collect::<Vec<_>>());
    Ok(())
}

/// What a standby has not received is in use at the node that got it.
#[test]
fn reservations_that_a_failover_lost_are_passed_over() -> Result<()> {
    let (mut pair, mut client) =
        pair("select snowflake_ids.series_create('d', 'dense', step => 10, max_step => 10)")?;
    let mut taken = take(&mut client, "d", 7, 5)?;
    pair.standby.catch_up(&pair.primary)?;
    pair.standby.cut_off()?;
    let known = last(&pair.standby, 7)?;
    taken.push(next(&mut client, "d", 8)?);
    wait::until_true("a reservation that gets lost", || {
        taken.push(next(&mut client, "d", 7)?);
        Ok(last(&pair.primary, 7)? > known)
    })?;
    pair.primary.kill9()?;
    pair.standby.promote()?;
    // It asks, and has nothing in memory.
    pair.node.kill9()?;
    pair.node.start_again()?;
    let mut client = pair.node.connect("postgres")?;
    let of_new = next(&mut client, "d", 8)?;
    assert_eq!(of_new, 2, "a key that the standby does not know of at all");
    taken.retain(|number| *number > 1);
    taken.extend(take(&mut client, "d", 7, 30)?);
    ids::growing(&taken)
}

#[test]
fn a_registry_that_fails_over_under_load_gives_no_number_twice() -> Result<()> {
    let (mut pair, _client) = pair(CREATE)?;
    let before = last(&pair.primary, 7)?;
    let mut sessions = pair.node.sessions("postgres", 3)?;
    let taken = std::thread::scope(|scope| -> Result<Vec<i64>> {
        let loads: Vec<_> = sessions
            .iter_mut()
            .map(|client| {
                scope.spawn(move || (0..60).map(|_| take(client, "d", 7, 20)).collect::<Result<Vec<_>>>())
            })
            .collect();
        wait::until_true("numbers to be taken", || Ok(last(&pair.primary, 7)? > before + 50))?;
        pair.primary.kill9()?;
        pair.standby.promote()?;
        let mut taken = Vec::new();
        for load in loads {
            taken.extend(load.join().map_err(|_| anyhow::anyhow!("a load failed"))??.concat());
        }
        Ok(taken)
    })?;
    assert_eq!(taken.len(), 3 * 60 * 20);
    ids::unique(taken)
}

/// The promoted standby has the rows of its primary, and nothing of what that has in memory. Both live on.
#[test]
fn a_node_and_its_promoted_standby_share_no_number() -> Result<()> {
    for cut_off in [false, true] {
        let mut cluster = Cluster::of(auto(), &node(), 1)?;
        create_at_all(&cluster, CREATE)?;
        let mut standby = cluster.nodes[0].standby()?;
        let mut client = cluster.session()?;
        let mut taken = take(&mut client, "d", 7, 15)?;
        standby.catch_up(&cluster.nodes[0])?;
        if cut_off {
            standby.cut_off()?;
            taken.extend(take(&mut client, "d", 7, 100)?);
        }
        standby.promote()?;
        for round in 0..4 {
            for server in [&standby, &cluster.nodes[0]] {
                let mut client = server.connect("postgres")?;
                for count in [1, 2, 13] {
                    taken.extend(take(&mut client, "d", 7, count)?);
                }
            }
            // What is left over goes to a file, and from there back to the registry, unless the other one came.
            for server in [&mut cluster.nodes[0], &mut standby].into_iter().skip(round % 2) {
                server.stop(Shutdown::Fast)?;
                server.start_again()?;
            }
        }
        ids::unique(taken)?;
    }
    Ok(())
}

/// A promoted standby alone goes on above all that its primary had received.
#[test]
fn a_promoted_standby_goes_on_above_its_primary() -> Result<()> {
    let mut cluster = Cluster::of(auto(), &node(), 1)?;
    create_at_all(&cluster, CREATE)?;
    let standby = cluster.nodes[0].standby()?;
    let mut client = cluster.session()?;
    let mut taken = take(&mut client, "d", 7, 15)?;
    let received = last(&cluster.nodes[0], 7)?;
    standby.catch_up(&cluster.nodes[0])?;
    assert_eq!(last(&standby, 7)?, received);
    cluster.nodes[0].kill9()?;
    standby.promote()?;
    let mut client = standby.connect("postgres")?;
    let first = next(&mut client, "d", 7)?;
    assert_eq!(first, received + 1, "what was in its memory is lost, and no more");
    taken.push(first);
    taken.extend(take(&mut client, "d", 7, 30)?);
    ids::growing(&taken)
}
