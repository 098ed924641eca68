//! A session of a server, and the cost of its statements.

use anyhow::{Context, Result};
use postgres::Client;
use postgres::types::FromSqlOwned;
use snowflake_ids_server_tests::Server;
use std::fs;
use std::path::PathBuf;
use std::time::Instant;

/// The database of all measurements.
pub const DATABASE: &str = "bench";

/// The cost of a statement, in seconds.
#[derive(Clone, Copy, Debug)]
pub struct Cost {
    /// The time that the client sees.
    pub wall: f64,
    /// The processor time of the server process alone.
    pub cpu: f64,
}

/// A session whose server process is measured.
pub struct Session {
    client: Client,
    schedstat: PathBuf,
}

impl Session {
    /// Connects to the benchmark's database.
    pub fn open(server: &Server) -> Result<Self> {
        let mut client = server.connect(DATABASE)?;
        let pid: i32 = client.query_one("select pg_backend_pid()", &[])?.get(0);
        Ok(Self { client, schedstat: PathBuf::from(format!("/proc/{pid}/schedstat")) })
    }

    /// Runs statements whose results and costs are of no interest.
    pub fn execute(&mut self, statements: &str) -> Result<()> {
        self.client.batch_execute(statements).with_context(|| format!("failed: {statements}"))
    }

    /// Declares the function of `original` again, as `declaration` says.
    pub fn declare_again(&mut self, original: &str, declaration: &str) -> Result<()> {
        let statement: String = self.value(&format!(
            "select format('create function {declaration} language c as %L, %L', probin, prosrc)
             from pg_proc where oid = '{original}'::regprocedure"
        ))?;
        self.execute(&statement)
    }

    /// The single value that a query returns.
    pub fn value<T: FromSqlOwned>(&mut self, query: &str) -> Result<T> {
        let row = self.client.query_one(query, &[]).with_context(|| format!("failed: {query}"))?;
        Ok(row.try_get(0)?)
    }

    /// The values of the single row that a query returns.
    pub fn values<const N: usize>(&mut self, query: &str) -> Result<[f64; N]> {
        let row = self.client.query_one(query, &[]).with_context(|| format!("failed: {query}"))?;
        let mut values = [0.0; N];
        for (place, value) in values.iter_mut().enumerate() {
            *value = row.try_get(place)?;
        }
        Ok(values)
    }

    /// The size of the index of a table's primary key, in bytes.
    pub fn index_bytes(&mut self, table: &str) -> Result<f64> {
        self.value(&format!("select pg_indexes_size('{table}')::float8"))
    }

    /// The plan of a query, without its estimates.
    pub fn plan(&mut self, query: &str) -> Result<String> {
        let lines = self.client.query(&format!("explain (costs off) {query}"), &[])?;
        Ok(lines.iter().map(|line| line.get::<_, String>(0)).collect::<Vec<_>>().join("\n"))
    }

    /// Runs a statement and returns its cost, without planning.
    pub fn cost(&mut self, statement: &str) -> Result<Cost> {
        let prepared = self.client.prepare(statement).with_context(|| format!("failed: {statement}"))?;
        let (cpu, start) = (self.cpu()?, Instant::now());
        self.client.execute(&prepared, &[]).with_context(|| format!("failed: {statement}"))?;
        let wall = start.elapsed().as_secs_f64();
        Ok(Cost { wall, cpu: self.cpu()? - cpu })
    }

    /// The processor time of the server process, in seconds. The process sleeps during the read, so the kernel's figure is exact.
    fn cpu(&self) -> Result<f64> {
        let text = fs::read_to_string(&self.schedstat).with_context(|| {
            format!(
                "cannot read {}; processor times need Linux with scheduler statistics",
                self.schedstat.display()
            )
        })?;
        let nanoseconds = text.split_ascii_whitespace().next().context("schedstat is empty")?;
        Ok(nanoseconds.parse::<f64>()? / 1e9)
    }
}
