//! Helpers for tests of segments.

use crate::server::Server;
use crate::sql::Session;
use crate::wait;
use anyhow::Result;
use postgres::Client;
use postgres::types::FromSqlOwned;
use std::time::Duration;

/// `backend_type` of the launcher, which starts the other processes.
pub const LAUNCHER: &str = "snowflake_ids launcher";
/// `backend_type` of a refill worker.
pub const WORKER: &str = "snowflake_ids refill worker";

/// A time limit for events that happen without a call, such as a worker's start or end.
pub const TIMEOUT: Duration = wait::LONG;

/// The next id of a tag.
#[track_caller]
pub fn next(client: &mut Client, tag: &str) -> Result<i64> {
    client.one(&format!("select segment_nextval('{tag}')"))
}

/// Takes ids of a tag by separate calls within one statement.
#[track_caller]
pub fn take(client: &mut Client, tag: &str, count: usize) -> Result<Vec<i64>> {
    client.column(&format!("select segment_nextval('{tag}') from generate_series(1, {count})"))
}

/// Takes ids of a tag by separate statements until one fails.
pub fn take_until_refused(client: &mut Client, tag: &str) -> (Vec<i64>, anyhow::Error) {
    let mut taken = Vec::new();
    loop {
        match next(client, tag) {
            Ok(id) => taken.push(id),
            Err(error) => return (taken, error),
        }
    }
}

/// Creates a tag; `definition` are further arguments of `segment_create`.
#[track_caller]
pub fn create(client: &mut Client, tag: &str, definition: &str) -> Result<()> {
    let definition = if definition.is_empty() { String::new() } else { format!(", {definition}") };
    client.run(&format!("select snowflake_ids.segment_create('{tag}'{definition})"))
}

/// A column of a tag's row in `segment_status`.
#[track_caller]
pub fn status<T: FromSqlOwned>(client: &mut Client, tag: &str, column: &str) -> Result<T> {
    client.one(&format!(
        "select {column} from snowflake_ids.segment_status
             where tag = '{tag}' and database = current_database()"
    ))
}

/// Waits until the next segment is reserved. Nothing more is reserved until a session's next call.
#[track_caller]
pub fn settled(client: &mut Client, tag: &str) -> Result<()> {
    wait::until_true("the next segment", || Ok(status::<Option<i64>>(client, tag, "next_first")?.is_some()))
}

/// The server's processes of a kind.
#[track_caller]
pub fn processes(client: &mut Client, kind: &str) -> Result<Vec<i32>> {
    client.column(&format!("select pid from pg_stat_activity where backend_type = '{kind}'"))
}

/// Waits for a process of a kind.
#[track_caller]
pub fn process(client: &mut Client, kind: &str) -> Result<i32> {
    wait::until(TIMEOUT, kind, || Ok(processes(client, kind)?.first().copied()))
}

/// Waits until exactly this many calls for ids of a tag are waiting.
///
/// # Errors
/// The number is not reached in time.
#[track_caller]
pub fn wait_for_waiting(server: &Server, count: i64) -> Result<()> {
    let mut observer = server.connect("postgres")?;
    let waiting = format!(
        "select count(*) = {count} from pg_stat_activity
         where backend_type = 'client backend' and query like '%segment_nextval%' and pid <> pg_backend_pid()
           and state = 'active' and wait_event is not null"
    );
    observer.becomes_true(&waiting)
}

impl Server {
    /// A session that locks a tag's row in an open transaction.
    #[track_caller]
    pub fn locker(&self, database: &str, tag: &str) -> Result<Client> {
        let mut client = self.connect(database)?;
        client.run("begin")?;
        client.one::<String>(&format!(
            "select tag from snowflake_ids.segment where tag = '{tag}' for update"
        ))?;
        Ok(client)
    }
}
