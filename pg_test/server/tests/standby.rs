//! A streaming standby: it decodes; it generates from its promotion on.

use anyhow::Result;
use postgres::error::SqlState;
use snowflake_ids_server_tests::{Server, ids, sql};

#[test]
fn a_standby_generates_from_its_promotion_on_and_decodes_always() -> Result<()> {
    let primary = Server::builder().set("snowflake_ids.worker_id", "6").start()?;
    let mut taken: Vec<i64> = sql::column(&mut primary.session()?, "select snowflake_nextvals(1000)")?;
    let standby = primary.standby()?;
    let mut client = standby.connect("postgres")?;

    for call in ["select snowflake_nextval()", "select snowflake_nextvals(10)"] {
        let error = sql::fails(&mut client, call, &SqlState::READ_ONLY_SQL_TRANSACTION)?;
        assert!(error.message().contains("during recovery"), "{error:?}");
    }
    let decode = format!("select snowflake_worker_id({})", taken[0]);
    assert_eq!(sql::one::<i32>(&mut client, &decode)?, 6);
    let issued = "select ids_issued from snowflake_ids.status";
    assert_eq!(sql::one::<i64>(&mut client, issued)?, 0, "a refused call takes nothing");

    // The session that was refused goes on, without a new connection.
    assert!(sql::one::<bool>(&mut client, "select pg_promote()")?);
    taken
        .extend(sql::column::<i64>(&mut client, "select snowflake_nextval() from generate_series(1, 1000)")?);
    assert_eq!(sql::one::<i64>(&mut client, issued)?, 1000);
    ids::growing(&taken)
}

/// The nodes of a Citus cluster tell each other, and a standby of one may be asked.
#[test]
fn a_standby_tells_the_timeline_that_it_follows() -> Result<()> {
    const TIMELINE: &str = "select snowflake_ids_internal.registry_timeline()";
    let primary = Server::builder().start()?;
    assert_eq!(sql::one::<i64>(&mut primary.session()?, TIMELINE)?, 1);
    let standby = primary.standby()?;
    let mut client = standby.connect("postgres")?;
    assert_eq!(sql::one::<i64>(&mut client, TIMELINE)?, 1);
    assert!(sql::one::<bool>(&mut client, "select pg_promote()")?);
    assert_eq!(sql::one::<i64>(&mut client, TIMELINE)?, 2);
    Ok(())
}
