//! Changes of tags that sessions use. The specs segment_create, segment_alter and segment_drop of pg_test/specs show that all
//! sessions see a change at the commit, and no session before.

use snowflake_ids_server_tests::owner::Owner;
use snowflake_ids_server_tests::prelude::*;
use snowflake_ids_server_tests::programs;
use snowflake_ids_server_tests::segments::{create, status, take};
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

#[test]
fn tags_change_at_the_commit() -> Result<()> {
    Server::builder().cases(cases![
        an_operator_s_own_update_of_the_step_counts_from_the_next_refill_on,
        a_session_that_has_the_tags_open_receives_any_number_of_changes
    ])
}
