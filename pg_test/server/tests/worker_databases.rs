//! Looking for the registry of worker ids among databases that cannot be connected to for now.

use anyhow::Result;
use postgres::Client;
use snowflake_ids_server_tests::registry::{auto, wait_for_id};
use snowflake_ids_server_tests::segments::TIMEOUT;
use snowflake_ids_server_tests::snowflakes::{next, refused};
use snowflake_ids_server_tests::{Server, sql, wait};

/// A server with the extension in these databases, in this order; nothing has been leased.
fn server(databases: &[&str]) -> Result<(Server, Client)> {
    let server = auto().start()?;
    for database in databases {
        server.create_database(database)?;
    }
    let client = server.connect("postgres")?;
    Ok((server, client))
}

/// Has a database locked, by a change of it that is not committed.
fn lock(client: &mut Client, database: &str) -> Result<()> {
    let rename = format!("begin; alter database {database} rename to {database}_renamed");
    wait::until(TIMEOUT, "the database to be free of workers", || {
        let locked = client.batch_execute(&rename);
        if locked.is_err() {
            client.batch_execute("rollback")?;
        }
        Ok(locked.ok())
    })
}

#[test]
fn databases_that_are_locked_are_passed_over() -> Result<()> {
    let (server, mut owner) = server(&[])?;
    // Looked into before and after the one that has the registry.
    for database in ["one", "closed"] {
        owner.batch_execute(&format!("create database {database}"))?;
    }
    server.create_database("app")?;
    owner.batch_execute("create database other")?;
    owner.batch_execute("alter database closed allow_connections false")?;
    let mut second = server.connect("postgres")?;
    lock(&mut owner, "one")?;
    lock(&mut second, "other")?;
    wait_for_id(&mut server.connect("app")?)?;
    for client in [&mut owner, &mut second] {
        client.batch_execute("rollback")?;
    }
    Ok(())
}

#[test]
fn where_the_registry_is_locked_the_error_says_so_until_it_is_not() -> Result<()> {
    let (server, mut owner) = server(&["app", "registry"])?;
    server.reload("snowflake_ids.registry_database", "registry")?;
    lock(&mut owner, "registry")?;
    let mut client = server.connect("app")?;
    let error = wait::until(TIMEOUT, "the worker to have tried", || {
        let error = refused(&mut client)?;
        Ok(error.detail().is_some_and(|detail| detail.contains("locked")).then_some(error))
    })?;
    let detail = "The background worker could not connect to database \"registry\", which holds the registry: a \
                  transaction that changes that database has it locked.";
    assert_eq!(error.detail(), Some(detail));
    owner.batch_execute("rollback")?;
    wait_for_id(&mut client)?;
    Ok(())
}

/// The registry is in the database in which the extension was created first, though it could not be looked into at first.
#[test]
fn one_that_was_passed_over_is_the_registry_in_time_if_it_comes_first() -> Result<()> {
    let (server, mut owner) = server(&["first", "second"])?;
    lock(&mut owner, "first")?;
    let mut second = server.connect("second")?;
    wait_for_id(&mut second)?;
    let leased = "select count(*) from snowflake_ids.worker_lease";
    assert_eq!(sql::one::<i64>(&mut second, leased)?, 1);
    owner.batch_execute("rollback")?;
    let mut first = server.connect("first")?;
    wait::until_true("a lease from the first", || Ok(sql::one::<i64>(&mut first, leased)? == 1))?;
    next(&mut second)?;
    Ok(())
}
