//! Dated dense series that draw from a registry: a key begins anew for all nodes at once, though their clocks show different days.

use anyhow::{Context, Result, ensure};
use postgres::Client;
use postgres::error::SqlState;
use snowflake_ids_server_tests::cluster::{
    Cluster, NAME, node, said, wait_as_long_as_it_takes, wait_at_most,
};
use snowflake_ids_server_tests::registry::auto;
use snowflake_ids_server_tests::series::create_at_all;
use snowflake_ids_server_tests::{Server, sql, wait};
use std::time::Duration;

/// A zone whose midnight is far from UTC's, and no whole hour from it.
const ZONE: &str = "Asia/Kathmandu";
const DAY: f64 = 86_400.0;
const HOUR: f64 = 3_600.0;

/// A registry and two nodes, whose clocks are set, with a series that reserves nothing ahead unless `steps` says so.
fn cluster(steps: &str) -> Result<(Cluster, [Client; 2], Client)> {
    // They lease no worker ids: clocks that differ are no matter of theirs.
    let node = node().faketime().set("snowflake_ids.worker_id", "7");
    let cluster = Cluster::of(auto().faketime(), &node, 2)?;
    create_at_all(
        &cluster,
        &format!(
            "select snowflake_ids.series_create('d', 'dense', reset => 'day', time_zone => '{ZONE}', {steps})"
        ),
    )?;
    let clients = [cluster.session()?, cluster.nodes[1].connect("postgres")?];
    let registry = cluster.registry.connect("postgres")?;
    Ok((cluster, clients, registry))
}

const EXACT: &str = "step => 1, max_step => 1";

/// Sets a server's clock to so many seconds after noon of the zone's present day.
fn set_clock(server: &Server, seconds: f64) -> Result<()> {
    server.set_clock("+0")?;
    let noon: f64 = sql::one(
        &mut server.connect("postgres")?,
        &format!(
            "select extract(epoch from date_trunc('day', at) + interval '12 h' - at)::float8
             from (select clock_timestamp() at time zone '{ZONE}' as at) t"
        ),
    )?;
    server.set_clock(&format!("{:+.3}", noon + seconds))
}

/// The zone's day by a server's clock, as numbers write it.
fn day(client: &mut Client) -> Result<String> {
    sql::one(client, &format!("select to_char(clock_timestamp() at time zone '{ZONE}', 'YYYYMMDD')"))
}

/// The next number of a key, with its day.
fn next(client: &mut Client) -> Result<(String, i64)> {
    let text: String = sql::one(client, "select series_nextval_text('d', 7::bigint)")?;
    let (day, number) = text.split_once('-').context("a number without a day")?;
    Ok((day.to_owned(), number.parse()?))
}

#[test]
fn the_first_node_that_comes_to_the_next_day_takes_the_others_along() -> Result<()> {
    let (cluster, [mut early, mut late], mut registry) = cluster(EXACT)?;
    for server in cluster.nodes.iter().chain([&cluster.registry]) {
        set_clock(server, 11.0 * HOUR)?;
    }
    let today = day(&mut registry)?;
    for number in [1, 3] {
        assert_eq!(next(&mut early)?, (today.clone(), number));
        assert_eq!(next(&mut late)?, (today.clone(), number + 1));
    }
    set_clock(&cluster.nodes[0], 12.5 * HOUR)?;
    let tomorrow = day(&mut early)?;
    ensure!(
        tomorrow > today && day(&mut late)? == today && day(&mut registry)? == today,
        "{today} {tomorrow}"
    );
    // Today's numbers do not go on, with whichever clock, and none of tomorrow's comes twice.
    for number in [1, 3] {
        assert_eq!(next(&mut early)?, (tomorrow.clone(), number));
        assert_eq!(next(&mut late)?, (tomorrow.clone(), number + 1));
    }
    for server in [&cluster.nodes[1], &cluster.registry] {
        set_clock(server, 13.0 * HOUR)?;
    }
    assert_eq!(next(&mut late)?, (tomorrow.clone(), 5));
    // Nor do they with clocks that are set back.
    for server in cluster.nodes.iter().chain([&cluster.registry]) {
        set_clock(server, 11.0 * HOUR)?;
    }
    assert_eq!(next(&mut early)?, (tomorrow.clone(), 6));
    assert_eq!(next(&mut late)?, (tomorrow, 7));
    Ok(())
}

/// What a node has in memory of a day is not handed out on the next one, and does not come back.
#[test]
fn numbers_in_memory_end_with_their_day() -> Result<()> {
    let (cluster, [mut one, mut other], _registry) = cluster("step => 20, max_step => 20")?;
    for server in cluster.nodes.iter().chain([&cluster.registry]) {
        set_clock(server, 11.0 * HOUR)?;
    }
    let today = day(&mut one)?;
    for number in 1..=5 {
        assert_eq!(next(&mut one)?, (today.clone(), number));
    }
    for server in cluster.nodes.iter().chain([&cluster.registry]) {
        set_clock(server, 13.0 * HOUR)?;
    }
    let tomorrow = day(&mut one)?;
    for number in 1..=5 {
        assert_eq!(next(&mut one)?, (tomorrow.clone(), number));
    }
    let (day, number) = next(&mut other)?;
    ensure!(day == tomorrow && number > 5, "{number} of {day}");
    Ok(())
}

/// Takes numbers until a call is refused with a word: calls that come too soon may be refused for another reason.
fn is_refused(client: &mut Client, code: &SqlState, word: &str) -> Result<()> {
    wait_at_most(client, Duration::from_secs(1))?;
    wait::until_true(&format!("a refusal with {word}"), || {
        let error = sql::error(client, "select series_nextval('d', 7::bigint)")?;
        Ok(error.code() == code && said(&error).contains(word))
    })?;
    wait_as_long_as_it_takes(client)
}

#[test]
fn a_node_whose_clock_is_days_off_gets_no_numbers_and_changes_none() -> Result<()> {
    let (cluster, [mut sound, mut wrong], mut registry) = cluster(EXACT)?;
    for server in cluster.nodes.iter().chain([&cluster.registry]) {
        set_clock(server, 0.0)?;
    }
    let today = day(&mut registry)?;
    assert_eq!(next(&mut sound)?, (today.clone(), 1));
    // The registry does not believe it,
    set_clock(&cluster.nodes[1], 3.0 * DAY)?;
    is_refused(&mut wrong, &SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE, "begins after tomorrow")?;
    assert_eq!(next(&mut sound)?, (today.clone(), 2));
    // nor it the registry, which gives numbers of a day that it takes for a later one than tomorrow.
    set_clock(&cluster.nodes[1], -3.0 * DAY)?;
    is_refused(&mut wrong, &SqlState::INSUFFICIENT_RESOURCES, &format!("Registry \"{NAME}\""))?;
    set_clock(&cluster.nodes[1], 0.0)?;
    let (day, number) = wait::until(wait::LONG, "a number", || Ok(next(&mut wrong).ok()))?;
    ensure!(day == today && number > 2, "{number} of {day}");
    let (day, last) = next(&mut sound)?;
    ensure!(day == today && last > number, "{last} of {day}");
    Ok(())
}
