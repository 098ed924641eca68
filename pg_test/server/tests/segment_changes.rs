//! Changes of tags that sessions use, and tags that a transaction uses that creates them. The specs `segment_create`,
//! `segment_alter` and `segment_drop` of `pg_test/specs` show that all sessions see a change at the commit, and no session before.

use snowflake_ids_server_tests::owner::Owner;
use snowflake_ids_server_tests::prelude::*;
use snowflake_ids_server_tests::programs;
use snowflake_ids_server_tests::segments::{create, next, status, take};
use std::process::Command;

/// Opens a session that changes tags, and two that use them.
fn sessions(server: &Server) -> Result<(Client, [Client; 2])> {
    Ok((server.session()?, [server.connect("postgres")?, server.connect("postgres")?]))
}

fn an_operator_s_own_update_of_the_step_counts_from_the_next_refill_on(server: &mut Server) -> Result<()> {
    let (mut changing, [mut a, mut b]) = sessions(server)?;
    create(&mut changing, "t", "step => 10, max_step => 10")?;
    let mut taken = take(&mut a, "t", 35)?;
    changing.run("update snowflake_ids.segment set step = 300, max_step = 300 where tag = 't'")?;
    taken.extend(take(&mut b, "t", 40)?);
    assert_eq!(status::<i64>(&mut changing, "t", "step::bigint")?, 300);
    let refills: i64 = status(&mut changing, "t", "refills")?;
    taken.extend(take(&mut a, "t", 800)?);
    let more = status::<i64>(&mut changing, "t", "refills")? - refills;
    // The old step would need 80 refills. Ids that are buffered already save up to two.
    assert!((1..=4).contains(&more), "{more} refills for 800 ids with a step of 300");
    ids::growing(&taken)
}

/// Each message that a rebuild of an open relcache entry receives would cause another rebuild below it on the stack. The stack
/// is made as small as messages of a second make it.
fn a_session_that_has_the_tags_open_receives_any_number_of_changes(server: &mut Server) -> Result<()> {
    let (mut changing, [mut reading, _]) = sessions(server)?;
    create(&mut changing, "t", "")?;
    reading.run("begin; declare tags cursor for select tag from snowflake_ids.segment; fetch tags")?;
    let process = reading.process()?.to_string();
    let mut limit = Command::new("prlimit");
    Owner::of_servers()?.run(limit.args(["--pid", &process, "--stack=524288:"]));
    programs::output(&mut limit)?;
    changing.run(
        "do $$ begin for k in 1..1000 loop
             perform snowflake_ids.segment_grant('t', 'public', 'USAGE'); commit;
         end loop; end $$",
    )?;
    assert_eq!(reading.one::<String>("select tag from snowflake_ids.segment")?, "t");
    Ok(())
}

fn assert_unknown(client: &mut Client) -> Result<()> {
    client.fails("select segment_nextval('t')", &SqlState::UNDEFINED_OBJECT)?;
    Ok(())
}

fn a_savepoint_takes_back_what_was_done_since(server: &mut Server) -> Result<()> {
    let (mut own, [mut other, _]) = sessions(server)?;
    own.run("begin; savepoint a")?;
    create(&mut own, "t", "start => 100")?;
    assert_eq!(next(&mut own, "t")?, 100);
    own.run("rollback to a; savepoint b")?;
    assert_unknown(&mut own)?;
    own.run("rollback to b")?;
    create(&mut own, "t", "")?;
    assert_eq!(take(&mut own, "t", 3)?, [1, 2, 3]);
    own.run("savepoint c; select snowflake_ids.segment_set('t', 1000)")?;
    assert_eq!(next(&mut own, "t")?, 1001);
    own.run("rollback to c")?;
    let after = next(&mut own, "t")?;
    assert!(after == 4 || after > 1001, "{after} after a rollback to a savepoint");
    own.run("savepoint d; select snowflake_ids.segment_drop('t'); rollback to d; release d")?;
    let last = next(&mut own, "t")?;
    own.run("commit")?;
    assert!(last > after, "{last} after {after}");
    assert_eq!([next(&mut other, "t")?, next(&mut own, "t")?], [last + 1, last + 2]);
    Ok(())
}

fn a_prepared_transaction_keeps_the_tag_and_its_ids(server: &mut Server) -> Result<()> {
    let (mut own, [mut other, _]) = sessions(server)?;
    own.run("begin")?;
    create(&mut own, "t", "")?;
    let mut taken = take(&mut own, "t", 5)?;
    // A refusal with a reason is as good as success.
    match own.batch_execute("prepare transaction 'p'") {
        Ok(()) => own.run("commit prepared 'p'")?,
        Err(error) => {
            assert_eq!(error.code(), Some(&SqlState::FEATURE_NOT_SUPPORTED), "{error:?}");
            return assert_unknown(&mut other);
        }
    }
    taken.push(next(&mut other, "t")?);
    taken.push(next(&mut own, "t")?);
    ids::growing(&taken)
}

#[test]
fn tags_change_at_the_commit() -> Result<()> {
    Server::builder().set("max_prepared_transactions", "2").cases(cases![
        an_operator_s_own_update_of_the_step_counts_from_the_next_refill_on,
        a_session_that_has_the_tags_open_receives_any_number_of_changes,
        a_savepoint_takes_back_what_was_done_since,
        a_prepared_transaction_keeps_the_tag_and_its_ids
    ])
}
