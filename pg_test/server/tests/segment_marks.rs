//! Ids that a transaction took from a row it had changed. After a rollback these ids do not repeat, even after restarts. Only a
//! forced set by the tag's owner can bring them back, in an ordinary or a prepared transaction. `pg_test/sql/segment.sql` shows
//! the same for savepoints, and for a gap between the buffers.

use snowflake_ids_server_tests::prelude::*;
use snowflake_ids_server_tests::segments::{create, next, take};

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

/// Changes a tag, takes ids and rolls back. Returns the ids.
fn roll_back(client: &mut Client, tag: &str, count: usize) -> Result<Vec<i64>> {
    client.run(&format!("begin; select snowflake_ids.segment_alter('{tag}', max_value => 1000000)"))?;
    let taken = take(client, tag, count)?;
    client.run("rollback")?;
    Ok(taken)
}

fn ids_that_were_rolled_back_do_not_come_again_after_a_restart(server: &mut Server) -> Result<()> {
    let mut client = server.session()?;
    for tag in ["used", "own"] {
        create(&mut client, tag, "step => 10, max_step => 10")?;
    }
    let mut taken = [take(&mut client, "used", 5)?, Vec::new()];
    for (tag, taken) in ["used", "own"].iter().zip(&mut taken) {
        taken.extend(roll_back(&mut client, tag, 100)?);
    }
    // After the crash the server finds the ranges that the earlier clean stop saved.
    for crash in [false, true, false] {
        drop(client);
        if crash {
            server.crash()?;
        } else {
            server.restart()?;
        }
        client = server.session()?;
        if crash {
            taken[1].extend(roll_back(&mut client, "own", 1)?);
        }
    }
    for (tag, mut taken) in ["used", "own"].into_iter().zip(taken) {
        taken.extend(take(&mut client, tag, 200)?);
        ids::unique(taken)?;
    }
    Ok(())
}

/// Any session may commit the prepared transaction, also after a restart.
fn a_tag_that_a_prepared_transaction_forces_back_goes_back(server: &mut Server) -> Result<()> {
    let mut client = server.session()?;
    for restarts in [false, true] {
        create(&mut client, "t", "step => 10, max_step => 10")?;
        roll_back(&mut client, "t", 100)?;
        client.run(
            "begin; select snowflake_ids.segment_set('t', 20, force => true); prepare transaction 'p'",
        )?;
        if restarts {
            drop(client);
            server.restart()?;
            client = server.session()?;
        }
        server.connect("postgres")?.run("commit prepared 'p'")?;
        assert_eq!(take(&mut client, "t", 3)?, [21, 22, 23]);
        client.run("select snowflake_ids.segment_drop('t')")?;
    }
    Ok(())
}

/// The transaction takes its highest ids after the first or after the second forced set.
fn a_force_that_is_rolled_back_gives_nothing_back(server: &mut Server) -> Result<()> {
    let mut client = server.session()?;
    for end in ["rollback", "prepare transaction 'p'; rollback prepared 'p'"] {
        for forces in [&[500_i64][..], &[500, 5], &[5, 500], &[5]] {
            create(&mut client, "t", "step => 10, max_step => 10")?;
            let mut taken = roll_back(&mut client, "t", 100)?;
            client.run("begin")?;
            for force in forces {
                client.run(&format!("select snowflake_ids.segment_set('t', {force}, force => true)"))?;
                let forced = take(&mut client, "t", 3)?;
                assert_eq!(forced[0], force + 1);
                // Ids up to 500 may repeat, because the owner's forced set asks for them.
                taken.extend(forced.into_iter().filter(|id| *id > 500));
            }
            for statement in end.split(';') {
                client.run(statement)?;
            }
            taken.extend(take(&mut client, "t", 1_000)?);
            ids::unique(taken)?;
            client.run("select snowflake_ids.segment_drop('t')")?;
        }
    }
    Ok(())
}

fn a_force_within_a_savepoint_that_is_rolled_back_gives_nothing_back(server: &mut Server) -> Result<()> {
    let mut client = server.session()?;
    create(&mut client, "t", "step => 10, max_step => 10")?;
    client.run("begin; select snowflake_ids.segment_set('t', 100, force => true)")?;
    assert_eq!(take(&mut client, "t", 2)?, [101, 102]);
    client.run("savepoint a; select snowflake_ids.segment_set('t', 50, force => true)")?;
    assert_eq!(take(&mut client, "t", 2)?, [51, 52]);
    client.run("rollback to a")?;
    assert_eq!(take(&mut client, "t", 2)?, [103, 104]);
    client.run("commit")?;
    assert_eq!(next(&mut client, "t")?, 105);
    Ok(())
}

/// After the rollback, the tag does not repeat ids of the tag that replaced it within the transaction.
fn a_tag_dropped_and_created_in_a_transaction_that_is_rolled_back_gives_nothing_back(
    server: &mut Server,
) -> Result<()> {
    let mut client = server.session()?;
    create(&mut client, "t", "step => 10, max_step => 10")?;
    let mut taken = take(&mut client, "t", 5)?;
    client.run("begin; select snowflake_ids.segment_drop('t')")?;
    create(&mut client, "t", "start => 101")?;
    taken.extend(take(&mut client, "t", 5)?);
    client.run("rollback")?;
    taken.extend(take(&mut client, "t", 200)?);
    ids::unique(taken)
}

/// The row may have another name when a call next uses it.
fn ids_that_were_rolled_back_do_not_come_again_under_another_name(server: &mut Server) -> Result<()> {
    let mut client = server.session()?;
    let definition = "step => 5, max_step => 5";
    let rename =
        |old: &str, new: &str| format!("update snowflake_ids.segment set tag = '{new}' where tag = '{old}'");

    create(&mut client, "a", definition)?;
    let mut taken = vec![next(&mut client, "a")?];
    client.run(&format!("begin; {}; {}", rename("a", "b"), rename("b", "c")))?;
    taken.extend(take(&mut client, "c", 3)?);
    client.run("rollback")?;
    // The rollback to the savepoint gives the row its former name again.
    client.run(&format!("begin; savepoint s; {}", rename("a", "b")))?;
    taken.extend(take(&mut client, "b", 3)?);
    client.run("rollback to s; commit")?;
    taken.extend(take(&mut client, "a", 40)?);
    ids::unique(taken)?;

    create(&mut client, "d", definition)?;
    let mut taken = vec![next(&mut client, "d")?];
    client.run("begin; select snowflake_ids.segment_raise('d', 20)")?;
    taken.extend(take(&mut client, "d", 3)?);
    client.run("rollback")?;
    client.run(&rename("d", "e"))?;
    taken.extend(take(&mut client, "e", 40)?);
    ids::unique(taken)
}

#[test]
fn rollbacks_of_changes_give_nothing_back() -> Result<()> {
    Server::builder().set("max_prepared_transactions", "2").cases(cases![
        ids_taken_by_changes_that_are_rolled_back_do_not_come_again,
        ids_that_were_rolled_back_do_not_come_again_after_a_restart,
        a_tag_that_a_prepared_transaction_forces_back_goes_back,
        a_force_that_is_rolled_back_gives_nothing_back,
        a_force_within_a_savepoint_that_is_rolled_back_gives_nothing_back,
        a_tag_dropped_and_created_in_a_transaction_that_is_rolled_back_gives_nothing_back,
        ids_that_were_rolled_back_do_not_come_again_under_another_name
    ])
}
