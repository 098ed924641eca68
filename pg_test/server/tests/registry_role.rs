//! The role of the nodes can connect to a registry and reserve ids there, and can do nothing else.

use snowflake_ids_server_tests::cluster::{
    JOIN, LEAVE, NAME, PASSWORD, ROLE, becomes, exhaust, node, registry_status, said, strangers, wait_at_most,
};
use snowflake_ids_server_tests::owner::Owner;
use snowflake_ids_server_tests::prelude::*;
use snowflake_ids_server_tests::programs;
use snowflake_ids_server_tests::segments::{create, next, take};
use std::process::Command;

fn the_role_of_nodes_can_reserve_and_nothing_else(cluster: &mut Cluster) -> Result<()> {
    cluster.create("t", "")?;
    assert_eq!(next(&mut cluster.session()?, "t")?, 1);
    let mut shard = cluster.registry.connect_as(ROLE, PASSWORD)?;
    for statement in [
        "select * from snowflake_ids.segment",
        "update snowflake_ids.segment set max_id = 0",
        "delete from snowflake_ids.segment",
        "select * from snowflake_ids.worker_lease",
        "delete from snowflake_ids.received",
        "select snowflake_ids.segment_create('u')",
        "select snowflake_ids.segment_set('t', 0, force => true)",
        "select snowflake_ids.segment_raise('t', 10)",
        "select snowflake_ids.worker_release(0)",
        "select snowflake_ids.use_registry('central')",
        "select snowflake_ids.state_reset()",
    ] {
        shard.fails(statement, &SqlState::INSUFFICIENT_PRIVILEGE)?;
    }
    Ok(())
}

/// Other roles do not learn the registry's address, nor the names of other tags.
fn users_are_not_told_where_the_registry_is(cluster: &mut Cluster) -> Result<()> {
    cluster.create("t", "step => 10, max_step => 10")?;
    let mut client = cluster.session()?;
    next(&mut client, "t")?;
    let port = cluster.registry.port().to_string();
    cluster.registry.stop(Shutdown::Immediate)?;
    wait_at_most(&mut client, Duration::from_secs(2))?;
    client.run("create role app; grant execute on all functions in schema snowflake_ids, snowflake_ids_internal to app")?;
    exhaust(&mut client, "t")?;
    becomes(&mut client, NAME, "failing")?;
    let all_told = |client: &mut Client| -> Result<String> {
        let error = client.error("select segment_nextval('t')")?;
        // The registry's response when a column is attached.
        let seed = client.error("select snowflake_ids_internal.registry_seed('t', 5)")?;
        let status: String = registry_status(client, NAME, "coalesce(error, '')")?;
        Ok(format!("{}\n{}\n{status}", said(&error), said(&seed)))
    };
    let told = all_told(&mut client)?;
    assert!(told.matches(&port).count() >= 2, "{told}");
    client.run("set role app")?;
    let told = all_told(&mut client)?;
    assert!(told.contains("reach") || told.contains("broke"), "{told}");
    assert!(!told.contains(&port) && !told.contains("127.0.0.1"), "{told}");
    client
        .fails("select * from snowflake_ids_internal.registry_reached", &SqlState::INSUFFICIENT_PRIVILEGE)?;
    let tag = "select snowflake_ids_internal.tag_of_default('segment_nextval(''t''::text)')";
    assert_eq!(client.one::<Option<String>>(tag)?.as_deref(), Some("t"));
    client.run("reset role; grant pg_read_all_stats to app; set role app")?;
    assert!(all_told(&mut client)?.contains(&port));
    cluster.registry.start_again()
}

#[test]
fn a_mapping_for_public_serves_and_the_view_counts_calls() -> Result<()> {
    let (registry, _node, mut client) = strangers()?;
    client.run(&format!(
        "drop user mapping for postgres server central;
         create user mapping for public server central options (user '{ROLE}', password '{PASSWORD}')"
    ))?;
    create(&mut registry.connect("postgres")?, "t", "step => 10, max_step => 10")?;
    client.run(JOIN)?;
    take(&mut client, "t", 100)?;
    becomes(&mut client, NAME, "up")?;
    assert!(registry_status::<i64>(&mut client, NAME, "calls::bigint")? >= 10);
    assert_eq!(registry_status::<i64>(&mut client, NAME, "failures::bigint")?, 0);
    let fresh = "last_answer > now() - interval '1 min' and last_duration > interval '0'
                 and identity is not null and timeline = 1 and error is null and retry_at is null";
    assert!(registry_status::<bool>(&mut client, NAME, fresh)?);
    Ok(())
}

/// The registry accepts nodes only by TLS, and the nodes check its certificate.
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
    client.run(&format!("alter server {NAME} options (add sslmode 'disable')"))?;
    assert!(said(&client.error(JOIN)?).contains(NAME));
    let root = certificate.display();
    client.run(&format!(
        "alter server {NAME} options (set sslmode 'verify-full', set host 'localhost', add sslrootcert '{root}')"
    ))?;
    client.run(JOIN)?;
    assert_eq!(take(&mut client, "t", 2000)?.len(), 2000);
    // The certificate is for another host name.
    client.run(&format!("{LEAVE}; alter server {NAME} options (set host '127.0.0.1')"))?;
    assert!(said(&client.error(JOIN)?).contains(NAME));
    Ok(())
}

/// Each cause has a hint of its own, and the hint helps.
#[test]
fn why_a_registry_cannot_be_reached_is_told_with_the_way_out() -> Result<()> {
    let registry = auto().start()?;
    registry.serve_nodes()?;
    let node = node().start()?;
    let mut client = node.introduce(NAME, &[registry.port()])?;
    registry.connect("postgres")?.run("create role shut_out login")?;
    registry.rule("host all shut_out 127.0.0.1/32 reject")?;
    let server = "server central";
    let mapping = "user mapping for postgres server central";
    let (port, password) = (format!("port '{}'", registry.port()), format!("password '{PASSWORD}'"));
    let user = format!("user '{ROLE}'");
    for (of, wrong, right, said, hint) in [
        (mapping, "password 'wrong'", &*password, "password authentication failed", "user mapping"),
        (mapping, "user 'shut_out'", &user, "pg_hba.conf", "pg_hba.conf"),
        (mapping, "user 'nobody'", &user, "nobody", "exists"),
        (server, "dbname 'nowhere'", "dbname 'postgres'", "database \"nowhere\" does not exist", "dbname"),
        (server, "host 'no.such.host.invalid'", "host '127.0.0.1'", "no.such.host.invalid", "host '...'"),
        (server, "port '1'", &port, "Connection refused", "host and port"),
    ] {
        client.run(&format!("alter {of} options (set {wrong})"))?;
        let error = client.error(JOIN)?;
        let told = format!("{} {}", error.message(), error.detail().unwrap_or_default());
        ensure!(told.contains(said) && !told.contains(".c:"), "{wrong}: {told}");
        ensure!(error.hint().is_some_and(|told| told.contains(hint)), "{wrong}: {error:?}");
        client.run(&format!("alter {of} options (set {right})"))?;
    }
    client.run(JOIN)
}

#[test]
fn nobody_may_or_sees_more_than_is_theirs() -> Result<()> {
    Cluster::cases(
        1,
        cases![the_role_of_nodes_can_reserve_and_nothing_else, users_are_not_told_where_the_registry_is],
    )
}
