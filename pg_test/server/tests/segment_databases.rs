//! Databases that are dropped and created again. A database that has a dropped database's OID inherits nothing from that database.

use snowflake_ids_server_tests::prelude::*;
use snowflake_ids_server_tests::segments::{create, next, take};
use snowflake_ids_server_tests::snowflakes;

/// An OID that no database has by itself.
const OID: u32 = 4_000_000_001;

#[test]
fn one_of_the_same_oid_shares_no_id_with_the_dropped_one() -> Result<()> {
    let server = Server::builder().start()?;
    let mut client = server.connect("postgres")?;
    let version: i32 = client.one("select current_setting('server_version_num')::integer")?;
    if version < 150_000 {
        // Before Postgres 15, CREATE DATABASE takes no OID.
        return Ok(());
    }
    // A copy of a template has its rows, so the database has the same tags in the same table each time.
    create(&mut server.create_database("shop")?, "orders", "")?;
    create(&mut server.connect("shop")?, "bills", "")?;
    for round in 0..2 {
        client.run(&format!("create database again oid = {OID} template shop"))?;
        let mut inside = server.connect("again")?;
        let mut taken = take(&mut inside, "orders", 1500)?;
        ensure!(taken[0] == 1, "round {round} begins with {}", taken[0]);
        taken.extend(take(&mut inside, "orders", 5000)?);
        ids::unique(taken)?;
        // A rolled-back transaction in the dropped database does not raise the ids of the new database either.
        if round == 0 {
            inside.run("begin; select snowflake_ids.segment_set('bills', 5000)")?;
            next(&mut inside, "bills")?;
            inside.run("rollback")?;
            ensure!(next(&mut inside, "bills")? > 5000, "the high-water mark holds in its own database");
        } else {
            let first = next(&mut inside, "bills")?;
            ensure!(first == 1, "bills of round {round} begin with {first}");
        }
        drop(inside);
        client.run("drop database again with (force)")?;
    }
    Ok(())
}

/// The workers disconnect as soon as a session drops the database, not only after 2 s without work. On a busy machine, the test
/// is content with one fast drop out of many.
#[test]
fn one_is_dropped_right_after_its_first_ids() -> Result<()> {
    let (server, mut client) = auto().with_session()?;
    create(&mut server.create_database("model")?, "t", "")?;
    client.run("set statement_timeout = '1s'")?;
    let mut number = 0;
    wait::until_true("a database to be dropped at once", || {
        number += 1;
        let name = format!("d{number}");
        server.session()?.run(&format!("create database {name} template model"))?;
        let mut used = server.connect(&name)?;
        next(&mut used, "t")?;
        snowflakes::next(&mut used)?;
        drop(used);
        let drop_it = format!("drop database {name}");
        match client.batch_execute(&drop_it) {
            Ok(()) => Ok(true),
            Err(error) if error.code() == Some(&SqlState::QUERY_CANCELED) => Ok(false),
            Err(error) => Err(error.into()),
        }
    })
}

/// Test suites work like this: each test has its own database, copied from a template with the schema.
#[test]
fn twice_as_many_as_workers_ask_for_their_first_ids_at_once() -> Result<()> {
    let builder = auto().set("max_worker_processes", "8").set("max_connections", "60");
    let server = builder.start()?;
    create(&mut server.create_database("model")?, "t", "")?;
    let mut client = server.connect("postgres")?;
    let names = (0..16).map(|number| format!("d{number}"));
    let clients = names.map(|name| {
        client.run(&format!("create database {name} template model"))?;
        server.connect(&name)
    });
    let clients = clients.collect::<Result<Vec<_>>>()?;
    let taken = at_once(clients, |_, mut client| Ok((next(&mut client, "t")?, wait_for_id(&mut client)?)))?;
    assert!(taken.iter().all(|(number, _)| *number == 1), "{taken:?}");
    ids::unique(taken.into_iter().map(|(_, id)| id).collect())
}
