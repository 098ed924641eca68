//! Many servers that use one tag of one registry at once.

use snowflake_ids_server_tests::cluster::{NAME, ROLE, node, registry_status, row};
use snowflake_ids_server_tests::prelude::*;
use snowflake_ids_server_tests::segments::take;
use snowflake_ids_server_tests::snowflakes::status;

const NODES: usize = 8;
const RESERVATIONS: usize = 100;
const STEP: usize = 10;

fn little_memory(builder: Builder) -> Builder {
    builder.set("shared_buffers", "8MB").set("max_connections", "20").set("wal_buffers", "256kB")
}

/// The number of statements that nodes sent to a registry. The registry must log all statements with their users.
fn statements_of_nodes(registry: &Server) -> usize {
    let (execute, simple) = (format!("{ROLE} LOG:  execute"), format!("{ROLE} LOG:  statement"));
    let is_one = |line: &&str| line.starts_with(&execute) || line.starts_with(&simple);
    registry.log().lines().filter(is_one).count()
}

#[test]
fn eight_servers_at_one_tag_share_no_id_and_take_one_statement_a_segment() -> Result<()> {
    let logging = auto().set("log_statement", "all").set("log_line_prefix", "%u ");
    let cluster = Cluster::of(little_memory(logging), &little_memory(node()), NODES)?;
    cluster.create("t", &format!("step => {STEP}, max_step => {STEP}"))?;
    let workers = cluster.nodes.iter().map(|node| {
        let mut client = node.connect("postgres")?;
        wait_for_id(&mut client)?;
        status::<i32>(&mut client, "worker_id")
    });
    let workers = workers.collect::<Result<BTreeSet<_>>>()?;
    assert_eq!(workers.len(), NODES, "{workers:?}");

    let highest = || row::<i64>(&mut cluster.registry.connect("postgres")?, "t", "max_id");
    // Statements that failed on the row's lock were repeated, so they do not count.
    let asked = || {
        let in_vain = cluster.registry.logged("due to lock timeout");
        statements_of_nodes(&cluster.registry) - in_vain
    };
    let (asked_before, before) = (asked(), highest()?);
    let clients = cluster.nodes.iter().map(|node| node.connect("postgres")).collect::<Result<_>>()?;
    let taken = at_once(clients, |_, mut client| {
        let taken = take(&mut client, "t", RESERVATIONS * STEP)?;
        ids::growing(&taken)?;
        Ok(taken)
    })?;
    ids::unique(taken.concat())?;

    let (mut reservations, mut statements) = (0, 0);
    // Nodes reserve ahead, so some may be about to reserve when the sessions have finished.
    let waited = wait::until_true("one statement for each reservation", || {
        reservations = usize::try_from(highest()? - before)? / STEP;
        statements = asked() - asked_before;
        Ok(statements == reservations)
    });
    println!("{reservations} reservations by {statements} statements");
    waited?;
    // At the end, a node may have two further segments: the segment in use and the next segment.
    let expected = NODES * RESERVATIONS..=NODES * (RESERVATIONS + 2);
    assert!(expected.contains(&reservations), "{reservations} reservations");
    let sessions = format!("select count(*) from pg_stat_activity where usename = '{ROLE}'");
    let sessions: i64 = cluster.registry.connect("postgres")?.one(&sessions)?;
    assert!(sessions <= 2 * i64::try_from(NODES)?, "{sessions} sessions of {NODES} nodes");
    let failures = |node: &Server| registry_status::<i64>(&mut node.connect("postgres")?, NAME, "failures");
    let failures = cluster.nodes.iter().map(failures).sum::<Result<i64>>()?;
    assert_eq!(failures, 0, "servers in each other's way");
    Ok(())
}

/// Each node's worker asks for several tags at once, in an order of its own.
#[test]
fn servers_at_many_tags_at_once_hold_no_other_up() -> Result<()> {
    const TAGS: usize = 6;
    // The deadlock check runs before waits time out.
    let cluster = Cluster::of(auto().set("deadlock_timeout", "10ms"), &node(), 3)?;
    for tag in 0..TAGS {
        cluster.create(&tag.to_string(), &format!("step => {STEP}, max_step => {STEP}"))?;
    }
    let mut clients = Vec::new();
    for node in &cluster.nodes {
        clients.extend(node.sessions("postgres", TAGS)?);
    }
    let taken = at_once(clients, |number, mut client| {
        let (node, session) = (number / TAGS, number % TAGS);
        let tag = if node % 2 == 0 { session } else { TAGS - 1 - session };
        Ok((tag, take(&mut client, &tag.to_string(), 200 * STEP)?))
    })?;
    for tag in 0..TAGS {
        ids::unique(taken.iter().filter(|(of, _)| *of == tag).flat_map(|(_, ids)| ids.clone()).collect())?;
    }
    assert_eq!(cluster.registry.logged("deadlock detected"), 0, "{}", cluster.registry.log());
    Ok(())
}
