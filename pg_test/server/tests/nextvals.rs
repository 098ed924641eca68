//! Calls that return many ids can be cancelled, and do not keep memory for ids already returned.

use snowflake_ids_server_tests::prelude::*;
use snowflake_ids_server_tests::processes::memory;
use snowflake_ids_server_tests::segments::create;

const CALLS: [&str; 2] = ["snowflake_nextvals($)", "segment_nextvals('t', $)"];
/// The memory in kB that a million ids may keep: far less than their own size.
const FLAT: u64 = 4_000;

fn session(server: &Server) -> Result<Client> {
    let mut client = server.session()?;
    create(&mut client, "t", "step => 1000000, max_step => 10000000")?;
    Ok(client)
}

fn a_call_for_many_ids_can_be_cancelled(server: &mut Server) -> Result<()> {
    let mut client = session(server)?;
    client.run("set statement_timeout = '50ms'")?;
    for call in CALLS {
        // No machine returns this many ids within the time limit.
        let call = call.replace('$', "10000000");
        let in_the_list = format!("select count(*) from (select {call}) as s");
        for query in [in_the_list, format!("select count(*) from {call}")] {
            client.fails(&query, &SqlState::QUERY_CANCELED)?;
        }
    }
    Ok(())
}

fn ids_that_were_handed_on_take_no_memory(server: &mut Server) -> Result<()> {
    let mut client = session(server)?;
    let pid = client.process()?;
    for call in CALLS {
        let mut count = |ids: u32| -> Result<u64> {
            let call = call.replace('$', &ids.to_string());
            ensure!(
                client.one::<i64>(&format!("select count(*) from (select {call}) as s"))? == i64::from(ids)
            );
            memory(pid, "VmHWM")?.context("the session is gone")
        };
        let before = count(10_000)?;
        let after = count(1_000_000)?;
        ensure!(after < before + FLAT, "{call}: {before} kB before a million ids, {after} kB after them");
    }
    Ok(())
}

/// At the speed of these calls, ids are soon far ahead of the clock.
#[test]
fn calls_for_many_ids() -> Result<()> {
    Server::builder()
        .set("snowflake_ids.max_drift", "1h")
        .cases(cases![a_call_for_many_ids_can_be_cancelled, ids_that_were_handed_on_take_no_memory])
}
