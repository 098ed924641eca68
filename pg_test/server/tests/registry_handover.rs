//! Tags that move to a registry when nodes join, and back when nodes leave.

use snowflake_ids_server_tests::cluster::{JOIN, LEAVE, NAME, node, received, row};
use snowflake_ids_server_tests::prelude::*;
use snowflake_ids_server_tests::segments::{create, next, take};
use snowflake_ids_server_tests::snowflakes::{self, status};

const LOCAL: &str = "this server only";
const SHARED: &str = "shared registry";

const DEFINITION: &str =
    "row(step, max_step, increment, remainder, description, max_value, reset, time_zone, format)::text";

fn local_tags_are_handed_over_with_their_terms_and_go_on_above_their_ids(
    cluster: &mut Cluster,
) -> Result<()> {
    let (registry, mut client) = (&cluster.registry, cluster.session()?);
    let mut at_registry = registry.connect("postgres")?;
    let tags = ["new", "behind", "ahead", "odd", "dated", "unused"];
    for (tag, definition) in [
        ("new", "step => 50, max_step => 500, description => 'it''s \"new\"'"),
        ("behind", "step => 10"),
        ("ahead", "step => 10"),
        ("odd", "increment => 2, remainder => 1, max_value => 99999"),
        ("dated", "reset => 'year', time_zone => 'Asia/Kathmandu', format => '{YYYY}#{n:4}'"),
        ("unused", "start => 7"),
    ] {
        create(&mut client, tag, definition)?;
    }
    create(&mut at_registry, "behind", "step => 10, start => 5")?;
    create(&mut at_registry, "ahead", "step => 10, start => 5001")?;
    let before = tags.map(|tag| if tag == "unused" { Ok(Vec::new()) } else { take(&mut client, tag, 33) });
    let definition = tags.map(|tag| row::<String>(&mut client, tag, DEFINITION));
    client.run(JOIN)?;
    for ((tag, before), definition) in tags.into_iter().zip(before).zip(definition) {
        let mut taken = before?;
        taken.extend(take(&mut client, tag, 33)?);
        ids::growing(&taken)?;
        if !["behind", "ahead"].contains(&tag) {
            assert_eq!(row::<String>(&mut at_registry, tag, DEFINITION)?, definition?, "{tag}");
        }
        assert!(received(&mut client, tag)? >= taken[taken.len() - 1], "{tag}: not recorded as received");
        assert!(row::<i64>(&mut at_registry, tag, "max_id")? >= taken[taken.len() - 1], "{tag}");
    }
    assert!(next(&mut client, "ahead")? > 5000);
    assert_eq!(take(&mut client, "odd", 20)?.iter().filter(|id| **id % 2 == 1).count(), 20);
    Ok(())
}

/// The registry's own reserved ids are not given back if that would lead below handed-over ids. A worker gives ids back only if
/// the row's version has not changed since the worker reserved them.
fn what_was_reserved_before_is_not_given_back_below_the_ids_that_are_handed_over(
    cluster: &mut Cluster,
) -> Result<()> {
    let (registry, mut client) = (&cluster.registry, cluster.session()?);
    let mut at_registry = registry.connect("postgres")?;
    for (tag, start) in [("near", 901), ("far above", 50_001)] {
        create(&mut client, tag, "step => 10")?;
        take(&mut client, tag, 150)?;
        create(&mut at_registry, tag, &format!("max_step => 1000, start => {start}"))?;
    }
    let mut version = |tag| row::<i64>(&mut at_registry, tag, "version");
    let [near, far] = [version("near")?, version("far above")?];
    client.run(JOIN)?;
    assert_ne!(version("near")?, near, "what was reserved last begins below the ids of the node");
    assert_eq!(version("far above")?, far, "it begins above them");
    Ok(())
}

/// Another server hands over the same tag, with other ids.
fn a_tag_that_two_servers_had_goes_on_above_both(cluster: &mut Cluster) -> Result<()> {
    let (registry, first) = (&cluster.registry, cluster.session()?);
    let other = node().start()?;
    let mut clients = [first, other.introduce(NAME, &[registry.port()])?];
    let mut newest = 0;
    for (client, count) in clients.iter_mut().zip([700, 2000]) {
        create(client, "t", "step => 10")?;
        newest = take(client, "t", count)?[count - 1];
        client.run(JOIN)?;
    }
    // Until now both servers counted from 1. Once the second server has joined, no id repeats.
    let [first, second] = &mut clients;
    let mut both = take(second, "t", 200)?;
    assert!(both[0] > newest, "{} after {newest}", both[0]);
    both.extend(take(first, "t", 3000)?);
    ids::unique(both)
}

fn a_rollback_leaves_all_as_it_was(cluster: &mut Cluster) -> Result<()> {
    let mut client = cluster.session()?;
    create(&mut client, "t", "step => 10")?;
    let mut taken = take(&mut client, "t", 33)?;
    let worker = wait_for_id(&mut client).and_then(|_| status::<i32>(&mut client, "worker_id"))?;
    for (begin, end) in [("begin", "rollback"), ("begin; savepoint s", "rollback to s; commit")] {
        client.run(&format!("{begin}; {JOIN}; {end}"))?;
        assert_eq!(client.one::<i64>("select count(*) from snowflake_ids.registry_server")?, 0);
        taken.extend(take(&mut client, "t", 100)?);
        create(&mut client, &format!("after {end}"), "")?;
        assert_eq!(status::<String>(&mut client, "scope")?, LOCAL);
        snowflakes::next(&mut client)?;
        assert_eq!(status::<i32>(&mut client, "worker_id")?, worker);
    }
    client.run(JOIN)?;
    taken.extend(take(&mut client, "t", 100)?);
    client.run(&format!("begin; {LEAVE}; rollback"))?;
    taken.extend(take(&mut client, "t", 100)?);
    wait::until_true("the shared registry", || Ok(status::<String>(&mut client, "scope")? == SHARED))?;
    ids::growing(&taken)
}

/// Ids taken within a joining transaction do not repeat either.
fn ids_taken_by_the_transaction_that_joins_do_not_come_again(cluster: &mut Cluster) -> Result<()> {
    let mut client = cluster.session()?;
    create(&mut client, "t", "step => 10")?;
    let mut taken = take(&mut client, "t", 33)?;
    for call in [JOIN, LEAVE] {
        for end in ["rollback", "commit"] {
            // Calls after the transaction may wait, because a worker whose reservation failed on a lock retries after a second.
            client.run("begin; set local snowflake_ids.segment_wait_timeout = '300ms'")?;
            client.run(call)?;
            match take(&mut client, "t", 33) {
                Ok(ids) => {
                    taken.extend(ids);
                    client.run(end)?;
                }
                Err(error) => {
                    println!("{call}; {end}: {error:#}");
                    client.run(&format!("rollback; begin; {call}; {end}"))?;
                }
            }
            taken.extend(take(&mut client, "t", 100)?);
        }
    }
    ids::unique(taken)
}

#[test]
fn who_leaves_goes_on_above_all_that_was_received_and_is_told_of_the_danger() -> Result<()> {
    let cluster = Cluster::start(2)?;
    cluster.create("t", "step => 10, max_step => 10")?;
    let mut clients = [cluster.session()?, cluster.nodes[1].connect("postgres")?];
    let mut taken = Vec::new();
    for client in &mut clients {
        taken.extend(take(client, "t", 25)?);
    }
    let [client, _] = &mut clients;
    let highest = received(client, "t")?;
    client.run("set log_min_messages = notice")?;
    client.run(LEAVE)?;
    let told = |line: &str| line.contains("NOTICE") && !line.contains("does not exist");
    assert!(cluster.nodes[0].log().lines().any(told), "{}", cluster.nodes[0].log());
    let after = take(client, "t", 50)?;
    assert!(after[0] > highest, "{} after {highest}", after[0]);
    create(client, "new", "")?;
    assert_eq!(next(client, "new")?, 1);
    assert_eq!(client.one::<i64>("select count(*) from snowflake_ids.registry_server")?, 0);
    wait_for_id(client)?;
    wait::until_true("a lease of its own", || Ok(status::<String>(client, "scope")? == LOCAL))?;
    // The node joins again, above the ids of the node and of the registry.
    client.run(JOIN)?;
    assert!(next(client, "t")? > after[49]);
    ids::unique(taken)
}

/// After a promotion, the next reservation begins above the handed-over id, wherever the tag's ids begin.
fn a_promotion_skips_as_far_in_what_is_handed_over_as_in_what_is_reserved(
    cluster: &mut Cluster,
) -> Result<()> {
    let registry = &cluster.registry;
    let mut client = registry.connect("postgres")?;
    for (number, definition) in [
        "start => 1000000000, step => 1000, max_step => 1000000",
        "step => 10, max_step => 20",
        "step => 10, max_step => 20, increment => 7, remainder => 3",
        "step => 10, max_step => 1000, max_value => 100",
        "start => 5, max_value => 5",
    ]
    .iter()
    .enumerate()
    {
        let tag = format!("t{number}");
        create(&mut client, &tag, definition)?;
        client
            .run(&format!("update snowflake_ids.segment set timeline = 0, max_id = 0 where tag = '{tag}'"))?;
        let asked =
            r#"{"version":1,"registry":null,"timeout":{"secs":1,"nanos":0},"ask":{"Tags":{"after":null}}}"#;
        let told: String = client.one(&format!("select snowflake_ids.registry_take_over('{asked}')"))?;
        let handed: i64 = client
            .query_one(
                "select (r ->> 'max_id')::bigint from jsonb_array_elements($1::text::jsonb #> '{said,Tags}') r
                 where r ->> 'tag' = $2",
                &[&told, &tag],
            )?
            .get(0);
        // Computes the tag's next number above the handed-over id.
        let (increment, remainder, start): (i64, i64, i64) = (
            row(&mut client, &tag, "increment")?,
            row(&mut client, &tag, "remainder")?,
            row(&mut client, &tag, "start")?,
        );
        let from = (handed + 1).max(start);
        let expected = from + (remainder - from).rem_euclid(increment);
        assert_eq!(next(&mut client, &tag)?, expected, "{definition}: handed over at {handed}");
    }
    Ok(())
}

#[test]
fn tags_are_handed_over() -> Result<()> {
    Cluster::cases_of_strangers(cases![
        a_rollback_leaves_all_as_it_was,
        local_tags_are_handed_over_with_their_terms_and_go_on_above_their_ids,
        what_was_reserved_before_is_not_given_back_below_the_ids_that_are_handed_over,
        a_tag_that_two_servers_had_goes_on_above_both,
        ids_taken_by_the_transaction_that_joins_do_not_come_again,
        a_promotion_skips_as_far_in_what_is_handed_over_as_in_what_is_reserved
    ])
}
