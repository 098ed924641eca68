//! A pooler in transaction mode, before a server and between nodes and their registry. Each transaction may use another session
//! of the server, and clients share sessions.

use postgres::SimpleQueryMessage;
use snowflake_ids_server_tests::bouncer::Bouncer;
use snowflake_ids_server_tests::cluster::{self, JOIN, NAME, becomes, received};
use snowflake_ids_server_tests::prelude::*;
use snowflake_ids_server_tests::segments::{TIMEOUT, create, next, take};
use snowflake_ids_server_tests::snowflakes;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// The ids in the first column. Pooled sessions do not keep a client's prepared statements.
fn column(client: &mut Client, query: &str) -> Result<Vec<i64>> {
    let messages = client.simple_query(query).with_context(|| query.to_owned())?;
    let ids = messages.iter().filter_map(|message| match message {
        SimpleQueryMessage::Row(row) => row.get(0),
        _ => None,
    });
    ids.filter(|id| !id.is_empty()).map(|id| Ok(id.parse()?)).collect()
}

/// A server with a tag, and a pooler with two of its sessions.
fn pooled() -> Result<(Server, Client, Bouncer)> {
    let (server, mut client) = Server::builder().with_session()?;
    create(&mut client, "t", "step => 20, max_step => 200")?;
    client.run("create table rows (id bigint primary key default segment_nextval('t'), note text)")?;
    let bouncer = Bouncer::start(&server, 2, "")?;
    Ok((server, client, bouncer))
}

#[test]
fn many_clients_of_few_sessions_share_no_id() -> Result<()> {
    let (_server, mut client, bouncer) = pooled()?;
    client.run("alter role postgres set snowflake_ids.cache = 30")?;
    let clients = (0..8).map(|_| bouncer.connect("postgres")).collect::<Result<Vec<_>>>()?;
    let taken = at_once(clients, |_, mut client| {
        let (mut segments, mut snowflakes) = (Vec::new(), Vec::new());
        for _ in 0..30 {
            segments.extend(column(&mut client, "select segment_nextval('t')")?);
            segments.extend(column(&mut client, "select segment_nextvals('t', 7)")?);
            segments.extend(column(&mut client, "insert into rows (note) values ('a'), ('b') returning id")?);
            segments.extend(column(&mut client, "begin; select segment_nextval('t'); rollback")?);
            snowflakes.extend(column(&mut client, "select snowflake_nextval()")?);
            snowflakes.extend(column(&mut client, "select snowflake_nextvals(5)")?);
            let set = "begin; set local snowflake_ids.cache = 3; select snowflake_nextval(); commit";
            snowflakes.extend(column(&mut client, set)?);
        }
        Ok((segments, snowflakes))
    })?;
    let (segments, snowflakes): (Vec<_>, Vec<_>) = taken.into_iter().unzip();
    let (segments, snowflakes) = (segments.concat(), snowflakes.concat());
    assert_eq!([segments.len(), snowflakes.len()], [8 * 30 * 11, 8 * 30 * 7]);
    ids::dense(segments)?;
    ids::unique(snowflakes)
}

/// A client gets any session of the pooler, so session state is useful only within a transaction.
#[test]
fn the_last_id_is_the_client_s_own_within_its_transaction_alone() -> Result<()> {
    let (server, _client, _) = pooled()?;
    let bouncer = Bouncer::start(&server, 1, "")?;
    let (mut a, mut b) = (bouncer.connect("postgres")?, bouncer.connect("postgres")?);
    for (take, last) in [
        ("select segment_nextval('t')", "select segment_currval('t')"),
        ("select snowflake_nextval()", "select snowflake_lastval()"),
    ] {
        let own = column(&mut a, &format!("begin; {take}; {last}; commit"))?;
        ensure!(own.len() == 2 && own[0] == own[1], "{own:?}");
        let other = column(&mut b, take)?;
        assert_eq!(column(&mut a, last)?, other, "the session's last id is another client's");
    }
    Ok(())
}

#[test]
fn a_pooler_that_is_killed_under_load_brings_no_id_twice() -> Result<()> {
    let (_server, mut client, mut bouncer) = pooled()?;
    let (stop, given, port) = (AtomicBool::new(false), AtomicUsize::new(0), &bouncer.port());
    let connect = || {
        Client::connect(
            &format!("host=127.0.0.1 port={port} user=postgres password=pooled dbname=postgres"),
            NoTls,
        )
    };
    let mut taken = thread::scope(|scope| -> Result<Vec<i64>> {
        let work = || {
            let mut taken = Vec::new();
            while !stop.load(Ordering::Relaxed) {
                let Ok(mut client) = connect() else { continue };
                while let Ok(ids) =
                    column(&mut client, "insert into rows (note) values ('a'), ('b') returning id")
                {
                    given.fetch_add(ids.len(), Ordering::Relaxed);
                    taken.extend(ids);
                    if stop.load(Ordering::Relaxed) {
                        break;
                    }
                }
            }
            taken
        };
        let loads: Vec<_> = (0..4).map(|_| scope.spawn(work)).collect();
        let killed = (0..3).try_for_each(|_| {
            let before = given.load(Ordering::Relaxed);
            wait::until_true("the load to go on", || Ok(given.load(Ordering::Relaxed) >= before + 100))?;
            bouncer.kill()?;
            bouncer.start_again()
        });
        // If `stop` were not set, the threads would not end after a failure.
        stop.store(true, Ordering::Relaxed);
        killed?;
        Ok(loads.into_iter().filter_map(|load| load.join().ok()).flatten().collect())
    })?;
    // The lost sessions do not block later ids.
    taken.push(next(&mut client, "t")?);
    ids::unique(taken)
}

/// A server, and a session on it.
type Node = (Server, Client);

/// A registry, a pooler in front of the registry, and two nodes that know only the pooler.
fn nodes() -> Result<(Server, Bouncer, [Node; 2])> {
    let registry = auto().start()?;
    create(&mut registry.serve_nodes()?, "t", "step => 10, max_step => 20")?;
    let bouncer = Bouncer::start(&registry, 2, "")?;
    let node = || -> Result<Node> {
        let node = cluster::node().start()?;
        let mut client = node.introduce(NAME, &[bouncer.port()])?;
        client.run(JOIN)?;
        Ok((node, client))
    };
    let nodes = [node()?, node()?];
    Ok((registry, bouncer, nodes))
}

#[test]
fn nodes_draw_from_a_registry_through_a_pooler_whatever_is_restarted() -> Result<()> {
    let (mut registry, mut bouncer, [(_first, mut one), (_second, mut other)]) = nodes()?;
    let mut snowflakes = vec![wait_for_id(&mut one)?, wait_for_id(&mut other)?];
    let workers =
        [snowflakes::worker(&mut one, snowflakes[0])?, snowflakes::worker(&mut other, snowflakes[1])?];
    assert_ne!(workers[0], workers[1]);
    let mut taken = [take(&mut one, "t", 100)?, take(&mut other, "t", 100)?].concat();
    ensure!(received(&mut one, "t")? > 0, "these are ids of its own");

    bouncer.kill()?;
    bouncer.start_again()?;
    taken.extend(goes_on(&mut one, "after the pooler's restart")?);
    registry.restart()?;
    taken.extend(goes_on(&mut other, "after the registry's restart")?);

    // For a node, a paused pooler looks like a hung registry.
    bouncer.tell("pause")?;
    one.run("set snowflake_ids.segment_wait_timeout = '1500ms'")?;
    while let Ok(id) = next(&mut one, "t") {
        taken.push(id);
    }
    bouncer.tell("resume")?;
    taken.extend(goes_on(&mut one, "after the pause")?);
    becomes(&mut one, NAME, "up")?;
    snowflakes.extend([snowflakes::next(&mut one)?, snowflakes::next(&mut other)?]);
    ids::unique(snowflakes)?;
    ids::unique(taken)
}

/// Takes more ids than a node can have buffered.
fn goes_on(client: &mut Client, when: &str) -> Result<Vec<i64>> {
    let mut taken = Vec::new();
    wait::until(TIMEOUT, when, || {
        while taken.len() < 100 {
            let Ok(id) = next(client, "t") else { return Ok(None) };
            taken.push(id);
        }
        Ok(Some(()))
    })?;
    Ok(taken)
}
