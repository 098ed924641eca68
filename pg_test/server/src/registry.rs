//! The table that leases worker ids: reading it, and filling it by hand.

use crate::server::Server;
use crate::snowflakes::next;
use crate::wait;
use crate::{Builder, sql::Session};
use anyhow::{Context, Result};
use postgres::Client;

/// A server that chooses or leases its worker id in datacenter 0.
pub fn auto() -> Builder {
    of_pairs().set("snowflake_ids.datacenter_id", "0")
}

/// A server that chooses or leases its datacenter id and worker id.
pub fn of_pairs() -> Builder {
    Server::builder().set("snowflake_ids.worker_id", "auto")
}

/// Records that another server holds a worker id of datacenter 0. `ahead`: the other server's clock and last id; `expiry`: the
/// expiry of the other server's lease. Both are intervals relative to this server's clock.
#[track_caller]
pub fn lease_to_another(client: &mut Client, worker: i32, ahead: &str, expiry: &str) -> Result<()> {
    client.run(&format!(
        "insert into snowflake_ids.worker_lease
           (datacenter_id, worker_id, system_identifier, timeline, host, port, data_directory, token, expires_at,
            clock, last_time, leased_at, renewed_at, layout)
         select 0, {worker}, 4711 + {worker}, 1, 'elsewhere{worker}', 6000 + {worker}, '/elsewhere', 1,
           now() + interval '{expiry}', now() + interval '{ahead}', now() + interval '{ahead}', now(), now(),
           layout
         from snowflake_ids.status"
    ))
}

/// A session of a server that leases worker ids to other servers, and so also to itself.
#[track_caller]
pub fn serving(server: &Server) -> Result<Client> {
    let mut client = server.session()?;
    next(&mut client)?;
    lease_to_another(&mut client, 31, "-1min", "2d")?;
    wait::until_true("a lease of its own", || {
        client.one("select leased_from is not null from snowflake_ids.status")
    })?;
    wait_for_id(&mut client)?;
    Ok(client)
}

/// Makes a server that also leases worker ids to others lose its own lease and take another. Returns the lost worker id.
#[track_caller]
pub fn lose_lease(server: &Server, client: &mut Client) -> Result<i32> {
    const LEASED: &str = "select worker_id from snowflake_ids.status";
    let lost: i32 = client.one(LEASED)?;
    client.run("update snowflake_ids.worker_lease set token = token + 1 where host not like 'elsewhere%'")?;
    // A shorter lease duration triggers a renewal.
    server.reload("snowflake_ids.lease_duration", "1min")?;
    wait::until_true("another worker id", || {
        Ok(client.one::<Option<i32>>(LEASED)?.is_some_and(|leased| leased != lost))
    })?;
    Ok(lost)
}

/// The worker ids that this server holds in the registry of the session's database.
#[track_caller]
pub fn held(client: &mut Client) -> Result<Vec<i32>> {
    client.column(
        "select worker_id from snowflake_ids.worker_lease, pg_control_system() c
         where worker_lease.system_identifier = c.system_identifier and released_at is null",
    )
}

/// Waits until the server issues an id.
#[track_caller]
pub fn wait_for_id(client: &mut Client) -> Result<i64> {
    let mut refusal = None;
    let id = wait::until(wait::LONG, "an id", || {
        Ok(next(client).map_err(|error| refusal = Some(format!("{error:#}"))).ok())
    });
    id.with_context(|| refusal.unwrap_or_default())
}
