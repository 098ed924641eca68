//! Rollbacks never give ids back: ids that a transaction took from a row that it had changed do not repeat. pg_test/sql/segment.sql
//! shows it for savepoints, and for a gap between the buffers.

use snowflake_ids_server_tests::prelude::*;
use snowflake_ids_server_tests::segments::{create, take};

/// Changes of a tag in use. Each change locks the tag's row.
const CHANGES: [&str; 4] = [
    "select snowflake_ids.segment_alter('t', description => 'changed')",
    "select snowflake_ids.segment_alter('t', max_value => 1000000)",
    "select snowflake_ids.segment_set('t', 5000)",
    "update snowflake_ids.segment set step = 20 where tag = 't'",
];

#[test]
fn ids_taken_by_changes_that_are_rolled_back_do_not_come_again() -> Result<()> {
    let (server, mut own) = Server::builder().with_session()?;
    let mut other = server.connect("postgres")?;
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
