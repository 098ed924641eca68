//! Checks for faults that sessions and the server report; and waits for the server and for ids.

use super::judge::describe;
use super::load;
use super::world::{TIMEOUT, World};
use snowflake_ids_server_tests::prelude::*;

impl World {
    /// Fails if the sessions or the server have reported a fault.
    pub fn check(&self) -> Result<()> {
        if let Ok(fault) = self.faults.try_recv() {
            bail!("an error that must not come: {fault}");
        }
        if let Some(hanging) = load::hanging(&self.loads, self.story.start) {
            bail!("{hanging}\n{}", self.activity());
        }
        Ok(())
    }

    /// The activity of all server processes.
    pub fn activity(&self) -> String {
        let query = "select pid || ' ' || coalesce(datname, '-') || ' ' || backend_type || ' ' || coalesce(state, '-')
            || ' waits for ' || coalesce(wait_event_type || ' ' || wait_event, '-') || ': '
            || left(regexp_replace(query, '\\s+', ' ', 'g'), 120)
            from pg_stat_activity order by datname, pid";
        let lines = self.client("postgres").and_then(|mut client| {
            client.query(query, &[])?.iter().map(|row| row.try_get(0)).collect::<Result<Vec<String>, _>>()
        });
        lines.map_or_else(|error| describe(&error), |lines| lines.join("\n"))
    }

    /// Waits until the server accepts sessions after a crash.
    pub fn wait_for_server(&mut self) -> Result<()> {
        self.held.retain(|held| !held.is_lost_by_a_crash());
        self.own.clear();
        wait::until(TIMEOUT, "the server to take sessions after a crash", || {
            let client = self.client("postgres");
            Ok(client.and_then(|mut client| client.batch_execute("select 1")).ok())
        })
    }

    /// Waits until a database issues ids of all kinds.
    pub fn wait_for_ids(&self, database: usize) -> Result<()> {
        let mut said = String::new();
        let ids = wait::until(TIMEOUT, "ids to come again", || {
            let took = self.databases[database].connect().and_then(|mut client: Client| {
                client.batch_execute(
                    "insert into t default values; insert into s default values;
                    insert into a default values; select segment_nextval('u')",
                )
            });
            Ok(took.map_err(|error| said = describe(&error)).ok())
        });
        ids.with_context(|| format!("of d{database}: {said}\n{}", self.activity()))
    }
}
