//! Changes of a tag at its registry while nodes use the tag: ids taken at the registry, new definitions, rollbacks, and the drop
//! of the tag.

use snowflake_ids_server_tests::cluster::{
    JOIN, NAME, ROLE, exhaust, only_for_want_of_ids, refused_with, row, wait_as_long_as_it_takes,
    wait_at_most,
};
use snowflake_ids_server_tests::full;
use snowflake_ids_server_tests::load::Load;
use snowflake_ids_server_tests::prelude::*;
use snowflake_ids_server_tests::segments::{next, take};
use std::thread::sleep;

/// Creates a tag, and opens a session on the registry and one on a node.
fn pair(cluster: &Cluster, definition: &str) -> Result<(Client, Client)> {
    cluster.create("t", definition)?;
    Ok((cluster.registry.connect("postgres")?, cluster.session()?))
}

/// All sessions take ids of one tag while an operator changes all of its definition.
fn changes_under_load_repeat_nothing(cluster: &mut Cluster) -> Result<()> {
    cluster.create("t", "step => 10, max_step => 1000")?;
    let mut operator = cluster.registry.connect("postgres")?;
    let mut loads = vec![cluster.registry.load_of_tag("t", 1)?];
    for node in &cluster.nodes {
        loads.push(node.load_of_tag("t", 1)?);
    }
    for round in 0..if full() { 40 } else { 4 } {
        for change in [
            "segment_alter('t', step => 20)",
            "segment_alter('t', increment => 2, remainder => 1)",
            "segment_raise('t', (select max_id from snowflake_ids.segment) + 7)",
            "segment_alter('t', increment => 1, remainder => 0)",
            "segment_set('t', (select max_id from snowflake_ids.segment) + 100000)",
            "segment_raise('t', 5)",
        ] {
            Load::all_go_on(&loads)?;
            sleep(Duration::from_millis(round * 7 % 20));
            operator.run(&format!("select snowflake_ids.{change}"))?;
        }
    }
    Load::all_go_on(&loads)?;
    let taken = Load::end_all(loads);
    assert!(taken.refusals.is_empty(), "{:?}", taken.refusals);
    taken.unique()
}

/// A transaction at the registry takes ids above the reserved ones. The row records them only at the commit.
fn ids_of_a_transaction_that_was_rolled_back_do_not_come_again(cluster: &mut Cluster) -> Result<()> {
    let (mut registry, mut node) = pair(cluster, "step => 10, max_step => 10")?;
    let mut taken = take(&mut node, "t", 5)?;
    for end in ["rollback", "commit"] {
        registry.run("begin; select snowflake_ids.segment_alter('t', description => 'changed')")?;
        taken.extend(take(&mut registry, "t", 45)?);
        registry.run(end)?;
        taken.extend(take(&mut node, "t", 105)?);
    }
    ids::unique(taken)
}

/// A row that is locked at the registry blocks only its own tag, and only while it is locked.
fn a_row_that_is_locked_at_the_registry_holds_up_no_other_tag(cluster: &mut Cluster) -> Result<()> {
    let (mut registry, mut node) = pair(cluster, "step => 10, max_step => 10")?;
    cluster.create("other", "step => 10, max_step => 10")?;
    let mut taken = take(&mut node, "t", 5)?;
    registry.run("begin; select * from snowflake_ids.segment where tag = 't' for update")?;
    wait_at_most(&mut node, Duration::from_secs(2))?;
    taken.extend(refused_with(&mut node, "t", &["has locked the row of a segment tag"])?.0);
    wait_as_long_as_it_takes(&mut node)?;
    ids::dense(take(&mut node, "other", 200)?)?;
    registry.run("rollback")?;
    taken.extend(take(&mut node, "t", 50)?);
    ids::growing(&taken)
}

fn a_tag_that_is_used_up_and_one_that_is_dropped_are_refused_as_such(cluster: &mut Cluster) -> Result<()> {
    let (mut registry, mut node) = pair(cluster, "step => 10, max_step => 10, max_value => 25")?;
    let (taken, error) = exhaust(&mut node, "t")?;
    assert_eq!(taken, (1..=25).collect::<Vec<i64>>());
    assert_eq!(error.code(), &SqlState::SEQUENCE_GENERATOR_LIMIT_EXCEEDED, "{error:?}");
    registry.run("select snowflake_ids.segment_alter('t', max_value => 1000)")?;
    assert_eq!(next(&mut node, "t")?, 26);

    cluster.create("u", "step => 10, max_step => 10")?;
    next(&mut node, "u")?;
    registry.run("select snowflake_ids.segment_drop('u')")?;
    let (_, error) = exhaust(&mut node, "u")?;
    assert_eq!(error.code(), &SqlState::UNDEFINED_OBJECT, "{error:?}");
    assert_eq!(next(&mut node, "t")?, 27);
    Ok(())
}

/// Settings of the role, the database and the server neither weaken a reservation nor block it.
fn settings_of_the_registry_do_not_matter(cluster: &mut Cluster) -> Result<()> {
    let (mut registry, _) = pair(cluster, "step => 10, max_step => 10")?;
    registry.run(
        "create schema evil; create function evil.clock_timestamp() returns timestamptz language sql as
             $$ select timestamptz '1999-01-01' $$;
         alter role shard set synchronous_commit = off;
         alter role shard set default_transaction_isolation = serializable;
         alter role shard set search_path = evil, pg_catalog;
         alter role shard set datestyle = 'SQL, DMY';
         alter role shard set timezone = 'Asia/Kathmandu';
         alter role shard set intervalstyle = 'iso_8601';
         alter role shard set bytea_output = 'escape';
         alter role shard set client_encoding = 'LATIN1'",
    )?;
    cluster.registry.end_nodes_sessions()?;
    let load = cluster.nodes[0].load_of_tag("t", 2)?;
    for round in 0..if full() { 40 } else { 4 } {
        load.goes_on()?;
        sleep(Duration::from_millis(round * 37 % 150));
        cluster.registry.crash()?;
    }
    load.goes_on()?;
    let taken = load.end();
    only_for_want_of_ids(&taken)?;
    taken.unique()
}

/// A tag may contain any letters, and the node's database may have any encoding.
fn a_tag_is_the_same_in_every_encoding(cluster: &mut Cluster) -> Result<()> {
    let tags = ["Größe \"1\" \\ '' {}", &"é".repeat(64), "x\ty"];
    let node = &cluster.nodes[0];
    let mut client = node.connect("postgres")?;
    client.run("create database latin encoding 'LATIN1' template template0")?;
    let mut latin = node.connect("latin")?;
    latin.run("create extension snowflake_ids")?;
    cluster.registry.connect_from(&mut latin, NAME, ROLE)?;
    latin.run(JOIN)?;
    for tag in tags {
        cluster.create(tag, "step => 10, max_step => 10")?;
        let mut taken = take(&mut client, tag, 25)?;
        taken.extend(take(&mut latin, tag, 25)?);
        ids::unique(taken)?;
        assert!(row::<i64>(&mut cluster.registry.connect("postgres")?, tag, "max_id")? >= 50);
    }
    Ok(())
}

/// A node can leave a registry that is gone for good.
fn a_node_whose_foreign_server_was_dropped_says_so_and_can_leave(cluster: &mut Cluster) -> Result<()> {
    let (_, mut node) = pair(cluster, "step => 10, max_step => 10")?;
    let mut taken = take(&mut node, "t", 25)?;
    node.run("drop server central cascade")?;
    wait_at_most(&mut node, Duration::from_secs(1))?;
    taken.extend(refused_with(&mut node, "t", &[NAME])?.0);
    cluster.registry.stop(Shutdown::Fast)?;
    node.run("select snowflake_ids.use_local_registry()")?;
    wait_as_long_as_it_takes(&mut node)?;
    taken.extend(take(&mut node, "t", 50)?);
    cluster.registry.start_again()?;
    ids::growing(&taken)
}

/// A session has changed the node's registries without committing, so the node could not record ids from the registry.
fn while_a_node_is_being_changed_its_calls_use_up_no_ids_of_the_registry(
    cluster: &mut Cluster,
) -> Result<()> {
    let (mut registry, mut client) = pair(cluster, "step => 10, max_step => 10")?;
    next(&mut client, "t")?;
    let max_id = "select max_id from snowflake_ids.segment where tag = 't'";
    let before: i64 = registry.one(max_id)?;
    let mut changer = cluster.nodes[0].connect("postgres")?;
    changer.run(&format!("begin; select snowflake_ids.use_registry('{NAME}')"))?;
    client.run("set snowflake_ids.segment_wait_timeout = '2s'")?;
    let (taken, _) = refused_with(&mut client, "t", &["its ids cannot be recorded here"])?;
    assert!(taken.is_empty(), "ids go on although none can be recorded");
    let lost = registry.one::<i64>(max_id)? - before;
    assert!(lost <= 20, "{lost} ids");
    changer.run("rollback")?;
    client.run("reset snowflake_ids.segment_wait_timeout")?;
    assert!(next(&mut client, "t")? > before);
    // Now only one row is locked, and the node notices the lock only after the registry's response. The node may lose the
    // response's ids, at most once a second. Ids reserved before the lock may be used or discarded.
    changer.run("begin; select 1 from snowflake_ids.received for update")?;
    client.run("select snowflake_ids.segment_discard('t')")?;
    let (before, began) = (registry.one::<i64>(max_id)?, Instant::now());
    client.run("set snowflake_ids.segment_wait_timeout = '2s'")?;
    let refused = |_| client.error("select segment_nextval('t')").is_ok();
    assert!((0..100).any(refused), "ids go on although none can be recorded");
    let lost = registry.one::<i64>(max_id)? - before;
    let most = 40 + 10 * i64::try_from(began.elapsed().as_secs())?;
    assert!(lost <= most, "{lost} ids of {most}");
    changer.run("rollback")?;
    client.run("reset snowflake_ids.segment_wait_timeout")?;
    assert!(next(&mut client, "t")? > before);
    Ok(())
}

#[test]
fn a_tag_changes_at_its_registry() -> Result<()> {
    Cluster::cases(
        2,
        cases![
            changes_under_load_repeat_nothing,
            ids_of_a_transaction_that_was_rolled_back_do_not_come_again,
            a_row_that_is_locked_at_the_registry_holds_up_no_other_tag,
            a_tag_that_is_used_up_and_one_that_is_dropped_are_refused_as_such,
            settings_of_the_registry_do_not_matter,
            a_tag_is_the_same_in_every_encoding,
            a_node_whose_foreign_server_was_dropped_says_so_and_can_leave,
            while_a_node_is_being_changed_its_calls_use_up_no_ids_of_the_registry
        ],
    )
}
