//! Cases that share servers, because each start of one costs more than most cases.

use crate::builder::Builder;
use crate::server::Server;
use crate::sql::Session;
use anyhow::{Context, Result, anyhow, ensure};
use postgres::Client;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// A case: its name, and a function that is given the servers.
pub type Case<Servers> = (&'static str, fn(&mut Servers) -> Result<()>);

/// The list of these functions, each under its name.
#[macro_export]
macro_rules! cases {
    ($($case:ident),+ $(,)?) => {
        &[$((stringify!($case), $case as fn(&mut _) -> _)),+]
    };
}

/// Statements that remove all databases but the templates.
const DATABASES: &str =
    "select format('drop database %I with (force)', datname) from pg_database where not datistemplate";
/// Statements that remove all roles of users.
const ROLES: &str =
    "select format('drop role %I', rolname) from pg_roles where rolname !~ '^pg_' and rolname <> 'postgres'";

/// Runs all cases, one after another. Servers that a case has failed on, or that cannot be renewed after it, serve no
/// other case.
///
/// # Errors
/// Cases failed: the error names each and says why.
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
        // A panic has written its own message.
        let done = done.unwrap_or_else(|_| Err(anyhow!("it panicked")));
        match done.and_then(|()| renew(&mut servers).context("the servers cannot be renewed after it")) {
            Ok(()) => shared = Some(servers),
            Err(error) => failed.push(format!("{name}: {error:?}")),
        }
    }
    ensure!(failed.is_empty(), "{} of {} cases failed:\n{}", failed.len(), cases.len(), failed.join("\n\n"));
    Ok(())
}

/// Makes a server forget the leases of registries that are not there any more. Otherwise it shows one to a new registry, which
/// then waits for leases that others may have.
pub(crate) fn forget_leases(client: &mut Client) -> Result<()> {
    client.run("select snowflake_ids.state_reset()")
}

impl Builder {
    /// Runs cases on one server with these settings, each in a new database `postgres`.
    ///
    /// # Errors
    /// Cases failed.
    pub fn cases(&self, cases: &[Case<Server>]) -> Result<()> {
        run(cases, || self.clone().start(), |server| server.renew())
    }
}

impl Server {
    /// Makes the database `postgres` of this running server anew, and removes all other databases and all roles.
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
