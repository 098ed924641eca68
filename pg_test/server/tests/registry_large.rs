//! Many tags that are handed over at once.

use snowflake_ids_server_tests::cluster::{JOIN, LEAVE, NAME, ROLE, node, row};
use snowflake_ids_server_tests::prelude::*;
use snowflake_ids_server_tests::segments::{TIMEOUT, create, next};

/// More tags than fit into one request or response.
const TAGS: i64 = 9_000;

/// A registry with one tag, and a server with many tags that knows the registry. The registry's table of tags was last analyzed when
/// it had only the row of that tag.
fn strangers(tags: i64) -> Result<(Server, Server, Client)> {
    let registry = auto().start()?;
    let mut at_registry = registry.serve_nodes()?;
    create(&mut at_registry, "there", "")?;
    at_registry.run("vacuum analyze snowflake_ids.segment")?;
    let node = node().set("snowflake_ids.registry_timeout", "1h").start()?;
    let mut client = node.introduce(NAME, &[registry.port()])?;
    client.run(&format!(
        "insert into snowflake_ids.segment (tag, max_id) select 'tag ' || i, i from generate_series(1, {tags}) as i"
    ))?;
    Ok((registry, node, client))
}

/// The number of rows that sequential scans of the table of tags read. Waits until the statistics include this many changes.
fn rows_passed(server: &Server, changes: i64) -> Result<i64> {
    let mut client = server.connect("postgres")?;
    wait::until(TIMEOUT, "the counts of sessions that have ended", || {
        let counts = client.query_one(
            "select n_tup_ins + n_tup_upd, seq_tup_read from pg_stat_user_tables where relid = 'snowflake_ids.segment'::regclass",
            &[],
        )?;
        Ok((counts.get::<_, i64>(0) >= changes).then(|| counts.get(1)))
    })
}

/// The number of nodes' requests that wait for a lock in the registry.
fn waiting(registry: &mut Client) -> Result<i64> {
    // The wait event in pg_stat_activity is null for moments, while a session checks its surroundings.
    let locks = "pg_locks join pg_stat_activity using (pid) where not granted";
    registry.one(&format!("select count(*) from {locks} and usename = '{ROLE}'"))
}

#[test]
fn tags_are_handed_over_and_taken_back_without_passing_over_all_for_each() -> Result<()> {
    let (registry, node, mut client) = strangers(TAGS)?;
    let mut at_registry = registry.connect("postgres")?;
    let highest = "select sum(max_id)::bigint from snowflake_ids.segment";
    let before: i64 = client.one(highest)?;
    client.run(JOIN)?;
    assert_eq!(at_registry.one::<i64>(highest)?, before);
    assert_eq!(client.one::<i64>("select count(*) from snowflake_ids.received")?, TAGS);
    let mut taken = vec![next(&mut client, "tag 9")?];
    // Ids received from another registry are handed over too, and raise the registry's rows.
    at_registry.run("update snowflake_ids.segment set max_id = 0")?;
    let refused = client.error(JOIN)?;
    assert!(
        refused.detail().is_some_and(|detail| detail.contains("row records ids only up to 0")),
        "{refused:?}"
    );
    client.run("update snowflake_ids.received set identity = 'another'")?;
    client.run(JOIN)?;
    let received = "select sum(max_id)::bigint from snowflake_ids.received";
    let of_both = client.one::<i64>(received)?;
    assert_eq!(2 * at_registry.one::<i64>(highest)?, of_both);
    // The highest received id of each tag is compared with the tag's row.
    client.run(JOIN)?;
    client.run("vacuum analyze snowflake_ids.segment")?;
    client.run(LEAVE)?;
    taken.push(next(&mut client, "tag 9")?);
    ids::growing(&taken)?;
    client.close()?;
    let changes = 2 * TAGS;
    for (server, changes) in [(&registry, changes), (&node, TAGS)] {
        let passed = rows_passed(server, changes)?;
        assert!(passed < 30 * TAGS, "{passed} rows passed for {TAGS} tags");
    }
    Ok(())
}

#[test]
fn where_one_tag_is_not_fit_none_is_handed_over() -> Result<()> {
    let (registry, _node, mut client) = strangers(TAGS)?;
    let mut at_registry = registry.connect("postgres")?;
    // This tag is the last in sort order.
    create(&mut client, "zero", "")?;
    create(&mut at_registry, "zero", "reset => 'year'")?;
    let error = client.error(JOIN)?;
    assert!(error.message().contains("segment tag \"zero\" there cannot be used"), "{error:?}");
    let tags = at_registry.column::<String>("select tag from snowflake_ids.segment order by 1")?;
    assert_eq!(tags, ["there", "zero"]);
    assert_eq!(client.one::<i64>("select count(*) from snowflake_ids.registry_server")?, 0);
    assert_eq!(next(&mut client, "tag 9")?, 10);
    Ok(())
}

/// If a hand-over is cancelled while it waits for a lock at the registry, the registry keeps nothing of the call: no waiting
/// session, no lock, no tag.
#[test]
fn a_hand_over_that_is_given_up_ends_in_the_registry() -> Result<()> {
    let (registry, node, mut client) = strangers(5)?;
    let mut at_registry = registry.connect("postgres")?;
    create(&mut at_registry, "tag 5", "")?;
    let mut owner = registry.connect("postgres")?;
    for killed in [false, true] {
        let mut locked = owner.transaction()?;
        locked.batch_execute("select 1 from snowflake_ids.segment where tag = 'tag 5' for update")?;
        let mut joining = node.connect("postgres")?;
        let pid = joining.process()?;
        let cancel = joining.cancel_token();
        let joins = thread::spawn(move || joining.error(JOIN));
        wait::until_true("the hand-over to wait for the row", || Ok(waiting(&mut at_registry)? > 0))?;
        if killed {
            client.query_one("select pg_terminate_backend($1)", &[&pid])?;
        } else {
            cancel.cancel_query(NoTls)?;
        }
        let ended = joins.ended();
        if !killed {
            assert_eq!(ended?.code(), &SqlState::QUERY_CANCELED);
        }
        // The hand-over has ended at the node, and the row is still locked.
        wait::until_true("the hand-over to end in the registry", || Ok(waiting(&mut at_registry)? == 0))?;
        locked.rollback()?;
        let tags = at_registry.column::<String>("select tag from snowflake_ids.segment order by 1")?;
        assert_eq!(tags, ["tag 5", "there"]);
        assert_eq!(row::<i64>(&mut at_registry, "tag 5", "max_id")?, 0);
    }
    client.run(JOIN)?;
    assert_eq!(row::<i64>(&mut at_registry, "tag 5", "max_id")?, 5);
    Ok(())
}
