//! `clock_rollback = switch`: when the clock is far behind, the server changes its rollback value or its worker id to one whose
//! ids end below the clock.

use snowflake_ids_server_tests::prelude::*;
use snowflake_ids_server_tests::snowflakes::{
    BEHIND, NEAR, next, now, refused, rollback, seconds, status, take, time, worker,
};

/// Two rollback bits, so four values.
fn builder() -> Builder {
    switching(Server::builder().set("snowflake_ids.layout", "41/5/3/2r/12"))
}

fn switching(builder: Builder) -> Builder {
    builder
        .false_clock()
        .set("snowflake_ids.clock_rollback", "switch")
        .set("snowflake_ids.clock_wait_timeout", "100ms")
}

/// Takes ids that must have the stepped clock's time.
fn take_near(client: &mut Client, offset: f64, taken: &mut Vec<i64>) -> Result<i64> {
    let batch = take(client, 1000)?;
    let off = time(client, batch[0])? - now()? - offset;
    assert!(NEAR.contains(&off), "an id {off} s from the clock");
    taken.extend(&batch);
    Ok(batch[0])
}

#[test]
fn each_step_back_takes_the_next_rollback_value_until_none_is_free() -> Result<()> {
    let (server, mut client) = builder().with_session()?;
    let mut taken = take(&mut client, 1000)?;
    for (value, (clock, offset)) in (1..).zip([("-1h", -3600.0), ("-2h", -7200.0), ("-3h", -10_800.0)]) {
        server.set_clock(clock)?;
        let id = take_near(&mut client, offset, &mut taken)?;
        assert_eq!(rollback(&mut client, id)?, value);
        assert_eq!(worker(&mut client, id)?, 1);
        assert_eq!(status::<i64>(&mut client, "switches")?, i64::from(value));
        assert_eq!(status::<i32>(&mut client, "rollback")?, value);
        assert!(seconds(&mut client, "drift")? < 1.0);
    }
    server.set_clock("-4h")?;
    sql::explains(&refused(&mut client)?, sql::NOT_IN_STATE, BEHIND)?;

    server.set_clock("+0")?;
    take_near(&mut client, 0.0, &mut taken)?;
    ids::unique(taken)
}

#[test]
fn a_step_within_max_drift_switches_nothing() -> Result<()> {
    let (server, mut client) = builder().with_session()?;
    let mut taken = take(&mut client, 1000)?;
    server.set_clock("-20")?;
    taken.extend(take(&mut client, 1000)?);
    assert_eq!(status::<i64>(&mut client, "switches")?, 0);
    ids::growing(&taken)
}

/// Fails if a session may still hand out positions from before the switch.
#[test]
fn switches_under_load_bring_no_id_back() -> Result<()> {
    let (server, mut client) = builder().with_session()?;
    let load = server.load(8)?;
    for clock in ["+0", "-1h", "-2h", "+0", "-1h", "+0"] {
        server.set_clock(clock)?;
        // At least one call meets the step, even if it is refused.
        let _ = next(&mut client);
        load.run(Duration::from_millis(300));
    }
    load.goes_on()?;
    let taken = load.end();
    assert!(status::<i64>(&mut client, "switches")? >= 2);
    if let Some(other) = taken.other_than(BEHIND) {
        anyhow::bail!("{other:?}");
    }
    taken.unique()
}

#[test]
fn a_switch_outlives_restarts() -> Result<()> {
    let mut server = builder().start()?;
    let mut taken = take(&mut server.session()?, 1000)?;
    server.set_clock("-1h")?;
    take_near(&mut server.session()?, -3600.0, &mut taken)?;
    server.restart()?;
    let id = take_near(&mut server.session()?, -3600.0, &mut taken)?;
    assert_eq!(rollback(&mut server.session()?, id)?, 1);
    server.kill9()?;
    server.set_clock("-2h")?;
    server.start_again()?;
    let id = take_near(&mut server.session()?, -7200.0, &mut taken)?;
    assert_eq!(rollback(&mut server.session()?, id)?, 2);
    server.kill9()?;
    server.set_clock("+0")?;
    server.start_again()?;
    taken.extend(take(&mut server.session()?, 1000)?);
    ids::unique(taken)
}

#[test]
fn without_rollback_bits_a_leased_worker_id_is_exchanged_for_another() -> Result<()> {
    let (server, mut client) = switching(auto()).with_session()?;
    let mut taken = take(&mut client, 1000)?;
    let (first, second) = (taken[0], {
        server.set_clock("-1h")?;
        client.run("set snowflake_ids.clock_wait_timeout = '10s'")?;
        take_near(&mut client, -3600.0, &mut taken)?
    });
    assert_ne!(worker(&mut client, first)?, worker(&mut client, second)?);
    assert_eq!(status::<i64>(&mut client, "switches")?, 1);
    assert_eq!(status::<i32>(&mut client, "worker_id")?, worker(&mut client, second)?);
    server.set_clock("+0")?;
    take_near(&mut client, 0.0, &mut taken)?;
    ids::unique(taken)
}

#[test]
fn without_rollback_bits_a_worker_id_that_was_set_waits_for_the_clock() -> Result<()> {
    let (server, mut client) = switching(Server::builder()).with_session()?;
    let before = next(&mut client)?;
    server.set_clock("-1h")?;
    sql::explains(&refused(&mut client)?, sql::NOT_IN_STATE, BEHIND)?;
    server.set_clock("+0")?;
    ids::growing(&[before, next(&mut client)?])
}

/// A reset also keeps the high-water marks of all rollback values.
#[test]
fn a_reset_after_a_switch_repeats_nothing() -> Result<()> {
    let (server, mut client) = builder().with_session()?;
    let before = take(&mut client, 1000)?;
    server.set_clock("-1h")?;
    let mut after = Vec::new();
    take_near(&mut client, -3600.0, &mut after)?;
    client.run("select snowflake_ids.state_reset()")?;
    if let Ok(id) = next(&mut client) {
        let former = if rollback(&mut client, id)? == 0 { &before } else { &after };
        ids::growing(&[former[999], id])?;
    }
    Ok(())
}
