//! What `pg_dump` writes goes on, in another database, above every id it knew.

use anyhow::Result;
use snowflake_ids_server_tests::segments::{create, next, take};
use snowflake_ids_server_tests::{Server, ids, programs, sql};

/// A tag's row, but for what belongs to a moment.
const TERMS: &str = "select tag || ': ' || row(start, step, max_step, increment, remainder, max_value,
    description, reset, time_zone, format)::text from snowflake_ids.segment order by tag";

fn dump_and_restore(server: &Server, options: &[&str]) -> Result<()> {
    let dump = programs::output(server.command("pg_dump").args(options).arg("postgres"))?;
    let file = server.socket_folder().join("dump.sql");
    std::fs::write(&file, dump)?;
    let mut psql = server.command("psql");
    psql.args(["--quiet", "--no-psqlrc", "--set=ON_ERROR_STOP=1", "--dbname=copy", "--file"]).arg(file);
    programs::output(&mut psql).map(drop)
}

#[test]
fn a_restored_database_goes_on_above_every_id_of_the_dump() -> Result<()> {
    let server = Server::builder().small().start()?;
    let mut client = server.session()?;
    create(&mut client, "t", "step => 50, max_step => 500, description => 'invoices: ''all'' of them'")?;
    create(&mut client, "odd", "increment => 2, remainder => 1, max_value => 9999, start => 101")?;
    create(
        &mut client,
        "dated",
        "reset => 'month', time_zone => 'Asia/Kathmandu', format => '{YYYY}/{MM}#{n:4}'",
    )?;
    create(&mut client, "unused", "start => 7")?;
    client.batch_execute("create table t (id bigint primary key default segment_nextval('t'), a int)")?;
    let rows = "insert into t (a) select 0 from generate_series(1, 333) returning id";
    let mut taken: Vec<i64> = sql::column(&mut client, rows)?;
    take(&mut client, "odd", 3)?;
    let label: String = sql::one(&mut client, "select segment_nextval_text('dated')")?;

    client.batch_execute("create database copy")?;
    dump_and_restore(&server, &[])?;
    let mut copy = server.connect("copy")?;
    assert_eq!(sql::column::<String>(&mut copy, TERMS)?, sql::column::<String>(&mut client, TERMS)?);
    taken.extend(sql::column::<i64>(&mut copy, rows)?);
    ids::growing(&taken)?;
    assert_eq!(sql::one::<i64>(&mut copy, "select count(*) from t")?, 666);
    let odd = take(&mut copy, "odd", 2)?;
    assert!(odd[0] > 105 && odd[0] % 2 == 1 && odd[1] == odd[0] + 2, "{odd:?}");
    let label_of_copy: String = sql::one(&mut copy, "select segment_nextval_text('dated')")?;
    assert_eq!(label[..8], label_of_copy[..8], "of one month");
    assert!(label_of_copy > label, "{label_of_copy} after {label}");
    assert_eq!(next(&mut copy, "unused")?, 7);

    // The first database is none the wiser.
    assert_eq!(next(&mut client, "t")?, 334);
    Ok(())
}

#[test]
fn rows_of_a_data_dump_go_into_a_database_that_has_the_extension() -> Result<()> {
    let server = Server::builder().small().start()?;
    let mut client = server.session()?;
    create(&mut client, "t", "")?;
    let before = take(&mut client, "t", 5)?;
    server.create_database("copy")?;
    // This session has asked for the tag before it was there.
    let mut copy = server.connect("copy")?;
    assert!(next(&mut copy, "t").is_err());
    dump_and_restore(&server, &["--data-only"])?;
    let after = next(&mut copy, "t")?;
    assert!(after > before[4], "{after} after {before:?}");
    Ok(())
}
