//! Tags that are created, altered, set and dropped while sessions use them. All sessions see a change at commit, and no session
//! sees it before.

use snowflake_ids_server_tests::owner::Owner;
use snowflake_ids_server_tests::prelude::*;
use snowflake_ids_server_tests::programs;
use snowflake_ids_server_tests::segments::{create, next, status, take};
use std::process::Command;

/// Opens a session that changes tags, and two that use them.
fn sessions(server: &Server) -> Result<(Client, [Client; 2])> {
    Ok((server.session()?, [server.connect("postgres")?, server.connect("postgres")?]))
}

fn assert_unknown(client: &mut Client) -> Result<()> {
    let error = client.fails("select segment_nextval('t')", &SqlState::UNDEFINED_OBJECT)?;
    assert!(error.hint().is_some_and(|hint| hint.contains("segment_create")), "{error:?}");
    Ok(())
}

fn a_new_tag_is_there_from_its_commit_on(server: &mut Server) -> Result<()> {
    let (mut changing, [mut a, mut b]) = sessions(server)?;
    changing.run("begin")?;
    create(&mut changing, "t", "")?;
    assert_unknown(&mut a)?;
    changing.run("rollback")?;
    for client in [&mut changing, &mut a] {
        assert_unknown(client)?;
    }
    create(&mut changing, "t", "")?;
    assert_eq!([next(&mut a, "t")?, next(&mut b, "t")?, next(&mut changing, "t")?], [1, 2, 3]);
    Ok(())
}

fn a_dropped_tag_is_gone_from_the_commit_on_and_begins_anew_when_created_again(
    server: &mut Server,
) -> Result<()> {
    let (mut changing, [mut a, mut b]) = sessions(server)?;
    create(&mut changing, "t", "")?;
    assert_eq!([next(&mut changing, "t")?, next(&mut a, "t")?, next(&mut b, "t")?], [1, 2, 3]);
    changing.run("begin; select snowflake_ids.segment_drop('t')")?;
    assert_eq!(next(&mut a, "t")?, 4, "before the commit nothing has changed for the others");
    assert_unknown(&mut changing)?;
    changing.run("rollback")?;
    let taken = vec![1, 2, 3, 4, next(&mut changing, "t")?, next(&mut b, "t")?];
    changing.run("begin; select snowflake_ids.segment_drop('t'); commit")?;
    for client in [&mut a, &mut b, &mut changing] {
        assert_unknown(client)?;
    }
    ids::unique(taken)?;
    create(&mut changing, "t", "start => 500")?;
    assert_eq!([next(&mut b, "t")?, next(&mut a, "t")?, next(&mut changing, "t")?], [500, 501, 502]);
    Ok(())
}

fn drop_and_create_in_one_transaction_swap_the_tag_at_its_commit(server: &mut Server) -> Result<()> {
    let (mut changing, [mut a, mut b]) = sessions(server)?;
    create(&mut changing, "t", "")?;
    assert_eq!([next(&mut a, "t")?, next(&mut b, "t")?], [1, 2]);
    changing.run("begin; select snowflake_ids.segment_drop('t')")?;
    create(&mut changing, "t", "start => 9000")?;
    assert_eq!([next(&mut changing, "t")?, next(&mut a, "t")?], [9000, 3]);
    changing.run("commit")?;
    assert_eq!([next(&mut a, "t")?, next(&mut b, "t")?], [9001, 9002]);
    Ok(())
}

fn a_set_value_counts_from_the_commit_on(server: &mut Server) -> Result<()> {
    let (mut changing, [mut a, mut b]) = sessions(server)?;
    create(&mut changing, "t", "")?;
    assert_eq!([next(&mut a, "t")?, next(&mut b, "t")?], [1, 2]);
    changing.run("begin; select snowflake_ids.segment_set('t', 5000)")?;
    assert_eq!(next(&mut a, "t")?, 3);
    changing.run("commit")?;
    assert_eq!([next(&mut a, "t")?, next(&mut b, "t")?], [5001, 5002]);

    changing.run("begin; select snowflake_ids.segment_set('t', 800000); rollback")?;
    let after = next(&mut a, "t")?;
    assert!(after > 5002 && after < 800_000, "{after} after a rollback");

    for below in [0, 17, 5002] {
        let error = changing.fails(
            &format!("select snowflake_ids.segment_set('t', {below})"),
            &SqlState::INVALID_PARAMETER_VALUE,
        )?;
        assert!(error.hint().is_some_and(|hint| hint.contains("force")), "{error:?}");
    }
    changing.run("select snowflake_ids.segment_set('t', 17, force => true)")?;
    assert_eq!([next(&mut b, "t")?, next(&mut a, "t")?], [18, 19]);
    Ok(())
}

fn altered_terms_count_from_the_commit_on(server: &mut Server) -> Result<()> {
    let (mut changing, [mut a, mut b]) = sessions(server)?;
    create(&mut changing, "t", "")?;
    let mut taken = vec![next(&mut a, "t")?, next(&mut b, "t")?];
    changing.run("begin; select snowflake_ids.segment_alter('t', increment => 10, remainder => 3)")?;
    taken.push(next(&mut a, "t")?);
    changing.run("rollback")?;
    taken.push(next(&mut b, "t")?);
    ids::growing(&taken)?;

    changing.run("select snowflake_ids.segment_alter('t', increment => 10, remainder => 3)")?;
    let after: Vec<i64> = [take(&mut a, "t", 5)?, take(&mut b, "t", 5)?].concat();
    assert!(after.iter().all(|id| id % 10 == 3), "{after:?}");
    assert!(after[0] > taken[3] && after.windows(2).all(|pair| pair[1] == pair[0] + 10), "{after:?}");

    let last = after[9];
    changing.run(&format!("select snowflake_ids.segment_alter('t', max_value => {})", last + 20))?;
    assert_eq!([next(&mut a, "t")?, next(&mut b, "t")?], [last + 10, last + 20]);
    a.fails("select segment_nextval('t')", &SqlState::SEQUENCE_GENERATOR_LIMIT_EXCEEDED)?;
    changing.run("select snowflake_ids.segment_alter('t', max_value => 9223372036854775807)")?;
    assert_eq!(next(&mut a, "t")?, last + 30, "service resumes by itself");
    Ok(())
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

#[test]
fn tags_change_at_the_commit() -> Result<()> {
    Server::builder().cases(cases![
        a_new_tag_is_there_from_its_commit_on,
        a_dropped_tag_is_gone_from_the_commit_on_and_begins_anew_when_created_again,
        drop_and_create_in_one_transaction_swap_the_tag_at_its_commit,
        a_set_value_counts_from_the_commit_on,
        altered_terms_count_from_the_commit_on,
        an_operator_s_own_update_of_the_step_counts_from_the_next_refill_on,
        a_session_that_has_the_tags_open_receives_any_number_of_changes
    ])
}
