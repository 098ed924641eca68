//! Nothing is handed over to a registry that is behind the ids that the node received from it. A registry raised above one node's
//! ids would look correct to all nodes.

use snowflake_ids_server_tests::cluster::{JOIN, LEAVE, NAME, ROLE, received, row, strangers};
use snowflake_ids_server_tests::prelude::*;
use snowflake_ids_server_tests::segments::{TIMEOUT, create, next, settled, take};

/// All rows of a registry's tags.
const TAGS: &str =
    "select coalesce(string_agg(s::text, E'\\n' order by tag), '') from snowflake_ids.segment s";
/// All of a node's rows about its registries.
const NODE: &str =
    "select (select string_agg(r::text, E'\\n' order by identity, tag) from snowflake_ids.received r)
    || (select string_agg(r::text, E'\\n' order by position) from snowflake_ids.registry_server r)";

/// A copy of the registry in its present state.
fn copy(registry: &mut Server) -> Result<Server> {
    registry.stop(Shutdown::Fast)?;
    let copy = registry.copy()?;
    registry.start_again()?;
    Ok(copy)
}

/// Checks that a statement at a node is refused for this tag at its registry with these words, and changes nothing there.
fn refused(
    registry: &Server,
    client: &mut Client,
    statement: &str,
    tag: &str,
    words: &[&str],
) -> Result<DbError> {
    let mut at_registry = registry.connect("postgres")?;
    let before: String = at_registry.one(TAGS)?;
    let error = client.fails(statement, sql::NOT_IN_STATE)?;
    let message = format!("cannot use registry \"{NAME}\": segment tag \"{tag}\" there cannot be used");
    assert_eq!(error.message(), message, "{error:?}");
    let (detail, hint) = (error.detail().context("no DETAIL")?, error.hint().context("no HINT")?);
    for word in words {
        assert!(detail.contains(word) || hint.contains(word), "no {word}: {error:?}");
    }
    assert_eq!(at_registry.one::<String>(TAGS)?, before, "{statement} changed the registry");
    Ok(error)
}

/// Waits until this many sessions of nodes wait for a row of the registry.
fn waits(registry: &mut Client, sessions: i64) -> Result<()> {
    let waiting = format!(
        "select count(*) from pg_stat_activity where wait_event_type = 'Lock' and usename = '{ROLE}'"
    );
    wait::until_true("hand-overs to wait for a row", || Ok(registry.one::<i64>(&waiting)? >= sessions))
}

fn raise(registry: &Server, tag: &str, highest: i64) -> Result<()> {
    let raise = format!("select snowflake_ids.segment_raise('{tag}', {highest})");
    registry.connect("postgres")?.run(&raise)
}

/// Each node is refused until the tag is raised above the ids of both nodes. Leaving the registry in between does not help.
#[test]
fn who_received_more_does_not_join_until_the_tag_is_raised() -> Result<()> {
    let mut cluster = Cluster::start(2)?;
    cluster.create("t", "step => 10, max_step => 10")?;
    let mut clients = [cluster.session()?, cluster.nodes[1].connect("postgres")?];
    let mut taken = Vec::new();
    for client in &mut clients {
        taken.extend(take(client, "t", 30)?);
    }
    let old = copy(&mut cluster.registry)?;
    for client in &mut clients {
        taken.extend(take(client, "t", 100)?);
        settled(client, "t")?;
    }
    cluster.registry.replace_by(old)?;

    for client in &mut clients {
        let before: String = client.one(NODE)?;
        let highest = format!("Ids up to {} were received from this registry before", received(client, "t")?);
        refused(&cluster.registry, client, JOIN, "t", &[&highest, "segment_raise('t', id)"])?;
        assert_eq!(client.one::<String>(NODE)?, before);
    }
    let [first, second] = &mut clients;
    second.run(LEAVE)?;
    let alone = take(second, "t", 30)?;
    refused(&cluster.registry, second, JOIN, "t", &["segment_raise('t', id)"])?;
    let highest = received(first, "t")?.max(received(second, "t")?).max(row(second, "t", "max_id")?);
    raise(&cluster.registry, "t", highest)?;
    for client in &mut clients {
        client.run(JOIN)?;
        taken.extend(take(client, "t", 100)?);
    }
    // The node that had left gave ids that other nodes may have had. No node itself gave an id twice.
    assert!(alone.iter().all(|id| *id <= highest));
    ids::unique(taken)
}

/// Handed-over ids were recorded as received, so a lost tag is not created again.
#[test]
fn a_tag_that_was_handed_over_and_lost_is_not_made_again() -> Result<()> {
    let (mut registry, _node, mut client) = strangers()?;
    create(&mut client, "own", "step => 10, max_step => 10")?;
    create(&mut client, "zzz", "")?;
    let mut taken = take(&mut client, "own", 30)?;
    let old = copy(&mut registry)?;
    client.run(JOIN)?;
    taken.extend(take(&mut client, "own", 30)?);
    settled(&mut client, "own")?;
    registry.replace_by(old)?;

    let gone = format!(
        "The registry no longer has the tag; ids up to {} were received",
        received(&mut client, "own")?
    );
    refused(
        &registry,
        &mut client,
        JOIN,
        "own",
        &[&gone, "segment_create('own', start => id)", "DELETE FROM"],
    )?;
    // These are the statements that the HINT names.
    let above = received(&mut client, "own")? + 1;
    let mut at_registry = registry.connect("postgres")?;
    create(&mut at_registry, "own", &format!("step => 10, max_step => 10, start => {above}"))?;
    refused(&registry, &mut client, JOIN, "zzz", &["no longer has the tag"])?;
    create(&mut at_registry, "zzz", "")?;
    client.run(JOIN)?;
    taken.extend(take(&mut client, "own", 30)?);
    ids::growing(&taken)
}

/// The column's ids would raise the tag far above all lost ids.
#[test]
fn a_column_is_not_attached_to_a_tag_that_was_set_back() -> Result<()> {
    let mut cluster = Cluster::start(1)?;
    cluster.create("t", "step => 10, max_step => 10")?;
    let mut client = cluster.session()?;
    take(&mut client, "t", 30)?;
    let old = copy(&mut cluster.registry)?;
    cluster.create("since", "step => 10, max_step => 10")?;
    for (tag, count) in [("t", 100), ("since", 30)] {
        take(&mut client, tag, count)?;
        settled(&mut client, tag)?;
    }
    cluster.registry.replace_by(old)?;
    client.run(
        "create table c (id bigint, note int); insert into c select n, n from generate_series(1, 1000) n",
    )?;

    let attach = |tag| format!("select snowflake_ids.attach('c', 'id', 'segment', '{tag}')");
    refused(&cluster.registry, &mut client, &attach("t"), "t", &["segment_raise('t', id)"])?;
    refused(
        &cluster.registry,
        &mut client,
        &attach("since"),
        "since",
        &["segment_create('since', start => id)"],
    )?;
    let default = "select count(*) from pg_attrdef where adrelid = 'c'::regclass";
    assert_eq!(client.one::<i64>(default)?, 0);
    // A problem of one tag does not affect another.
    client.run("create table d (id bigint); insert into d values (7)")?;
    client.run("select snowflake_ids.attach('d', 'id', 'segment', 'other')")?;
    raise(&cluster.registry, "t", received(&mut client, "t")?)?;
    client.run(&attach("t"))?;
    assert!(client.one::<i64>("insert into c (note) values (0) returning id")? > 1000);
    Ok(())
}

/// The statement in the HINT works.
#[test]
fn a_tag_that_was_dropped_on_purpose_is_forgotten_where_that_is_said() -> Result<()> {
    let cluster = Cluster::start(1)?;
    let mut client = cluster.session()?;
    for tag in ["t", "u"] {
        cluster.create(tag, "step => 10, max_step => 10")?;
        take(&mut client, tag, 5)?;
        settled(&mut client, tag)?;
    }
    let mut registry = cluster.registry.connect("postgres")?;
    registry.run("select snowflake_ids.segment_drop('t')")?;
    let error = refused(&cluster.registry, &mut client, JOIN, "t", &["no longer has the tag", "on purpose"])?;
    let delete = "DELETE FROM snowflake_ids.received WHERE tag = 't'";
    assert!(error.hint().is_some_and(|hint| hint.contains(delete)), "{error:?}");
    client.run(delete)?;
    client.run(JOIN)?;
    let tags = registry.column::<String>("select tag from snowflake_ids.segment")?;
    assert_eq!(tags, ["u"], "it is not made again");
    create(&mut registry, "t", "step => 10, max_step => 10")?;
    assert_eq!(wait::until(TIMEOUT, "an id", || Ok(next(&mut client, "t").ok()))?, 1);
    Ok(())
}

/// The check compares days as a reservation does: by the registry's own day, which may have begun meanwhile.
#[test]
fn days_count_as_they_do_for_a_reservation() -> Result<()> {
    let cluster = Cluster::start(1)?;
    cluster.create("t", "step => 10, max_step => 10, reset => 'day'")?;
    let mut client = cluster.session()?;
    take(&mut client, "t", 5)?;
    settled(&mut client, "t")?;
    let recorded = |client: &mut Client, period: &str| {
        client
            .batch_execute(&format!("update snowflake_ids.received set period = {period}, max_id = 1000000"))
    };
    // These days are over, or have not begun, in every time zone of the test.
    recorded(&mut client, "current_date - 3")?;
    client.run(JOIN)?;
    recorded(&mut client, "current_date + 3")?;
    refused(
        &cluster.registry,
        &mut client,
        JOIN,
        "t",
        &["Ids of a later period, up to 1000000, were received"],
    )?;
    recorded(&mut client, "null")?;
    refused(&cluster.registry, &mut client, JOIN, "t", &["The tag now starts over each day, month or year"])?;
    client.run("delete from snowflake_ids.received")?;
    client.run(JOIN)?;
    next(&mut client, "t")?;
    Ok(())
}

/// Ids from another registry, such as a predecessor, reveal no fault of this registry. They raise this registry's rows.
#[test]
fn what_came_from_another_registry_raises_this_one() -> Result<()> {
    let cluster = Cluster::start(1)?;
    cluster.create("t", "step => 10, max_step => 10")?;
    let mut client = cluster.session()?;
    next(&mut client, "t")?;
    client.run(
        "insert into snowflake_ids.received (identity, tag, max_id) values ('another', 't', 5000), ('another', 'a', 7);
         select snowflake_ids.use_registry('central')",
    )?;
    assert!(next(&mut client, "t")? > 5000);
    assert_eq!(row::<i64>(&mut cluster.registry.connect("postgres")?, "a", "max_id")?, 7);
    Ok(())
}

/// Rows to compare and rows to hand over are locked in one common order, so no two nodes wait for each other.
#[test]
fn nodes_that_compare_different_tags_do_not_wait_for_each_other() -> Result<()> {
    let cluster = Cluster::start(2)?;
    for tag in ["b", "c"] {
        cluster.create(tag, "")?;
    }
    // Without a common order, the second node would lock "c" first. Each node would then wait for the other.
    for (node, [its, other]) in cluster.nodes.iter().zip([["b", "c"], ["c", "b"]]) {
        node.connect("postgres")?.run(&format!(
            "insert into snowflake_ids.received (identity, tag, max_id)
             select identity, '{its}', 0 from snowflake_ids.registry_server union all select 'another', '{other}', 0"
        ))?;
    }
    let mut owner = cluster.registry.connect("postgres")?;
    let mut locked = owner.transaction()?;
    locked.batch_execute("select 1 from snowflake_ids.segment where tag = 'b' for update")?;
    let mut registry = cluster.registry.connect("postgres")?;
    let mut joining = Vec::new();
    for (node, others) in cluster.nodes.iter().zip(1..) {
        let mut client = node.connect("postgres")?;
        joining.push(thread::spawn(move || client.batch_execute(JOIN)));
        waits(&mut registry, others)?;
    }
    locked.rollback()?;
    for joins in joining {
        joins.ended()?;
    }
    Ok(())
}

/// The hand-over waits for a row that is being set back, and then compares its new state.
#[test]
fn a_row_that_is_set_back_meanwhile_is_not_raised() -> Result<()> {
    let cluster = Cluster::start(1)?;
    cluster.create("t", "step => 10, max_step => 10")?;
    take(&mut cluster.session()?, "t", 30)?;
    for change in ["segment_set('t', 1, true)", "segment_drop('t')"] {
        let mut owner = cluster.registry.connect("postgres")?;
        let mut changed = owner.transaction()?;
        changed.batch_execute(&format!("select snowflake_ids.{change}"))?;
        let mut client = cluster.session()?;
        let joins = thread::spawn(move || client.error(JOIN));
        let mut registry = cluster.registry.connect("postgres")?;
        waits(&mut registry, 1)?;
        changed.commit()?;
        let error = joins.ended()?;
        assert!(error.message().contains("segment tag \"t\" there cannot be used"), "{change}: {error:?}");
    }
    Ok(())
}
