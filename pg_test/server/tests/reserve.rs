//! The high-water mark. The launcher moves the mark once per `reserve`, ahead of need. Callers move the mark if the launcher is
//! late.

use snowflake_ids_server_tests::full;
use snowflake_ids_server_tests::prelude::*;
use snowflake_ids_server_tests::segments::{LAUNCHER, process};
use snowflake_ids_server_tests::snowflakes::{next, status, take};
use std::thread::sleep;

fn server(reserve: &str) -> Result<Server> {
    Server::builder().set("snowflake_ids.reserve", reserve).start()
}

/// The number of marks written since the start, and the number of marks that calls had to write.
fn reservations(client: &mut Client) -> Result<(i64, i64)> {
    Ok((status(client, "reservations")?, status(client, "reserved_by_callers")?))
}

/// Waits until a new reservation is written. For a while afterwards, the launcher holds no lock that a call needs.
fn await_reservation(client: &mut Client) -> Result<()> {
    let marks = reservations(client)?.0;
    wait::until_true("a reservation", || Ok(reservations(client)?.0 > marks))?;
    sleep(Duration::from_millis(50));
    Ok(())
}

fn whole_seconds(time: Duration) -> i64 {
    i64::try_from(time.as_secs()).unwrap_or(i64::MAX)
}

/// Repeats `work` until the launcher makes all reservations of one repetition. On a busy machine the launcher may be late once,
/// but not again and again.
fn none_by_calls(client: &mut Client, mut work: impl FnMut(&mut Client) -> Result<()>) -> Result<()> {
    wait::until_true("a while in which no call reserves", || {
        let before = reservations(client)?;
        work(client)?;
        let after = reservations(client)?;
        Ok(after.1 == before.1 && after.0 > before.0)
    })
}

#[test]
fn ids_at_full_speed_cost_one_reservation_a_second() -> Result<()> {
    let server = server("1s")?;
    let mut client = server.session()?;
    let (start, load) = (Instant::now(), server.load(4)?);
    load.run(Duration::from_secs(if full() { 60 } else { 3 }));
    let taken = load.end();
    let (marks, by_callers) = reservations(&mut client)?;
    // Each reservation covers at least a second's ids. Calls make some of the reservations.
    let limit = whole_seconds(start.elapsed()) + 2 + by_callers;
    assert!(marks >= 2, "{marks} reservations: what is counted is not what is written");
    assert!(marks <= limit, "{marks} reservations where {limit} do");
    assert!(taken.refusals.is_empty(), "{:?}", taken.refusals);
    taken.unique()
}

/// A session that calls once in a while finds the mark already moved, up to ten minutes after its last call.
#[test]
fn a_pause_does_not_make_the_next_call_write() -> Result<()> {
    let server = server("200ms")?;
    let mut client = server.session()?;
    let mut taken = vec![next(&mut client)?];
    none_by_calls(&mut client, |client| {
        sleep(Duration::from_millis(1100));
        taken.push(next(client)?);
        Ok(())
    })?;
    ids::growing(&taken)
}

#[test]
fn a_server_that_is_never_asked_reserves_nothing() -> Result<()> {
    let server = server("100ms")?;
    let mut client = server.session()?;
    sleep(Duration::from_secs(2));
    let before = reservations(&mut client)?.0;
    sleep(Duration::from_secs(1));
    assert_eq!(reservations(&mut client)?.0, before);
    Ok(())
}

#[test]
fn an_idle_server_reserves_once_a_reserve_and_nothing_after_ten_minutes() -> Result<()> {
    let server = server("1s")?;
    let mut client = server.session()?;
    next(&mut client)?;
    let (start, before) = (Instant::now(), reservations(&mut client)?.0);
    sleep(Duration::from_secs(3));
    let marks = reservations(&mut client)?.0 - before;
    assert!(marks <= whole_seconds(start.elapsed()) + 1, "{marks} reservations in {:?}", start.elapsed());
    if full() {
        sleep(Duration::from_secs(610));
        let idle = reservations(&mut client)?;
        sleep(Duration::from_secs(20));
        assert_eq!(reservations(&mut client)?, idle);
        next(&mut client)?;
    }
    Ok(())
}

/// Fails if calls can only wait for the launcher.
#[test]
fn calls_reserve_for_themselves_while_the_launcher_is_held_up() -> Result<()> {
    let server = server("300ms")?;
    let mut client = server.session()?;
    next(&mut client)?;
    let launcher = process(&mut client, LAUNCHER)?;
    let load = server.load(4)?;
    load.goes_on()?;
    await_reservation(&mut client)?;
    let before = reservations(&mut client)?.1;
    let paused = server.pause_process(launcher)?;
    wait::until_true("reservations by calls", || Ok(reservations(&mut client)?.1 >= before + 3))?;
    load.goes_on()?;
    drop(paused);
    let taken = load.end();
    assert!(taken.refusals.is_empty(), "{:?}", taken.refusals);
    taken.unique()
}

/// While the launcher is paused, calls make every reservation. Many cancels and terminations hit them.
#[test]
fn calls_cancelled_and_sessions_ended_while_the_mark_moves_do_no_harm() -> Result<()> {
    let server = server("200ms")?;
    let mut client = server.session()?;
    let mut taken = take(&mut client, 100)?;
    let launcher = process(&mut client, LAUNCHER)?;
    let others = "from pg_stat_activity where query like '%snowflake_nextval%' and pid <> pg_backend_pid()";
    await_reservation(&mut client)?;
    let paused = server.pause_process(launcher)?;
    let mut under_hail = Taken::default();
    // The rounds repeat until a call was cancelled while the call ran.
    for round in 0..20 {
        if round > 1 && !under_hail.refusals.is_empty() {
            break;
        }
        let load = server.load(6)?;
        for _ in 0..200 {
            client.execute(&format!("select pg_cancel_backend(pid) {others}"), &[])?;
            sleep(Duration::from_millis(3));
        }
        load.goes_on()?;
        client.execute(&format!("select pg_terminate_backend(pid) {others}"), &[])?;
        under_hail.add(load.until_ended());
    }
    drop(paused);
    let cancelled =
        under_hail.refusals.iter().filter(|error| error.code() == &SqlState::QUERY_CANCELED).count();
    assert_eq!(cancelled, under_hail.refusals.len(), "{:?}", under_hail.refusals.first());
    assert!(cancelled > 0, "no call was cancelled");
    taken.extend(under_hail.ids);
    taken.extend(take(&mut client, 100)?);
    ids::unique(taken)
}
