//! Many sessions at once, and sessions with parallel plans.

use crate::server::Server;
use crate::sql::Session;
use anyhow::Result;
use postgres::Client;
use std::panic::resume_unwind;
use std::sync::Barrier;
use std::thread::{self, JoinHandle, ScopedJoinHandle};

/// A thread whose panic becomes the test's own.
pub trait Ends<T> {
    /// Waits until the thread ends, and returns its result.
    fn ended(self) -> T;
}

impl<T> Ends<T> for JoinHandle<T> {
    fn ended(self) -> T {
        self.join().unwrap_or_else(|panic| resume_unwind(panic))
    }
}

impl<T> Ends<T> for ScopedJoinHandle<'_, T> {
    fn ended(self) -> T {
        self.join().unwrap_or_else(|panic| resume_unwind(panic))
    }
}

impl Server {
    /// Opens this many sessions in a database.
    pub fn sessions(&self, database: &str, count: usize) -> Result<Vec<Client>> {
        (0..count).map(|_| self.connect(database)).collect()
    }

    /// Waits until a process is waiting for a lock.
    #[track_caller]
    pub fn wait_for_lock(&self, process: i32) -> Result<()> {
        self.connect("postgres")?.becomes_true(&format!(
            "select exists (select from pg_locks where pid = {process} and not granted)"
        ))
    }

    /// The result of `call`, which waits for a lock until `then` has run.
    #[track_caller]
    pub fn while_waiting<T: Send>(
        &self,
        client: &mut Client,
        call: impl FnOnce(&mut Client) -> T + Send,
        then: impl FnOnce() -> Result<()>,
    ) -> Result<T> {
        let process = client.process()?;
        thread::scope(|scope| {
            let waiting = scope.spawn(|| call(client));
            self.wait_for_lock(process)?;
            then()?;
            Ok(waiting.ended())
        })
    }
}

/// Runs `work` in one thread per session. All threads begin together. `work` gets the session's number.
pub fn at_once<T: Send>(
    clients: Vec<Client>,
    work: impl Fn(usize, Client) -> Result<T> + Sync,
) -> Result<Vec<T>> {
    let (barrier, work) = (&Barrier::new(clients.len()), &work);
    thread::scope(|scope| {
        let start = |(number, client)| {
            scope.spawn(move || {
                barrier.wait();
                work(number, client)
            })
        };
        let threads: Vec<_> = clients.into_iter().enumerate().map(start).collect();
        threads.into_iter().map(Ends::ended).collect()
    })
}

/// Settings that make plans parallel wherever possible, and let only the parallel workers run them.
pub const PARALLEL: &str =
    "set parallel_setup_cost = 0; set parallel_tuple_cost = 0; set min_parallel_table_scan_size = 0;
     set max_parallel_workers_per_gather = 2; set parallel_leader_participation = off";

/// A session with the settings [`PARALLEL`], and a table `t` with this many rows.
pub fn parallel(server: &Server, rows: impl std::fmt::Display) -> Result<Client> {
    let mut client = server.session()?;
    client.run(&format!(
        "{PARALLEL};
         create table t as select a from generate_series(1, {rows}) a; analyze t"
    ))?;
    Ok(client)
}
