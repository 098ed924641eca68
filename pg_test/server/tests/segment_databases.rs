//! Databases that are dropped and created anew: one that gets the oid of another gets nothing else of it.

use anyhow::{Result, ensure};
use snowflake_ids_server_tests::segments::{create, next, take};
use snowflake_ids_server_tests::{Server, ids, sql};

/// An oid that no database has by itself.
const OID: u32 = 4_000_000_001;

#[test]
fn one_of_the_same_oid_shares_no_id_with_the_dropped_one() -> Result<()> {
    let server = Server::builder().small().start()?;
    let mut client = server.connect("postgres")?;
    let version: i32 = sql::one(&mut client, "select current_setting('server_version_num')::integer")?;
    if version < 150_000 {
        // Only the server itself says which oid it is.
        return Ok(());
    }
    // The rows of a template come with it, so that the same tag is in the same table.
    server.create_database("shop")?;
    create(&mut server.connect("shop")?, "orders", "")?;
    create(&mut server.connect("shop")?, "bills", "")?;
    for life in 0..2 {
        client.batch_execute(&format!("create database life oid = {OID} template shop"))?;
        let mut inside = server.connect("life")?;
        let mut taken = take(&mut inside, "orders", 1500)?;
        ensure!(taken[0] == 1, "life {life} begins with {}", taken[0]);
        taken.extend(take(&mut inside, "orders", 5000)?);
        ids::unique(taken)?;
        // Nor is it above what a transaction came to that was rolled back.
        if life == 0 {
            inside.batch_execute("begin; select snowflake_ids.segment_set('bills', 5000)")?;
            next(&mut inside, "bills")?;
            inside.batch_execute("rollback")?;
            ensure!(next(&mut inside, "bills")? > 5000, "the floor holds in its own life");
        } else {
            let first = next(&mut inside, "bills")?;
            ensure!(first == 1, "bills of life {life} begin with {first}");
        }
        drop(inside);
        client.batch_execute("drop database life with (force)")?;
    }
    Ok(())
}
