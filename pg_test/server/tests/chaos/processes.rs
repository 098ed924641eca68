//! Faults in processes, tables and the whole server.

use super::world::{Outcome, World};
use anyhow::{Context, Result};
use snowflake_ids_server_tests::{Shutdown, wait};
use std::sync::atomic::Ordering;

const TABLES: [&str; 5] = ["segment", "segment_privilege", "registry", "received", "worker"];

impl World {
    pub fn cancel(&mut self) -> Result<()> {
        let process = self.process();
        self.run("postgres", &format!("select pg_cancel_backend({process})")).map(drop)
    }

    /// The process of a random session.
    fn process(&mut self) -> i32 {
        let number = self.random.of(self.loads.len());
        self.loads[number].shown.process.load(Ordering::SeqCst)
    }

    /// Ends a session. The session must end, whatever it is doing.
    pub fn end_session(&mut self) -> Result<()> {
        let process = self.process();
        if self.run("postgres", &format!("select pg_terminate_backend({process}) where {process} > 0"))?
            == Outcome::Done
        {
            self.wait_for_end(process)?;
        }
        Ok(())
    }

    fn wait_for_end(&self, process: i32) -> Result<()> {
        let query = format!(
            "select 1 from pg_stat_activity where pid = {process} and backend_type = 'client backend'"
        );
        let ended = wait::until_true("a session to end", || {
            let gone = self.client("postgres").and_then(|mut client| client.query_opt(&query, &[]));
            Ok(matches!(gone, Ok(None)))
        });
        ended.with_context(|| format!("session {process}\n{}", self.activity()))
    }

    /// One of the extension's processes, with its name.
    fn worker(&mut self) -> Option<(i32, String)> {
        let query = "select pid, backend_type from pg_stat_activity where backend_type like 'snowflake_ids%' order by backend_type, pid";
        let rows =
            self.client("postgres").and_then(|mut client| client.query(query, &[])).unwrap_or_default();
        rows.get(self.random.of(rows.len())).map(|row| (row.get(0), row.get(1)))
    }

    pub fn end_worker(&mut self) -> Result<()> {
        let Some((process, kind)) = self.worker() else { return Ok(()) };
        self.run("postgres", &format!("select pg_terminate_backend({process}), '{kind}'")).map(drop)
    }

    /// Kills a process, so that the server also ends all other processes.
    pub fn kill(&mut self) -> Result<()> {
        let (process, kind) = match self.worker() {
            Some(worker) if self.random.once_in(2) => worker,
            _ => (self.process(), "session".to_owned()),
        };
        self.killed = true;
        if process > 0 && self.server.crash_by(process).is_ok() {
            self.story.tell(format!("killed {kind} {process}"));
            self.wait_for_server()?;
        }
        Ok(())
    }

    pub fn restart(&mut self) -> Result<()> {
        match self.random.below(4) {
            0 => {
                self.story.tell("killed the server");
                self.killed = true;
                self.server.kill9()?;
                self.own.clear();
            }
            1 => {
                self.story.tell("immediate stop");
                self.server.stop(Shutdown::Immediate)?;
                self.own.clear();
            }
            _ => {
                self.story.tell("fast stop");
                self.server.stop(Shutdown::Fast)?;
            }
        }
        self.held.retain(|held| !held.is_lost_by_a_crash());
        self.server.start_again()?;
        self.story.tell("started");
        Ok(())
    }

    pub fn reload(&mut self) -> Result<()> {
        let (name, value) = match self.random.below(5) {
            0 => ("segment_prefetch", format!("{}", self.random.below(101))),
            1 => ("segment_target_duration", format!("{}s", 1 + self.random.below(20))),
            2 => ("reserve", format!("{}ms", 100 + self.random.below(3000))),
            3 => ("lease_duration", format!("{}s", 60 + self.random.below(100_000))),
            _ => ("worker_id_policy", ["reuse", "queue"][self.random.of(2)].to_owned()),
        };
        self.story.tell(format!("{name} = {value}"));
        self.server.reload(&format!("snowflake_ids.{name}"), &value)
    }

    fn table(&mut self) -> String {
        format!("snowflake_ids.{}", TABLES[self.random.of(TABLES.len())])
    }

    /// Rewrites a table of the extension, or its indexes.
    pub fn rewrite(&mut self) -> Result<()> {
        let (database, table) = (self.any(), self.table());
        let what = match self.random.below(5) {
            0 => format!("vacuum full {table}"),
            1 => format!("vacuum {table}"),
            2 => "cluster snowflake_ids.segment using segment_pkey".to_owned(),
            3 => format!("reindex table {table}"),
            _ => format!("reindex table concurrently {table}"),
        };
        self.run(&self.name(database), &what).map(drop)
    }

    /// Locks a table of the extension, or its rows.
    pub fn lock(&mut self) -> Result<()> {
        let (database, table) = (self.any(), self.table());
        let modes = ["share", "exclusive", "access exclusive"];
        let what = match self.random.below(3) {
            0 => format!("select * from {table} for update"),
            _ => format!("lock table {table} in {} mode", modes[self.random.of(3)]),
        };
        let database = (!self.random.once_in(4)).then_some(database);
        self.hold(database, &what, false).map(drop)
    }
}
