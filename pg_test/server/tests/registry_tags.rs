//! Changes of a registry's tag: attaching, dropping and leaving. The registry is another database of the same server.

use snowflake_ids_server_tests::cluster::{JOIN, LEAVE, NAME, received, refused_with, row, wait_at_most};
use snowflake_ids_server_tests::prelude::*;
use snowflake_ids_server_tests::segments::{create, next, take, take_until_refused};

/// A database that knows the registry but has not joined it.
fn stranger(server: &Server, name: &str) -> Result<Client> {
    let mut client = server.create_database(name)?;
    server.connect_from(&mut client, NAME, "postgres")?;
    Ok(client)
}

/// A database that uses the registry.
fn node(server: &Server, name: &str) -> Result<Client> {
    let mut client = stranger(server, name)?;
    client.run(JOIN)?;
    Ok(client)
}

fn attach(client: &mut Client, table: &str) -> Result<()> {
    client.run(&format!("select snowflake_ids.attach('{table}', 'id', 'segment', 'orders')"))
}

fn insert(client: &mut Client, table: &str, rows: usize) -> Result<Vec<i64>> {
    client.column(&format!(
        "insert into {table} (note) select n from generate_series(1, {rows}) n returning id"
    ))
}

fn ids_that_were_reserved_before_a_column_was_attached_are_not_given_to_it(
    server: &mut Server,
) -> Result<()> {
    server.session()?;
    let mut client = node(server, "node")?;
    client.run(
        "set snowflake_ids.segment_auto_create = on;
         create table a (id bigint, note int); create table b (id bigint, note int);
         insert into b select n, n from generate_series(1, 700) n",
    )?;
    attach(&mut client, "a")?;
    let mut first = insert(&mut client, "a", 100)?;
    // Two tables share a tag. The second table's ids are above those in the buffers.
    attach(&mut client, "b")?;
    first.extend(insert(&mut client, "a", 100)?);
    let mut second: Vec<i64> = (1..=700).collect();
    second.extend(insert(&mut client, "b", 300)?);
    assert!(second[700] > 700, "{} after 700", second[700]);
    ids::unique(second)?;
    // Rows are imported, and the column is attached again.
    client.run("insert into b select n, n from generate_series(50001, 51500) n")?;
    attach(&mut client, "b")?;
    assert!(received(&mut client, "orders")? >= 51_500);
    let after = insert(&mut client, "b", 1000)?;
    assert!(after[0] > 51_500, "{} after 51500", after[0]);
    ids::unique(first)
}

/// Ids reserved by another server stay its own until an operator discards them there.
fn what_another_node_holds_is_taken_away_where_that_is_asked_for(server: &mut Server) -> Result<()> {
    let mut registry = server.session()?;
    create(&mut registry, "orders", "")?;
    let [mut client, mut other] = [node(server, "node")?, node(server, "other")?];
    next(&mut other, "orders")?;
    client.run("create table a (id bigint, note int); insert into a values (5000)")?;
    attach(&mut client, "a")?;
    other.run("select snowflake_ids.segment_discard('orders')")?;
    let mut taken = take(&mut other, "orders", 10)?;
    assert!(taken[0] > 5000, "{} after 5000", taken[0]);
    // Discarding a tag's reserved ids at the tag's own server leaves a gap, and repeats nothing.
    registry.run("select snowflake_ids.segment_create('own')")?;
    let mut own = take(&mut registry, "own", 10)?;
    registry.run("select snowflake_ids.segment_discard('own')")?;
    own.extend(take(&mut registry, "own", 10)?);
    ids::growing(&own)?;
    taken.extend(insert(&mut client, "a", 10)?);
    ids::unique(taken)
}

/// The registry is raised at once, so ids are above the column's ids even before the commit and after a rollback.
fn a_transaction_that_attaches_takes_ids_above_the_columns(server: &mut Server) -> Result<()> {
    server.session()?;
    let mut client = node(server, "node")?;
    client.run(
        "set snowflake_ids.segment_auto_create = on; create table a (id bigint, note int);
         insert into a select n, n from generate_series(1, 700) n",
    )?;
    let mut taken = take(&mut client, "orders", 100)?;
    for end in ["rollback", "commit"] {
        client.run("begin; savepoint s")?;
        attach(&mut client, "a")?;
        client.run("rollback to s")?;
        attach(&mut client, "a")?;
        taken.extend(insert(&mut client, "a", 100)?);
        client.run(end)?;
        taken.extend(take(&mut client, "orders", 100)?);
    }
    assert!(taken[100] > 700, "{} after 700", taken[100]);
    ids::growing(&taken)
}

fn a_tag_that_was_dropped_does_not_come_to_life_again_by_who_must_not_make_tags(
    server: &mut Server,
) -> Result<()> {
    let mut registry = server.session()?;
    let mut client = node(server, "node")?;
    client.run("set snowflake_ids.segment_auto_create = on")?;
    next(&mut client, "t")?;
    registry.run("select snowflake_ids.segment_drop('t')")?;
    let mut other = server.connect("node")?;
    let (_, error) = take_until_refused(&mut other, "t");
    let error = error.downcast::<postgres::Error>()?;
    assert_eq!(error.code(), Some(&SqlState::UNDEFINED_OBJECT), "{error:?}");
    let count = "select count(*) from snowflake_ids.segment where tag = 't'";
    assert_eq!(registry.one::<i64>(count)?, 0, "the tag is there again");
    // Calls of roles that may create tags do not create the tag either. Other databases would then get ids that this database has
    // received.
    wait_at_most(&mut client, Duration::from_secs(2))?;
    refused_with(&mut client, "t", &["segment_create"])?;
    assert_eq!(registry.one::<i64>(count)?, 0, "the tag is there again");
    // A tag without received ids is created.
    assert_eq!(next(&mut client, "another")?, 1);
    Ok(())
}

fn who_leaves_goes_on_by_the_terms_that_the_registry_has(server: &mut Server) -> Result<()> {
    const DEFINITION: &str =
        "row(step, max_step, increment, remainder, start, max_value, reset, time_zone, format)::text";
    let mut registry = server.session()?;
    let mut client = stranger(server, "node")?;
    create(&mut client, "t", "step => 10")?;
    create(&mut client, "ended", "")?;
    take(&mut client, "t", 20)?;
    client.run(JOIN)?;
    registry.run(
        "select snowflake_ids.segment_alter('t', increment => 10, remainder => 3, step => 50, max_step => 500,
                                            max_value => 99999, format => 'Z{n:7}');
         select snowflake_ids.segment_alter('ended', increment => 7);
         update snowflake_ids.segment set start = 4000 where tag = 't'",
    )?;
    let taken = take(&mut client, "t", 2000)?;
    client.run(LEAVE)?;
    let definition = row::<String>(&mut client, "t", DEFINITION)?;
    assert_eq!(definition, row::<String>(&mut registry, "t", DEFINITION)?);
    let after = take(&mut client, "t", 100)?;
    assert!(after[0] > taken[1999] && after.iter().all(|id| id % 10 == 3), "{after:?}");
    assert_eq!(next(&mut client, "ended")? % 7, 0);
    let text: String = client.one("select segment_nextval_text('t')")?;
    assert!(text.starts_with('Z'), "{text}");
    // A registry that does not answer reveals no definitions. The database keeps the definitions that it had when it last left.
    client.run(&format!("{JOIN}; alter server {NAME} options (set port '1')"))?;
    registry.run("select snowflake_ids.segment_alter('t', increment => 20)")?;
    client.run(LEAVE)?;
    assert_eq!(row::<String>(&mut client, "t", DEFINITION)?, definition);
    Ok(())
}

/// A saved range lies below the highest received id. A column that is attached before the range is used may contain ids of the
/// range.
fn what_was_left_over_is_not_given_to_a_column_that_has_it(server: &mut Server) -> Result<()> {
    let mut registry = server.session()?;
    create(&mut registry, "orders", "step => 1000")?;
    let mut client = node(server, "node")?;
    let last = next(&mut client, "orders")?;
    drop((client, registry));
    server.restart()?;
    let mut client = server.connect("node")?;
    let imported = last + 100;
    assert!(received(&mut client, "orders")? > imported);
    client.run(&format!("create table a (id bigint, note int); insert into a values ({imported})"))?;
    attach(&mut client, "a")?;
    let given = next(&mut client, "orders")?;
    assert!(given > imported, "{given} after {imported}");
    Ok(())
}

/// Runs a statement that waits for a lock until another session commits.
fn held_up(
    server: &Server,
    client: &mut Client,
    by: &mut Client,
    statement: &str,
) -> Result<Option<SqlState>> {
    let done = server.while_waiting(client, |client| client.batch_execute(statement), || by.run("commit"))?;
    Ok(done.err().and_then(|error| error.code().cloned()))
}

/// If the registries changed during an attach, neither the registry nor the local row would be raised.
fn the_registry_does_not_change_while_a_column_is_attached(server: &mut Server) -> Result<()> {
    let mut registry = server.session()?;
    create(&mut registry, "orders", "")?;
    let [mut client, mut other] = [node(server, "node")?, server.connect("node")?];
    client.run("create table a (id bigint, note int); insert into a values (5000)")?;
    client.run("begin")?;
    attach(&mut client, "a")?;
    assert_eq!(held_up(server, &mut other, &mut client, LEAVE)?, None);
    assert!(next(&mut client, "orders")? > 5000);

    // The other way round: the registry changes first.
    client.run("insert into a values (9000)")?;
    client.run(&format!("begin; {JOIN}"))?;
    let attached = "select snowflake_ids.attach('a', 'id', 'segment', 'orders')";
    let refused = held_up(server, &mut other, &mut client, attached)?;
    assert_eq!(refused, Some(SqlState::T_R_SERIALIZATION_FAILURE));
    attach(&mut other, "a")?;
    assert!(next(&mut client, "orders")? > 9000);
    Ok(())
}

fn a_role_that_manages_tags_attaches_columns_to_a_tag_of_the_registry(server: &mut Server) -> Result<()> {
    server.session()?;
    let mut client = node(server, "node")?;
    client.run(
        "create role clerk; grant create on schema public to clerk;
         select snowflake_ids.administration_grant('tags', 'clerk'); set role clerk;
         create table mine (id bigserial, note int); insert into mine (note) values (1), (2);
         select snowflake_ids.attach('mine', 'id', 'segment')",
    )?;
    let ids = insert(&mut client, "mine", 2)?;
    client.run("reset role; drop owned by clerk; drop role clerk")?;
    assert_eq!(ids, [3, 4]);
    Ok(())
}

#[test]
fn tags_of_a_registry_change() -> Result<()> {
    Server::builder().set("snowflake_ids.registry_timeout", "20s").cases(cases![
        ids_that_were_reserved_before_a_column_was_attached_are_not_given_to_it,
        what_another_node_holds_is_taken_away_where_that_is_asked_for,
        a_transaction_that_attaches_takes_ids_above_the_columns,
        a_tag_that_was_dropped_does_not_come_to_life_again_by_who_must_not_make_tags,
        who_leaves_goes_on_by_the_terms_that_the_registry_has,
        what_was_left_over_is_not_given_to_a_column_that_has_it,
        the_registry_does_not_change_while_a_column_is_attached,
        a_role_that_manages_tags_attaches_columns_to_a_tag_of_the_registry
    ])
}
