//! Dated dense series: a key begins anew with the period, in sessions that know the former one, and not again with a clock that
//! is set back.

use anyhow::Result;
use postgres::Client;
use snowflake_ids_server_tests::sessions::at_once;
use snowflake_ids_server_tests::{Server, ids, sql};
use std::collections::BTreeMap;

const SESSIONS: usize = 4;
/// A zone whose midnight is far from UTC's, and no whole hour from it.
const ZONE: &str = "Asia/Kathmandu";
const NEXT: &str = "select series_nextval_text('s', 1)";

fn server() -> Result<(Server, Client)> {
    let server = Server::builder().small().faketime().start()?;
    let mut client = server.session()?;
    client.batch_execute(&format!(
        "select snowflake_ids.series_create('s', 'dense', reset => 'day', time_zone => '{ZONE}')"
    ))?;
    Ok((server, client))
}

/// Sets the clock to some seconds after the next midnight of the zone, as it was when the server started.
fn set_clock_to_midnight(server: &Server, client: &mut Client, seconds: f64) -> Result<()> {
    server.set_clock("+0")?;
    let left: f64 = sql::one(
        client,
        &format!(
            "select extract(epoch from (date_trunc('day', at) + interval '1 day') - at)::float8
             from (select clock_timestamp() at time zone '{ZONE}' as at) t"
        ),
    )?;
    server.set_clock(&format!("{:+.3}", left + seconds))
}

/// A number as its text says it, with today's date.
fn of_today(client: &mut Client, number: i64) -> Result<String> {
    sql::one(
        client,
        &format!("select to_char(clock_timestamp() at time zone '{ZONE}', 'YYYYMMDD') || '-{number:06}'"),
    )
}

#[test]
fn a_session_that_knows_the_day_sees_the_next_one() -> Result<()> {
    let (server, mut client) = server()?;
    set_clock_to_midnight(&server, &mut client, -3600.0)?;
    for number in 1..=20 {
        assert_eq!(sql::one::<String>(&mut client, NEXT)?, of_today(&mut client, number)?);
    }
    // Nothing of what it knows is the server's to tell it.
    set_clock_to_midnight(&server, &mut client, 60.0)?;
    for number in 1..=20 {
        assert_eq!(sql::one::<String>(&mut client, NEXT)?, of_today(&mut client, number)?);
    }
    let new_day: String = of_today(&mut client, 21)?;
    set_clock_to_midnight(&server, &mut client, -60.0)?;
    assert_eq!(sql::one::<String>(&mut client, NEXT)?, new_day, "the former day came back");
    Ok(())
}

#[test]
fn sessions_go_over_midnight_together() -> Result<()> {
    let (server, mut client) = server()?;
    set_clock_to_midnight(&server, &mut client, -15.0)?;
    let before = of_today(&mut client, 0)?;
    let (before, _) = before.split_at(8);
    let taken = at_once(server.sessions("postgres", SESSIONS)?, |_, mut client| {
        let mut taken: Vec<(String, i64)> = Vec::new();
        while taken.iter().filter(|(day, _)| day != before).count() < 50 {
            let today = of_today(&mut client, 0)?;
            let text: String = sql::one(&mut client, NEXT)?;
            let (day, number) = text.split_at(8);
            assert!(today[..8] <= *day, "number of {day} on {today}");
            taken.push((day.to_owned(), number.trim_start_matches('-').parse()?));
        }
        assert!(taken.is_sorted(), "numbers do not grow");
        Ok(taken)
    })?;
    let mut days: BTreeMap<String, Vec<i64>> = BTreeMap::new();
    for (day, number) in taken.concat() {
        days.entry(day).or_default().push(number);
    }
    assert_eq!(days.len(), 2);
    // Of the former day a few may have been reserved and not given out; none of those is missing in between.
    days.into_values().try_for_each(ids::dense)
}
