//! Data directories whose parts are from different moments. Saved ranges are handed out once, whichever other files were restored
//! beside the saved-range file.

use snowflake_ids_server_tests::prelude::*;
use snowflake_ids_server_tests::restores::{From, Moment, Part};
use snowflake_ids_server_tests::segments::{create, take};

/// Restores all files of a stopped server, except the saved-range file.
fn put_back_all_but_the_note(server: &Server, moment: &Moment) -> Result<()> {
    server.put_back(moment, true, |part| if part == Part::SavedRanges { From::Present } else { From::Old })
}

fn server_with_a_tag() -> Result<(Server, Client)> {
    let (server, mut client) = Server::builder().with_session()?;
    create(&mut client, "t", "step => 100, max_step => 100")?;
    Ok((server, client))
}

/// The restored rows would reach the values in the saved-range file again. A mark in the file distinguishes the two histories.
#[test]
fn a_note_that_is_newer_than_the_rows_is_not_taken_up() -> Result<()> {
    let (mut server, mut client) = server_with_a_tag()?;
    take(&mut client, "t", 1)?;
    let backup = server.keep_backup()?;
    take(&mut client, "t", 1_000)?;
    drop(client);
    server.stop(Shutdown::Fast)?;
    put_back_all_but_the_note(&server, &backup)?;
    server.start_again()?;
    ids::unique(take(&mut server.connect("postgres")?, "t", 4_000)?)
}

/// Each time, the rows are those for which the saved-range file was written.
#[test]
fn a_note_that_was_taken_up_never_serves_again() -> Result<()> {
    let (mut server, mut client) = server_with_a_tag()?;
    let mut taken = take(&mut client, "t", 10)?;
    drop(client);
    server.stop(Shutdown::Fast)?;
    let backup = server.keep()?;
    for _ in 0..3 {
        server.start_again()?;
        taken.extend(take(&mut server.connect("postgres")?, "t", 20)?);
        server.stop(Shutdown::Immediate)?;
        put_back_all_but_the_note(&server, &backup)?;
    }
    // The server used the saved ranges after the first start. After the other starts, ids began above these ranges.
    assert_eq!(taken[..30], (1..=30).collect::<Vec<i64>>());
    ids::unique(taken[..50].to_vec())
}
