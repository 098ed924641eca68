//! Nodes that are copied or fail over to their own standby, and nodes whose databases are copied.

use snowflake_ids_server_tests::cluster::only_for_want_of_ids;
use snowflake_ids_server_tests::load::Load;
use snowflake_ids_server_tests::prelude::*;
use snowflake_ids_server_tests::segments::{TIMEOUT, settled, take};
use snowflake_ids_server_tests::snowflakes;

/// Takes ids of both kinds on a node. Returns the ids of the tag.
fn take_some(cluster: &Cluster) -> Result<Taken> {
    cluster.create("t", "step => 10, max_step => 10")?;
    let mut client = cluster.session()?;
    wait_for_id(&mut client)?;
    Ok(Taken::own(take(&mut client, "t", 35)?))
}

/// Takes ids of both kinds on all servers at once, and checks that none repeats.
fn share_no_id(servers: &[&Server], mut of_tag: Taken) -> Result<()> {
    let (mut tags, mut snowflakes) = (Vec::new(), Vec::new());
    for server in servers {
        wait_for_id(&mut server.connect("postgres")?)?;
        tags.push(server.load_of_tag("t", 1)?);
        snowflakes.push(server.load(1)?);
    }
    Load::all_go_on(&tags)?;
    Load::all_go_on(&snowflakes)?;
    let snowflakes = Load::end_all(snowflakes);
    assert!(snowflakes.refusals.is_empty(), "{:?}", snowflakes.refusals);
    snowflakes.unique()?;
    of_tag.add(Load::end_all(tags));
    only_for_want_of_ids(&of_tag)?;
    of_tag.unique()
}

/// Original and copy have the same saved ranges and the same received ids.
#[test]
fn a_copy_of_a_stopped_node_shares_no_id_with_it() -> Result<()> {
    let mut cluster = Cluster::start(1)?;
    let taken = take_some(&cluster)?;
    settled(&mut cluster.session()?, "t")?;
    let node = &mut cluster.nodes[0];
    node.stop(Shutdown::Fast)?;
    let mut copy = node.copy()?;
    node.start_again()?;
    copy.start_again()?;
    share_no_id(&[node, &copy], taken)
}

#[test]
fn a_base_backup_of_a_node_shares_no_id_with_it() -> Result<()> {
    let cluster = Cluster::start(1)?;
    let taken = take_some(&cluster)?;
    let mut copy = cluster.nodes[0].base_backup()?;
    copy.start_again()?;
    share_no_id(&[&cluster.nodes[0], &copy], taken)
}

/// Both sides of a split brain are under load.
#[test]
fn a_node_s_standby_that_is_promoted_shares_no_id_with_it() -> Result<()> {
    let cluster = Cluster::start(1)?;
    let taken = take_some(&cluster)?;
    let standby = cluster.nodes[0].standby()?;
    let load = cluster.nodes[0].load_of_tag("t", 1)?;
    standby.promote()?;
    let mut all = taken;
    load.goes_on()?;
    all.add(load.end());
    share_no_id(&[&cluster.nodes[0], &standby], all)
}

/// The former primary is gone, with received ids that its standby does not know.
#[test]
fn a_node_that_fails_over_goes_on_above_its_ids() -> Result<()> {
    let mut cluster = Cluster::start(1)?;
    let mut taken = take_some(&cluster)?;
    let standby = cluster.nodes[0].standby()?;
    standby.catch_up(&cluster.nodes[0])?;
    standby.cut_off()?;
    let mut client = cluster.session()?;
    taken.ids.extend(take(&mut client, "t", 200)?);
    let mut of_server = snowflakes::take(&mut client, 1000)?;
    cluster.nodes[0].kill9()?;
    standby.promote()?;
    let mut client = standby.connect("postgres")?;
    taken.ids.extend(take(&mut client, "t", 200)?);
    of_server.push(wait_for_id(&mut client)?);
    ids::unique(of_server)?;
    ids::growing(&taken.ids)
}

/// A database created with a node's database as its template is a node too.
#[test]
fn a_database_made_from_a_node_s_shares_no_id_with_it() -> Result<()> {
    let cluster = Cluster::start(1)?;
    let mut taken = take_some(&cluster)?;
    let node = &cluster.nodes[0];
    let mut other = node.create_database("other")?;
    wait::until(TIMEOUT, "the copy", || {
        Ok(other.batch_execute("create database copy template postgres").ok())
    })?;
    taken.ids.extend(take(&mut node.connect("copy")?, "t", 200)?);
    taken.ids.extend(take(&mut node.connect("postgres")?, "t", 200)?);
    taken.ids.extend(take(&mut node.connect("copy")?, "t", 200)?);
    taken.unique()
}
