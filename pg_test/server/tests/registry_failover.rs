//! A registry that fails over to its standby, and whose former primary returns.

use snowflake_ids_server_tests::cluster::{
    JOIN, NAME, becomes, node, only_for_want_of_ids, received, refused_with, registry_status, row, said,
    wait_as_long_as_it_takes, wait_at_most,
};
use snowflake_ids_server_tests::load::Load;
use snowflake_ids_server_tests::prelude::*;
use snowflake_ids_server_tests::segments::{create, next, take};
use snowflake_ids_server_tests::snowflakes::status;

/// A registry, its standby, and nodes that know both addresses.
struct Pair {
    primary: Server,
    standby: Server,
    nodes: Vec<Server>,
}

fn pair(definition: &str, nodes: usize) -> Result<Pair> {
    let primary = auto().start()?;
    create(&mut primary.serve_nodes()?, "t", definition)?;
    let standby = primary.standby()?;
    let ports = [primary.port(), standby.port()];
    let nodes = (0..nodes).map(|_| joined(&ports)).collect::<Result<_>>()?;
    Ok(Pair { primary, standby, nodes })
}

/// A new node of the registry with these hosts, with a worker id.
fn joined(ports: &[u16]) -> Result<Server> {
    let node = node().start()?;
    let mut client = node.introduce(NAME, ports)?;
    client.run(JOIN)?;
    wait_for_id(&mut client)?;
    Ok(node)
}

impl Pair {
    /// Kills the primary and promotes the standby.
    fn fail_over(&mut self) -> Result<()> {
        self.primary.kill9()?;
        self.standby.promote()
    }

    fn session(&self) -> Result<Client> {
        self.nodes[0].connect("postgres")
    }
}

#[test]
fn three_nodes_under_load_follow_the_new_primary_and_share_no_id() -> Result<()> {
    let mut pair = pair("step => 100, max_step => 1000", 3)?;
    let of_tag = pair.nodes.iter().map(|node| node.load_of_tag("t", 1)).collect::<Result<Vec<_>>>()?;
    let snowflakes = pair.nodes.iter().map(|node| node.load(1)).collect::<Result<Vec<_>>>()?;
    Load::all_go_on(&of_tag)?;
    pair.fail_over()?;
    Load::all_go_on(&of_tag)?;
    for node in &pair.nodes {
        let mut client = node.connect("postgres")?;
        wait::until_true("the node to hear of the new primary", || {
            Ok(registry_status::<i32>(&mut client, NAME, "timeline")? == 2)
        })?;
    }
    // The former primary accepts writes too, but no node that knows the new primary uses the former one.
    pair.primary.start_again()?;
    let version = pair.primary.version("t")?;
    pair.standby.end_nodes_sessions()?;
    of_tag[0].run(Duration::from_secs(1));
    Load::all_go_on(&of_tag)?;
    Load::all_go_on(&snowflakes)?;
    assert_eq!(pair.primary.version("t")?, version, "the former primary was asked");
    let (of_tag, snowflakes) = (Load::end_all(of_tag), Load::end_all(snowflakes));
    only_for_want_of_ids(&of_tag)?;
    assert!(snowflakes.refusals.is_empty(), "{:?}", snowflakes.refusals);
    snowflakes.unique()?;
    of_tag.unique()
}

#[test]
fn the_former_primary_is_refused_when_it_is_all_that_is_left() -> Result<()> {
    let mut pair = pair("step => 10, max_step => 10", 1)?;
    let mut client = pair.session()?;
    let mut taken = take(&mut client, "t", 25)?;
    pair.standby.catch_up(&pair.primary)?;
    pair.fail_over()?;
    wait_as_long_as_it_takes(&mut client)?;
    taken.extend(take(&mut client, "t", 100)?);
    pair.primary.start_again()?;
    let version = pair.primary.version("t")?;
    pair.standby.stop(Shutdown::Fast)?;
    wait_at_most(&mut client, Duration::from_secs(2))?;
    taken.extend(refused_with(&mut client, "t", &[NAME, "timeline"])?.0);
    let error = client.error(JOIN)?;
    assert!(error.message().contains("former primary"), "{error:?}");
    assert_eq!(pair.primary.version("t")?, version, "the former primary was asked");

    pair.standby.start_again()?;
    wait_as_long_as_it_takes(&mut client)?;
    // The former primary comes first in the list of hosts.
    client.run(JOIN)?;
    taken.extend(take(&mut client, "t", 100)?);
    becomes(&mut client, NAME, "up")?;
    assert_eq!(registry_status::<i32>(&mut client, NAME, "timeline")?, 2);
    ids::growing(&taken)
}

/// Each promotion skips as many ids as two segments of a node may have.
#[test]
fn tags_skip_what_the_standby_may_not_have_seen() -> Result<()> {
    let mut pair = pair("step => 100, max_step => 100", 2)?;
    let mut clients = [pair.session()?, pair.nodes[1].connect("postgres")?];
    let mut taken = vec![next(&mut clients[0], "t")?, next(&mut clients[1], "t")?];
    // Each node has its first segment, and reserves the second segment after using a tenth of the first.
    pair.standby.catch_up(&pair.primary)?;
    pair.standby.cut_off()?;
    let known: i64 = row(&mut pair.standby.connect("postgres")?, "t", "max_id")?;
    let more = take(&mut clients[0], "t", 15)?;
    taken.extend(more);
    wait::until_true("the reservation that gets lost", || {
        Ok(row::<i64>(&mut pair.primary.connect("postgres")?, "t", "max_id")? > known)
    })?;
    pair.fail_over()?;
    for client in &mut clients {
        wait_as_long_as_it_takes(client)?;
        taken.extend(take(client, "t", 500)?);
    }
    let first_of_new = taken.iter().filter(|id| **id > known + 200).min().copied().unwrap_or(0);
    assert_eq!(first_of_new, known + 201, "twice max_step above what the standby knew");
    assert!(!taken.contains(&(known + 150)), "what was lost is not handed out");
    let reserved: i64 = row(&mut pair.standby.connect("postgres")?, "t", "max_id")?;
    assert!(reserved <= known + 200 + 1400, "skipped once: {reserved} after {known}");
    ids::unique(taken)
}

/// A node may join although the standby lacks some of the node's ids, if the promotion skips these ids. A node with ids above the
/// skipped ids is refused.
#[test]
fn a_node_joins_again_where_what_was_lost_is_passed_over() -> Result<()> {
    let mut pair = pair("step => 100, max_step => 100", 1)?;
    let mut client = pair.session()?;
    let mut taken = vec![next(&mut client, "t")?];
    pair.standby.catch_up(&pair.primary)?;
    pair.standby.cut_off()?;
    let known: i64 = row(&mut pair.standby.connect("postgres")?, "t", "max_id")?;
    while received(&mut client, "t")? <= known {
        taken.push(next(&mut client, "t")?);
    }
    pair.fail_over()?;
    client.run(JOIN)?;
    wait_as_long_as_it_takes(&mut client)?;
    taken.extend(take(&mut client, "t", 100)?);
    // The limit, for a tag that nobody uses meanwhile: twice max_step above the row is accepted, more is refused.
    let mut registry = pair.standby.connect("postgres")?;
    create(&mut registry, "idle", "step => 100, max_step => 100")?;
    registry.run("update snowflake_ids.segment set timeline = 1 where tag = 'idle'")?;
    let joins = |client: &mut Client, highest: i64| {
        client.run(&format!(
            "delete from snowflake_ids.received where tag = 'idle';
             insert into snowflake_ids.received (identity, tag, max_id)
             select identity, 'idle', {highest} from snowflake_ids.registry_server"
        ))?;
        Ok::<_, anyhow::Error>(client.batch_execute(JOIN).err())
    };
    assert!(joins(&mut client, 200)?.is_none());
    registry.run("update snowflake_ids.segment set max_id = 0, timeline = 1 where tag = 'idle'")?;
    let error = joins(&mut client, 201)?.context("it is used")?;
    let error = error.as_db_error().context("it is no error of the server's")?;
    let words = "Ids up to 201 were received from this registry before, but the registry's row records ids only up to 200.";
    assert_eq!(error.detail(), Some(words), "{error:?}");
    ids::unique(taken)
}

/// Both standbys are on timeline 2 after their promotion. The second one learns from a node that there was another.
#[test]
fn standbys_that_are_promoted_one_after_the_other_share_no_id() -> Result<()> {
    let mut first = auto().start()?;
    create(&mut first.serve_nodes()?, "t", "step => 10, max_step => 1000")?;
    let (mut second, mut third) = (first.standby()?, first.standby()?);
    let ports = [&first, &second, &third].map(Server::port);
    let old = joined(&ports)?;
    let mut client = old.connect("postgres")?;
    let mut taken = take(&mut client, "t", 50)?;
    second.catch_up(&first)?;
    third.catch_up(&first)?;
    first.kill9()?;
    second.promote()?;
    wait_as_long_as_it_takes(&mut client)?;
    taken.extend(take(&mut client, "t", 600)?);
    let other = joined(&ports)?;
    second.kill9()?;
    third.promote()?;
    taken.extend(take(&mut client, "t", 800)?);
    becomes(&mut client, NAME, "up")?;
    assert_eq!(registry_status::<i32>(&mut client, NAME, "timeline")?, 2);
    let new = joined(&ports)?;
    taken.extend(take(&mut new.connect("postgres")?, "t", 3000)?);
    ids::unique(taken)?;
    let eighth = |node: &Server| {
        Ok::<_, anyhow::Error>(status::<i32>(&mut node.connect("postgres")?, "worker_id")? / 4)
    };
    assert_ne!(eighth(&other)?, eighth(&new)?);
    // A node does not return to the server that it left.
    second.start_again()?;
    let version = second.version("t")?;
    third.stop(Shutdown::Fast)?;
    wait_at_most(&mut client, Duration::from_secs(2))?;
    refused_with(&mut client, "t", &[NAME, "after it, another server on timeline 2 was seen"])?;
    assert_eq!(second.version("t")?, version, "the server that was left was asked");
    Ok(())
}

#[test]
fn a_standby_is_no_registry() -> Result<()> {
    let pair = pair("", 0)?;
    let stranger = node().start()?;
    let mut client = stranger.introduce(NAME, &[pair.standby.port()])?;
    client.run(&format!("alter server {NAME} options (set target_session_attrs 'any')"))?;
    let error = client.error(JOIN)?;
    assert!(["25006", "55000"].contains(&error.code().code()), "{error:?}");
    assert!(said(&error).contains(NAME), "{error:?}");
    // The standby serves nodes from its promotion on, also in the session that was refused.
    pair.standby.promote()?;
    client.run(JOIN)?;
    next(&mut client, "t").map(drop)
}

/// The registry switches over to the standby in good order, and back.
#[test]
fn a_registry_that_is_switched_over_and_back_loses_nothing() -> Result<()> {
    let primary = auto().rewindable().start()?;
    create(&mut primary.serve_nodes()?, "t", "step => 10, max_step => 10")?;
    let mut standby = primary.standby()?;
    let mut primary = primary;
    let node = node().start()?;
    let mut client = node.introduce(NAME, &[primary.port(), standby.port()])?;
    client.run(JOIN)?;
    let mut taken = take(&mut client, "t", 25)?;
    primary.stop(Shutdown::Fast)?;
    standby.promote()?;
    taken.extend(take(&mut client, "t", 50)?);
    primary.start_again()?;
    primary.rewind(&standby)?;
    taken.extend(take(&mut client, "t", 50)?);
    primary.catch_up(&standby)?;
    standby.stop(Shutdown::Fast)?;
    primary.promote()?;
    taken.extend(take(&mut client, "t", 50)?);
    becomes(&mut client, NAME, "up")?;
    assert_eq!(registry_status::<i32>(&mut client, NAME, "timeline")?, 3);
    ids::growing(&taken)
}
