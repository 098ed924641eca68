//! A server that leases worker ids to other servers, and leases its own from the same table. The table is locked, dropped, or
//! changed by hand.

use snowflake_ids_server_tests::prelude::*;
use snowflake_ids_server_tests::registry::{held, lease_to_another, lose_lease, serving};
use snowflake_ids_server_tests::snowflakes::{next, refused, status, take, worker};

const NO_ID: &str = "this server has no worker id yet";

#[test]
fn the_extension_can_be_created_again_and_ids_go_on() -> Result<()> {
    let (mut server, mut client) = auto().with_session()?;
    let mut taken = take(&mut client, 100)?;
    client.run("drop extension snowflake_ids cascade; create extension snowflake_ids")?;
    taken.extend(take(&mut client, 100)?);
    server.restart()?;
    taken.push(wait_for_id(&mut server.session()?)?);
    ids::unique(taken)
}

#[test]
fn a_registry_leases_its_own_worker_id_and_goes_on_alone_when_no_other_has_one() -> Result<()> {
    let mut server = auto().set("snowflake_ids.lease_duration", "1min").start()?;
    let mut client = serving(&server)?;
    let leased: i32 = status(&mut client, "worker_id")?;
    assert_eq!(held(&mut client)?, [leased]);
    let mut taken = take(&mut client, 100)?;
    client.run("delete from snowflake_ids.worker_lease where worker_id = 31")?;
    // The server looks for other holders soon after its start.
    server.restart()?;
    let mut client = server.connect("postgres")?;
    taken.extend(take(&mut client, 100)?);
    wait::until_true("no lease", || {
        client.one("select lease_expires_at is null and worker_id is not null from snowflake_ids.status")
    })?;
    taken.extend(take(&mut client, 100)?);
    for id in &taken {
        assert_eq!(worker(&mut client, *id)?, leased);
    }
    ids::growing(&taken)
}

/// Locks the registry by a prepared transaction, which survives restarts.
fn locked(server: &Server) -> Result<()> {
    server.connect("postgres")?.run(
        "begin; lock table snowflake_ids.worker_lease in access exclusive mode; prepare transaction 'lock'",
    )
}

/// Ids are issued until the lease expires, with a warning in the second half of the lease. The test sets the clock forward
/// instead of waiting.
#[test]
fn under_a_locked_registry_ids_go_on_until_the_expiry() -> Result<()> {
    let mut server = auto()
        .false_clock()
        .set("snowflake_ids.lease_duration", "20min")
        .set("max_prepared_transactions", "1")
        .start()?;
    let mut client = serving(&server)?;
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
    assert_eq!(error.code(), sql::NOT_IN_STATE, "{error:?}");
    assert!(error.detail().is_some() && error.hint().is_some(), "{error:?}");
    client.run("rollback prepared 'lock'")?;
    taken.push(wait_for_id(&mut client)?);
    taken.extend(take(&mut client, 1000)?);
    ids::unique(taken)
}

/// The token shows which server holds the row. A server that finds another token has lost its lease, and must stop using the row's
/// worker id.
#[test]
fn a_lost_lease_is_exchanged_for_another() -> Result<()> {
    let server = auto().start()?;
    let mut client = serving(&server)?;
    let mut all = Taken::own(take(&mut client, 100)?);
    let load = server.load(4)?;
    let lost = lose_lease(&server, &mut client)?;
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
    let server = auto().false_clock().start()?;
    let mut client = serving(&server)?;
    next(&mut client)?;
    let token = "select token from snowflake_ids.worker_lease where worker_id <> 31";
    let leased: i64 = client.one(token)?;
    server.set_clock("+10y")?;
    server.reload("snowflake_ids.lease_duration", "2h")?;
    next(&mut client)?;
    // The renewal may succeed or be postponed.
    let _ = wait::until_true("a renewal", || Ok(client.one::<i64>(token)? != leased));
    server.set_clock("+0")?;
    let near = "select bool_and(expires_at < now() + interval '25h') from snowflake_ids.worker_lease where worker_id <> 31";
    assert!(client.one::<bool>(near)?, "the expiry is years away");
    next(&mut client).map(drop)
}

/// A server whose clock is behind other servers' ids would issue ids that look older than these ids.
#[test]
fn a_clock_behind_the_other_holders_gets_no_lease() -> Result<()> {
    let (mut server, mut client) = auto().set("snowflake_ids.worker_id", "1").with_session()?;
    lease_to_another(&mut client, 7, "10min", "1h")?;
    server.set("snowflake_ids.worker_id", "auto")?;
    server.restart()?;
    let mut client = server.session()?;
    let error = refused(&mut client)?;
    sql::explains(&error, sql::NOT_IN_STATE, NO_ID)?;
    let said = format!("{error:?}");
    assert!(said.contains("clock") && said.contains("snowflake_ids.max_clock_skew"), "{said}");
    client.run(
        "update snowflake_ids.worker_lease set clock = now(), last_time = now() where system_identifier <> 0",
    )?;
    wait_for_id(&mut client).map(drop)
}
