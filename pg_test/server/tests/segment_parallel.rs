//! Segments in parallel plans.

use anyhow::Result;
use postgres::Client;
use snowflake_ids_server_tests::segments::{create, next};
use snowflake_ids_server_tests::{Server, ids, sessions, sql};

const ROWS: usize = 50_000;

/// A session whose plans go parallel wherever they may.
fn session() -> Result<(Server, Client)> {
    let server = Server::builder().start()?;
    let client = sessions::parallel(&server, ROWS)?;
    Ok((server, client))
}

const COPY: &str = "create table copy as select a, segment_nextval('t') as id from t";

#[test]
fn workers_of_a_parallel_plan_take_dense_ids() -> Result<()> {
    let (_server, mut client) = session()?;
    create(&mut client, "t", "")?;
    let plan: Vec<String> = sql::column(&mut client, &format!("explain {COPY}"))?;
    assert!(plan.iter().any(|line| line.contains("Workers Planned")), "{plan:#?}");
    client.batch_execute(COPY)?;
    ids::dense(sql::column(&mut client, "select id from copy")?)
}

#[test]
fn a_parallel_plan_in_the_transaction_that_creates_the_tag_takes_dense_ids() -> Result<()> {
    let (server, mut client) = session()?;
    client.batch_execute("begin")?;
    create(&mut client, "t", "")?;
    assert_eq!(next(&mut client, "t")?, 1);
    client.batch_execute(COPY)?;
    client.batch_execute("commit")?;
    let mut taken: Vec<i64> = sql::column(&mut client, "select id from copy")?;
    taken.extend([1, next(&mut server.connect("postgres")?, "t")?]);
    ids::dense(taken)
}
