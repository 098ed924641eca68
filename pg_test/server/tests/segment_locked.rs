//! A tag's row that an open transaction has locked.

use snowflake_ids_server_tests::cluster::refused_with;
use snowflake_ids_server_tests::prelude::*;
use snowflake_ids_server_tests::segments::{create, next, status, take, wait_for_waiting};

/// Opens a session, and creates two tags with segments of ten ids.
fn session(server: &Server) -> Result<Client> {
    let mut client = server.session()?;
    for tag in ["t", "other"] {
        create(&mut client, tag, "step => 10, max_step => 10")?;
        assert_eq!(next(&mut client, tag)?, 1);
    }
    Ok(client)
}

/// Checks a tag whose row is locked: calls return reserved ids, then fail in time and say why. The other tag is served as before.
/// Returns the ids.
fn check_locked(client: &mut Client) -> Result<Vec<i64>> {
    client.run("set snowflake_ids.segment_wait_timeout = '700ms'")?;
    let (taken, error) = refused_with(client, "t", &["or the whole table"])?;
    assert!(taken.len() >= 9, "{} ids were left of a segment of 10", taken.len());
    assert_eq!(error.message(), "no ids for segment tag \"t\" within 700 ms");

    client.run("reset snowflake_ids.segment_wait_timeout")?;
    assert_eq!(take(client, "other", 100)?, (2..=101).collect::<Vec<i64>>());
    let trouble: Option<String> = status(client, "t", "trouble")?;
    assert!(trouble.as_ref().is_some_and(|trouble| trouble.contains("lock")), "{trouble:?}");
    assert_eq!(status::<Option<String>>(client, "other", "trouble")?, None);
    Ok(taken)
}

/// Checks that calls are served again once the row is free, and that no id was lost.
fn check_free_again(client: &mut Client, mut taken: Vec<i64>) -> Result<()> {
    taken.extend(take(client, "t", 30)?);
    taken.push(1);
    ids::dense(taken)?;
    assert_eq!(status::<Option<String>>(client, "t", "trouble")?, None);
    Ok(())
}

fn by_select_for_update(server: &mut Server) -> Result<()> {
    let mut client = session(server)?;
    let mut locker = server.locker("postgres", "t")?;
    let taken = check_locked(&mut client)?;
    locker.run("commit")?;
    check_free_again(&mut client, taken)
}

fn by_a_change_that_is_rolled_back(server: &mut Server) -> Result<()> {
    let mut client = session(server)?;
    let mut locker = server.connect("postgres")?;
    locker.run("begin; select snowflake_ids.segment_alter('t', description => 'changed')")?;
    let taken = check_locked(&mut client)?;
    locker.run("rollback")?;
    check_free_again(&mut client, taken)
}

fn by_a_change_that_is_committed_while_a_call_waits(server: &mut Server) -> Result<()> {
    let mut client = session(server)?;
    let mut locker = server.connect("postgres")?;
    locker.run("begin; select snowflake_ids.segment_alter('t', description => 'changed')")?;
    let mut taken = check_locked(&mut client)?;
    let waiting = thread::spawn(move || (next(&mut client, "t"), client));
    wait_for_waiting(server, 1)?;
    assert!(!waiting.is_finished(), "the call did not wait for the lock");
    locker.run("commit")?;
    let (id, mut client) = waiting.ended();
    taken.push(id?);
    check_free_again(&mut client, taken)
}

#[test]
fn a_row_is_locked() -> Result<()> {
    Server::builder().cases(cases![
        by_select_for_update,
        by_a_change_that_is_rolled_back,
        by_a_change_that_is_committed_while_a_call_waits
    ])
}
