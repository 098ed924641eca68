//! Restarts, which leave no gap, and crashes, which leave a gap and repeat nothing. The saved-range file that the server writes
//! when it stops can be lost, damaged or old without harm.

use snowflake_ids_server_tests::prelude::*;
use snowflake_ids_server_tests::segments::{LAUNCHER, create, next, process, settled, take};
use std::fs;
use std::path::PathBuf;

fn file(server: &Server) -> PathBuf {
    server.data().join("snowflake_ids.saved_ranges.json")
}

/// Opens a session, and creates these tags.
fn session_with(server: &Server, tags: &[&str]) -> Result<Client> {
    let mut client = server.session()?;
    for tag in tags {
        create(&mut client, tag, "")?;
    }
    Ok(client)
}

fn a_restart_leaves_no_gap(server: &mut Server) -> Result<()> {
    let mut client = session_with(server, &["used", "used once", "unused"])?;
    let mut used = take(&mut client, "used", 150)?;
    assert_eq!(next(&mut client, "used once")?, 1);
    for _ in 0..3 {
        drop(client);
        server.restart()?;
        client = server.session()?;
        used.extend(take(&mut client, "used", 777)?);
    }
    ids::dense(used)?;
    assert_eq!(next(&mut client, "used once")?, 2, "kept over restarts that did not use it");
    assert_eq!(next(&mut client, "unused")?, 1);
    Ok(())
}

/// Fails if the server hands out saved ids again without reading the row.
fn an_old_file_is_worth_nothing(server: &mut Server) -> Result<()> {
    let mut client = session_with(server, &["t"])?;
    let mut taken = take(&mut client, "t", 10)?;
    drop(client);
    server.restart()?;
    let old = fs::read(file(server))?;
    let mut client = server.session()?;
    taken.extend(take(&mut client, "t", 10)?);
    drop(client);
    // The saved-range file of an earlier stop, as a copy of the data directory may contain it.
    server.stop(Shutdown::Fast)?;
    fs::write(file(server), &old)?;
    server.start_again()?;
    taken.extend(take(&mut server.session()?, "t", 2_000)?);
    server.crash()?;
    taken.extend(take(&mut server.session()?, "t", 2_000)?);
    ids::unique(taken)
}

fn a_crash_repeats_nothing(server: &mut Server) -> Result<()> {
    let mut client = session_with(server, &["t"])?;
    let mut taken = take(&mut client, "t", 10)?;
    for _ in 0..2 {
        drop(client);
        server.restart()?;
        client = server.session()?;
        taken.extend(take(&mut client, "t", 10)?);
        drop(client);
        server.crash()?;
        client = server.session()?;
        taken.extend(take(&mut client, "t", 10)?);
    }
    ids::growing(&taken)
}

fn a_file_that_is_damaged_or_lost_costs_a_gap(server: &mut Server) -> Result<()> {
    let mut client = session_with(server, &["t"])?;
    let mut taken = take(&mut client, "t", 10)?;
    drop(client);
    for damage in ["{]", "", "[{\"database\": 1}]"] {
        server.stop(Shutdown::Fast)?;
        fs::write(file(server), damage)?;
        server.start_again()?;
        taken.extend(take(&mut server.session()?, "t", 10)?);
        assert!(server.log().contains("and ignores it"), "{}", server.log());
    }
    server.stop(Shutdown::Fast)?;
    fs::remove_file(file(server))?;
    server.start_again()?;
    taken.extend(take(&mut server.session()?, "t", 10)?);
    ids::growing(&taken)
}

/// The file stays usable for the release that wrote it. Ids that this release cannot save become a gap.
fn a_file_of_an_unknown_form_stays_as_it_is(server: &mut Server) -> Result<()> {
    let mut client = session_with(server, &["t"])?;
    let mut taken = take(&mut client, "t", 10)?;
    drop(client);
    let unknown = r#"{"version":98,"release":"99.0","left":{"over":[]}}"#;
    server.stop(Shutdown::Fast)?;
    fs::write(file(server), unknown)?;
    for _ in 0..2 {
        server.start_again()?;
        taken.extend(take(&mut server.session()?, "t", 10)?);
        server.stop(Shutdown::Fast)?;
        assert_eq!(fs::read_to_string(file(server))?, unknown);
    }
    let log = server.log();
    assert!(log.contains("and ignores it: The file has format 98, written by version 99.0"), "{log}");
    assert!(log.contains("Install at least version 99.0."), "{log}");
    assert!(log.contains("does not overwrite \"snowflake_ids.saved_ranges.json\""), "{log}");
    fs::remove_file(file(server))?;
    server.start_again()?;
    ids::growing(&taken)
}

/// A tag that is changed between a restart and its first use follows the change and ignores its saved range.
fn a_change_before_the_first_use_counts(server: &mut Server) -> Result<()> {
    let mut client = session_with(server, &["moved", "by hand", "altered", "dropped"])?;
    for tag in ["moved", "by hand", "altered", "dropped"] {
        take(&mut client, tag, 10)?;
    }
    drop(client);
    server.restart()?;
    let mut client = server.session()?;
    client.run(
        "select snowflake_ids.segment_set('moved', 5000);
         update snowflake_ids.segment set max_id = 7000 where tag = 'by hand';
         update snowflake_ids.segment set increment = 10, remainder = 3 where tag = 'altered';
         select snowflake_ids.segment_drop('dropped');
         select snowflake_ids.segment_create('dropped');",
    )?;
    assert_eq!(next(&mut client, "moved")?, 5001);
    assert_eq!(next(&mut client, "by hand")?, 7001);
    assert_eq!(next(&mut client, "altered")? % 10, 3);
    assert_eq!(next(&mut client, "dropped")?, 1);
    Ok(())
}

/// Fails if a tag that was dropped and created again can get the version that the saved-range file has for the former tag.
fn a_tag_that_is_created_again_is_not_its_former_self(server: &mut Server) -> Result<()> {
    let mut client = session_with(server, &["t"])?;
    let prefetched = |client: &mut Client| {
        take(client, "t", 150)?;
        settled(client, "t")
    };
    prefetched(&mut client)?;
    drop(client);
    server.restart()?;
    let mut client = server.session()?;
    client.run("select snowflake_ids.segment_drop('t')")?;
    create(&mut client, "t", "")?;
    prefetched(&mut client)?;
    drop(client);
    server.crash()?;
    assert!(next(&mut server.session()?, "t")? > 1_000, "what the former one left over");
    Ok(())
}

fn a_restart_leaves_no_gap_within_a_day(server: &mut Server) -> Result<()> {
    let mut client = server.session()?;
    create(&mut client, "t", "reset => 'year'")?;
    let mut taken = take(&mut client, "t", 10)?;
    drop(client);
    server.restart()?;
    taken.extend(take(&mut server.session()?, "t", 10)?);
    // If the year changed during the test, the numbers would start again.
    ids::dense(taken)
}

/// The launcher saves the ids of the buffers and empties the buffers whenever it ends, not only when the server stops.
fn the_supervisors_end_repeats_nothing(server: &mut Server) -> Result<()> {
    let mut client = session_with(server, &["t"])?;
    let mut taken = take(&mut client, "t", 10)?;
    for _ in 0..3 {
        let pid = process(&mut client, LAUNCHER)?;
        client.one::<bool>(&format!("select pg_terminate_backend({pid})"))?;
        taken.extend(take(&mut client, "t", 500)?);
    }
    ids::growing(&taken)
}

#[test]
fn restarts_and_crashes_repeat_nothing() -> Result<()> {
    Server::builder().cases(cases![
        a_file_that_is_damaged_or_lost_costs_a_gap,
        a_file_of_an_unknown_form_stays_as_it_is,
        a_restart_leaves_no_gap,
        a_restart_leaves_no_gap_within_a_day,
        an_old_file_is_worth_nothing,
        a_crash_repeats_nothing,
        a_change_before_the_first_use_counts,
        a_tag_that_is_created_again_is_not_its_former_self,
        the_supervisors_end_repeats_nothing
    ])
}
