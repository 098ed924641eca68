//! Databases that are dumped by `pg_dump` and restored into other databases.

use crate::programs;
use crate::server::Server;
use anyhow::Result;
use std::fs;

impl Server {
    /// Dumps a database as a role, with these options.
    pub fn dump_as(&self, role: &str, database: &str, options: &[&str]) -> Result<String> {
        programs::output(self.command("pg_dump").env("PGUSER", role).args(options).arg(database))
    }

    /// Dumps the database `postgres` of another server, with this server's `pg_dump`.
    pub fn dump_of(&self, other: &Self, options: &[&str]) -> Result<String> {
        let mut dump = self.command("pg_dump");
        dump.env("PGHOST", other.socket_folder()).env("PGPORT", other.port().to_string());
        programs::output(dump.args(options).arg("postgres"))
    }

    /// Dumps the database `postgres`.
    pub fn dump(&self) -> Result<String> {
        self.dump_as("postgres", "postgres", &[])
    }

    /// Runs the statements of a dump in a database as a role, up to the first error.
    pub fn restore_as(&self, role: &str, database: &str, dump: &str) -> Result<()> {
        let file = self.socket_folder().join("dump.sql");
        fs::write(&file, dump)?;
        let mut psql = self.command("psql");
        psql.env("PGUSER", role).args([
            "--quiet",
            "--no-psqlrc",
            "--set=ON_ERROR_STOP=1",
            "--dbname",
            database,
        ]);
        programs::output(psql.arg("--file").arg(file)).map(drop)
    }

    /// Runs the statements of a dump in a database.
    pub fn restore(&self, database: &str, dump: &str) -> Result<()> {
        self.restore_as("postgres", database, dump)
    }
}
