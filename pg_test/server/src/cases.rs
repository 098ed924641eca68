//! Cases that share servers, because starting a server takes longer than most cases.

use crate::builder::Builder;
use crate::server::Server;
use crate::sql::Session;
use anyhow::{Context, Result, anyhow, ensure};
use postgres::Client;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// A case: its name, and a function that gets the servers.
pub type Case<Servers> = (&'static str, fn(&mut Servers) -> Result<()>);

/// Lists functions as cases, each under its own name.
#[macro_export]
macro_rules! cases {
    ($($case:ident),+ $(,)?) => {
        &[$((stringify!($case), $case as fn(&mut _) -> _)),+]
    };
}

/// A query for the statements that drop all databases except the templates.
const DATABASES: &str =
    "select format('drop database %I with (force)', datname) from pg_database where not datistemplate";
/// A query for the statements that drop all roles except `postgres` and the predefined roles.
const ROLES: &str =
    "select format('drop role %I', rolname) from pg_roles where rolname !~ '^pg_' and rolname <> 'postgres'";

/// Runs all cases, one after another. If a case fails, or its servers cannot be renewed, the next case gets new servers.
///
/// # Errors
/// A case failed. The error names each failed case with its reason.
pub fn run<Servers>(
    cases: &[Case<Servers>],
    start: impl Fn() -> Result<Servers>,
    renew: impl Fn(&mut Servers) -> Result<()>,
) -> Result<()> {
    let (mut shared, mut failed) = (None, Vec::new());
    for (name, case) in cases {
        let mut servers = match shared.take() {
            Some(servers) => servers,
            None => start()?,
        };
        eprintln!("case {name}");
        let done = catch_unwind(AssertUnwindSafe(|| case(&mut servers)));
        // The panic has already printed its own message.
        let done = done.unwrap_or_else(|_| Err(anyhow!("it panicked")));
        match done.and_then(|()| renew(&mut servers).context("the servers cannot be renewed after it")) {
            Ok(()) => shared = Some(servers),
            Err(error) => failed.push(format!("{name}: {error:?}")),
        }
    }
    ensure!(failed.is_empty(), "{} of {} cases failed:\n{}", failed.len(), cases.len(), failed.join("\n\n"));
    Ok(())
}

/// Makes a server forget its leases from registries that no longer exist. Otherwise the server shows such a lease to a new
/// registry, which then waits for leases that other servers may have.
///
/// The reset is to the present time. Without a time, all of the server's worker ids would be unavailable to others for
/// `max_drift`, and a few cases would use up the worker ids of a layout with few worker bits.
pub(crate) fn forget_leases(client: &mut Client) -> Result<()> {
    client.run("select snowflake_ids.state_reset(now())")
}

impl Builder {
    /// Runs cases on one server with these settings, each in a new database `postgres`.
    ///
    /// # Errors
    /// A case failed.
    pub fn cases(&self, cases: &[Case<Server>]) -> Result<()> {
        run(cases, || self.clone().start(), |server| server.renew())
    }
}

impl Server {
    /// Recreates the database `postgres` of this running server, and removes all other databases and all roles.
    #[track_caller]
    pub fn renew(&self) -> Result<()> {
        let mut client = self.connect("template1")?;
        let prepared = "select database::text, format('rollback prepared %L', gid) from pg_prepared_xacts";
        for row in client.query(prepared, &[])? {
            self.connect(row.get(0))?.run(row.get(1))?;
        }
        for query in [DATABASES, ROLES] {
            for drop in client.column::<String>(query)? {
                client.run(&drop)?;
            }
        }
        client.run("create database postgres template template0")
    }
}
