//! `worker_id = auto`: a worker id without any set-up.

use anyhow::Result;
use postgres::error::SqlState;
use snowflake_ids_server_tests::registry::{auto, held, wait_for_id};
use snowflake_ids_server_tests::snowflakes::{next, refused, status, take, worker};
use snowflake_ids_server_tests::{ids, sql};

const NO_ID: &str = "this server has no worker id yet";

#[test]
fn a_fresh_server_leases_an_id_without_any_set_up() -> Result<()> {
    let server = auto().set("snowflake_ids.datacenter_id", "3").start()?;
    let mut client = server.session()?;
    let id = next(&mut client)?;
    let row = client.query_one(
        "select w.worker_id, w.datacenter_id, s.worker_id, s.datacenter_id, s.scope, s.leased_from, s.state,
           w.system_identifier = (select system_identifier from pg_control_system()) and w.timeline = 1
             and w.port = current_setting('port')::int and w.data_directory = current_setting('data_directory'),
           w.expires_at between now() + interval '23h' and now() + interval '25h'
             and w.expires_at = s.lease_expires_at
         from snowflake_ids.worker_lease w, snowflake_ids.status s",
        &[],
    )?;
    assert_eq!(row.get::<_, i32>(0), worker(&mut client, id)?);
    assert_eq!((row.get::<_, i32>(0), row.get::<_, i32>(1)), (row.get(2), row.get(3)));
    assert_eq!(row.get::<_, i32>(1), 3);
    assert_eq!(row.get::<_, String>(4), "this server only");
    assert_eq!((row.get::<_, &str>(5), row.get::<_, &str>(6)), ("postgres", "ready"));
    assert!(row.get::<_, bool>(7), "the row says who holds the id");
    assert!(row.get::<_, bool>(8), "the expiry is a day away");
    Ok(())
}

/// A reset has ids begin as far ahead of the clock as they may be, which is the end of the lease here. The renewal that is due
/// by the clock is a quarter of an hour away.
#[test]
fn a_lease_is_renewed_where_ids_come_to_its_end_before_the_clock_does() -> Result<()> {
    let server =
        auto().set("snowflake_ids.lease_duration", "1h").set("snowflake_ids.max_drift", "1h").start()?;
    let mut client = server.session()?;
    let before = next(&mut client)?;
    client.batch_execute("select snowflake_ids.state_reset()")?;
    assert!(wait_for_id(&mut client)? > before);
    Ok(())
}

/// The launcher looks for the database by its name, maybe before any session has been there, when the indexes of the
/// shared catalogs can't be opened yet.
#[test]
fn a_registry_of_a_name_is_found_at_each_start() -> Result<()> {
    let mut server = auto().set("snowflake_ids.registry_database", "postgres").start()?;
    next(&mut server.session()?)?;
    for _ in 0..4 {
        server.restart()?;
        next(&mut server.connect("postgres")?)?;
    }
    assert_eq!(server.logged("cannot read pg_class"), 0, "{}", server.log());
    Ok(())
}

#[test]
fn two_fresh_servers_do_not_both_take_the_first_id() -> Result<()> {
    // Of 65,536 ids; that two servers derive the same one is as unlikely as it should be.
    let of = || -> Result<i32> {
        let server = auto().set("snowflake_ids.layout", "39/0/16/8 unit=10ms").start()?;
        let mut client = server.session()?;
        next(&mut client)?;
        status(&mut client, "worker_id")
    };
    assert_ne!(of()?, of()?);
    Ok(())
}

#[test]
fn an_extension_from_before_the_preload_serves_as_the_registry() -> Result<()> {
    let mut server = auto().without_preload().start()?;
    server.session()?;
    server.set("shared_preload_libraries", "snowflake_ids")?;
    server.restart()?;
    next(&mut server.session()?).map(drop)
}

#[test]
fn the_first_database_with_the_extension_is_the_registry_of_all() -> Result<()> {
    let server = auto().start()?;
    server.create_database("a")?;
    let mut of_a = server.connect("a")?;
    let first = next(&mut of_a)?;
    let mut client = server.session()?;
    let second = next(&mut client)?;
    assert_eq!(worker(&mut client, first)?, worker(&mut client, second)?);
    assert_eq!(status::<String>(&mut client, "leased_from")?, "a");
    assert_eq!((held(&mut of_a)?.len(), held(&mut client)?.len()), (1, 0));
    ids::growing(&[first, second])
}

#[test]
fn the_setting_names_the_registry_and_ids_wait_for_it() -> Result<()> {
    let server = auto().set("snowflake_ids.registry_database", "b").start()?;
    let mut client = server.session()?;
    let error = refused(&mut client)?;
    sql::explains(&error, &SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE, NO_ID)?;
    assert!(error.detail().is_some_and(|detail| detail.contains("\"b\"")), "{error:?}");
    assert_eq!(status::<String>(&mut client, "state")?, NO_ID);
    server.create_database("b")?;
    wait_for_id(&mut client)?;
    assert_eq!(status::<String>(&mut client, "leased_from")?, "b");
    Ok(())
}

#[test]
fn a_restart_gives_the_same_id_back() -> Result<()> {
    let mut server = auto().start()?;
    let mut taken = take(&mut server.session()?, 100)?;
    for crash in [false, true, false] {
        if crash {
            server.kill9()?;
            server.start_again()?;
        } else {
            server.restart()?;
        }
        let mut client = server.session()?;
        taken.extend(take(&mut client, 100)?);
        let last = taken[taken.len() - 1];
        assert_eq!(worker(&mut client, taken[0])?, worker(&mut client, last)?);
        assert_eq!(held(&mut client)?.len(), 1);
    }
    ids::growing(&taken)
}

#[test]
fn without_a_free_background_worker_the_error_says_so() -> Result<()> {
    // The launcher and the launcher of logical replication.
    let server = auto().set("max_worker_processes", "2").start()?;
    let mut client = server.session()?;
    let error = refused(&mut client)?;
    sql::explains(&error, &SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE, NO_ID)?;
    assert!(error.detail().is_some_and(|detail| detail.contains("max_worker_processes")), "{error:?}");
    Ok(())
}
