//! Joining a registry: what is checked, what is handed over, and the way back.

use anyhow::Result;
use postgres::Client;
use postgres::error::{DbError, SqlState};
use snowflake_ids_server_tests::cluster::{
    Cluster, NAME, PASSWORD, ROLE, becomes, node, received, registry_status, row, said,
};
use snowflake_ids_server_tests::load::Taken;
use snowflake_ids_server_tests::owner::Owner;
use snowflake_ids_server_tests::registry::{auto, wait_for_id};
use snowflake_ids_server_tests::segments::{PATIENCE, create, next, take};
use snowflake_ids_server_tests::sessions::{at_once, timed};
use snowflake_ids_server_tests::snowflakes::{self, status};
use snowflake_ids_server_tests::{Server, ids, programs, sql, wait};
use std::net::TcpListener;
use std::process::Command;
use std::time::Duration;

const JOIN: &str = "select snowflake_ids.use_registry('central')";
const LEAVE: &str = "select snowflake_ids.use_local_registry()";
const LOCAL: &str = "this server only";
const SHARED: &str = "shared registry";

/// A foreign server as a variation of one that would do.
fn variant(client: &mut Client, name: &str, options: &str, mapping: &str) -> Result<()> {
    client.batch_execute(&format!(
        "create server {name} foreign data wrapper postgres_fdw options ({options});
         create user mapping for postgres server {name} options ({mapping})"
    ))?;
    Ok(())
}

/// Using these servers is refused, by an error that names one of them, and changes nothing.
fn refused(client: &mut Client, servers: &str, name: &str) -> Result<DbError> {
    let error = sql::error(client, &format!("select snowflake_ids.use_registry({servers})"))?;
    assert!(said(&error).contains(name), "\"{name}\" is not named: {error:?}");
    assert_eq!(sql::one::<i64>(client, "select count(*) from snowflake_ids.registry")?, 0);
    Ok(error)
}

/// A registry that some server could not use, and a server that has not joined it.
fn strangers() -> Result<(Server, Server, Client)> {
    let (registry, node) = (auto().start()?, node().start()?);
    registry.serve_nodes()?;
    let client = node.introduce(NAME, &[registry.port()])?;
    Ok((registry, node, client))
}

/// What makes an extension say that it is an older one, whatever the form of its answers.
const OLDER: &str = "
    alter extension snowflake_ids drop function snowflake_ids.registry_serve(text);
    alter function snowflake_ids.registry_serve(text) rename to now;
    create function snowflake_ids.registry_serve(asked text) returns text language sql security definer as
      $$ select replace(snowflake_ids.now(asked), extversion, '0.0.9') from pg_extension
         where extname = 'snowflake_ids' $$;
    grant execute on function snowflake_ids.registry_serve(text) to shard";

/// Databases of the registry and roles in it that won't do, and foreign servers for them.
fn unfit_registries(registry: &Server, node: &Server, client: &mut Client) -> Result<()> {
    let mut at_registry = registry.connect("postgres")?;
    at_registry.batch_execute("create database bare")?;
    at_registry.batch_execute("create role poor login")?;
    registry.create_database("older")?;
    registry.connect("older")?.batch_execute(OLDER)?;
    let port = registry.port();
    let mapping = format!("user '{ROLE}', password '{PASSWORD}'");
    let at = |port: u16, database: &str| format!("host '127.0.0.1', port '{port}', dbname '{database}'");
    client.batch_execute(&format!(
        "create server unmapped foreign data wrapper postgres_fdw options ({})",
        at(port, "postgres")
    ))?;
    let closed = snowflake_ids_server_tests::port::free()?;
    variant(client, "closed", &at(closed, "postgres"), &mapping)?;
    variant(client, "nodatabase", &at(port, "missing"), &mapping)?;
    variant(client, "wrongpassword", &at(port, "postgres"), &format!("user '{ROLE}', password 'wrong'"))?;
    variant(client, "bare", &at(port, "bare"), &mapping)?;
    variant(client, "older", &at(port, "older"), &mapping)?;
    variant(client, "poor", &at(port, "postgres"), "user 'poor'")?;
    variant(client, "itself", &at(node.port(), "postgres"), "user 'postgres'")
}

#[test]
fn what_stands_in_the_way_is_refused_by_name() -> Result<()> {
    let (registry, node, mut client) = strangers()?;
    unfit_registries(&registry, &node, &mut client)?;
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
        // One that would do does not make up for it.
        refused(&mut client, &format!("'{NAME}', '{name}'"), name)?;
    }
    assert_eq!(status::<String>(&mut client, "scope")?, LOCAL);
    create(&mut client, "t", "")?;
    assert_eq!(next(&mut client, "t")?, 1);
    snowflakes::next(&mut client).map(drop)
}

#[test]
fn names_that_are_none_and_users_that_may_not_are_refused() -> Result<()> {
    let (_registry, _node, mut client) = strangers()?;
    for servers in ["null", "variadic '{}'", "'central', null", "'central', 'central'", "variadic null"] {
        let error = refused(&mut client, servers, "")?;
        assert_eq!(error.code(), &SqlState::INVALID_PARAMETER_VALUE, "{servers}: {error:?}");
    }
    client.batch_execute("create role app; set role app")?;
    for call in [JOIN, LEAVE] {
        let error = sql::error(&mut client, call)?;
        assert_eq!(error.code(), &SqlState::INSUFFICIENT_PRIVILEGE, "{error:?}");
    }
    Ok(())
}

/// Whoever listens there never says a word.
#[test]
fn a_silent_registry_is_given_up_in_time() -> Result<()> {
    let (registry, node, mut client) = strangers()?;
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let port = listener.local_addr()?.port();
    drop(node.introduce("silent", &[port])?);
    let (error, time) = timed(|| refused(&mut client, "'silent'", "silent"))?;
    assert_eq!(error.code().code(), "08001", "{error:?}");
    assert!(time < Duration::from_secs(3), "given up after {time:?}");
    client.batch_execute("set statement_timeout = '300ms'")?;
    node.reload("snowflake_ids.registry_timeout", "30s")?;
    let (error, time) = timed(|| refused(&mut client, "'silent'", ""))?;
    assert_eq!(error.code(), &SqlState::QUERY_CANCELED, "{error:?}");
    assert!(time < Duration::from_secs(2), "cancelled after {time:?}");

    // In a list of hosts the next one is tried.
    client.batch_execute("set statement_timeout = 0")?;
    node.reload("snowflake_ids.registry_timeout", "2s")?;
    drop(node.introduce("either", &[port, registry.port()])?);
    client.batch_execute("select pg_sleep(0.1); select snowflake_ids.use_registry('either')")?;
    create(&mut registry.connect("postgres")?, "t", "")?;
    assert_eq!(next(&mut client, "t")?, 1);
    Ok(())
}

#[test]
fn a_fresh_server_serves_its_first_ids_within_two_seconds() -> Result<()> {
    let (registry, mut node) = (auto().start()?, node().start()?);
    create(&mut registry.serve_nodes()?, "t", "")?;
    node.restart()?;
    let (taken, time) = timed(|| {
        let mut client = node.join(&registry)?;
        Ok((next(&mut client, "t")?, wait_for_id(&mut client)?))
    })?;
    assert_eq!(taken.0, 1);
    assert!(time < Duration::from_secs(2), "served after {time:?}");
    Ok(())
}

#[test]
fn nodes_get_worker_ids_of_their_own_and_say_from_where() -> Result<()> {
    // The registry's own server leases none.
    let cluster = Cluster::of(auto().set("snowflake_ids.worker_id", "31"), &node(), 3)?;
    cluster.create("t", "step => 100")?;
    let (mut workers, mut taken, mut loads) = (Vec::new(), Taken::default(), Vec::new());
    for node in &cluster.nodes {
        let mut client = node.connect("postgres")?;
        taken.ids.push(wait_for_id(&mut client)?);
        assert_eq!(status::<String>(&mut client, "scope")?, SHARED);
        assert_eq!(status::<String>(&mut client, "registry")?, NAME);
        assert_eq!(
            sql::column::<String>(&mut client, "select server::text from snowflake_ids.registry")?,
            [NAME]
        );
        workers.push(status::<i32>(&mut client, "worker_id")?);
        next(&mut client, "t")?;
        becomes(&mut client, NAME, "up")?;
        loads.push(node.load(2)?);
    }
    workers.sort_unstable();
    assert_eq!(workers, [0, 1, 2], "the lowest that are free");
    let of_registry = "select worker_id from snowflake_ids.worker where released_at is null order by 1";
    assert_eq!(sql::column::<i32>(&mut cluster.registry.connect("postgres")?, of_registry)?, workers);
    for load in loads {
        load.goes_on()?;
        taken.add(load.end());
    }
    assert!(taken.refusals.is_empty(), "{:?}", taken.refusals);
    taken.unique()
}

/// Under load, and back.
#[test]
fn ids_flow_while_a_server_joins_and_leaves() -> Result<()> {
    let (registry, node, mut client) = strangers()?;
    create(&mut client, "t", "step => 100, max_step => 10000")?;
    wait_for_id(&mut client)?;
    let loads = [node.load(2)?, node.load_of_tag("t", 2)?];
    for call in [JOIN, LEAVE, JOIN] {
        for load in &loads {
            load.goes_on()?;
        }
        client.batch_execute(call)?;
        let scope = if call == JOIN { SHARED } else { LOCAL };
        wait::until(
            PATIENCE,
            scope,
            || Ok((status::<String>(&mut client, "scope")? == scope).then_some(())),
        )?;
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

const TERMS: &str =
    "row(step, max_step, increment, remainder, description, max_value, reset, time_zone, format)::text";

#[test]
fn local_tags_are_handed_over_with_their_terms_and_go_on_above_their_ids() -> Result<()> {
    let (registry, node, mut client) = strangers()?;
    let mut at_registry = registry.connect("postgres")?;
    let tags = ["new", "behind", "ahead", "odd", "dated", "unused"];
    for (tag, terms) in [
        ("new", "step => 50, max_step => 500, description => 'it''s \"new\"'"),
        ("behind", "step => 10"),
        ("ahead", "step => 10"),
        ("odd", "increment => 2, remainder => 1, max_value => 99999"),
        ("dated", "reset => 'year', time_zone => 'Asia/Kathmandu', format => '{YYYY}#{n:4}'"),
        ("unused", "start => 7"),
    ] {
        create(&mut client, tag, terms)?;
    }
    create(&mut at_registry, "behind", "step => 10, start => 5")?;
    create(&mut at_registry, "ahead", "step => 10, start => 5001")?;
    let before = tags.map(|tag| if tag == "unused" { Ok(Vec::new()) } else { take(&mut client, tag, 33) });
    let terms = tags.map(|tag| row::<String>(&mut client, tag, TERMS));
    client.batch_execute(JOIN)?;
    for ((tag, before), terms) in tags.into_iter().zip(before).zip(terms) {
        let mut taken = before?;
        taken.extend(take(&mut client, tag, 33)?);
        ids::growing(&taken)?;
        if !["behind", "ahead"].contains(&tag) {
            assert_eq!(row::<String>(&mut at_registry, tag, TERMS)?, terms?, "{tag}");
        }
        assert!(received(&mut client, tag)? >= taken[taken.len() - 1], "{tag}: not noted as received");
        assert!(row::<i64>(&mut at_registry, tag, "max_id")? >= taken[taken.len() - 1], "{tag}");
    }
    assert!(next(&mut client, "ahead")? > 5000);
    assert_eq!(take(&mut client, "odd", 20)?.iter().filter(|id| **id % 2 == 1).count(), 20);
    drop(node);
    Ok(())
}

/// Another node's ids of a tag that was handed over are others.
#[test]
fn a_tag_that_two_servers_had_goes_on_above_both() -> Result<()> {
    let (registry, _first, mut first) = strangers()?;
    let second = node().start()?;
    let mut second = second.introduce(NAME, &[registry.port()]).map(|client| (second, client))?;
    let mut taken = Vec::new();
    for (client, count) in [(&mut first, 700), (&mut second.1, 2000)] {
        create(client, "t", "step => 10")?;
        taken.extend(take(client, "t", count)?);
        client.batch_execute(JOIN)?;
    }
    // Up to here both have counted from 1; from the second's joining on nothing comes twice.
    let newest = taken.iter().max().copied().unwrap_or(0);
    let of_second = take(&mut second.1, "t", 200)?;
    assert!(of_second[0] > newest, "{} after {newest}", of_second[0]);
    let mut both = take(&mut first, "t", 3000)?;
    both.extend(of_second);
    ids::unique(both)
}

#[test]
fn a_rollback_leaves_all_as_it_was() -> Result<()> {
    let (_registry, _node, mut client) = strangers()?;
    create(&mut client, "t", "step => 10")?;
    let mut taken = take(&mut client, "t", 33)?;
    let worker = wait_for_id(&mut client).and_then(|_| status::<i32>(&mut client, "worker_id"))?;
    for (begin, end) in [("begin", "rollback"), ("begin; savepoint s", "rollback to s; commit")] {
        client.batch_execute(&format!("{begin}; {JOIN}; {end}"))?;
        assert_eq!(sql::one::<i64>(&mut client, "select count(*) from snowflake_ids.registry")?, 0);
        taken.extend(take(&mut client, "t", 100)?);
        create(&mut client, &format!("after {end}"), "")?;
        assert_eq!(status::<String>(&mut client, "scope")?, LOCAL);
        snowflakes::next(&mut client)?;
        assert_eq!(status::<i32>(&mut client, "worker_id")?, worker);
    }
    client.batch_execute(JOIN)?;
    taken.extend(take(&mut client, "t", 100)?);
    client.batch_execute(&format!("begin; {LEAVE}; rollback"))?;
    taken.extend(take(&mut client, "t", 100)?);
    wait::until(PATIENCE, "the shared registry", || {
        Ok((status::<String>(&mut client, "scope")? == SHARED).then_some(()))
    })?;
    ids::growing(&taken)
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
    create(&mut cluster.registry.connect("postgres")?, "not used here", "")?;
    let highest = received(client, "t")?;
    client.batch_execute("set log_min_messages = notice")?;
    client.batch_execute(LEAVE)?;
    let told = |line: &str| line.contains("NOTICE") && !line.contains("does not exist");
    assert!(cluster.nodes[0].log().lines().any(told), "{}", cluster.nodes[0].log());
    let after = take(client, "t", 50)?;
    assert!(after[0] > highest, "{} after {highest}", after[0]);
    create(client, "new", "")?;
    assert_eq!(next(client, "new")?, 1);
    assert_eq!(sql::one::<i64>(client, "select count(*) from snowflake_ids.registry")?, 0);
    wait_for_id(client)?;
    wait::until(PATIENCE, "a lease of its own", || {
        Ok((status::<String>(client, "scope")? == LOCAL).then_some(()))
    })?;
    // Back again, above both.
    client.batch_execute(JOIN)?;
    assert!(next(client, "t")? > after[49]);
    ids::unique(taken)
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
        let error = sql::error(&mut client, &format!("select snowflake_ids.{call}"))?;
        assert_eq!(error.code(), &SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE, "{call}: {error:?}");
        assert!(said(&error).contains(NAME), "{call}: {error:?}");
    }
    let unknown = sql::error(&mut client, "select segment_nextval('t')")?;
    assert_eq!(unknown.code(), &SqlState::UNDEFINED_OBJECT, "{unknown:?}");
    cluster.create("t", "start => 41")?;
    assert_eq!(take(&mut client, "t", 2)?, [41, 42], "the session needs no new connection");
    client.batch_execute("set snowflake_ids.segment_auto_create = on")?;
    assert_eq!(next(&mut client, "made on use")?, 1);
    assert!(row::<i64>(&mut cluster.registry.connect("postgres")?, "made on use", "max_id")? > 0);
    let listed =
        "select tag from snowflake_ids.segment_status where database = current_database() order by 1";
    assert_eq!(sql::column::<String>(&mut client, listed)?, ["made on use", "t"]);

    // Other databases of the node are none of the registry's.
    cluster.nodes[0].create_database("other")?;
    let mut other = cluster.nodes[0].connect("other")?;
    create(&mut other, "t", "")?;
    assert_eq!(next(&mut other, "t")?, 1);
    Ok(())
}

#[test]
fn the_role_of_nodes_can_reserve_and_nothing_else() -> Result<()> {
    let cluster = Cluster::start(1)?;
    cluster.create("t", "")?;
    assert_eq!(next(&mut cluster.session()?, "t")?, 1);
    let mut shard = cluster.registry.connect_as(ROLE, PASSWORD)?;
    for statement in [
        "select * from snowflake_ids.segment",
        "update snowflake_ids.segment set max_id = 0",
        "delete from snowflake_ids.segment",
        "select * from snowflake_ids.worker",
        "delete from snowflake_ids.received",
        "select snowflake_ids.segment_create('u')",
        "select snowflake_ids.segment_set('t', 0, force => true)",
        "select snowflake_ids.segment_raise('t', 10)",
        "select snowflake_ids.worker_release(0)",
        "select snowflake_ids.use_registry('central')",
        "select snowflake_ids.state_reset()",
    ] {
        let error = sql::error(&mut shard, statement)?;
        assert_eq!(error.code(), &SqlState::INSUFFICIENT_PRIVILEGE, "{statement}: {error:?}");
    }
    Ok(())
}

/// A node that is out of its mind gets an error and does no harm.
#[test]
fn requests_that_make_no_sense_are_refused() -> Result<()> {
    let registry = auto().start()?;
    let mut client = registry.serve_nodes()?;
    create(&mut client, "t", "")?;
    let before: String = row(&mut client, "t", "segment::text")?;
    let mut shard = registry.connect_as(ROLE, PASSWORD)?;
    let (long, deep) = ("x".repeat(1_000_000), "[".repeat(100_000));
    for request in
        ["", " ", "null", "[]", "{}", "{\"tag\": \"t\"}", "reserve t", "'; --", "1e999", &long, &deep]
    {
        let error = shard.query("select snowflake_ids.registry_serve($1)", &[&request]);
        let error = error.err().map(|error| error.code().map(|code| code.code().to_owned()));
        let Some(Some(code)) = error else {
            anyhow::bail!("no error of the server, but {error:?}: {request:.20}")
        };
        assert!(!code.starts_with("XX"), "{code}: {request:.20}");
    }
    assert_eq!(row::<String>(&mut client, "t", "segment::text")?, before);
    assert_eq!(next(&mut client, "t")?, 1);
    Ok(())
}

#[test]
fn a_mapping_for_everybody_serves_and_the_view_counts_calls() -> Result<()> {
    let (registry, _node, mut client) = strangers()?;
    client.batch_execute(&format!(
        "drop user mapping for postgres server central;
         create user mapping for public server central options (user '{ROLE}', password '{PASSWORD}')"
    ))?;
    create(&mut registry.connect("postgres")?, "t", "step => 10, max_step => 10")?;
    client.batch_execute(JOIN)?;
    take(&mut client, "t", 100)?;
    becomes(&mut client, NAME, "up")?;
    assert!(registry_status::<i64>(&mut client, NAME, "calls::bigint")? >= 10);
    assert_eq!(registry_status::<i64>(&mut client, NAME, "failures::bigint")?, 0);
    let fresh = "last_answer > now() - interval '1 min' and last_duration > interval '0'
                 and identity is not null and timeline = 1 and error is null and retry_at is null";
    assert!(registry_status::<bool>(&mut client, NAME, fresh)?);
    Ok(())
}

/// What a transaction that joins takes before its end is as good as any other id.
#[test]
fn ids_taken_by_the_transaction_that_joins_do_not_come_again() -> Result<()> {
    let (_registry, _node, mut client) = strangers()?;
    create(&mut client, "t", "step => 10")?;
    let mut taken = take(&mut client, "t", 33)?;
    client.batch_execute("set snowflake_ids.segment_wait_timeout = '300ms'")?;
    for call in [JOIN, LEAVE] {
        for end in ["rollback", "commit"] {
            client.batch_execute(&format!("begin; {call}"))?;
            match take(&mut client, "t", 33) {
                Ok(ids) => {
                    taken.extend(ids);
                    client.batch_execute(end)?;
                }
                Err(error) => {
                    println!("{call}; {end}: {error:#}");
                    client.batch_execute(&format!("rollback; begin; {call}; {end}"))?;
                }
            }
            taken.extend(take(&mut client, "t", 100)?);
        }
    }
    ids::unique(taken)
}

/// Whoever commits it may be another session, long after what the registry was told.
#[test]
fn a_transaction_that_joins_or_leaves_is_not_prepared() -> Result<()> {
    let registry = auto().start()?;
    let node = node().set("max_prepared_transactions", "1").start()?;
    registry.serve_nodes()?;
    let mut client = node.introduce(NAME, &[registry.port()])?;
    create(&mut client, "t", "step => 10")?;
    let mut taken = take(&mut client, "t", 33)?;
    for call in [JOIN, LEAVE] {
        client.batch_execute(&format!("begin; {call}"))?;
        let error = sql::error(&mut client, "prepare transaction 'joins'")?;
        assert_eq!(error.code(), &SqlState::FEATURE_NOT_SUPPORTED, "{error:?}");
        taken.extend(take(&mut client, "t", 100)?);
        client.batch_execute(call)?;
        taken.extend(take(&mut client, "t", 100)?);
    }
    ids::growing(&taken)
}

/// Operators at two sessions who do not know of each other.
#[test]
fn joining_and_leaving_at_once_repeats_nothing() -> Result<()> {
    let (registry, node, mut client) = strangers()?;
    create(&mut client, "t", "step => 10, max_step => 100")?;
    let load = node.load_of_tag("t", 2)?;
    at_once(node.sessions("postgres", 2)?, |number, mut client| {
        for call in [JOIN, LEAVE, JOIN, LEAVE, JOIN].iter().skip(number) {
            client.batch_execute(call)?;
        }
        Ok(())
    })?;
    load.goes_on()?;
    let taken = load.end();
    assert!(taken.refusals.is_empty(), "{:?}", taken.refusals);
    drop(registry);
    taken.unique()
}

/// A registry that takes nodes by TLS only, and whose certificate they check.
#[test]
fn a_registry_is_reached_by_tls() -> Result<()> {
    let mut registry = auto().start()?;
    let (certificate, key) = (registry.data().join("server.crt"), registry.data().join("server.key"));
    let mut openssl = Command::new("openssl");
    Owner::of_servers()?.run(openssl.current_dir(registry.data()));
    openssl.args(["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"]);
    programs::output(openssl.arg("-out").arg(&certificate).arg("-keyout").arg(&key))?;
    registry.set("ssl", "on")?;
    registry.restart()?;
    create(&mut registry.serve_nodes()?, "t", "")?;
    registry.rule(&format!("host all {ROLE} 127.0.0.1/32 reject"))?;
    registry.rule(&format!("hostssl all {ROLE} 127.0.0.1/32 scram-sha-256"))?;

    let node = node().start()?;
    let mut client = node.introduce(NAME, &[registry.port()])?;
    client.batch_execute(&format!("alter server {NAME} options (add sslmode 'disable')"))?;
    refused(&mut client, "'central'", NAME)?;
    let root = certificate.display();
    client.batch_execute(&format!(
        "alter server {NAME} options (set sslmode 'verify-full', set host 'localhost', add sslrootcert '{root}')"
    ))?;
    client.batch_execute(JOIN)?;
    assert_eq!(take(&mut client, "t", 2000)?.len(), 2000);
    // Another name than the certificate's.
    client.batch_execute(&format!("{LEAVE}; alter server {NAME} options (set host '127.0.0.1')"))?;
    refused(&mut client, "'central'", NAME).map(drop)
}
