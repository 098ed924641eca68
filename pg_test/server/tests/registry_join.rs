//! Joining a registry: its checks and its effects.

use snowflake_ids_server_tests::cluster::{
    JOIN, LEAVE, NAME, PASSWORD, ROLE, becomes, node, row, said, strangers,
};
use snowflake_ids_server_tests::port::Port;
use snowflake_ids_server_tests::prelude::*;
use snowflake_ids_server_tests::registry::{held, serving};
use snowflake_ids_server_tests::segments::{create, next, take};
use snowflake_ids_server_tests::snowflakes::{self, status};
use std::net::TcpListener;

const LOCAL: &str = "this server only";
const SHARED: &str = "shared registry";

/// Creates a foreign server with some options changed.
fn variant(client: &mut Client, name: &str, options: &str, mapping: &str) -> Result<()> {
    client.run(&format!(
        "create server {name} foreign data wrapper postgres_fdw options ({options});
         create user mapping for postgres server {name} options ({mapping})"
    ))?;
    Ok(())
}

/// Checks that using these servers is refused by an error that names one of them, and changes nothing.
fn refused(client: &mut Client, servers: &str, name: &str) -> Result<DbError> {
    let error = client.error(&format!("select snowflake_ids.use_registry({servers})"))?;
    assert!(said(&error).contains(name), "\"{name}\" is not named: {error:?}");
    assert_eq!(client.one::<i64>("select count(*) from snowflake_ids.registry_server")?, 0);
    Ok(error)
}

/// Makes the extension report an older version in all of its responses.
const OLDER: &str = "
    alter extension snowflake_ids drop function snowflake_ids.registry_serve(text);
    alter function snowflake_ids.registry_serve(text) rename to now;
    create function snowflake_ids.registry_serve(asked text) returns text language sql security definer as
      $$ select replace(snowflake_ids.now(asked), extversion, '0.0.9') from pg_extension
         where extname = 'snowflake_ids' $$;
    grant execute on function snowflake_ids.registry_serve(text) to shard";

/// Creates unusable databases and roles on the registry, with foreign servers for them. Returns the port on which nobody listens.
fn unfit_registries(registry: &Server, node: &Server, client: &mut Client) -> Result<Port> {
    let mut at_registry = registry.connect("postgres")?;
    at_registry.run("create database bare")?;
    at_registry.run("create role poor login")?;
    registry.create_database("older")?.run(OLDER)?;
    let port = registry.port();
    let mapping = format!("user '{ROLE}', password '{PASSWORD}'");
    let at = |port: u16, database: &str| format!("host '127.0.0.1', port '{port}', dbname '{database}'");
    client.run(&format!(
        "create server unmapped foreign data wrapper postgres_fdw options ({})",
        at(port, "postgres")
    ))?;
    let closed = Port::free()?;
    variant(client, "closed", &at(closed.number(), "postgres"), &mapping)?;
    variant(client, "nodatabase", &at(port, "missing"), &mapping)?;
    variant(client, "wrongpassword", &at(port, "postgres"), &format!("user '{ROLE}', password 'wrong'"))?;
    variant(client, "bare", &at(port, "bare"), &mapping)?;
    variant(client, "older", &at(port, "older"), &mapping)?;
    variant(client, "poor", &at(port, "postgres"), "user 'poor'")?;
    variant(client, "itself", &at(node.port(), "postgres"), "user 'postgres'")?;
    Ok(closed)
}

fn what_stands_in_the_way_is_refused_by_name(cluster: &mut Cluster) -> Result<()> {
    let (registry, node, mut client) = (&cluster.registry, &cluster.nodes[0], cluster.session()?);
    let _closed = unfit_registries(registry, node, &mut client)?;
    for (name, codes) in [
        ("nowhere", vec!["42704"]),
        ("unmapped", vec!["42704"]),
        ("closed", vec!["08001"]),
        ("nodatabase", vec!["08001", "3D000"]),
        ("wrongpassword", vec!["08001", "28P01"]),
        ("bare", vec!["55000"]),
        ("older", vec!["55000"]),
        ("poor", vec!["42501"]),
        ("itself", vec!["22023"]),
    ] {
        let error = refused(&mut client, &format!("'{name}'"), name)?;
        assert!(codes.contains(&error.code().code()), "{name}: {error:?}");
        // A usable registry beside the unusable one does not help.
        refused(&mut client, &format!("'{NAME}', '{name}'"), name)?;
    }
    assert_eq!(status::<String>(&mut client, "scope")?, LOCAL);
    create(&mut client, "t", "")?;
    assert_eq!(next(&mut client, "t")?, 1);
    snowflakes::next(&mut client).map(drop)
}

/// A database that uses a registry cannot serve as a registry. The error names the registry to use instead.
fn a_node_is_refused_as_a_registry_with_its_own_advice(cluster: &mut Cluster) -> Result<()> {
    let (registry, mut client) = (&cluster.registry, cluster.session()?);
    let mut follower = registry.create_database("follower")?;
    follower.run(&format!(
        "create extension postgres_fdw;
         grant execute on function snowflake_ids.registry_serve(text) to {ROLE}"
    ))?;
    let port = registry.port();
    let mapping = format!("user '{ROLE}', password '{PASSWORD}'");
    let at = |database: &str| format!("host '127.0.0.1', port '{port}', dbname '{database}'");
    variant(&mut follower, NAME, &at("postgres"), &mapping)?;
    follower.run(JOIN)?;

    variant(&mut client, "follower", &at("follower"), &mapping)?;
    let error = refused(&mut client, "'follower'", "follower")?;
    assert_eq!(error.code(), sql::NOT_IN_STATE, "{error:?}");
    let words = said(&error);
    for part in [
        "this database is not a registry",
        "The database takes its own ids from registry \"central\".",
        "Use the same registry as this database, or make this database a registry with SELECT snowflake_ids.use_local_registry().",
    ] {
        assert!(words.contains(part), "\"{part}\" is not said: {words}");
    }
    Ok(())
}

fn names_that_are_none_and_users_that_may_not_are_refused(cluster: &mut Cluster) -> Result<()> {
    let mut client = cluster.session()?;
    for servers in ["null", "variadic '{}'", "'central', null", "'central', 'central'", "variadic null"] {
        let error = refused(&mut client, servers, "")?;
        assert_eq!(error.code(), &SqlState::INVALID_PARAMETER_VALUE, "{servers}: {error:?}");
    }
    client.run("create role app; set role app")?;
    for call in [JOIN, LEAVE] {
        client.fails(call, &SqlState::INSUFFICIENT_PRIVILEGE)?;
    }
    Ok(())
}

/// The listener never answers.
fn a_silent_registry_is_given_up(cluster: &mut Cluster) -> Result<()> {
    let (registry, node, mut client) = (&cluster.registry, &cluster.nodes[0], cluster.session()?);
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let port = listener.local_addr()?.port();
    drop(node.introduce("silent", &[port])?);
    node.reload("snowflake_ids.registry_timeout", "1s")?;
    let error = refused(&mut client, "'silent'", "silent")?;
    assert_eq!(error.code().code(), "08001", "{error:?}");
    node.reload("snowflake_ids.registry_timeout", "1h")?;
    let error = client.error_within("300ms", "select snowflake_ids.use_registry('silent')")?;
    assert_eq!(error.code(), &SqlState::QUERY_CANCELED, "{error:?}");
    assert_eq!(client.one::<i64>("select count(*) from snowflake_ids.registry_server")?, 0);

    // The node tries the next host in the list.
    node.reload("snowflake_ids.registry_timeout", "20s")?;
    drop(node.introduce("either", &[port, registry.port()])?);
    client.run("select snowflake_ids.use_registry('either')")?;
    create(&mut registry.connect("postgres")?, "t", "")?;
    assert_eq!(next(&mut client, "t")?, 1);
    Ok(())
}

#[test]
fn nodes_get_worker_ids_of_their_own_and_say_from_where() -> Result<()> {
    // The registry's own server does not lease a worker id from the registry.
    let cluster = Cluster::of(auto().set("snowflake_ids.worker_id", "31"), &node(), 3)?;
    cluster.create("t", "step => 100")?;
    let (mut workers, mut taken, mut loads) = (Vec::new(), Taken::default(), Vec::new());
    for node in &cluster.nodes {
        let mut client = node.connect("postgres")?;
        taken.ids.push(wait_for_id(&mut client)?);
        assert_eq!(status::<String>(&mut client, "scope")?, SHARED);
        assert_eq!(status::<String>(&mut client, "leased_from")?, NAME);
        assert_eq!(
            client.column::<String>("select server::text from snowflake_ids.registry_server")?,
            [NAME]
        );
        workers.push(status::<i32>(&mut client, "worker_id")?);
        next(&mut client, "t")?;
        becomes(&mut client, NAME, "up")?;
        loads.push(node.load(1)?);
    }
    workers.sort_unstable();
    workers.dedup();
    assert_eq!(workers.len(), 3, "each has one of its own: {workers:?}");
    let of_registry = "select worker_id from snowflake_ids.worker_lease where released_at is null order by 1";
    assert_eq!(cluster.registry.connect("postgres")?.column::<i32>(of_registry)?, workers);
    for load in loads {
        load.goes_on()?;
        taken.add(load.end());
    }
    assert!(taken.refusals.is_empty(), "{:?}", taken.refusals);
    taken.unique()
}

/// The server joins under load, and leaves again.
fn ids_flow_while_a_server_joins_and_leaves(cluster: &mut Cluster) -> Result<()> {
    let (registry, node, mut client) = (&cluster.registry, &cluster.nodes[0], cluster.session()?);
    create(&mut client, "t", "step => 100, max_step => 10000")?;
    wait_for_id(&mut client)?;
    let loads = [node.load(2)?, node.load_of_tag("t", 2)?];
    for call in [JOIN, LEAVE, JOIN] {
        for load in &loads {
            load.goes_on()?;
        }
        client.run(call)?;
        let scope = if call == JOIN { SHARED } else { LOCAL };
        wait::until_true(scope, || Ok(status::<String>(&mut client, "scope")? == scope))?;
    }
    assert!(row::<i64>(&mut registry.connect("postgres")?, "t", "max_id")? > 100);
    for load in loads {
        load.goes_on()?;
        let taken = load.end();
        assert!(taken.refusals.is_empty(), "{:?}", taken.refusals);
        taken.unique()?;
    }
    Ok(())
}

#[test]
fn a_node_leaves_the_tags_to_the_registry() -> Result<()> {
    let cluster = Cluster::start(1)?;
    let mut client = cluster.session()?;
    for call in [
        "segment_create('t')",
        "segment_alter('t', step => 5)",
        "segment_set('t', 5)",
        "segment_raise('t', 5)",
        "segment_drop('t')",
    ] {
        let error = client.fails(&format!("select snowflake_ids.{call}"), sql::NOT_IN_STATE)?;
        assert!(said(&error).contains(NAME), "{call}: {error:?}");
    }
    client.fails("select segment_nextval('t')", &SqlState::UNDEFINED_OBJECT)?;
    cluster.create("t", "start => 41")?;
    assert_eq!(take(&mut client, "t", 2)?, [41, 42], "the session needs no new connection");
    client.run("set snowflake_ids.segment_auto_create = on")?;
    assert_eq!(next(&mut client, "made on use")?, 1);
    assert!(row::<i64>(&mut cluster.registry.connect("postgres")?, "made on use", "max_id")? > 0);
    let listed =
        "select tag from snowflake_ids.segment_status where database = current_database() order by 1";
    assert_eq!(client.column::<String>(listed)?, ["made on use", "t"]);

    // The node's other databases do not use the registry.
    let mut other = cluster.nodes[0].create_database("other")?;
    create(&mut other, "t", "")?;
    assert_eq!(next(&mut other, "t")?, 1);
    Ok(())
}

/// Another session could commit the transaction long after the registry was told.
#[test]
fn a_transaction_that_joins_or_leaves_is_not_prepared() -> Result<()> {
    let registry = auto().start()?;
    let node = node().set("max_prepared_transactions", "1").start()?;
    registry.serve_nodes()?;
    let mut client = node.introduce(NAME, &[registry.port()])?;
    create(&mut client, "t", "step => 10")?;
    let mut taken = take(&mut client, "t", 33)?;
    for call in [JOIN, LEAVE] {
        client.run(&format!("begin; {call}"))?;
        client.fails("prepare transaction 'joins'", &SqlState::FEATURE_NOT_SUPPORTED)?;
        taken.extend(take(&mut client, "t", 100)?);
        client.run(call)?;
        taken.extend(take(&mut client, "t", 100)?);
    }
    ids::growing(&taken)
}

/// Two operators join and leave at the same time, without knowing of each other.
fn joining_and_leaving_at_once_repeats_nothing(cluster: &mut Cluster) -> Result<()> {
    let (node, mut client) = (&cluster.nodes[0], cluster.session()?);
    create(&mut client, "t", "step => 10, max_step => 100")?;
    let load = node.load_of_tag("t", 2)?;
    at_once(node.sessions("postgres", 2)?, |number, mut client| {
        for call in [JOIN, LEAVE, JOIN, LEAVE, JOIN].iter().skip(number) {
            client.run(call)?;
        }
        Ok(())
    })?;
    load.goes_on()?;
    let taken = load.end();
    assert!(taken.refusals.is_empty(), "{:?}", taken.refusals);
    taken.unique()
}

/// Another node of the registry may hold the worker id that the server leased from its own tables.
#[test]
fn a_registry_that_joins_another_leases_its_worker_id_there_at_once() -> Result<()> {
    let (registry, node, _) = strangers()?;
    let mut client = serving(&node)?;
    client.run("delete from snowflake_ids.worker_lease where host like 'elsewhere%'")?;
    let load = node.load(2)?;
    for call in [JOIN, LEAVE, JOIN] {
        load.goes_on()?;
        client.run(call)?;
        let scope = if call == JOIN { SHARED } else { LOCAL };
        wait::until_true(scope, || Ok(status::<String>(&mut client, "scope")? == scope))?;
    }
    wait::until_true("its own tables have no lease", || Ok(held(&mut client)?.is_empty()))?;
    let worker_id: i32 = status(&mut client, "worker_id")?;
    let leased = format!(
        "select count(*) from snowflake_ids.worker_lease where worker_id = {worker_id} and released_at is null"
    );
    ensure!(registry.connect("postgres")?.one::<i64>(&leased)? == 1);
    load.goes_on()?;
    load.end().unique()
}

#[test]
fn servers_join() -> Result<()> {
    Cluster::cases_of_strangers(cases![
        what_stands_in_the_way_is_refused_by_name,
        a_node_is_refused_as_a_registry_with_its_own_advice,
        names_that_are_none_and_users_that_may_not_are_refused,
        a_silent_registry_is_given_up,
        ids_flow_while_a_server_joins_and_leaves,
        joining_and_leaving_at_once_repeats_nothing
    ])
}
