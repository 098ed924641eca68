//! Ids at low rates and in bursts: how they spread over shards, how far they run ahead of the clock.

use anyhow::Result;
use postgres::Client;
use postgres::error::SqlState;
use snowflake_ids_server_tests::{Server, ids, sql};

const PACED: usize = 640;

/// Ids made one at a time, each in a tick of its own.
fn paced(client: &mut Client, start: &str) -> Result<Vec<i64>> {
    client.batch_execute(&format!(
        "set snowflake_ids.sequence_start = {start};
         create or replace function paced() returns setof bigint language plpgsql as $$
         begin
           for i in 1..{PACED} loop
             perform pg_sleep(0.0011);
             return next snowflake_nextval();
           end loop;
         end $$"
    ))?;
    let taken: Vec<i64> = sql::column(client, "select paced()")?;
    let ticks: i64 = sql::one(
        client,
        &format!("select count(distinct id >> 22) from unnest('{{{}}}'::bigint[]) id", list(&taken)),
    )?;
    assert_eq!(usize::try_from(ticks)?, PACED, "two ids share a tick: the pace is too fast");
    ids::growing(&taken)?;
    Ok(taken)
}

fn list(ids: &[i64]) -> String {
    ids.iter().map(i64::to_string).collect::<Vec<_>>().join(",")
}

/// Pearson's chi-square of the ids over `shards` shards by `id % shards`.
#[allow(clippy::cast_precision_loss, reason = "counts of a few hundred")]
fn chi_square(ids: &[i64], shards: i64) -> f64 {
    let expected = ids.len() as f64 / shards as f64;
    let of = |shard| ids.iter().filter(|id| **id % shards == shard).count() as f64;
    (0..shards).map(|shard| (of(shard) - expected).powi(2) / expected).sum()
}

#[test]
fn rotate_and_random_spread_slow_ids_over_shards_and_zero_does_not() -> Result<()> {
    // Chance alone goes beyond these less than once in a million runs.
    const LIMITS: [(i64, f64); 2] = [(4, 30.7), (16, 56.5)];
    let (_server, mut client) = Server::builder().with_session()?;
    for start in ["random", "rotate"] {
        let taken = paced(&mut client, start)?;
        for (shards, limit) in LIMITS {
            let found = chi_square(&taken, shards);
            assert!(found < limit, "{start} over {shards} shards: chi-square {found}");
        }
    }
    let taken = paced(&mut client, "zero")?;
    for (shards, limit) in LIMITS {
        assert!(chi_square(&taken, shards) > limit, "zero over {shards} shards is even");
    }
    Ok(())
}

/// 16 ids a tick.
fn narrow(max_drift: &str) -> Result<Server> {
    Server::builder()
        .set("snowflake_ids.layout", "41/5/5/4")
        .set("snowflake_ids.max_drift", max_drift)
        .start()
}

/// Full ticks and the drift in seconds.
fn borrowed(client: &mut Client) -> Result<(i64, f64)> {
    let row = client
        .query_one("select full_ticks, extract(epoch from drift)::float8 from snowflake_ids.status", &[])?;
    Ok((row.get(0), row.get(1)))
}

#[test]
fn a_burst_borrows_ticks_ahead_of_the_clock() -> Result<()> {
    let server = narrow("1min")?;
    let mut client = server.session()?;
    // Ten seconds' worth of ticks.
    let burst: i64 = sql::one(&mut client, "select count(*) from snowflake_nextvals(16 * 10000)")?;
    assert_eq!(burst, 160_000);
    let (full_ticks, drift) = borrowed(&mut client)?;
    assert!((9_999..=10_000).contains(&full_ticks), "{full_ticks} full ticks");
    assert!(drift <= 10.0, "drift {drift}");
    Ok(())
}

#[test]
fn a_burst_waits_where_it_would_borrow_more_than_max_drift() -> Result<()> {
    const BURST: usize = 16 * 1000;
    let server = narrow("100ms")?;
    let mut client = server.session()?;
    let taken: Vec<i64> = sql::column(&mut client, &format!("select snowflake_nextvals({BURST})"))?;
    assert_eq!(taken.len(), BURST);
    ids::growing(&taken)?;
    // 1000 ticks are needed, and 100 may be borrowed.
    let (full_ticks, drift) = borrowed(&mut client)?;
    // A tick that the call slept into may stay partly unused.
    assert!(full_ticks >= 950, "{full_ticks} full ticks");
    assert!(drift <= 0.1, "drift {drift}");
    Ok(())
}

#[test]
fn a_burst_that_may_not_wait_ends_at_max_drift() -> Result<()> {
    let server = narrow("100ms")?;
    let mut client = server.session()?;
    client.batch_execute("set snowflake_ids.clock_wait_timeout = 0")?;
    let error =
        sql::fails(&mut client, "select snowflake_nextvals(1000000)", &SqlState::INSUFFICIENT_RESOURCES)?;
    assert!(error.detail().is_some_and(|detail| detail.contains("100 ms")), "{error:?}");
    assert!(error.hint().is_some_and(|hint| hint.contains("clock_wait_timeout")), "{error:?}");
    let (full_ticks, drift) = borrowed(&mut client)?;
    assert!(full_ticks >= 100, "{full_ticks} full ticks: the drift allowed was not used");
    assert!(drift <= 0.1, "drift {drift}");
    client.batch_execute("set snowflake_ids.clock_wait_timeout = '5s'")?;
    sql::one::<i64>(&mut client, "select snowflake_nextval()").map(drop)
}
