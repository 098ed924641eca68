//! How evenly ids spread over shards if a tick issues only one id.

use snowflake_ids_server_tests::prelude::*;

const IDS: i64 = 16_000;

/// Ways to choose a shard for a row of `shards_4` or `shards_16`. Each has the chi-square that a fair choice exceeds once in 10^9
/// runs: the upper quantile for 3 and for 15 degrees of freedom.
const ROUTES: [(&str, &str, i64, f64); 4] = [
    ("shards_4", "id % 4", 4, 44.84),
    ("shards_16", "id % 16", 16, 73.63),
    ("shards_4", "tableoid", 4, 44.84),
    ("shards_16", "tableoid", 16, 73.63),
];

/// Creates a table that is partitioned by the hash of its key.
fn create_table(client: &mut Client, shards: i32) -> Result<()> {
    client.run(&format!(
        "create table shards_{shards} (id bigint primary key default slow_id(), note text)
             partition by hash (id);
         do $$ begin
           for shard in 0..{shards} - 1 loop
             execute format('create table shards_{shards}_%s partition of shards_{shards}
                             for values with (modulus {shards}, remainder %s)', shard, shard);
           end loop;
         end $$"
    ))
}

/// Inserts rows into both tables, with keys made one at a time.
fn fill(client: &mut Client, start: &str) -> Result<()> {
    for table in ["shards_4", "shards_16"] {
        client.run(&format!(
            "set snowflake_ids.sequence_start = {start};
             truncate {table};
             insert into {table} (note) select 'slow' from generate_series(1, {IDS})"
        ))?;
        let ticks = client.one::<i64>(&format!("select count(distinct id >> 15) from {table}"))?;
        assert_eq!(ticks, IDS, "two ids share a tick: the pace is too fast");
    }
    Ok(())
}

/// The number of rows in each non-empty shard.
fn rows(client: &mut Client, table: &str, shard: &str) -> Result<Vec<i64>> {
    client.column(&format!("select count(*) from {table} group by {shard} order by {shard}"))
}

/// Pearson's chi-square of the shards' row counts, compared with equal counts.
#[allow(clippy::cast_precision_loss, reason = "counts of some thousands")]
fn chi_square(rows: &[i64], shards: i64) -> f64 {
    let squares: i64 = rows.iter().map(|rows| rows * rows).sum();
    (squares * shards) as f64 / IDS as f64 - IDS as f64
}

/// The ticks are short, so that one id per tick takes little time.
#[test]
fn random_and_rotate_spread_slow_ids_evenly_and_zero_only_those_that_are_hashed() -> Result<()> {
    let (_server, mut client) = Server::builder()
        .set("snowflake_ids.layout", "48/0/5/10 unit=10us epoch=2020-01-01")
        .with_session()?;
    client.run(
        "create function slow_id() returns bigint language plpgsql as $$
         declare
           next_tick timestamptz := clock_timestamp() + interval '11us';
         begin
           while clock_timestamp() < next_tick loop end loop;
           return snowflake_nextval();
         end $$",
    )?;
    for shards in [4, 16] {
        create_table(&mut client, shards)?;
    }
    for start in ["random", "rotate", "zero"] {
        fill(&mut client, start)?;
        for (table, shard, shards, limit) in ROUTES {
            let rows = rows(&mut client, table, shard)?;
            // The statistic also detects a sequence that starts at zero: all its ids are on one shard.
            let even = chi_square(&rows, shards) < limit;
            let expected = start != "zero" || shard == "tableoid";
            assert_eq!(even, expected, "{start}, {shard} of {shards}: {rows:?}");
            assert!(even || rows == [IDS], "{start}, {shard} of {shards}: {rows:?}");
        }
    }
    Ok(())
}
