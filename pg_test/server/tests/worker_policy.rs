//! The choice of a server's worker id: policies, no free worker ids, and released worker ids.

use snowflake_ids_server_tests::prelude::*;
use snowflake_ids_server_tests::registry::lease_to_another;
use snowflake_ids_server_tests::snowflakes::{next, refused, status, take, time, worker};
use std::thread::sleep;

const NONE_FREE: &str = "no worker id is free";

/// A server with this number of worker bits, and clocks that agree to within a second.
fn narrow(bits: u32) -> Builder {
    auto()
        .set("snowflake_ids.layout", &format!("41/5/{bits}/12"))
        .set("snowflake_ids.max_drift", "1s")
        .set("snowflake_ids.max_clock_skew", "1s")
}

/// Starts a server that leases its worker id from its own registry, filled by `fill`.
fn on_registry(builder: Builder, fill: &str) -> Result<Server> {
    let (mut server, mut client) = builder.set("snowflake_ids.worker_id", "0").with_session()?;
    for worker in fill.split_whitespace() {
        lease_to_another(&mut client, worker.parse()?, "-1min", "1h")?;
    }
    server.set("snowflake_ids.worker_id", "auto")?;
    server.restart()?;
    Ok(server)
}

/// Only roles that may see other users' activity see the addresses of other servers.
#[test]
fn an_error_names_the_holders_but_not_to_ordinary_users() -> Result<()> {
    let server = on_registry(narrow(1), "0 1")?;
    let mut client = server.session()?;
    client.run("create role app; set role app")?;
    let error = refused(&mut client)?;
    sql::explains(&error, sql::NOT_IN_STATE, NONE_FREE)?;
    let detail = error.detail().unwrap_or_default();
    assert!(
        detail.contains("2 worker ids") && !detail.contains("elsewhere") && !detail.contains("600"),
        "{error:?}"
    );
    client.run("reset role; grant pg_monitor to app; set role app")?;
    let error = refused(&mut client)?;
    let told = |holder| error.detail().is_some_and(|detail| detail.contains(holder));
    assert!(told("elsewhere0 port 6000") && told("elsewhere1"), "{error:?}");
    assert!(error.hint().is_some_and(|hint| hint.contains("worker_release")), "{error:?}");
    assert!(server.logged("elsewhere1") > 0, "the log lists them, too");
    Ok(())
}

#[test]
fn an_id_whose_holder_is_down_is_free_soon_and_begins_above_it() -> Result<()> {
    let server = on_registry(narrow(1), "0 1")?;
    let mut client = server.session()?;
    assert_eq!(refused(&mut client)?.message(), NONE_FREE);
    // The holder may be alive, so the worker id is free only after its expiry.
    client.run("select snowflake_ids.worker_release(0, datacenter_id => 0)")?;
    assert_eq!(refused(&mut client)?.message(), NONE_FREE);
    let released: f64 = client.one("select extract(epoch from now())::float8")?;
    client.run("select snowflake_ids.worker_release(1, holder_is_down => true)")?;
    let id = wait_for_id(&mut client)?;
    assert_eq!(worker(&mut client, id)?, 1);
    let begun = time(&mut client, id)?;
    assert!(begun >= released + 1.9, "{begun} where the former holder may have issued until {released} + 2");
    Ok(())
}

#[test]
fn an_id_whose_expiry_has_passed_is_taken_over_and_no_other() -> Result<()> {
    let server = on_registry(narrow(1), "0 1")?;
    let mut client = server.session()?;
    refused(&mut client)?;
    client.run("update snowflake_ids.worker_lease set expires_at = now() where worker_id = 1")?;
    let id = wait_for_id(&mut client)?;
    assert_eq!(worker(&mut client, id)?, 1);
    let holders: Vec<i64> =
        client.column("select system_identifier from snowflake_ids.worker_lease order by worker_id")?;
    assert_eq!(holders[0], 4711);
    assert_ne!(holders[1], 4712);
    Ok(())
}

#[test]
fn a_clock_far_ahead_frees_no_id() -> Result<()> {
    let server = on_registry(narrow(1).false_clock(), "0 1")?;
    let mut client = server.session()?;
    assert_eq!(refused(&mut client)?.message(), NONE_FREE);
    server.set_clock("+10y")?;
    for _ in 0..20 {
        refused(&mut client)?;
        sleep(Duration::from_millis(100));
    }
    let holders = "select system_identifier from snowflake_ids.worker_lease order by worker_id";
    assert_eq!(client.column::<i64>(holders)?, [4711, 4712]);
    Ok(())
}

#[test]
fn a_disposable_id_is_never_used_again() -> Result<()> {
    let mut server = narrow(2).set("snowflake_ids.worker_id_policy", "disposable").start()?;
    let (mut taken, mut workers) = (Vec::new(), BTreeSet::new());
    for _ in 0..4 {
        let mut client = server.session()?;
        taken.extend(take(&mut client, 100)?);
        workers.insert(status::<i32>(&mut client, "worker_id")?);
        server.restart()?;
    }
    assert_eq!(workers.len(), 4, "{workers:?}");
    let error = refused(&mut server.session()?)?;
    sql::explains(&error, sql::NOT_IN_STATE, NONE_FREE)?;
    ids::unique(taken)
}

#[test]
fn queue_takes_the_id_that_was_free_the_longest() -> Result<()> {
    let builder = narrow(3).set("snowflake_ids.worker_id_policy", "queue");
    let mut server = on_registry(builder, "0 1 2 3 4 5 6 7")?;
    let mut client = server.session()?;
    assert_eq!(refused(&mut client)?.message(), NONE_FREE);
    client.run(
        "update snowflake_ids.worker_lease w
         set expires_at = now() - free.since, released_at = now() - free.since, token = null
         from (values (0, interval '1min'), (1, '3min'), (2, '5min'), (3, '2min')) free(worker, since)
         where worker_id = worker",
    )?;
    let id = wait_for_id(&mut client)?;
    assert_eq!(worker(&mut client, id)?, 2);
    server.restart()?;
    let mut client = server.session()?;
    let id = next(&mut client)?;
    assert_eq!(worker(&mut client, id)?, 2, "a server that comes back has its own id");
    Ok(())
}
