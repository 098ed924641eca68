//! Changes of every kind, committed and rolled back, beside sessions that only insert: no id repeats, not even a rolled-back id.

use snowflake_ids_server_tests::full;
use snowflake_ids_server_tests::prelude::*;
use snowflake_ids_server_tests::segments::create;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::sleep;

const TUNE: &str = "select snowflake_ids.segment_alter('t', description => 'changed')";
const ALTER: &str =
    "select snowflake_ids.segment_alter('t', max_value => 9000000000000000 + (random() * 100000)::int)";
const RAISE: &str = "select snowflake_ids.segment_raise('t', 1)";

/// The steps that a session repeats. A number means an insert of that many rows.
const WORKS: [&[&str]; 10] = [
    &["7"],
    &["1"],
    &["7"],
    &[ALTER],
    &["begin", TUNE, "30", "commit"],
    &["begin", ALTER, "9", "commit"],
    &["begin", RAISE, "9", "rollback"],
    &["begin", "savepoint a", ALTER, "9", "rollback to a", "5", "commit"],
    &["begin", RAISE, "3", "commit"],
    &["begin", TUNE, "savepoint a", "4", RAISE, "4", "rollback to a", "4", "rollback"],
];

/// Runs the steps once. Returns the ids of all inserts, committed or not.
fn run(client: &mut Client, work: &[&str]) -> Result<Vec<i64>> {
    let mut taken = Vec::new();
    for step in work {
        if step.parse::<u32>().is_ok() {
            let insert =
                format!("insert into t (filler) select 0 from generate_series(1, {step}) returning id");
            taken.extend(client.column::<i64>(&insert)?);
        } else {
            client.run(step)?;
        }
    }
    Ok(taken)
}

#[test]
fn whatever_is_changed_meanwhile_no_id_comes_twice() -> Result<()> {
    let time = Duration::from_secs(if full() { 20 } else { 3 });
    let (server, mut client) = Server::builder().with_session()?;
    create(&mut client, "t", "step => 20, max_step => 50")?;
    client.run("create table t (id bigint primary key default segment_nextval('t'), filler int)")?;
    let inserted = AtomicUsize::new(0);
    let taken = at_once(server.sessions("postgres", WORKS.len())?, |number, mut client| {
        let (start, mut taken) = (Instant::now(), Vec::new());
        while start.elapsed() < time || inserted.load(Ordering::Relaxed) <= 1000 {
            ensure!(start.elapsed() < wait::LONG, "the inserting sessions starve: {inserted:?} rows");
            taken.extend(run(&mut client, WORKS[number])?);
            if number == 0 {
                inserted.store(taken.len(), Ordering::Relaxed);
            }
            // The row has to be unlocked at times, or the worker never gets the lock.
            sleep(Duration::from_millis(if WORKS[number].len() > 1 { 15 } else { 1 }));
        }
        Ok(taken)
    })?;
    ids::unique(taken.concat())
}
