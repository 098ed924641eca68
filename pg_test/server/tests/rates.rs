//! Bursts of ids: how far they run ahead of the clock.

use snowflake_ids_server_tests::prelude::*;

/// Starts a server with 16 ids a tick.
fn narrow(max_drift: &str) -> Result<(Server, Client)> {
    Server::builder()
        .set("snowflake_ids.layout", "41/5/5/4")
        .set("snowflake_ids.max_drift", max_drift)
        .with_session()
}

/// The number of full ticks, and the drift in seconds.
fn borrowed(client: &mut Client) -> Result<(i64, f64)> {
    let row = client
        .query_one("select full_ticks, extract(epoch from drift)::float8 from snowflake_ids.status", &[])?;
    Ok((row.get(0), row.get(1)))
}

#[test]
fn a_burst_waits_where_it_would_borrow_more_than_max_drift() -> Result<()> {
    const BURST: usize = 16 * 1000;
    let (_server, mut client) = narrow("100ms")?;
    let taken: Vec<i64> = client.column(&format!("select snowflake_nextvals({BURST})"))?;
    assert_eq!(taken.len(), BURST);
    ids::growing(&taken)?;
    // The burst needs 1000 ticks and may borrow at most 100 of them.
    let (full_ticks, drift) = borrowed(&mut client)?;
    // A tick in which the call slept may stay partly unused.
    assert!(full_ticks >= 950, "{full_ticks} full ticks");
    assert!(drift <= 0.1, "drift {drift}");
    Ok(())
}

#[test]
fn a_burst_that_may_not_wait_ends_at_max_drift() -> Result<()> {
    let (_server, mut client) = narrow("100ms")?;
    client.run("set snowflake_ids.clock_wait_timeout = 0")?;
    let error = client.fails("select snowflake_nextvals(1000000)", &SqlState::INSUFFICIENT_RESOURCES)?;
    assert!(error.detail().is_some_and(|detail| detail.contains("100 ms")), "{error:?}");
    assert!(error.hint().is_some_and(|hint| hint.contains("clock_wait_timeout")), "{error:?}");
    let (full_ticks, drift) = borrowed(&mut client)?;
    assert!(full_ticks >= 100, "{full_ticks} full ticks: the drift allowed was not used");
    assert!(drift <= 0.1, "drift {drift}");
    client.run("set snowflake_ids.clock_wait_timeout = '5s'")?;
    client.one::<i64>("select snowflake_nextval()").map(drop)
}
