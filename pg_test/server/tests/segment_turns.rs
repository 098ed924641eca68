//! More databases that take ids of tags than the server can run workers for.

use snowflake_ids_server_tests::prelude::*;
use snowflake_ids_server_tests::registry::serving;
use snowflake_ids_server_tests::segments::{WORKER, create, next, process};
use snowflake_ids_server_tests::snowflakes::status;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;

const LONG: Duration = Duration::from_mins(1);

/// Creates a database with a tag whose refills reserve a single id each.
fn database(server: &Server, name: &str) -> Result<Client> {
    let mut client = server.create_database(name)?;
    create(&mut client, "t", "step => 1, max_step => 1")?;
    Ok(client)
}

/// Takes an id now and then until `stop` is set. No call may fail.
fn trickle(stop: &AtomicBool, client: &mut Client) -> Result<Vec<i64>> {
    let mut taken = Vec::new();
    while !stop.load(Ordering::Relaxed) {
        taken.push(next(client, "t")?);
        sleep(Duration::from_millis(20));
    }
    Ok(taken)
}

/// Checks that the lease is renewed, and that a database gets this many ids in the meantime.
fn is_renewed_meanwhile(server: &Server, client: &mut Client, ids: usize) -> Result<Vec<i64>> {
    let expiry: String = status(client, "lease_expires_at::text")?;
    server.reload("snowflake_ids.lease_duration", "48h")?;
    let taken = (0..ids).map(|_| next(client, "t")).collect::<Result<_>>()?;
    wait::until(LONG, "the lease to be renewed", || {
        Ok((status::<String>(client, "lease_expires_at::text")? != expiry).then_some(()))
    })?;
    Ok(taken)
}

/// Checks that databases take turns if `busy` databases always have work.
fn check_turns(max_worker_processes: &str, busy: usize, segment_wait_timeout: &str) -> Result<()> {
    let server = auto()
        .set("max_worker_processes", max_worker_processes)
        .set("snowflake_ids.segment_wait_timeout", segment_wait_timeout)
        .start()?;
    serving(&server)?;
    let mut clients =
        (0..=busy).map(|number| database(&server, &format!("d{number}"))).collect::<Result<Vec<_>>>()?;
    let clients = clients.pop().into_iter().chain(clients).collect();
    let stop = AtomicBool::new(false);
    let taken = at_once(clients, |number, mut client| {
        if number > 0 {
            return trickle(&stop, &mut client);
        }
        let taken = is_renewed_meanwhile(&server, &mut client, 3);
        stop.store(true, Ordering::Relaxed);
        taken
    })?;
    for ids in taken {
        assert!(!ids.is_empty());
        ids::dense(ids)?;
    }
    Ok(())
}

#[test]
fn databases_take_turns_and_the_lease_is_renewed() -> Result<()> {
    // There is room for the launcher, the launcher of logical replication, the lease worker, and one refill worker.
    check_turns("4", 4, "20s")
}

#[test]
fn a_refill_worker_makes_room_for_the_lease_worker() -> Result<()> {
    // The lease worker and a refill worker run one at a time.
    check_turns("3", 4, "20s")
}

/// A refill worker ends although no other database waits for one.
#[test]
fn the_worker_of_the_only_busy_database_makes_room_for_the_lease_worker() -> Result<()> {
    let server = auto().set("max_worker_processes", "3").start()?;
    serving(&server)?;
    let clients = vec![database(&server, "busy")?, server.connect("busy")?];
    let stop = AtomicBool::new(false);
    at_once(clients, |number, mut client| {
        if number > 0 {
            return trickle(&stop, &mut client).map(drop);
        }
        let renewed =
            process(&mut client, WORKER).and_then(|_| is_renewed_meanwhile(&server, &mut client, 0));
        stop.store(true, Ordering::Relaxed);
        renewed.map(drop)
    })
    .map(drop)
}

#[test]
fn more_busy_databases_than_workers_keep_no_other_waiting() -> Result<()> {
    // There is room for five refill workers.
    check_turns("8", 8, "20s")
}
