//! Rollbacks never give ids back: ids that a transaction took from a row that it had changed do not repeat.

use snowflake_ids_server_tests::prelude::*;
use snowflake_ids_server_tests::segments::{TIMEOUT, create, next, status, take};

fn ids_taken_within_a_savepoint_that_is_rolled_back_do_not_come_again(server: &mut Server) -> Result<()> {
    let (mut own, mut other) = (server.session()?, server.connect("postgres")?);
    own.run("begin")?;
    create(&mut own, "t", "")?;
    let mut taken = take(&mut own, "t", 3)?;
    own.run("savepoint a")?;
    taken.extend(take(&mut own, "t", 3)?);
    own.run("rollback to a")?;
    taken.extend(take(&mut own, "t", 3)?);
    own.run("commit")?;
    taken.push(next(&mut other, "t")?);
    ids::growing(&taken)
}

/// Changes of a tag in use. Each change locks the tag's row.
const CHANGES: [&str; 4] = [
    "select snowflake_ids.segment_alter('t', description => 'changed')",
    "select snowflake_ids.segment_alter('t', max_value => 1000000)",
    "select snowflake_ids.segment_set('t', 5000)",
    "update snowflake_ids.segment set step = 20 where tag = 't'",
];

fn ids_taken_by_changes_that_are_rolled_back_do_not_come_again(server: &mut Server) -> Result<()> {
    let (mut own, mut other) = (server.session()?, server.connect("postgres")?);
    let pairs = CHANGES.iter().flat_map(|first| CHANGES.map(|second| (*first, second)));
    // Setting the same value twice is refused, because ids above the value were issued in between.
    for (first, second) in pairs.filter(|(first, second)| first != second || !first.contains("segment_set")) {
        create(&mut own, "t", "step => 10, max_step => 40")?;
        let mut taken = take(&mut other, "t", 5)?;
        for (change, end) in [(first, "rollback"), (second, "commit")] {
            own.run(&format!("begin; {change}"))?;
            taken.extend(take(&mut own, "t", 30)?);
            own.run(end)?;
        }
        taken.extend(take(&mut other, "t", 100)?);
        taken.extend(take(&mut own, "t", 6000)?);
        ids::unique(taken).with_context(|| format!("{first}; rollback; {second}; commit"))?;
        own.run("select snowflake_ids.segment_drop('t')")?;
    }
    Ok(())
}

#[test]
fn a_gap_between_the_buffers_is_not_given_back() -> Result<()> {
    let prefetch = Server::builder().set("snowflake_ids.segment_prefetch", "50");
    let server = prefetch.start()?;
    let (mut own, mut other) = (server.session()?, server.connect("postgres")?);
    create(&mut own, "t", "step => 10, max_step => 10")?;
    let mut taken = take(&mut other, "t", 1)?;
    // This id lies beyond the first buffer, so the second buffer begins after this id.
    own.run(&format!("begin; {}", CHANGES[1]))?;
    taken.push(next(&mut own, "t")?);
    own.run("rollback")?;
    taken.extend(take(&mut other, "t", 4)?);
    wait::until(TIMEOUT, "the second buffer", || {
        Ok(status::<Option<i64>>(&mut own, "t", "next_first")?.filter(|first| *first > 10))
    })?;
    // This change takes back the reserved ids.
    own.run(CHANGES[1])?;
    taken.extend(take(&mut other, "t", 30)?);
    ids::unique(taken)
}

#[test]
fn rollbacks_give_no_id_back() -> Result<()> {
    Server::builder().cases(cases![
        ids_taken_within_a_savepoint_that_is_rolled_back_do_not_come_again,
        ids_taken_by_changes_that_are_rolled_back_do_not_come_again
    ])
}
