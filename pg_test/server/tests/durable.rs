//! The cost of a call on a durable server: the call needs no transaction id, no WAL and no flush.

use snowflake_ids_server_tests::prelude::*;

/// The WAL's insert and flush positions.
fn wal(client: &mut Client) -> Result<(String, String)> {
    let row = client
        .query_one("select pg_current_wal_insert_lsn()::text, pg_current_wal_flush_lsn()::text", &[])?;
    Ok((row.get(0), row.get(1)))
}

/// A durable server that writes no WAL by itself.
fn quiet() -> Result<Server> {
    Server::full_size()
        .set("shared_buffers", "32MB")
        .set("autovacuum", "off")
        .set("checkpoint_timeout", "1h")
        .set("wal_level", "minimal")
        .set("max_wal_senders", "0")
        .start()
}

#[test]
fn a_thousand_ids_take_no_transaction_id_and_write_no_wal() -> Result<()> {
    let server = quiet()?;
    let mut client = server.session()?;
    client.run("create sequence s")?;
    // Without the vacuum, reading a catalog page may prune rows left by CREATE EXTENSION, and the pruning writes WAL.
    client.run("vacuum")?;
    client.run("checkpoint")?;
    let call = client.prepare("select snowflake_nextval(), pg_current_xact_id_if_assigned() is null")?;
    client.query_one(&call, &[])?;

    let (wal_before, next_xid) = (wal(&mut client)?, "select pg_snapshot_xmax(pg_current_snapshot())::text");
    let xid_before: String = client.one(next_xid)?;
    for _ in 0..1000 {
        assert!(client.query_one(&call, &[])?.get::<_, bool>(1), "a call took a transaction id");
    }
    let without_id: bool = client
        .one("select pg_current_xact_id_if_assigned() is null from snowflake_nextvals(1000) offset 999")?;
    assert!(without_id, "a block of ids took a transaction id");
    assert_eq!(client.one::<String>(next_xid)?, xid_before);
    assert_eq!(wal(&mut client)?, wal_before);

    // The measurement detects the WAL of a sequence.
    client.query_one("select nextval('s')", &[])?;
    assert_ne!(wal(&mut client)?, wal_before);
    Ok(())
}
