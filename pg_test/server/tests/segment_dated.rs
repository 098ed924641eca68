//! Dated tags: the count starts again with each period, across midnight, restarts and clocks that step.

use snowflake_ids_server_tests::prelude::*;
use snowflake_ids_server_tests::segments::create;
use std::collections::BTreeMap;
use std::time::{SystemTime, UNIX_EPOCH};

const SESSIONS: usize = 8;
/// A time zone whose midnight is far from midnight UTC, and whose offset is not a whole number of hours.
const ZONE: &str = "Asia/Kathmandu";

fn server() -> Result<(Server, Client)> {
    let (server, mut client) = Server::builder().false_clock().with_session()?;
    create(&mut client, "t", &format!("reset => 'day', time_zone => '{ZONE}', step => 20"))?;
    Ok((server, client))
}

/// Sets the clock to `seconds` after a midnight of the zone: the midnight that is `days` days after the next midnight.
fn set_clock_to_midnight(server: &Server, client: &mut Client, days: f64, seconds: f64) -> Result<()> {
    server.set_clock("+0")?;
    let left: f64 = client.one(&format!(
        "select extract(epoch from (date_trunc('day', at) + interval '1 day') - at)::float8
             from (select clock_timestamp() at time zone '{ZONE}' as at) t"
    ))?;
    server.set_clock(&format!("{:+.3}", left + days * 86_400.0 + seconds))
}

/// Takes a key of the tag. Returns the key's day and number.
fn key(client: &mut Client) -> Result<(String, i64)> {
    let key: String = client.one("select segment_nextval_text('t')")?;
    let (day, number) = key.split_once('-').with_context(|| key.clone())?;
    assert!(number.len() >= 6, "{key}");
    Ok((day.to_owned(), number.parse()?))
}

fn today(client: &mut Client) -> Result<String> {
    client.one(&format!("select to_char(clock_timestamp() at time zone '{ZONE}', 'YYYYMMDD')"))
}

#[test]
fn keys_over_midnight_under_load_are_distinct_and_each_day_s_are_dense() -> Result<()> {
    let (server, mut client) = server()?;
    set_clock_to_midnight(&server, &mut client, 0.0, -15.0)?;
    let before = today(&mut client)?;
    let taken = at_once(server.sessions("postgres", SESSIONS)?, |_, mut client| {
        let mut taken: Vec<(String, i64)> = Vec::new();
        while taken.iter().filter(|(day, _)| *day != before).count() < 100 {
            let not_before = today(&mut client)?;
            let (day, number) = key(&mut client)?;
            assert!(not_before <= day && day <= today(&mut client)?, "key of {day} on {not_before}");
            assert_eq!(client.one::<i64>("select segment_currval('t')")?, number);
            taken.push((day, number));
        }
        assert!(taken.is_sorted(), "keys do not grow");
        Ok(taken)
    })?;
    let mut days: BTreeMap<String, Vec<i64>> = BTreeMap::new();
    for (day, number) in taken.concat() {
        days.entry(day).or_default().push(number);
    }
    assert_eq!(days.keys().collect::<Vec<_>>(), [&before, &today(&mut client)?]);
    for numbers in days.into_values() {
        ids::dense(numbers)?;
    }
    Ok(())
}

#[test]
fn a_restart_goes_on_within_the_day_and_the_next_day_begins_at_1() -> Result<()> {
    let (mut server, mut client) = server()?;
    set_clock_to_midnight(&server, &mut client, 0.0, 3600.0)?;
    let mut last = (today(&mut client)?, 0);
    for restart in [|server: &mut Server| server.stop(Shutdown::Fast), Server::kill9] {
        for _ in 0..50 {
            let next = key(&mut client)?;
            assert_eq!(next, (last.0, last.1 + 1));
            last = next;
        }
        drop(client);
        restart(&mut server)?;
        server.start_again()?;
        client = server.connect("postgres")?;
        let next = key(&mut client)?;
        assert!(next > last && next.0 == last.0, "{next:?} after {last:?}");
        last = next;
    }
    // The day changes while the server is down.
    drop(client);
    server.restart_by(Shutdown::Fast)?;
    client = server.connect("postgres")?;
    set_clock_to_midnight(&server, &mut client, 1.0, 3600.0)?;
    assert_eq!(key(&mut client)?, (today(&mut client)?, 1));
    assert_ne!(today(&mut client)?, last.0);
    Ok(())
}

#[test]
fn a_clock_that_steps_back_over_midnight_does_not_bring_the_old_day_back() -> Result<()> {
    let (mut server, mut client) = server()?;
    set_clock_to_midnight(&server, &mut client, 0.0, -3600.0)?;
    let old = key(&mut client)?;
    assert_eq!(old, (today(&mut client)?, 1));
    set_clock_to_midnight(&server, &mut client, 0.0, 600.0)?;
    let new_day = today(&mut client)?;
    assert_eq!(key(&mut client)?, (new_day.clone(), 1));
    set_clock_to_midnight(&server, &mut client, 0.0, -600.0)?;
    for number in 2..=100 {
        assert_eq!(key(&mut client)?, (new_day.clone(), number));
    }
    // The old day does not come back either if memory is empty.
    server.restart()?;
    let mut client = server.connect("postgres")?;
    let (day, number) = key(&mut client)?;
    assert_eq!(day, new_day);
    assert!(number > 100, "{number} after the restart");
    Ok(())
}

#[test]
fn an_idle_tag_skips_the_days_without_a_key() -> Result<()> {
    let (server, mut client) = server()?;
    set_clock_to_midnight(&server, &mut client, 0.0, 10.0)?;
    for _ in 0..30 {
        key(&mut client)?;
    }
    let first = today(&mut client)?;
    set_clock_to_midnight(&server, &mut client, 3.0, 10.0)?;
    let numbers: Vec<String> =
        client.column("select segment_nextval_text('t') from generate_series(1, 30)")?;
    let later = today(&mut client)?;
    assert!(later > first);
    assert_eq!(numbers, (1..=30).map(|n| format!("{later}-{n:06}")).collect::<Vec<_>>());
    Ok(())
}

#[test]
fn a_transaction_that_changed_a_tag_numbers_by_itself_when_the_day_of_the_buffers_is_over() -> Result<()> {
    let (server, mut client) = server()?;
    set_clock_to_midnight(&server, &mut client, 0.0, 600.0)?;
    let first = key(&mut client)?;
    set_clock_to_midnight(&server, &mut client, 1.0, 600.0)?;
    // The transaction locks the row, so that nobody else can fill the buffers.
    client.run("begin; select snowflake_ids.segment_alter('t', description => 'changed')")?;
    let day = today(&mut client)?;
    assert!(day > first.0);
    for number in 1..=30 {
        assert_eq!(key(&mut client)?, (day.clone(), number));
    }
    client.run("commit")?;
    assert_eq!(key(&mut client)?, (day, 31));
    Ok(())
}

/// A clock that is set back over midnight shows midnight twice. The day begins with the first midnight, as in series.
#[test]
fn a_day_begins_where_midnight_comes_first() -> Result<()> {
    let (server, mut client) = Server::builder().false_clock().with_session()?;
    let days = [
        ("Atlantic/Azores", "day", "2026-10-25 00:00:00+00", "20261024", "20261025"),
        ("America/Havana", "month", "2026-11-01 04:00:00+00", "202610", "202611"),
    ];
    for (tag, reset, midnight, before, after) in days {
        let midnight: f64 =
            client.one(&format!("select extract(epoch from timestamptz '{midnight}')::float8"))?;
        // The clock never returns to the present time in between, because a worker could then reserve ids.
        let set_clock = |seconds: i32| -> Result<()> {
            let now = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs_f64();
            server.set_clock(&format!("{:+.3}", midnight - now + f64::from(seconds)))
        };
        set_clock(-1_800)?;
        create(&mut client, tag, &format!("reset => '{reset}', time_zone => '{tag}'"))?;
        let mut taken = Vec::new();
        for seconds in [-1_800, 600, 3_000, 4_200] {
            set_clock(seconds)?;
            taken.push(client.one::<String>(&format!("select segment_nextval_text('{tag}')"))?);
        }
        let numbers = [(before, 1), (after, 1), (after, 2), (after, 3)];
        assert_eq!(taken, numbers.map(|(day, number)| format!("{day}-{number:06}")), "{tag}");
    }
    Ok(())
}

/// The server's clock was days ahead for a moment.
#[test]
fn a_tag_whose_day_has_not_begun_is_led_back_by_force() -> Result<()> {
    let (server, mut client) = server()?;
    set_clock_to_midnight(&server, &mut client, 9.0, 600.0)?;
    let ahead = key(&mut client)?;
    set_clock_to_midnight(&server, &mut client, 0.0, 600.0)?;
    client.run("select snowflake_ids.segment_set('t', 500)")?;
    assert_eq!(key(&mut client)?, (ahead.0.clone(), 501));
    client.run("select snowflake_ids.segment_set('t', 0, force => true)")?;
    let day = today(&mut client)?;
    assert!(day < ahead.0);
    assert_eq!(key(&mut client)?, (day.clone(), 1));
    assert_eq!(key(&mut client)?, (day, 2));
    Ok(())
}

/// The primary had begun the next day. The standby, whose clock is behind by ten seconds, did not receive that day's numbers.
#[test]
fn a_promotion_just_before_midnight_skips_numbers_of_the_next_day() -> Result<()> {
    let (primary, mut client) = server()?;
    client.run("select snowflake_ids.segment_alter('t', max_step => 100)")?;
    let standby = primary.standby()?;
    let mut of_standby = standby.connect("postgres")?;
    set_clock_to_midnight(&primary, &mut client, 0.0, -3.5)?;
    let before = key(&mut client)?.0;
    standby.catch_up(&primary)?;
    standby.cut_off()?;
    set_clock_to_midnight(&primary, &mut client, 0.0, 3.0)?;
    let lost: Vec<_> = (0..150).map(|_| key(&mut client)).collect::<Result<_>>()?;
    let day = today(&mut client)?;
    assert!(lost.iter().all(|(of, _)| *of == day) && before < day);
    drop((client, primary));
    set_clock_to_midnight(&standby, &mut of_standby, 0.0, -30.0)?;
    standby.promote()?;
    set_clock_to_midnight(&standby, &mut of_standby, 0.0, -7.0)?;
    assert_eq!(key(&mut of_standby)?, (day.clone(), 201));
    set_clock_to_midnight(&standby, &mut of_standby, 0.0, 60.0)?;
    assert_eq!(key(&mut of_standby)?, (day, 202));
    Ok(())
}
