//! A transaction that creates or changes a tag takes the tag's ids from its own private memory.

use snowflake_ids_server_tests::prelude::*;
use snowflake_ids_server_tests::segments::{create, next, take};

fn sessions(server: &Server) -> Result<(Client, Client)> {
    Ok((server.session()?, server.connect("postgres")?))
}

fn assert_unknown(client: &mut Client) -> Result<()> {
    client.fails("select segment_nextval('t')", &SqlState::UNDEFINED_OBJECT)?;
    Ok(())
}

fn a_savepoint_takes_back_what_was_done_since(server: &mut Server) -> Result<()> {
    let (mut own, mut other) = sessions(server)?;
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
    let (mut own, mut other) = sessions(server)?;
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
fn transactions_use_the_tags_that_they_create() -> Result<()> {
    Server::builder().set("max_prepared_transactions", "2").cases(cases![
        a_savepoint_takes_back_what_was_done_since,
        a_prepared_transaction_keeps_the_tag_and_its_ids
    ])
}
