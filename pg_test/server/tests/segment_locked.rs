//! A tag's row that an open transaction has locked. `pg_test/specs/segment_locked.spec` has more kinds of locks.

use snowflake_ids_server_tests::cluster::refused_with;
use snowflake_ids_server_tests::prelude::*;
use snowflake_ids_server_tests::segments::{create, next, status, take, wait_for_waiting};

/// Calls return reserved ids, then fail in time and say why. The other tag is served as before. Once the row is free, calls are
/// served again, and no id was lost.
#[test]
fn a_row_is_locked_by_a_change_that_is_committed_while_a_call_waits() -> Result<()> {
    let (server, mut client) = Server::builder().with_session()?;
    for tag in ["t", "other"] {
        create(&mut client, tag, "step => 10, max_step => 10")?;
        assert_eq!(next(&mut client, tag)?, 1);
    }
    let mut locker = server.connect("postgres")?;
    locker.run("begin; select snowflake_ids.segment_alter('t', description => 'changed')")?;
    client.run("set snowflake_ids.segment_wait_timeout = '700ms'")?;
    let (mut taken, error) = refused_with(&mut client, "t", &["or the whole table"])?;
    assert!(taken.len() >= 9, "{} ids were left of a segment of 10", taken.len());
    assert_eq!(error.message(), "no ids for segment tag \"t\" within 700 ms");
    client.run("reset snowflake_ids.segment_wait_timeout")?;
    assert_eq!(take(&mut client, "other", 100)?, (2..=101).collect::<Vec<i64>>());
    let trouble: Option<String> = status(&mut client, "t", "trouble")?;
    assert!(trouble.as_ref().is_some_and(|trouble| trouble.contains("lock")), "{trouble:?}");
    assert_eq!(status::<Option<String>>(&mut client, "other", "trouble")?, None);

    let waiting = thread::spawn(move || (take(&mut client, "t", 31), client));
    wait_for_waiting(&server, 1)?;
    assert!(!waiting.is_finished(), "the call did not wait for the lock");
    locker.run("commit")?;
    let (more, mut client) = waiting.ended();
    taken.extend(more?);
    taken.push(1);
    ids::dense(taken)?;
    assert_eq!(status::<Option<String>>(&mut client, "t", "trouble")?, None);
    Ok(())
}
