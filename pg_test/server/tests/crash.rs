//! Crashes under load.

use anyhow::{Context, Result};
use postgres::Client;
use snowflake_ids_server_tests::{Server, ids, sql, wait};
use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;
use std::thread;
use std::time::Duration;

const SESSIONS: usize = 6;
/// How many ids each takes before the end.
const IDS: u32 = 50;
const TIMEOUT: Duration = wait::LONG;

/// Takes ids, one a call, until the server goes away, and counts them. Half the sessions insert rows, half only ask.
fn take_until_the_end(number: usize, mut client: Client, count: &AtomicU32) -> Result<Vec<i64>> {
    let call = if number.is_multiple_of(2) {
        "insert into t default values returning id"
    } else {
        "select snowflake_nextval()"
    };
    let call = client.prepare(call)?;
    let mut taken = Vec::new();
    while let Ok(row) = client.query_one(&call, &[]) {
        taken.push(row.get(0));
        count.fetch_add(1, Relaxed);
    }
    ids::growing(&taken)?;
    Ok(taken)
}

/// Lets sessions work, then runs `end`, which must end them all.
fn under_load(server: &mut Server, end: impl FnOnce(&mut Server) -> Result<()>) -> Result<Vec<i64>> {
    let counts = Arc::new([const { AtomicU32::new(0) }; SESSIONS]);
    let clients = (0..SESSIONS).map(|_| server.connect("postgres")).collect::<Result<Vec<_>>>()?;
    let threads: Vec<_> = clients
        .into_iter()
        .enumerate()
        .map(|(number, client)| {
            let counts = Arc::clone(&counts);
            thread::spawn(move || take_until_the_end(number, client, &counts[number]))
        })
        .collect();
    wait::until_true("each session to have ids", || {
        Ok(counts.iter().all(|count| count.load(Relaxed) >= IDS))
    })?;
    end(server)?;
    let mut taken = Vec::new();
    for thread in threads {
        taken.extend(thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?);
    }
    Ok(taken)
}

fn server() -> Result<Server> {
    let server = Server::builder().start()?;
    server.session()?.batch_execute("create table t (id bigint primary key default snowflake_nextval())")?;
    Ok(server)
}

/// The ids that were returned, and those committed though their session never heard of it.
fn with_committed(mut returned: Vec<i64>, client: &mut Client) -> Result<Vec<i64>> {
    returned.sort_unstable();
    let committed: Vec<i64> = sql::column(client, "select id from t")?;
    let unheard: Vec<i64> = committed.into_iter().filter(|id| returned.binary_search(id).is_err()).collect();
    // One insert a session and round can have been committed unheard; more are ids that no session took.
    assert!(unheard.len() <= 3 * SESSIONS, "{} rows whose id no session was given", unheard.len());
    returned.extend(unheard);
    Ok(returned)
}

#[test]
fn no_id_comes_twice_through_three_kills_of_the_whole_server() -> Result<()> {
    let mut server = server()?;
    let mut taken: Vec<i64> = Vec::new();
    for _ in 0..3 {
        let before = taken.iter().max().copied().unwrap_or(0);
        let round_ids = under_load(&mut server, Server::kill9)?;
        let first = round_ids.iter().min().copied().context("a round without ids")?;
        assert!(first > before, "id {first} after the restart, {before} before the crash");
        taken.extend(round_ids);
        server.start_again()?;
    }
    let taken = with_committed(taken, &mut server.connect("postgres")?)?;
    ids::unique(taken)
}

#[test]
fn a_killed_session_does_not_bring_back_ids() -> Result<()> {
    let mut server = server()?;
    let mut taken = under_load(&mut server, |server| {
        // The server restarts all its sessions and shared memory when one of them is killed.
        let victim: i32 = sql::one(
            &mut server.connect("postgres")?,
            "select pid from pg_stat_activity where query like 'insert into t%' limit 1",
        )?;
        let kill = server.command("pg_ctl").args(["kill", "KILL", &victim.to_string()]).status()?;
        assert!(kill.success(), "pg_ctl kill: {kill}");
        Ok(())
    })?;
    let newest = taken.iter().max().copied().context("no ids before the kill")?;
    let mut client =
        wait::until(TIMEOUT, "the server to take sessions again", || Ok(server.connect("postgres").ok()))?;
    let issued: i64 = sql::one(&mut client, "select ids_issued from snowflake_ids.status")?;
    assert_eq!(issued, 0, "shared memory was not begun anew: the kill was none");
    let after: Vec<i64> = sql::column(&mut client, "select snowflake_nextvals(1000)")?;
    assert!(after[0] > newest, "id {} after the kill, {newest} before", after[0]);
    taken.extend(after);
    ids::unique(with_committed(taken, &mut client)?)
}
