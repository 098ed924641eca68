//! Questions about keys of dense series that a login with the role of nodes makes up: what they can do at the registry, and what not.
//! docs/registry.md tells of it.

use anyhow::{Context, Result, ensure};
use postgres::Client;
use postgres::error::SqlState;
use snowflake_ids_server_tests::cluster::{
    Cluster, PASSWORD, ROLE, said, wait_as_long_as_it_takes, wait_at_most,
};
use snowflake_ids_server_tests::series::{create_at_all, next, take};
use snowflake_ids_server_tests::{ids, sql, wait};
use std::thread;
use std::time::Duration;

const CREATE: &str = "select snowflake_ids.series_create('d', 'dense')";

/// A registry and a node that count keys together, a session at each, and one of the nodes' role at the registry.
struct Registry {
    cluster: Cluster,
    client: Client,
    shard: Client,
    node: Client,
}

fn registry() -> Result<Registry> {
    let cluster = Cluster::start(1)?;
    create_at_all(&cluster, CREATE)?;
    let (client, shard) =
        (cluster.registry.connect("postgres")?, cluster.registry.connect_as(ROLE, PASSWORD)?);
    let node = cluster.session()?;
    Ok(Registry { cluster, client, shard, node })
}

/// A question about a series of this name, whose keys are bigints.
fn question(series: &str, reset: &str, returns: &str, wants: &str) -> String {
    let zone = if reset == "null" { "" } else { "UTC" };
    let terms = format!(r#"{{"key_type":"bigint","start":1,"reset":{reset},"time_zone":"{zone}"}}"#);
    format!(
        r#"{{"version":1,"registry":null,"timeout":{{"secs":1,"nanos":0}},"ask":{{"ReserveNumbers":{{"series":"{series}","terms":{terms},"returns":[{returns}],"wants":[{wants}]}}}}}}"#
    )
}

/// A key that so many calls wait for, of this day; `received` is as the login claims.
fn want(key: i64, day: i32, waiting: i64, received: &str) -> String {
    format!(
        r#"{{"key":{{"Bigint":{key}}},"day":{day},"waiting":{waiting},"ahead":0,"max_value":{},"received":{received},"version":null}}"#,
        i64::MAX
    )
}

/// What is returned of key 7.
fn back(last: i64, version: i64, given: i64) -> String {
    format!(
        r#"{{"key":{{"Bigint":7}},"reserved":{{"last":{last},"day":0}},"version":{version},"given":{given}}}"#
    )
}

fn ask(shard: &mut Client, question: &str) -> Result<String, postgres::Error> {
    shard.query_one("select snowflake_ids.registry_serve($1)", &[&question]).map(|row| row.get(0))
}

/// A field of the only number that was given.
fn given(answer: &str, field: &str) -> Result<i64> {
    let name = format!("\"{field}\":");
    let rest = answer.split_once(&name).with_context(|| answer.to_owned())?.1;
    Ok(rest[..rest.find([',', '}']).context("no end")?].parse()?)
}

/// What the row of a key says; 0: there is none.
fn last(client: &mut Client, key: i64) -> Result<i64> {
    sql::one(
        client,
        &format!(
            "select coalesce(max(last_value), 0) from snowflake_ids.series_key where key_bigint = {key}"
        ),
    )
}

#[test]
fn a_key_is_not_set_back_below_what_another_one_received() -> Result<()> {
    let Registry { cluster: _cluster, mut client, mut shard, mut node } = registry()?;
    let mut taken = take(&mut node, "d", 7, 3)?;
    let before = last(&mut client, 7)?;
    for version in [0, 1, -1, i64::MAX] {
        let answer = ask(&mut shard, &question("d", "null", &back(before, version, 0), ""))?;
        ensure!(answer.contains("returned"), "{answer}");
        assert_eq!(last(&mut client, 7)?, before);
    }
    // Of what it received itself, no further than to where that begins.
    let answer = ask(&mut shard, &question("d", "null", "", &want(7, 0, 5, "null")))?;
    let (end, version) = (given(&answer, "last")?, given(&answer, "version")?);
    assert_eq!(end, before + 5);
    ask(&mut shard, &question("d", "null", &back(end, version, 0), ""))?;
    assert_eq!(last(&mut client, 7)?, before);
    // Once.
    taken.extend(take(&mut node, "d", 7, 30)?);
    let now = last(&mut client, 7)?;
    ask(&mut shard, &question("d", "null", &back(end, version, 0), ""))?;
    assert_eq!(last(&mut client, 7)?, now);
    ids::dense(taken)
}

#[test]
fn a_key_is_moved_on_within_bounds_and_an_administrator_sets_it_back() -> Result<()> {
    let Registry { cluster: _cluster, mut client, mut shard, mut node } = registry()?;
    let mut taken = take(&mut node, "d", 7, 2)?;
    let received = last(&mut node, 7)?;
    let bad = SqlState::INVALID_PARAMETER_VALUE;
    // The row was not to be this far on; no more than a billion at a time.
    let answer = ask(&mut shard, &question("d", "null", "", &want(7, 0, 1, r#"{"last":1000000,"day":0}"#)))?;
    ensure!(answer.contains("Behind"), "{answer}");
    let refusal = ask(&mut shard, &question("d", "null", "", &want(7, 0, 1_000_000_001, "null"))).err();
    ensure!(refusal.as_ref().is_some_and(|refusal| refusal.code() == Some(&bad)), "{refusal:?}");
    assert_eq!(last(&mut client, 7)?, received);
    ask(&mut shard, &question("d", "null", "", &want(7, 0, 1_000_000_000, "null")))?;
    assert_eq!(last(&mut client, 7)?, received + 1_000_000_000);
    // Twice the largest reservation is what a failover may lose.
    let claimed = format!(r#"{{"last":{},"day":0}}"#, received + 1_000_000_000 + 20_000);
    ask(&mut shard, &question("d", "null", "", &want(7, 0, 1, &claimed)))?;
    assert_eq!(last(&mut client, 7)?, received + 1_000_020_001);
    // No other node has received what was burnt.
    client.batch_execute(&format!(
        "select snowflake_ids.series_set('d', 7::bigint, {received}, force => true)"
    ))?;
    taken.extend(take(&mut node, "d", 7, 30)?);
    ids::dense(taken)
}

#[test]
fn the_next_period_begins_a_day_early_and_no_earlier() -> Result<()> {
    let Registry { cluster: _cluster, mut client, mut shard, .. } = registry()?;
    client.batch_execute("select snowflake_ids.series_create('dated', 'dense', reset => 'day')")?;
    let take = "select series_nextval_text('dated', 8::bigint)";
    let today: i32 =
        sql::one(&mut client, "select (clock_timestamp() at time zone 'UTC')::date - date '1970-01-01'")?;
    let first: String = sql::one(&mut client, take)?;
    let begin =
        |shard: &mut Client, day| ask(shard, &question("dated", "\"day\"", "", &want(8, day, 1, "null")));
    // Midnight may have passed meanwhile.
    let answer = begin(&mut shard, today + 3)?;
    ensure!(answer.contains("Ahead"), "{answer}");
    let answer = begin(&mut shard, today + 1)?;
    assert_eq!(given(&answer, "day")?, i64::from(today) + 1);
    let tomorrow: String =
        sql::one(&mut client, &format!("select to_char(date '1970-01-01' + {}, 'YYYYMMDD')", today + 1))?;
    wait::until_true("numbers of the next day", || {
        let text: String = sql::one(&mut client, take)?;
        ensure!(text > first, "{text} after {first}");
        Ok(text.starts_with(&tomorrow))
    })?;
    for reset in ["\"month\"", "null"] {
        let answer = ask(&mut shard, &question("dated", reset, "", &want(8, 0, 1, "null")))?;
        ensure!(answer.contains("Differs"), "{answer}");
    }
    Ok(())
}

/// Privileges on series are for this database's roles: a node counts for its own.
#[test]
fn restricted_dense_series_are_served_and_other_kinds_are_not() -> Result<()> {
    let Registry { cluster: _cluster, mut client, mut shard, .. } = registry()?;
    client.batch_execute(
        "create role clerk;
         select snowflake_ids.series_create('secret', 'dense', owner => 'clerk');
         select snowflake_ids.series_create('invoices');
         select snowflake_ids.series_create('positions', 'monotonic')",
    )?;
    let answer = ask(&mut shard, &question("secret", "null", "", &want(7, 0, 1, "null")))?;
    assert_eq!(given(&answer, "last")?, 1);
    assert_eq!(
        sql::error(&mut shard, "select series_nextval('secret', 7::bigint)")?.code(),
        &SqlState::INSUFFICIENT_PRIVILEGE
    );
    for series in ["invoices", "positions", "none"] {
        let answer = ask(&mut shard, &question(series, "null", "", &want(7, 0, 1, "null")))?;
        ensure!(answer.contains("Unknown"), "{series}: {answer}");
    }
    for table in ["series", "series_bigint", "series_text", "series_uuid"] {
        let error = sql::error(&mut shard, &format!("select * from snowflake_ids.{table}"))?;
        assert_eq!(error.code(), &SqlState::INSUFFICIENT_PRIVILEGE, "{error:?}");
    }
    Ok(())
}

/// A row stays locked as long as the statement lasts that has asked; others go on.
#[test]
fn a_statement_that_lasts_holds_up_its_keys_alone() -> Result<()> {
    let Registry { cluster: _cluster, mut client, mut shard, mut node } = registry()?;
    let mut taken = vec![next(&mut node, "d", 7)?];
    // Any role may set that for itself.
    shard.batch_execute("set statement_timeout = 0")?;
    let holds = "select snowflake_ids.registry_serve($1), pg_sleep(3600)";
    let stranger = thread::spawn(move || {
        let asked = question("d", "null", "", &want(7, 0, 1, "null"));
        shard.query(holds, &[&asked]).err().and_then(|error| error.as_db_error().cloned())
    });
    let sleeps = format!("from pg_stat_activity where usename = '{ROLE}' and wait_event = 'PgSleep'");
    sql::becomes_true(&mut client, &format!("select count(*) = 1 {sleeps}"))?;
    wait_at_most(&mut node, Duration::from_secs(1))?;
    wait::until_true("the refusal to name the lock", || {
        let error = sql::error(&mut node, "select series_nextval('d', 7::bigint)")?;
        ensure!(error.code() == &SqlState::INSUFFICIENT_RESOURCES, "{error:?}");
        Ok(said(&error).contains("row of a key of a dense series locked"))
    })?;
    wait_as_long_as_it_takes(&mut node)?;
    assert_eq!(next(&mut node, "d", 8)?, 1);
    client.batch_execute(&format!("select pg_cancel_backend(pid) {sleeps}"))?;
    let ended = stranger.join().map_err(|_| anyhow::anyhow!("the stranger failed"))?;
    assert_eq!(ended.context("it was not cancelled")?.code(), &SqlState::QUERY_CANCELED);
    taken.push(next(&mut node, "d", 7)?);
    ids::dense(taken)
}

#[test]
fn days_on_which_no_period_begins_are_refused() -> Result<()> {
    let Registry { cluster: _cluster, mut client, mut shard, .. } = registry()?;
    for day in [-1, 1, 100_000] {
        let error = ask(&mut shard, &question("d", "null", "", &want(8, day, 1, "null"))).err();
        let error = error.context("it is accepted")?;
        assert_eq!(error.code(), Some(&SqlState::INVALID_PARAMETER_VALUE), "{error:?}");
    }
    assert_eq!(last(&mut client, 8)?, 0);
    Ok(())
}
