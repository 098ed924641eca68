//! A registry that returns in an old state: restored from a copy of its files, or from a dump.

use snowflake_ids_server_tests::cluster::{
    JOIN, NAME, PASSWORD, ROLE, becomes, exhaust, node, received, refused_with, registry_status, said,
    wait_as_long_as_it_takes, wait_at_most,
};
use snowflake_ids_server_tests::prelude::*;
use snowflake_ids_server_tests::segments::take;
use snowflake_ids_server_tests::snowflakes;

/// Two nodes with a tag, and a session on each.
fn two_nodes() -> Result<(Cluster, [Client; 2])> {
    let cluster = Cluster::start(2)?;
    cluster.create("t", "step => 10, max_step => 10")?;
    let clients = [cluster.session()?, cluster.nodes[1].connect("postgres")?];
    Ok((cluster, clients))
}

/// Takes ids on both nodes.
fn take_both(clients: &mut [Client; 2], count: usize) -> Result<Vec<i64>> {
    let [first, second] = clients;
    Ok([take(first, "t", count)?, take(second, "t", count)?].concat())
}

/// Checks that a node hands out the ids that it has, and then refuses with an error that says why.
fn refuses(client: &mut Client, tag: &str, words: &[&str]) -> Result<Vec<i64>> {
    wait_at_most(client, Duration::from_millis(700))?;
    let (taken, _) = refused_with(client, tag, &[words, &[NAME]].concat())?;
    wait_as_long_as_it_takes(client)?;
    Ok(taken)
}

#[test]
fn a_registry_put_back_from_an_old_copy_is_noticed_and_repeats_nothing() -> Result<()> {
    let (mut cluster, mut clients) = two_nodes()?;
    let mut taken = take_both(&mut clients, 30)?;
    let mut of_server = vec![wait_for_id(&mut clients[0])?];
    cluster.registry.stop(Shutdown::Fast)?;
    let old = cluster.registry.copy()?;
    cluster.registry.start_again()?;
    taken.extend(take_both(&mut clients, 300)?);
    cluster.registry.replace_by(old)?;

    for client in &mut clients {
        taken.extend(refuses(client, "t", &["segment_raise", "\"t\""])?);
        assert_eq!(client.one::<i64>("select count(*) from snowflake_ids.registry_server")?, 1);
    }
    of_server.extend(snowflakes::take(&mut clients[0], 1000)?);
    let mut highest = 0;
    for client in &mut clients {
        highest = highest.max(received(client, "t")?);
    }
    let raise = format!("select snowflake_ids.segment_raise('t', {highest})");
    cluster.registry.connect("postgres")?.run(&raise)?;
    taken.extend(take_both(&mut clients, 300)?);
    becomes(&mut clients[0], NAME, "up")?;
    ids::growing(&of_server)?;
    ids::unique(taken)
}

/// The node still notices after a restart, because the check does not depend on the node's memory.
#[test]
fn a_node_that_restarts_meanwhile_notices_too() -> Result<()> {
    let (mut cluster, mut clients) = two_nodes()?;
    let mut taken = take_both(&mut clients, 30)?;
    cluster.registry.stop(Shutdown::Fast)?;
    let old = cluster.registry.copy()?;
    cluster.registry.start_again()?;
    taken.extend(take_both(&mut clients, 100)?);
    drop(clients);
    cluster.nodes[0].kill9()?;
    cluster.registry.replace_by(old)?;
    cluster.nodes[0].start_again()?;
    let mut client = cluster.session()?;
    taken.extend(refuses(&mut client, "t", &["segment_raise"])?);
    ids::unique(taken)
}

/// The old registry does not have this tag, and a session creates it again.
#[test]
fn a_tag_that_was_created_since_is_not_begun_anew() -> Result<()> {
    let (mut cluster, [mut client, _]) = two_nodes()?;
    cluster.registry.stop(Shutdown::Fast)?;
    let old = cluster.registry.copy()?;
    cluster.registry.start_again()?;
    cluster.create("since", "step => 10, max_step => 10")?;
    let mut taken = take(&mut client, "since", 100)?;
    cluster.registry.replace_by(old)?;
    taken.extend(exhaust(&mut client, "since")?.0);
    cluster.create("since", "step => 10, max_step => 10")?;
    taken.extend(refuses(&mut client, "since", &["segment_raise"])?);
    let raise = format!("select snowflake_ids.segment_raise('since', {})", received(&mut client, "since")?);
    cluster.registry.connect("postgres")?.run(&raise)?;
    taken.extend(take(&mut client, "since", 100)?);
    ids::growing(&taken)
}

/// Restores a dump of the registry in a cluster of another identity.
fn dumped_into_a_new_cluster(registry: &Server) -> Result<Server> {
    let new = auto().start()?;
    new.connect("postgres")?.run(&format!("create role {ROLE} login password '{PASSWORD}'"))?;
    new.restore("postgres", &registry.dump()?)?;
    let granted =
        format!("select has_function_privilege('{ROLE}', 'snowflake_ids.registry_serve(text)', 'execute')");
    ensure!(new.connect("postgres")?.one::<bool>(&granted)?, "the dump has no grants");
    Ok(new)
}

#[test]
fn a_dump_in_a_new_cluster_is_refused_until_it_is_chosen() -> Result<()> {
    let (mut cluster, mut clients) = two_nodes()?;
    let mut taken = take_both(&mut clients, 30)?;
    let mut of_server = vec![wait_for_id(&mut clients[0])?];
    let identity: String = registry_status(&mut clients[0], NAME, "identity")?;
    let new = dumped_into_a_new_cluster(&cluster.registry)?;
    taken.extend(take_both(&mut clients, 300)?);
    cluster.registry.replace_by(new)?;
    for client in &mut clients {
        taken.extend(refuses(client, "t", &["use_registry"])?);
    }
    of_server.extend(snowflakes::take(&mut clients[0], 1000)?);

    // Each node raises the tags to its own received ids.
    for client in &mut clients {
        client.run(JOIN)?;
    }
    taken.extend(take_both(&mut clients, 300)?);
    becomes(&mut clients[0], NAME, "up")?;
    assert_ne!(registry_status::<String>(&mut clients[0], NAME, "identity")?, identity);
    of_server.push(wait_for_id(&mut clients[0])?);
    ids::growing(&of_server)?;
    ids::unique(taken)
}

/// An extension that is recreated on the same server, or in another database, is another registry.
#[test]
fn an_extension_created_anew_is_another_registry() -> Result<()> {
    let (cluster, mut clients) = two_nodes()?;
    let mut taken = take_both(&mut clients, 30)?;
    cluster.registry.connect("postgres")?.run(&format!(
        "drop extension snowflake_ids; create extension snowflake_ids;
         grant execute on function snowflake_ids.registry_serve(text),
             snowflake_ids.registry_take_over(text) to {ROLE};
         select snowflake_ids.segment_create('t', step => 10, max_step => 10)"
    ))?;
    for client in &mut clients {
        taken.extend(refuses(client, "t", &["use_registry"])?);
        client.run(JOIN)?;
    }
    taken.extend(take_both(&mut clients, 100)?);
    ids::unique(taken)
}

/// The new registry knows no lease until the first node has joined. From then on, a server without a worker id gets none, because
/// every free worker id may belong to a node that has not joined yet. This lasts until an administrator declares that all nodes
/// have joined. Nodes with a worker id keep it.
#[test]
fn a_registry_made_anew_leases_to_nodes_what_they_have() -> Result<()> {
    let cluster = Cluster::of(auto(), &node(), 3)?;
    let mut clients = Vec::new();
    for node in &cluster.nodes {
        clients.push(node.connect("postgres")?);
    }
    let (mut stranger, mut others) = (clients.pop().context("the third")?, clients);
    stranger.run("select snowflake_ids.use_local_registry()")?;
    let mut taken = Vec::new();
    let mut workers = Vec::new();
    for client in &mut others {
        taken.push(wait_for_id(client)?);
        workers.push(worker(client)?);
    }
    cluster.registry.connect("postgres")?.run(&format!(
        "drop extension snowflake_ids; create extension snowflake_ids;
         grant execute on function snowflake_ids.registry_serve(text),
             snowflake_ids.registry_take_over(text) to {ROLE}"
    ))?;
    others[0].run(JOIN)?;
    // The registry knows no lease before the node has reported its own.
    let mut registry = cluster.registry.connect("postgres")?;
    wait::until_true("the lease of the first", || {
        let shown = "select count(*) > 0 from snowflake_ids.worker_lease where former_until is not null";
        registry.one(shown)
    })?;
    taken.push(wait_for_id(&mut others[0])?);
    assert_eq!(worker(&mut others[0])?, workers[0], "it keeps its own");
    stranger.run(JOIN)?;
    let refused =
        wait::until(wait::LONG, "a refusal", || Ok(stranger.error("select snowflake_nextval()").ok()))?;
    let said = format!("{} {}", refused.detail().unwrap_or_default(), refused.hint().unwrap_or_default());
    ensure!(said.contains("The registry is new") && said.contains("worker_release_former"), "{said}");
    // The other node still issues under a lease of the former registry, and keeps its worker id too.
    taken.push(others[1].one("select snowflake_nextval()")?);
    others[1].run(JOIN)?;
    taken.push(wait_for_id(&mut others[1])?);
    assert_eq!(worker(&mut others[1])?, workers[1], "it keeps its own, too");
    let released = "select snowflake_ids.worker_release_former()";
    cluster.registry.connect("postgres")?.run(released)?;
    taken.push(wait_for_id(&mut stranger)?);
    ensure!(!workers.contains(&worker(&mut stranger)?), "one of its own");
    ids::unique(taken)
}

fn worker(client: &mut Client) -> Result<i32> {
    client.one("select worker_id from snowflake_ids.status")
}

/// An error about one tag is shown to sessions that wait for another tag of the same registry.
#[test]
fn trouble_of_a_restricted_tag_names_it_to_no_other_role() -> Result<()> {
    let cluster = Cluster::start(1)?;
    cluster.create("secret", "step => 10, max_step => 10")?;
    cluster.create("t", "step => 10, max_step => 10")?;
    let mut client = cluster.session()?;
    take(&mut client, "secret", 5)?;
    take(&mut client, "t", 5)?;
    client.run("create role app login; select snowflake_ids.segment_grant('secret', 'postgres', 'ALL')")?;
    let mut registry = cluster.registry.connect("postgres")?;
    registry.run("select snowflake_ids.segment_set('secret', 0, true)")?;
    refuses(&mut client, "secret", &["segment_raise", "\"secret\""])?;
    assert!(registry_status::<String>(&mut client, NAME, "error")?.contains("secret"));
    // The session's own tag is blocked for another reason.
    registry.run("begin; select from snowflake_ids.segment where tag = 't' for update")?;
    client.run("set role app")?;
    wait_at_most(&mut client, Duration::from_millis(700))?;
    let (_, error) = exhaust(&mut client, "t")?;
    assert!(!said(&error).contains("secret"), "{}", said(&error));
    let status: String = registry_status(&mut client, NAME, "coalesce(error, '')")?;
    assert!(!status.is_empty() && !status.contains("secret"), "{status}");
    registry.run("rollback")
}
