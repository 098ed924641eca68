//! The registry of worker ids in trouble: dropped, locked, moved, changed by hand, away until the expiry.

use anyhow::Result;
use postgres::error::SqlState;
use snowflake_ids_server_tests::load::Taken;
use snowflake_ids_server_tests::registry::{auto, lease_to_another, wait_for_id};
use snowflake_ids_server_tests::snowflakes::{NEXT, next, refused, status, take, worker};
use snowflake_ids_server_tests::{Server, ids, sql, wait};
use std::time::Duration;

const NO_ID: &str = "this server has no worker id yet";
const TIMEOUT: Duration = wait::LONG;

#[test]
fn the_registry_can_be_dropped_and_ids_go_on() -> Result<()> {
    let mut server = auto().start()?;
    server.create_database("a")?;
    let mut taken = vec![next(&mut server.connect("a")?)?];
    let mut client = server.session()?;
    wait::until(TIMEOUT, "the registry to be dropped", || {
        Ok(client.batch_execute("drop database if exists a").ok())
    })?;
    taken.extend(take(&mut client, 100)?);
    server.restart()?;
    taken.push(wait_for_id(&mut server.session()?)?);
    ids::unique(taken)
}

#[test]
fn the_extension_can_be_created_again_and_ids_go_on() -> Result<()> {
    let mut server = auto().start()?;
    let mut client = server.session()?;
    let mut taken = take(&mut client, 100)?;
    client.batch_execute("drop extension snowflake_ids cascade; create extension snowflake_ids")?;
    taken.extend(take(&mut client, 100)?);
    server.restart()?;
    taken.push(wait_for_id(&mut server.session()?)?);
    ids::unique(taken)
}

#[test]
fn the_registry_serves_as_a_template_and_can_be_moved_to_another_database() -> Result<()> {
    let mut server = auto().start()?;
    server.create_database("a")?;
    let mut taken = vec![next(&mut server.connect("a")?)?];
    let mut client = server.session()?;
    wait::until(TIMEOUT, "the registry to be copied", || {
        Ok(client.batch_execute("create database b template a").ok())
    })?;
    server.set("snowflake_ids.registry_database", "b")?;
    // Another expiry asks for a renewal.
    server.reload("snowflake_ids.lease_duration", "2h")?;
    taken.extend(take(&mut client, 1000)?);
    wait::until_true("the change", || Ok(status::<String>(&mut client, "leased_from")? == "b"))?;
    taken.extend(take(&mut client, 1000)?);
    server.restart()?;
    taken.push(wait_for_id(&mut server.session()?)?);
    ids::unique(taken)
}

#[test]
fn a_registry_that_takes_no_connections_is_not_needed_under_a_lease() -> Result<()> {
    let mut server = auto().start()?;
    server.create_database("a")?;
    let mut taken = vec![next(&mut server.connect("a")?)?];
    server.connect("postgres")?.batch_execute("alter database a allow_connections false")?;
    for _ in 0..2 {
        server.kill9()?;
        server.start_again()?;
        taken.extend(take(&mut server.session()?, 1000)?);
    }
    ids::growing(&taken)
}

#[test]
fn a_registry_that_takes_no_connections_is_found_and_renews_the_lease() -> Result<()> {
    let server = auto().start()?;
    server.create_database("a")?;
    let mut client = server.session()?;
    client.batch_execute("alter database a allow_connections false")?;
    let taken = vec![next(&mut client)?];
    assert_eq!(status::<String>(&mut client, "leased_from")?, "a", "the first with the extension");
    let expiry: String = status(&mut client, "lease_expires_at::text")?;
    server.reload("snowflake_ids.lease_duration", "48h")?;
    wait::until_true("the lease to be renewed", || {
        Ok(status::<String>(&mut client, "lease_expires_at::text")? != expiry)
    })?;
    // No process is in the template that is closed so that it can be copied.
    client.batch_execute("create database copy template template0")?;
    ids::unique(taken)
}

/// A registry that is locked, over restarts too.
fn locked(server: &Server) -> Result<()> {
    Ok(server.connect("postgres")?.batch_execute(
        "begin; lock table snowflake_ids.worker_lease in access exclusive mode; prepare transaction 'lock'",
    )?)
}

#[test]
fn a_call_without_a_lease_does_not_wait_for_a_locked_registry_for_ever() -> Result<()> {
    let mut server =
        auto().set("snowflake_ids.worker_id", "1").set("max_prepared_transactions", "1").start()?;
    server.session()?;
    locked(&server)?;
    server.set("snowflake_ids.worker_id", "auto")?;
    server.restart()?;
    let mut client = server.connect("postgres")?;
    let error = sql::error_within(&mut client, "300ms", NEXT)?;
    assert_eq!(error.code(), &SqlState::QUERY_CANCELED, "{error:?}");
    let error = refused(&mut client)?;
    sql::explains(&error, &SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE, NO_ID)?;
    client.batch_execute("rollback prepared 'lock'")?;
    wait_for_id(&mut client).map(drop)
}

/// Until the expiry, and with a warning from half the way on. The clock is set forward so as not to wait for it.
#[test]
fn under_a_locked_registry_ids_go_on_until_the_expiry() -> Result<()> {
    let mut server = auto()
        .faketime()
        .set("snowflake_ids.lease_duration", "20min")
        .set("max_prepared_transactions", "1")
        .start()?;
    let mut client = server.session()?;
    let mut taken = take(&mut client, 1000)?;
    locked(&server)?;
    server.restart()?;
    let mut client = server.connect("postgres")?;
    for clock in ["+4m", "+9m", "+14m"] {
        server.set_clock(clock)?;
        taken.extend(take(&mut client, 1000)?);
    }
    wait::until_true("a warning", || {
        let log = server.log();
        Ok(log.lines().any(|line| line.contains("WARNING") && line.contains("registry")))
    })?;
    server.set_clock("+21m")?;
    let error = refused(&mut client)?;
    assert_eq!(error.code(), &SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE, "{error:?}");
    assert!(error.detail().is_some() && error.hint().is_some(), "{error:?}");
    client.batch_execute("rollback prepared 'lock'")?;
    taken.push(wait_for_id(&mut client)?);
    taken.extend(take(&mut client, 1000)?);
    ids::unique(taken)
}

/// The token says whose the row is; a server that finds another one has lost it, and must not issue as it any more.
#[test]
fn a_lost_lease_is_exchanged_for_another() -> Result<()> {
    let server = auto().start()?;
    let mut client = server.session()?;
    let mut all = Taken::own(take(&mut client, 100)?);
    let lost: i32 = status(&mut client, "worker_id")?;
    let load = server.load(4)?;
    client.batch_execute("update snowflake_ids.worker_lease set token = 12345, system_identifier = 4711")?;
    // A shorter expiry asks for a renewal.
    server.reload("snowflake_ids.lease_duration", "1min")?;
    wait::until(TIMEOUT, "another worker id", || {
        Ok(status::<Option<i32>>(&mut client, "worker_id")?.filter(|worker| *worker != lost))
    })?;
    load.goes_on()?;
    all.add(load.end());
    let told = server.log().lines().any(|line| line.contains("WARNING") && line.contains("lease"));
    assert!(told, "{}", server.log());
    for id in take(&mut client, 100)? {
        assert_ne!(worker(&mut client, id)?, lost);
        all.ids.push(id);
    }
    if let Some(other) = all.other_than(NO_ID) {
        anyhow::bail!("{other:?}");
    }
    all.unique()
}

#[test]
fn a_renewal_under_a_clock_far_ahead_reserves_no_years() -> Result<()> {
    let server = auto().faketime().start()?;
    let mut client = server.session()?;
    next(&mut client)?;
    let token = "select token from snowflake_ids.worker_lease";
    let leased: i64 = sql::one(&mut client, token)?;
    server.set_clock("+10y")?;
    server.reload("snowflake_ids.lease_duration", "2h")?;
    next(&mut client)?;
    // Renewed or put off: either is fine.
    let _ = wait::until_true("a renewal", || Ok(sql::one::<i64>(&mut client, token)? != leased));
    server.set_clock("+0")?;
    let near = "select bool_and(expires_at < now() + interval '25h') from snowflake_ids.worker_lease";
    assert!(sql::one::<bool>(&mut client, near)?, "the expiry is years away");
    next(&mut client).map(drop)
}

/// A server behind what others have issued would issue ids that look older than theirs.
#[test]
fn a_clock_behind_the_other_holders_gets_no_lease() -> Result<()> {
    let mut server = auto().set("snowflake_ids.worker_id", "1").start()?;
    let mut client = server.session()?;
    lease_to_another(&mut client, 7, "10min", "1h")?;
    server.set("snowflake_ids.worker_id", "auto")?;
    server.restart()?;
    let mut client = server.session()?;
    let error = refused(&mut client)?;
    sql::explains(&error, &SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE, NO_ID)?;
    let said = format!("{error:?}");
    assert!(said.contains("clock") && said.contains("snowflake_ids.max_clock_skew"), "{said}");
    client.batch_execute(
        "update snowflake_ids.worker_lease set clock = now(), last_time = now() where system_identifier <> 0",
    )?;
    wait_for_id(&mut client).map(drop)
}
