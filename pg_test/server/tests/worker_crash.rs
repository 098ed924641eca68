//! Leases of worker ids, with crashes at any moment: while a lease is taken, renewed or given up.

use snowflake_ids_server_tests::full;
use snowflake_ids_server_tests::prelude::*;
use snowflake_ids_server_tests::registry::serving;
use snowflake_ids_server_tests::snowflakes::status;
use std::thread::sleep;

const LEASE_WORKER: &str =
    "select pid from pg_stat_activity where backend_type = 'snowflake_ids lease worker'";
const TIMEOUT: Duration = wait::LONG;

fn rounds() -> u64 {
    if full() { 60 } else { 6 }
}

/// A server with so many worker ids that some remain free although each crash leaves one leased until its expiry.
fn builder() -> Builder {
    auto().set("snowflake_ids.layout", "41/0/10/12")
}

/// Kills a server under load at another moment each round, while its lease changes.
fn killed_at_any_moment(move_lease: impl Fn(&Server, u64) -> Result<()>) -> Result<()> {
    let mut server = builder().start()?;
    server.session()?;
    let mut taken = Taken::default();
    for round in 1..=rounds() {
        let load = server.load(4)?;
        move_lease(&server, round)?;
        sleep(Duration::from_millis(round * 37 % 150));
        server.kill9()?;
        taken.add(load.end());
        server.start_again()?;
        taken.ids.push(wait_for_id(&mut server.connect("postgres")?)?);
    }
    taken.unique()
}

#[test]
fn a_kill_while_a_lease_is_renewed_repeats_nothing() -> Result<()> {
    killed_at_any_moment(|server, round| {
        server.reload("snowflake_ids.lease_duration", if round % 2 == 0 { "2h" } else { "3h" })
    })
}

#[test]
fn a_kill_while_a_lease_is_given_up_and_another_taken_repeats_nothing() -> Result<()> {
    killed_at_any_moment(|server, _| {
        let mut client = server.connect("postgres")?;
        wait_for_id(&mut client)?;
        let own: i32 = status(&mut client, "worker_id")?;
        client.run(&format!("select snowflake_ids.worker_release({own})"))
    })
}

/// The server restarts all its processes by itself.
#[test]
fn a_lease_worker_killed_at_work_repeats_nothing() -> Result<()> {
    let server = builder().start()?;
    let mut taken = Taken::default();
    let mut client = serving(&server)?;
    for _ in 0..rounds() / 2 {
        taken.ids.push(wait_for_id(&mut client)?);
        let load = server.load(3)?;
        let own: i32 = status(&mut client, "worker_id")?;
        client.run(&format!("select snowflake_ids.worker_release({own})"))?;
        wait::until(TIMEOUT, "a lease worker to be killed", || {
            // The worker may have ended after its work. The test then kills the next worker.
            let worker = client.column::<i32>(LEASE_WORKER)?.first().copied();
            Ok(worker.and_then(|worker| server.crash_by(worker).ok()))
        })?;
        taken.add(load.end());
        client = wait::until(TIMEOUT, "sessions again", || Ok(server.connect("postgres").ok()))?;
    }
    taken.ids.push(wait_for_id(&mut client)?);
    taken.unique()
}

/// Operators call their functions again and again, under load.
#[test]
fn operators_at_work_under_load_repeat_nothing() -> Result<()> {
    let (server, mut client) = builder().with_session()?;
    wait_for_id(&mut client)?;
    let load = server.load(4)?;
    for _ in 0..rounds() {
        for call in ["state_adopt()", "clock_accept()", "state_reset(now() - interval '1 day')"] {
            client.run(&format!("select snowflake_ids.{call}"))?;
        }
        wait_for_id(&mut client)?;
        let own: i32 = status(&mut client, "worker_id")?;
        client.run(&format!("select snowflake_ids.worker_release({own})"))?;
        load.goes_on()?;
    }
    load.end().unique()
}
