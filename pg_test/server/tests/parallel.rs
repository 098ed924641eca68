//! Parallel plans: the functions are PARALLEL SAFE, and run in workers here.

use anyhow::{Context, Result};
use postgres::{Client, SimpleQueryMessage};
use snowflake_ids_server_tests::segments::{create, next};
use snowflake_ids_server_tests::{Server, cases, ids, sessions, sql::Session};

const ROWS: i64 = 50_000;

/// Runs a query under EXPLAIN, and returns the lines of its plan.
fn explain(client: &mut Client, query: &str) -> Result<Vec<String>> {
    let messages = client.simple_query(&format!("explain (analyze, verbose, costs off) {query}"))?;
    let line = |message| match message {
        SimpleQueryMessage::Row(row) => row.get(0).map(str::to_owned),
        _ => None,
    };
    Ok(messages.into_iter().filter_map(line).collect())
}

fn launched(plan: &[String]) -> Result<u32> {
    let line = plan.iter().find_map(|line| line.trim().strip_prefix("Workers Launched: "));
    Ok(line.with_context(|| format!("no Gather in {plan:#?}"))?.parse()?)
}

/// The plan's lines from the parallel scan on, which the workers run.
fn of_workers(plan: &[String]) -> Result<String> {
    let scan = plan.iter().position(|line| line.contains("Parallel Seq Scan"));
    Ok(plan[scan.with_context(|| format!("no parallel scan in {plan:#?}"))?..].join("\n"))
}

fn parallel_workers_generate_ids_and_none_twice(server: &mut Server) -> Result<()> {
    let mut client = sessions::parallel(server, ROWS)?;
    for cache in [1, 64] {
        client.run(&format!("set snowflake_ids.cache = {cache}; drop table if exists ids"))?;
        let plan = explain(&mut client, "create table ids as select a, snowflake_nextval() as id from t")?;
        assert!(launched(&plan)? > 0, "{plan:#?}");
        let scan = of_workers(&plan)?;
        assert!(scan.contains("Output: a, snowflake_nextval()"), "{plan:#?}");
        let distinct: i64 = client.one("select count(distinct id) from ids")?;
        assert_eq!(distinct, ROWS);
    }
    Ok(())
}

fn parallel_workers_decode_ids_in_a_filter(server: &mut Server) -> Result<()> {
    let mut client = sessions::parallel(server, ROWS)?;
    client.run("create table ids as select snowflake_nextval() as id from t; analyze ids")?;
    for (condition, expected) in [
        ("snowflake_worker_id(id) = 9", ROWS),
        ("snowflake_worker_id(id) = 8", 0),
        ("snowflake_timestamp(id) between now() - interval '1 hour' and now() + interval '1 min'", ROWS),
        ("snowflake_timestamp(id, 'twitter') > now()", 0),
        ("snowflake_decode_text(snowflake_encode(id, 'base62'), 'base62') = id", ROWS),
    ] {
        let query = format!("select count(*) from ids where {condition}");
        let plan = explain(&mut client, &query)?;
        assert!(launched(&plan)? > 0, "{plan:#?}");
        let scan = of_workers(&plan)?;
        assert!(scan.contains("Filter: ") && scan.contains("snowflake_"), "{plan:#?}");
        assert_eq!(client.one::<i64>(&query)?, expected, "{condition}");
    }
    Ok(())
}

/// Checking a series needs neither SQL nor a transaction id.
fn parallel_workers_know_who_may_use_a_series(server: &mut Server) -> Result<()> {
    let mut client = sessions::parallel(server, ROWS)?;
    client.run("select snowflake_ids.series_create('orders', 'monotonic')")?;
    let condition =
        "snowflake_ids.has_series_privilege('orders', case when a < 0 then 'UPDATE' else 'USAGE' end)";
    let query = format!("select count(*) from t where {condition}");
    let plan = explain(&mut client, &query)?;
    assert!(launched(&plan)? > 0, "{plan:#?}");
    assert!(of_workers(&plan)?.contains("has_series_privilege"), "{plan:#?}");
    assert_eq!(client.one::<i64>(&query)?, ROWS);

    let mut other = server.session()?;
    let mut transaction = other.transaction()?;
    let seen: i64 =
        transaction.query_one("select count(*) from snowflake_ids.series_status", &[])?.try_get(0)?;
    let id = transaction.query_one("select pg_current_xact_id_if_assigned()::text", &[])?;
    assert_eq!((seen, id.try_get::<_, Option<String>>(0)?), (1, None));
    Ok(())
}

fn parallel_workers_make_uuids_and_none_twice(server: &mut Server) -> Result<()> {
    let mut client = sessions::parallel(server, ROWS)?;
    client
        .run("create table ids as select a, snowflake_uuid() as id, snowflake_uuid_text() as said from t")?;
    let plan: Vec<String> =
        client.column("explain (costs off) select a, snowflake_uuid(), snowflake_uuid_text() from t")?;
    assert!(plan[0].contains("Gather"), "{plan:#?}");
    let distinct = "select count(distinct id) + count(distinct said) from ids";
    assert_eq!(client.one::<i64>(distinct)?, 2 * ROWS);
    Ok(())
}

const COPY: &str = "create table copy as select a, segment_nextval('t') as id from t";

fn workers_of_a_parallel_plan_take_dense_ids(server: &mut Server) -> Result<()> {
    let mut client = sessions::parallel(server, ROWS)?;
    create(&mut client, "t", "")?;
    let plan: Vec<String> = client.column(&format!("explain {COPY}"))?;
    assert!(plan.iter().any(|line| line.contains("Workers Planned")), "{plan:#?}");
    client.run(COPY)?;
    ids::dense(client.column("select id from copy")?)
}

fn a_parallel_plan_in_the_transaction_that_creates_the_tag_takes_dense_ids(
    server: &mut Server,
) -> Result<()> {
    let mut client = sessions::parallel(server, ROWS)?;
    client.run("begin")?;
    create(&mut client, "t", "")?;
    assert_eq!(next(&mut client, "t")?, 1);
    client.run(COPY)?;
    client.run("commit")?;
    let mut taken: Vec<i64> = client.column("select id from copy")?;
    taken.extend([1, next(&mut server.connect("postgres")?, "t")?]);
    ids::dense(taken)
}

#[test]
fn functions_run_in_parallel_workers() -> Result<()> {
    Server::builder().set("snowflake_ids.worker_id", "9").cases(cases![
        parallel_workers_generate_ids_and_none_twice,
        parallel_workers_decode_ids_in_a_filter,
        parallel_workers_know_who_may_use_a_series,
        parallel_workers_make_uuids_and_none_twice,
        workers_of_a_parallel_plan_take_dense_ids,
        a_parallel_plan_in_the_transaction_that_creates_the_tag_takes_dense_ids
    ])
}
