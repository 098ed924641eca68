//! Segments on a standby: refused, and served from its promotion on.

use anyhow::Result;
use postgres::error::SqlState;
use snowflake_ids_server_tests::segments::{create, next, take};
use snowflake_ids_server_tests::{Server, ids, sql};

#[test]
fn a_standby_refuses_and_after_its_promotion_goes_on_above_the_primary() -> Result<()> {
    let primary = Server::builder().start()?;
    let mut of_primary = primary.session()?;
    create(&mut of_primary, "t", "step => 100")?;
    let mut taken = take(&mut of_primary, "t", 950)?;
    let standby = primary.standby()?;
    let mut client = standby.connect("postgres")?;
    let place: String = sql::one(&mut of_primary, "select pg_current_wal_flush_lsn()::text")?;
    let replayed = format!("select pg_last_wal_replay_lsn() >= '{place}'");
    sql::becomes_true(&mut client, &replayed)?;

    for call in [
        "select segment_nextval('t')",
        "select segment_nextvals('t', 5)",
        "select segment_nextval_text('t')",
        "select segment_nextval('unknown')",
        "select snowflake_ids.segment_create('u')",
    ] {
        sql::fails(&mut client, call, &SqlState::READ_ONLY_SQL_TRANSACTION)?;
    }
    client.batch_execute("select * from snowflake_ids.segment_status")?;

    // The session that was refused goes on, without a new connection.
    drop((of_primary, primary));
    assert!(sql::one::<bool>(&mut client, "select pg_promote()")?);
    taken.push(next(&mut client, "t")?);
    taken.extend(take(&mut standby.connect("postgres")?, "t", 1000)?);
    ids::growing(&taken)?;
    create(&mut client, "u", "")?;
    assert_eq!(next(&mut client, "u")?, 1);
    Ok(())
}
