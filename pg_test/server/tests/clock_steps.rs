//! A clock that steps back and forward again and again.

use anyhow::{Result, bail};
use snowflake_ids_server_tests::snowflakes::{BEHIND, NEAR, next, now, seconds, status, take, time};
use snowflake_ids_server_tests::{Server, full, ids, wait};
use std::thread::sleep;
use std::time::Duration;

const STEPPED_BACK: &str = "the clock was stepped back";
/// The clock's offsets from true time, one after the other: in seconds, minutes, hours and years. Five of the changes are steps back
/// from a time that ids followed. Ids do not follow the clock that is ten years ahead.
const CLOCKS: [&str; 11] = ["-5", "+0", "-30", "+0", "-2h", "+0", "-3y", "+10y", "+0", "+20m", "+0"];

#[test]
fn steps_of_seconds_hours_and_years_under_load_bring_no_id_back() -> Result<()> {
    let server = Server::builder().false_clock().set("snowflake_ids.clock_wait_timeout", "50ms").start()?;
    let mut client = server.session()?;
    let (load, pause) = (server.load(6)?, Duration::from_millis(if full() { 5000 } else { 300 }));
    load.goes_on()?;
    for clock in CLOCKS {
        server.set_clock(clock)?;
        // The call reads the clock, whether it returns an id or an error.
        let _ = next(&mut client);
        load.run(pause);
    }
    // Ids are up to 20 minutes ahead of the clock. The test does not wait for that time.
    let taken = load.end();
    if let Some(other) = taken.other_than(BEHIND) {
        bail!("{other:?}");
    }
    let steps = usize::try_from(status::<i64>(&mut client, "steps_back")?)?;
    // The return from the ten years may count as a step back of a millisecond.
    assert!((5..=6).contains(&steps), "{steps} steps back");
    let largest = seconds(&mut client, "largest_step_back")?;
    assert!(largest > 7000.0, "largest step back {largest}");
    // The log may sum up steps that come within seconds of each other. It reports each step only once.
    wait::until_true("the warning", || Ok(server.logged(STEPPED_BACK) > 0))?;
    assert!(server.logged(STEPPED_BACK) <= steps, "{}", server.log());
    taken.unique()
}

/// The launcher or the next call notices each step, whichever comes first. Each step is reported once.
#[test]
fn a_step_back_is_told_of_once_with_its_figures() -> Result<()> {
    let (server, mut client) =
        Server::builder().false_clock().set("snowflake_ids.clock_wait_timeout", "0").with_session()?;
    next(&mut client)?;
    server.set_clock("-2h")?;
    let load = server.load(4)?;
    load.run(Duration::from_millis(500));
    let taken = load.end();
    assert!(taken.ids.is_empty() && taken.other_than(BEHIND).is_none(), "{taken:?}");
    let line = wait::until(wait::LONG, "the warning", || {
        Ok(server.log().lines().find(|line| line.contains(STEPPED_BACK)).map(str::to_owned))
    })?;
    let step = seconds(&mut client, "largest_step_back")?;
    assert!((7100.0..=7200.0).contains(&step), "largest step back {step}");
    assert!(
        line.contains("WARNING") && ["2 h", "120 min", "119."].iter().any(|by| line.contains(by)),
        "{line}"
    );
    sleep(Duration::from_millis(500));
    assert_eq!(server.logged(STEPPED_BACK), 1, "{}", server.log());
    assert_eq!(status::<i64>(&mut client, "steps_back")?, 1);
    server.set_clock("+0")?;
    next(&mut client).map(drop)
}

/// Fails if a clock that is set right counts as a jump ahead, because ids followed the step back.
#[test]
fn a_clock_set_back_in_three_steps_and_right_in_one_is_followed() -> Result<()> {
    let (server, mut client) =
        Server::builder().false_clock().set("snowflake_ids.clock_wait_timeout", "0").with_session()?;
    let mut taken = take(&mut client, 100)?;
    for clock in ["-50m", "-100m", "-150m"] {
        server.set_clock(clock)?;
        // A session reads the clock at each step.
        let _ = next(&mut client);
        sleep(Duration::from_millis(200));
        let _ = next(&mut client);
    }
    server.set_clock("+0")?;
    let id = wait::until(wait::LONG, "the clock to be followed", || Ok(next(&mut client).ok()))?;
    let off = time(&mut client, id)? - now()?;
    assert!(NEAR.contains(&off), "an id of {off} s from now");
    taken.push(id);
    assert!(seconds(&mut client, "clock_ahead")?.abs() < 0.001);
    ids::growing(&taken)
}
