//! Cases that share a server, because each start of one costs more than most cases.

use crate::builder::Builder;
use crate::server::Server;
use crate::sql;
use anyhow::{Context, Result, ensure};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// A case: its name, and a function that begins on a server whose database `postgres` is new.
pub type Case = (&'static str, fn(&mut Server) -> Result<()>);

/// The list of these functions, each under its name.
#[macro_export]
macro_rules! cases {
    ($($case:ident),+ $(,)?) => {
        &[$((stringify!($case), $case as fn(&mut $crate::Server) -> anyhow::Result<()>)),+]
    };
}

/// Databases that a case has left behind, and the one that all use.
const DATABASES: &str = "select datname::text from pg_database where datname !~ '^template'";
/// Roles that a case has left behind.
const ROLES: &str =
    "select quote_ident(rolname) from pg_roles where rolname !~ '^pg_' and rolname <> 'postgres'";

impl Builder {
    /// Runs cases one after another on a server with these settings, all of them. A case that fails leaves its server to no
    /// other one.
    ///
    /// # Errors
    /// Cases failed: the error names each and says why.
    pub fn cases(&self, cases: &[Case]) -> Result<()> {
        let (mut shared, mut failed) = (None, Vec::new());
        for (name, case) in cases {
            let mut server = match shared.take() {
                Some(server) => server,
                None => self.clone().start()?,
            };
            eprintln!("case {name}");
            let done = catch_unwind(AssertUnwindSafe(|| case(&mut server)));
            // A panic has written its own message.
            let done = done.unwrap_or_else(|_| Err(anyhow::anyhow!("it panicked")));
            match done.and_then(|()| server.renew().context("the server after it")) {
                Ok(()) => shared = Some(server),
                Err(error) => failed.push(format!("{name}: {error:?}")),
            }
        }
        ensure!(
            failed.is_empty(),
            "{} of {} cases failed:\n{}",
            failed.len(),
            cases.len(),
            failed.join("\n\n")
        );
        Ok(())
    }
}

impl Server {
    /// Makes the database `postgres` of this running server anew, and removes all other databases and all roles.
    #[track_caller]
    pub fn renew(&mut self) -> Result<()> {
        let mut client = self.connect("template1")?;
        let prepared = "select format('rollback prepared %L', gid) from pg_prepared_xacts where database = current_database()";
        for database in sql::column::<String>(&mut client, DATABASES)? {
            let mut inside = self.connect(&database)?;
            for rollback in sql::column::<String>(&mut inside, prepared)? {
                inside.batch_execute(&rollback)?;
            }
            drop(inside);
            client.batch_execute(&format!("drop database \"{database}\" with (force)"))?;
        }
        for role in sql::column::<String>(&mut client, ROLES)? {
            client.batch_execute(&format!("drop role {role}"))?;
        }
        Ok(client.batch_execute("create database postgres template template0")?)
    }
}
