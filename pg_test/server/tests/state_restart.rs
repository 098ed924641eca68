//! Restarts: ids continue exactly after a clean stop. A crash loses at most the reserved ids, and the clock may be set back in
//! between.

use snowflake_ids_server_tests::prelude::*;
use snowflake_ids_server_tests::snowflakes::{next, refused, seconds, status, take};

const TIMEOUT: Duration = wait::LONG;

/// A server that stops while it is ahead of the clock continues at the very next position. The layout has 16 ids a tick.
#[test]
fn after_a_clean_stop_ids_go_on_where_they_ended() -> Result<()> {
    let (mut server, mut client) =
        Server::builder().set("snowflake_ids.layout", "41/5/5/4").with_session()?;
    for _ in 0..3 {
        let taken: Vec<i64> = client.column("select snowflake_nextvals(16 * 20000)")?;
        drop(client);
        server.restart()?;
        client = server.session()?;
        let (last, first) = (taken[taken.len() - 1], next(&mut client)?);
        ids::growing(&[last, first])?;
        assert!((first >> 14) - (last >> 14) <= 1, "{} ticks were left out", (first >> 14) - (last >> 14));
    }
    Ok(())
}

/// Several restarts fall into one tick of a second.
#[test]
fn ticks_of_a_second_are_as_exact() -> Result<()> {
    let mut server = Server::builder()
        .set("snowflake_ids.layout", "cosid_second")
        .set("snowflake_ids.reserve", "100ms")
        .start()?;
    let mut taken = take(&mut server.session()?, 1000)?;
    for round in 0..6 {
        if round % 3 == 2 {
            server.crash()?;
        } else {
            server.restart()?;
        }
        let mut client = server.session()?;
        taken.extend(take(&mut client, 1000)?);
        let drift = seconds(&mut client, "drift")?;
        assert!(drift <= 3.0, "drift {drift}");
    }
    ids::growing(&taken)
}

#[test]
fn after_a_clean_stop_under_load_the_server_does_not_run_ahead() -> Result<()> {
    let mut server = Server::builder().start()?;
    server.session()?;
    let mut taken = Taken::default();
    for _ in 0..5 {
        let load = server.load(6)?;
        load.goes_on()?;
        server.restart()?;
        taken.add(load.end());
        let mut client = server.connect("postgres")?;
        taken.ids.push(next(&mut client)?);
        let drift = seconds(&mut client, "drift")?;
        assert!(drift < 0.1, "drift {drift}");
    }
    taken.unique()
}

#[test]
fn a_smart_shutdown_serves_the_sessions_that_are_left() -> Result<()> {
    let (mut server, mut client) = Server::builder().set("snowflake_ids.reserve", "300ms").with_session()?;
    let mut taken = take(&mut client, 100)?;
    server.ask_to_stop(Shutdown::Smart)?;
    wait::until(TIMEOUT, "new sessions to be refused", || Ok(server.connect("postgres").err()))?;
    let start = Instant::now();
    while start.elapsed() < Duration::from_secs(1) {
        taken.extend(take(&mut client, 100)?);
    }
    drop(client);
    server.wait_for_exit()?;
    server.start_again()?;
    let mut client = server.session()?;
    taken.extend(take(&mut client, 100)?);
    ids::growing(&taken)?;
    let drift = seconds(&mut client, "drift")?;
    assert!(drift < 0.01, "drift {drift} after a clean stop");
    Ok(())
}

/// The distance by which the clock is set back, and whether the server then issues ids.
const STEPS: [(&str, bool); 4] = [("-10", true), ("-1h", false), ("-5y", false), ("-10y", false)];

/// For each step: runs a load, stops the server, sets the clock back and starts the server. After a step within `max_drift`, ids
/// continue. After a larger step, ids wait for the clock. No id repeats.
fn step_back_across_a_restart(stop: impl Fn(&mut Server) -> Result<()>) -> Result<()> {
    let mut server =
        Server::builder().false_clock().set("snowflake_ids.clock_wait_timeout", "100ms").start()?;
    server.session()?;
    let mut taken = Taken::default();
    for (step, served) in STEPS {
        let load = server.load(4)?;
        load.goes_on()?;
        load.run(Duration::from_millis(300));
        stop(&mut server)?;
        taken.add(load.end());
        server.set_clock(step)?;
        server.start_again()?;
        let mut client = server.session()?;
        if served {
            let after = take(&mut client, 1000)?;
            ids::growing(&[taken.ids.iter().max().copied().unwrap_or(0), after[0]])?;
            taken.ids.extend(after);
        } else {
            let error = refused(&mut client)?;
            assert_eq!(error.code(), sql::NOT_IN_STATE, "{step}: {error:?}");
            assert!(error.detail().is_some() && error.hint().is_some(), "{step}: {error:?}");
        }
        // Ticks begin at the epoch, so a step to a time before the epoch cannot be measured.
        if step != "-10y" {
            assert_eq!(status::<i64>(&mut client, "steps_back")?, 1, "{step}");
            let largest = seconds(&mut client, "largest_step_back")?;
            assert!(largest > 5.0, "{step}: largest step back {largest}");
        }
        server.set_clock("+0")?;
        taken.ids.extend(take(&mut client, 1000)?);
    }
    assert!(taken.refusals.is_empty(), "{:?}", taken.refusals);
    taken.unique()
}

#[test]
fn a_clock_set_back_across_a_clean_stop_brings_no_id_back() -> Result<()> {
    step_back_across_a_restart(|server| server.stop(Shutdown::Fast))
}

#[test]
fn a_clock_set_back_across_a_crash_brings_no_id_back() -> Result<()> {
    step_back_across_a_restart(Server::kill9)
}

/// Each worker id of this server has its own mark.
#[test]
fn ids_of_a_worker_id_used_before_do_not_come_again() -> Result<()> {
    let mut server = Server::builder().false_clock().start()?;
    let mut taken = [Vec::new(), Vec::new()];
    for (worker, clock) in [("1", "+0"), ("2", "+0"), ("1", "-20"), ("2", "-25"), ("1", "-30")] {
        server.stop(Shutdown::Fast)?;
        server.set("snowflake_ids.worker_id", worker)?;
        server.set_clock(clock)?;
        server.start_again()?;
        taken[usize::from(worker == "2")].extend(take(&mut server.session()?, 1000)?);
    }
    taken.iter().try_for_each(|of_worker| ids::growing(of_worker))
}
