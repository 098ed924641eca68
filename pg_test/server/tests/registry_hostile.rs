//! A lying node. A login with the nodes' role can change only what its requests allow within limits, and its requests can be
//! ended.

use snowflake_ids_server_tests::cluster::{PASSWORD, ROLE, row};
use snowflake_ids_server_tests::full;
use snowflake_ids_server_tests::prelude::*;
use snowflake_ids_server_tests::segments::create;

#[path = "../../../core/tests/fuzz_wire/mutate.rs"]
mod mutate;

use mutate::{Mutator, QUESTIONS};

/// A session of a registry with tags, and a session of the nodes' role, which may only reserve.
fn sessions(registry: &Server) -> Result<(Client, Client)> {
    let mut client = registry.serve_nodes()?;
    client.run(&format!("revoke execute on function snowflake_ids.registry_take_over from {ROLE}"))?;
    create(&mut client, "t", "step => 100, max_step => 1000")?;
    create(&mut client, "dated", "reset => 'day'")?;
    Ok((client, registry.connect_as(ROLE, PASSWORD)?))
}

fn ask(shard: &mut Client, question: &str) -> Result<Result<String, DbError>> {
    match shard.query_one("select snowflake_ids.registry_serve($1)", &[&question]) {
        Ok(row) => Ok(Ok(row.get(0))),
        Err(error) => match error.as_db_error() {
            Some(refusal) => Ok(Err(refusal.clone())),
            None => Err(error).context("the session is lost"),
        },
    }
}

fn question(ask: &str) -> String {
    format!(r#"{{"version":1,"registry":null,"timeout":{{"secs":1,"nanos":0}},"ask":{ask}}}"#)
}

/// A request for a worker id, from a server on this host.
fn lease(host: &str, token: u32, except: &str, layout: &str, capacity: u32) -> String {
    question(&format!(
        r#"{{"Lease":{{"entry":{{"datacenter":0,"token":{token},"duration":{{"secs":31622400,"nanos":0}},"now":"2026-01-01T00:00:00Z","last":null,"holder":{{"system_identifier":7,"timeline":1,"host":"{host}","port":1,"directory":"/d","layout":"{layout}"}}}},"policy":"Reuse","token":null,"except":[{except}],"capacity":{capacity},"preferred":null,"max_clock_skew":{{"secs":2000000000,"nanos":0}}}}}}"#
    ))
}

fn reserve(high_water_mark: &str, share: &str) -> String {
    question(&format!(
        r#"{{"Reserve":[{{"tag":"t","create":false,"demand":{{"saved_range":null,"pace":{{"step":0,"multiplier":1}},"lasted":null,"target":{{"secs":900,"nanos":0}},"waited_lately":false,"prefetch":50,"high_water_mark":{high_water_mark},"received":null,"share":{share}}}}}]}}"#
    ))
}

/// Everything that nodes can change.
fn content(client: &mut Client) -> Result<String> {
    client.one("select coalesce((select string_agg(s::text, '|' order by tag) from snowflake_ids.segment s), '') || '#' ||
                coalesce((select string_agg(w::text, '|' order by datacenter_id, worker_id) from snowflake_ids.worker_lease w), '') || '#' ||
                coalesce((select string_agg(k::text, '|' order by series, key) from snowflake_ids.series_key k), '')")
}

fn a_question_with_a_million_exceptions_ends(server: &mut Server) -> Result<()> {
    let (_client, mut shard) = sessions(server)?;
    let except = (0..1_000_000).map(|number: u32| number.to_string()).collect::<Vec<_>>().join(",");
    // The largest capacity that a column accepts, and the largest number of bits.
    let question = lease("a", 1, &except, "31/0/31/1", i32::MAX.cast_unsigned());
    let asked = thread::spawn(move || ask(&mut shard, &question));
    wait::until_true("an answer, a refusal, or statement_timeout", || Ok(asked.is_finished()))?;
    let refusal = asked.ended()?.err().context("it was answered")?;
    assert_eq!(refusal.code(), &SqlState::INVALID_PARAMETER_VALUE, "{refusal:?}");
    Ok(())
}

fn what_no_server_asks_is_refused_and_changes_nothing(server: &mut Server) -> Result<()> {
    let (mut client, mut shard) = sessions(server)?;
    let before = content(&mut client)?;
    let layout = "41/5/5/12 epoch=2020-01-01";
    let bad = SqlState::INVALID_PARAMETER_VALUE;
    let denied = SqlState::INSUFFICIENT_PRIVILEGE;
    for (code, text) in [
        (&bad, "x".repeat((16 << 20) + 1)),
        (&bad, lease(&"x".repeat(50_000_000), 1, "", layout, 32)),
        (&bad, "\u{7}".repeat(180_000_000)),
        (&bad, "\u{7}".repeat(16_000_000)),
        (&bad, question(&format!(r#""{}""#, r"\u0007".repeat(2_000_000)))),
        (&bad, lease(&"x".repeat(256), 1, "", layout, 32)),
        (&bad, lease("a", 1, "", layout, 33)),
        (&bad, lease("a", 1, "", "nonsense", 32)),
        (&bad, reserve("null", r#"{"index":3,"of":2}"#)),
        (&denied, question(r#"{"Tags":{"after":null}}"#)),
        (
            &denied,
            question(
                r#"{"HandOver":{"rows":[{"tag":"t","max_id":9223372036854775807}],"received":[],"share":null}}"#,
            ),
        ),
    ] {
        let refusal =
            ask(&mut shard, &text)?.err().with_context(|| format!("it was answered: {text:.200}"))?;
        assert_eq!(refusal.code(), code, "{text:.100}: {refusal:?}");
        assert_eq!(refusal.message() == "request is too long", text.len() > 16 << 20, "{refusal:?}");
        for told in [Some(refusal.message()), refusal.detail(), refusal.hint()].into_iter().flatten() {
            assert!(told.len() < 1_000 && !told.contains(char::is_control), "{told:.2000}");
        }
        if code == &denied {
            let grant = "GRANT EXECUTE ON FUNCTION snowflake_ids.registry_take_over(text)";
            assert!(refusal.hint().is_some_and(|hint| hint.contains(grant)), "{refusal:?}");
        }
    }
    // The end of bigint is refused too, but by a response with the reason.
    let told = ask(&mut shard, &reserve("[0,9223372036854775806]", "null"))?
        .map_err(|error| anyhow::anyhow!("{error:?}"))?;
    assert!(told.contains("HighWaterMark"), "{told}");
    assert_eq!(content(&mut client)?, before);
    let error = shard.error("select snowflake_ids.registry_take_over('{}')")?;
    assert_eq!(error.code(), &denied, "{error:?}");
    Ok(())
}

/// The limits hold for any requested duration, and for any number of requests.
fn one_server_leases_neither_for_a_year_nor_all_worker_ids(server: &mut Server) -> Result<()> {
    let (mut client, mut shard) = sessions(server)?;
    let mut leased = 0;
    loop {
        let question = lease("a", 1_000 + leased, "", "41/0/10/12", 1_024);
        let told = ask(&mut shard, &question)?.map_err(|error| anyhow::anyhow!("{error:?}"))?;
        if !told.contains("Taken") {
            assert!(told.contains("worker_release"), "{told}");
            break;
        }
        leased += 1;
        assert!(leased <= 64, "it has leased {leased}");
    }
    assert_eq!(leased, 64);
    let longest =
        "select count(*) from snowflake_ids.worker_lease where expires_at > now() + interval '31 days 1 min'";
    assert_eq!(client.one::<i64>(longest)?, 0, "for longer than a month");
    // Another server still gets a lease.
    let told = ask(&mut shard, &lease("b", 1, "", "41/0/10/12", 1_024))?;
    assert!(told.as_ref().is_ok_and(|told| told.contains("Taken")), "{told:?}");
    Ok(())
}

/// The rows match the accepted responses exactly. No request has a partial effect.
fn whatever_is_asked_the_tables_are_what_was_answered(server: &mut Server) -> Result<()> {
    let (mut client, mut shard) = sessions(server)?;
    let tried = if full() { 100_000 } else { 500 };
    let mut before = content(&mut client)?;
    let (mut answered, mut changed) = (0, 0);
    for seed in 0..tried {
        // Neither JSON nor a server's text may contain a zero byte.
        let text = Mutator::new(seed).mutate(&QUESTIONS).replace('\0', "?");
        let told = ask(&mut shard, &text).with_context(|| format!("seed {seed}: {text}"))?;
        let after = content(&mut client)?;
        match told {
            Ok(told) => {
                answered += 1;
                changed += usize::from(after != before);
                check_answer(&mut client, &told)
                    .with_context(|| format!("seed {seed}: {text} gives {told}"))?;
                let silent = ["\"Introduced\"", "\"Version\"", "\"Stranger\"", "\"None\""];
                if silent.iter().any(|said| told.contains(said)) {
                    assert_eq!(after, before, "seed {seed}: {text} gives {told}");
                }
            }
            Err(refusal) => {
                assert!(!refusal.code().code().starts_with("XX"), "seed {seed}: {text}: {refusal:?}");
                assert_eq!(after, before, "seed {seed}: {text}: {refusal:?}");
            }
        }
        before = after;
    }
    println!("{answered} of {tried} were answered, {changed} changed something");
    assert!(answered > 20 && changed > 10, "{answered} answered, {changed} changed something");
    assert_eq!(server.logged("terminated by signal"), 0);
    assert!(row::<i64>(&mut client, "t", "max_id")? < 1_000_000_000);
    Ok(())
}

/// Checks that the tables contain a response's reservations and leases. A request may name a tag several times. Then the row has
/// the last reservation, and the earlier reservations are below it.
fn check_answer(client: &mut Client, told: &str) -> Result<()> {
    let wrong: i64 = client
        .query_one(
            "with said as (select $1::text::jsonb -> 'said' as said),
                  outcomes as (select (o #>> '{Reserved,version}')::bigint as version,
                          (o #>> '{Reserved,supply,range,first}')::bigint
                              + ((o #>> '{Reserved,supply,range,count}')::bigint - 1)
                              * (o #>> '{Reserved,supply,range,increment}')::bigint as last
                      from said, jsonb_array_elements(case
                          when said ? 'Reserved' then said -> 'Reserved' else '[]' end) as o
                      where jsonb_typeof(o) = 'object' and o ? 'Reserved')
             select (select count(*) from outcomes as o where not exists (
                         select from snowflake_ids.segment as s where s.version between o.version and o.version + 1024
                         and case s.version when o.version then s.max_id = o.last
                             else s.max_id > o.last and exists (select from outcomes as l where l.version = s.version) end))
                  + (select count(*) from said where said #> '{Leased,Taken}' is not null and not exists (
                         select from snowflake_ids.worker_lease as w
                         where w.expires_at = (said #>> '{Leased,Taken,expiry}')::timestamptz))",
            &[&told],
        )?
        .get(0);
    anyhow::ensure!(wrong == 0, "{wrong} of what was answered are not in the tables");
    Ok(())
}

#[test]
fn a_node_that_lies_changes_nothing() -> Result<()> {
    auto().cases(cases![
        a_question_with_a_million_exceptions_ends,
        what_no_server_asks_is_refused_and_changes_nothing,
        one_server_leases_neither_for_a_year_nor_all_worker_ids,
        whatever_is_asked_the_tables_are_what_was_answered
    ])
}
