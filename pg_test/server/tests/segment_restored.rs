//! Data directories whose parts are from different moments. Ids left over at a stop are handed out once, whatever was put back
//! beside the note.

use anyhow::Result;
use postgres::Client;
use snowflake_ids_server_tests::restores::{From, Moment, Part};
use snowflake_ids_server_tests::segments::{create, take};
use snowflake_ids_server_tests::{Server, Shutdown, ids};

/// Puts back all files of a stopped server, except the note of left-over ids.
fn put_back_all_but_the_note(server: &Server, moment: &Moment) -> Result<()> {
    server.put_back(moment, true, |part| if part == Part::CarryOver { From::Present } else { From::Old })
}

fn server_with_a_tag() -> Result<(Server, Client)> {
    let (server, mut client) = Server::builder().with_session()?;
    create(&mut client, "t", "step => 100, max_step => 100")?;
    Ok((server, client))
}

/// Without a mark that tells histories apart, the rows would reach the values of the note again.
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

/// The rows are those with which the note was written, each time.
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
    // The note served after the first start. After the other starts ids began above it.
    assert_eq!(taken[..30], (1..=30).collect::<Vec<i64>>());
    ids::unique(taken[..50].to_vec())
}
