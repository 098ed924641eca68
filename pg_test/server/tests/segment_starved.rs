//! Databases whose workers hang, and other databases that need ids.

use snowflake_ids_server_tests::cluster::{
    JOIN, NAME, ROLE, node, refused_with, wait_as_long_as_it_takes, wait_at_most,
};
use snowflake_ids_server_tests::prelude::*;
use snowflake_ids_server_tests::segments::{create, next, take_until_refused, wait_for_waiting};
use snowflake_ids_server_tests::snowflakes::next as next_snowflake;
use std::fs;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};

/// The number of databases whose worker hangs.
const HUNG: usize = 7;
const ONE_BY_ONE: &str = "step => 1, max_step => 1";

/// Creates a database that takes ids from a registry.
fn node_database(server: &Server, registry: &Server, name: &str) -> Result<Client> {
    let mut client = server.create_database(name)?;
    registry.connect_from(&mut client, NAME, ROLE)?;
    client.run(JOIN)?;
    Ok(client)
}

/// A registry that gives no answer. Seven of eight databases take ids from this registry, and the server can run five workers at
/// once.
#[test]
fn a_registry_that_hangs_for_most_databases_does_not_hold_up_the_others() -> Result<()> {
    let registry = auto().start()?;
    create(&mut registry.serve_nodes()?, "t", ONE_BY_ONE)?;
    let builder = node().set("snowflake_ids.registry_timeout", "1min");
    let server = builder.start()?;
    let mut sound = server.session()?;
    create(&mut sound, "t", ONE_BY_ONE)?;
    next_snowflake(&mut sound)?;
    let hung = (0..HUNG).map(|number| {
        let mut client = node_database(&server, &registry, &format!("d{number}"))?;
        next(&mut client, "t")?;
        Ok(client)
    });
    let hung = hung.collect::<Result<Vec<_>>>()?;
    let paused = registry.pause()?;
    let stop = AtomicBool::new(false);
    let refused = AtomicUsize::new(0);
    let done = thread::scope(|scope| {
        for mut client in hung {
            let (stop, refused) = (&stop, &refused);
            scope.spawn(move || -> Result<()> {
                wait_at_most(&mut client, Duration::from_secs(1))?;
                while !stop.load(Relaxed) {
                    take_until_refused(&mut client, "t");
                    refused.fetch_add(1, Relaxed);
                }
                Ok(())
            });
        }
        let done = wait::until_true("calls of the others to fail", || Ok(refused.load(Relaxed) >= HUNG))
            .and_then(|()| {
                // These calls have the default time limit.
                (0..30).try_for_each(|_| next(&mut sound, "t").map(drop))?;
                next_snowflake(&mut sound).map(drop)
            });
        stop.store(true, Relaxed);
        done
    });
    drop(paused);
    done
}

/// More calls wait for an unresponsive registry than there are slots for tags. Another database can use all slots.
#[test]
fn calls_of_a_registry_that_hangs_hold_no_places() -> Result<()> {
    const CALLS: usize = 16;
    let registry = auto().start()?;
    let mut shard = registry.serve_nodes()?;
    for number in 0..CALLS {
        create(&mut shard, &format!("r{number}"), "")?;
    }
    let builder = node().set("snowflake_ids.max_tags", "4");
    let server = builder.start()?;
    let mut sound = server.session()?;
    node_database(&server, &registry, "d")?;
    let paused = registry.pause()?;
    let calls: Vec<_> = server
        .sessions("d", CALLS)?
        .into_iter()
        .enumerate()
        .map(|(number, mut client)| {
            thread::spawn(move || {
                wait_as_long_as_it_takes(&mut client)?;
                next(&mut client, &format!("r{number}"))
            })
        })
        .collect();
    wait_for_waiting(&server, i64::try_from(CALLS)?)?;
    for number in 0..8 {
        create(&mut sound, &format!("t{number}"), "")?;
    }
    for _ in 0..3 {
        for number in 0..8 {
            next(&mut sound, &format!("t{number}"))?;
        }
    }
    drop(paused);
    for call in calls {
        assert_eq!(call.ended()?, 1);
    }
    Ok(())
}

/// Starts a server that can run two refill workers, and makes a database that needs ids. In two more databases the refill worker
/// never finishes a session's request.
fn two_that_hang() -> Result<(Server, Client, [&'static str; 2])> {
    let builder = Server::builder().set("max_logical_replication_workers", "0");
    let server = builder.set("max_worker_processes", "3").start()?;
    let mut sound = server.session()?;
    create(&mut sound, "t", ONE_BY_ONE)?;
    let names = ["d0", "d1"];
    for name in names {
        let mut client = server.create_database(name)?;
        create(&mut client, "t", "")?;
        client.run(
            "create function sleeps() returns trigger language plpgsql as
               'begin perform pg_catalog.pg_sleep(600); return new; end';
             create trigger a_sleeps before update on snowflake_ids.segment for each row execute function sleeps();
             alter table snowflake_ids.segment enable always trigger a_sleeps",
        )?;
        wait_at_most(&mut client, Duration::from_millis(500))?;
        client.error("select segment_nextval('t')")?;
    }
    Ok((server, sound, names))
}

#[test]
fn workers_that_never_come_to_an_end_make_room() -> Result<()> {
    let (_server, mut sound, _) = two_that_hang()?;
    (1..=10).try_for_each(|expected| {
        assert_eq!(next(&mut sound, "t")?, expected);
        Ok(())
    })
}

/// A transaction that renames a database locks it. A session that connects to the database waits.
#[test]
fn workers_that_cannot_connect_make_room() -> Result<()> {
    let (server, mut sound, names) = two_that_hang()?;
    let mut lockers = Vec::new();
    for name in names {
        let mut locker = server.connect("template1")?;
        let rename = thread::spawn(move || {
            locker.run(&format!("begin; alter database {name} rename to former_{name}"))?;
            anyhow::Ok(locker)
        });
        // The rename waits until no session is connected to the database.
        let end = format!("select pg_terminate_backend(pid) from pg_stat_activity where datname = '{name}'");
        wait::until_true("the database to be renamed", || {
            sound.run(&end)?;
            Ok(rename.is_finished())
        })?;
        lockers.push(rename.ended()?);
    }
    let waiting = "select count(*) = 2 from pg_locks where locktype = 'object' and not granted";
    sound.becomes_true(waiting)?;
    (1..=10).try_for_each(|expected| {
        assert_eq!(next(&mut sound, "t")?, expected);
        Ok(())
    })
}

/// The error names the failed connection, and not a slow disk.
#[test]
fn the_error_says_that_no_worker_could_connect() -> Result<()> {
    let server = Server::builder().start()?;
    let mut client = server.create_database("d")?;
    create(&mut client, "t", "")?;
    let oid: u32 = client.one("select oid from pg_database where datname = current_database()")?;
    let version = server.data().join(format!("base/{oid}/PG_VERSION"));
    let text = fs::read(&version)?;
    fs::remove_file(&version)?;
    wait_at_most(&mut client, Duration::from_secs(2))?;
    let (_, error) = refused_with(&mut client, "t", &["could not connect to this database"])?;
    sql::explains(&error, &SqlState::INSUFFICIENT_RESOURCES, "no ids for segment tag \"t\" within 2 s")?;
    fs::write(&version, text)?;
    wait_as_long_as_it_takes(&mut client)?;
    assert_eq!(next(&mut client, "t")?, 1, "it is tried again");
    Ok(())
}
