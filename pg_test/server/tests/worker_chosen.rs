//! `worker_id = auto` without a registry: the server chooses its worker id, without any set-up.

use snowflake_ids_server_tests::prelude::*;
use snowflake_ids_server_tests::registry::of_pairs;
use snowflake_ids_server_tests::segments::TIMEOUT;
use snowflake_ids_server_tests::snowflakes::{NEXT, next, refused, status, take, worker};
use std::fs;

const NO_ID: &str = "this server has no worker id yet";

#[test]
fn a_fresh_server_chooses_an_id_without_any_set_up() -> Result<()> {
    let (server, mut client) = auto()
        .set("snowflake_ids.datacenter_id", "3")
        .set("snowflake_ids.reserve", "100ms")
        .with_session()?;
    let id = next(&mut client)?;
    let row = client.query_one(
        "select s.worker_id, s.datacenter_id, s.scope, s.state, s.leased_from, s.lease_expires_at is null,
           (select array_agg(c.worker_id) from snowflake_ids.worker_chosen c
            where c.datacenter_id = 3 and c.timeline = 1
              and c.system_identifier = (select system_identifier from pg_control_system())),
           (select count(*) from snowflake_ids.worker_lease)
         from snowflake_ids.status s",
        &[],
    )?;
    let chosen: i32 = row.get(0);
    assert_eq!((chosen, row.get::<_, i32>(1)), (worker(&mut client, id)?, 3));
    assert_eq!((row.get::<_, &str>(2), row.get::<_, &str>(3)), ("this server only", "ready"));
    assert_eq!((row.get::<_, Option<&str>>(4), row.get::<_, bool>(5)), (None, true), "there is no lease");
    assert_eq!((row.get::<_, Vec<i32>>(6), row.get::<_, i64>(7)), (vec![chosen], 0));
    // The launcher writes a line, and no second one.
    let line = format!("this server chose worker id {chosen} of datacenter 3");
    wait::until_true("a line in the log", || Ok(server.logged(&line) > 0))?;
    client.run("select snowflake_nextval(), pg_sleep(0.1) from generate_series(1, 5)")?;
    assert_eq!(server.logged("this server chose worker id"), 1);
    Ok(())
}

/// Without a datacenter id, the server chooses the datacenter with the worker id. Nothing shows the setting's -1.
#[test]
fn a_server_without_a_datacenter_id_chooses_a_pair_and_says_which() -> Result<()> {
    const PAIR: &str = "select s.datacenter_id * 32 + s.worker_id from snowflake_ids.status s";
    let (mut server, mut client) = of_pairs().with_session()?;
    client.run(
        "create publication others for all tables;
         create subscription theirs connection 'host=nowhere' publication theirs with (connect = false);
         create extension postgres_fdw; create server third foreign data wrapper postgres_fdw",
    )?;
    next(&mut client)?;
    let pair: i32 = client.one(PAIR)?;
    for same in [
        "select c.datacenter_id * 32 + c.worker_id from snowflake_ids.worker_chosen c",
        "select n.datacenter_id::int * 32 + n.worker_id::int from snowflake_ids.metric_node n",
        "select snowflake_datacenter_id(id) * 32 + snowflake_worker_id(id) from snowflake_nextval() id",
    ] {
        assert_eq!(client.one::<i32>(same)?, pair, "{same}");
    }
    let note = "select severity from snowflake_ids.attention
                where problem like '%chose its worker id itself, and has subscriptions, publications, foreign servers:%'";
    assert_eq!(client.one::<String>(note)?, "note");
    server.restart()?;
    let mut client = server.connect("postgres")?;
    next(&mut client)?;
    assert_eq!(client.one::<i32>(PAIR)?, pair, "a restart keeps the pair");
    client.run("select snowflake_ids.worker_release(worker_id) from snowflake_ids.status")?;
    next(&mut client)?;
    let other: i32 = client.one(PAIR)?;
    ensure!(other != pair && other % 8 == pair % 8, "{other} after {pair}");
    client.run("select snowflake_ids.generator_create('web', 'javascript')")?;
    let in_web = "select (snowflake_decode(snowflake_nextval('web'), 'web')).worker_id";
    assert_eq!(client.one::<i32>(in_web)?, other % 8);
    Ok(())
}

/// Ids need neither a worker nor a table, even if tables are locked or dropped.
#[test]
fn ids_need_no_table_and_no_worker() -> Result<()> {
    let (mut server, mut client) =
        auto().set("max_prepared_transactions", "1").set("max_worker_processes", "3").with_session()?;
    let mut taken = take(&mut client, 100)?;
    client.run(
        "begin; lock table snowflake_ids.worker_lease, snowflake_ids.worker_chosen, snowflake_ids.registry_server
         in access exclusive mode; prepare transaction 'lock'",
    )?;
    for _ in 0..2 {
        server.crash()?;
        taken.extend(take(&mut server.connect("postgres")?, 100)?);
    }
    let mut client = server.connect("postgres")?;
    client.run("rollback prepared 'lock'")?;
    client.run("drop extension snowflake_ids cascade; create extension snowflake_ids")?;
    taken.extend(take(&mut client, 100)?);
    assert_eq!(worker(&mut client, taken[0])?, worker(&mut client, taken[taken.len() - 1])?);
    ids::growing(&taken)
}

#[test]
fn a_state_is_written_at_the_first_start_and_a_restart_keeps_the_worker_id() -> Result<()> {
    let mut server = auto().start()?;
    wait::until_true("a worker id", || {
        Ok(fs::read_to_string(server.state_file()).unwrap_or_default().contains("\"source\":\"Alone\""))
    })?;
    let mut taken = take(&mut server.session()?, 100)?;
    for crash in [false, true, false] {
        if crash {
            server.crash()?;
        } else {
            server.restart()?;
        }
        let mut client = server.session()?;
        taken.extend(take(&mut client, 100)?);
        assert_eq!(worker(&mut client, taken[0])?, worker(&mut client, taken[taken.len() - 1])?);
    }
    ids::growing(&taken)
}

#[test]
fn two_fresh_servers_do_not_both_take_the_first_id() -> Result<()> {
    // The layout has 65,536 worker ids. Two servers are very unlikely to derive the same worker id.
    let of = || -> Result<i32> {
        let (_server, mut client) =
            auto().set("snowflake_ids.layout", "39/0/16/8 unit=10ms").with_session()?;
        next(&mut client)?;
        status(&mut client, "worker_id")
    };
    assert_ne!(of()?, of()?);
    Ok(())
}

/// The servers are copies of one image. The image was started once, and issued no id.
#[test]
fn servers_out_of_one_image_choose_any_of_the_worker_ids() -> Result<()> {
    let mut image = auto().set("snowflake_ids.layout", "39/0/16/8 unit=10ms").start()?;
    let original: i32 = image.session()?.one("select worker_id from snowflake_ids.worker_chosen")?;
    image.stop(Shutdown::Fast)?;
    let mut chosen = BTreeSet::from([original]);
    for _ in 0..3 {
        let mut server = image.copy()?;
        server.start_again()?;
        let mut client = server.connect("postgres")?;
        let id = wait_for_id(&mut client)?;
        chosen.insert(worker(&mut client, id)?);
    }
    ensure!(chosen.len() == 4, "{chosen:?}");
    ensure!(chosen.iter().map(|worker| worker % 8).collect::<BTreeSet<_>>().len() > 1, "{chosen:?}");
    Ok(())
}

#[test]
fn a_layout_without_room_has_a_worker_id_of_its_own() -> Result<()> {
    let (mut server, mut client) = auto().set("snowflake_ids.layout", "41/0/10/12").with_session()?;
    let own = next(&mut client)?;
    let own = worker(&mut client, own)?;
    client.run("select snowflake_ids.generator_create('web', 'javascript')")?;
    let in_web = |client: &mut Client| -> Result<i32> {
        client.one("select (snowflake_decode(snowflake_nextval('web'), 'web')).worker_id")
    };
    assert_eq!(in_web(&mut client)?, own % 8);
    server.restart()?;
    let mut client = server.connect("postgres")?;
    assert_eq!(in_web(&mut client)?, own % 8);
    let id = next(&mut client)?;
    assert_eq!(worker(&mut client, id)?, own, "the server's stays");
    Ok(())
}

#[test]
fn an_extension_from_before_the_preload_will_do() -> Result<()> {
    let mut server = auto().without_preload().start()?;
    server.session()?;
    server.set("shared_preload_libraries", "snowflake_ids")?;
    server.restart()?;
    next(&mut server.session()?).map(drop)
}

/// The server reads all databases before its first id, because any of them may use a registry.
#[test]
fn a_new_server_waits_for_a_database_that_is_locked_and_names_it() -> Result<()> {
    let (mut server, mut client) = auto().set("max_prepared_transactions", "1").with_session()?;
    for statement in [
        "create database closed",
        "alter database closed allow_connections false",
        "create database other",
        "begin; alter database other rename to another; prepare transaction 'lock'",
    ] {
        client.run(statement)?;
    }
    server.stop(Shutdown::Fast)?;
    forget(&server)?;
    server.start_again()?;
    let mut client = server.connect("postgres")?;
    let error = wait::until(TIMEOUT, "the refusal to name it", || {
        let error = refused(&mut client)?;
        Ok(error.detail().is_some_and(|detail| detail.contains("locked")).then_some(error))
    })?;
    sql::explains(&error, sql::NOT_IN_STATE, NO_ID)?;
    client.run("rollback prepared 'lock'")?;
    wait_for_id(&mut client).map(drop)
}

/// Removes the state file and the marker file of a stopped server.
fn forget(server: &Server) -> Result<()> {
    fs::remove_file(server.state_file())?;
    Ok(fs::remove_file(server.data().join("pg_logical/snowflake_ids.marker"))?)
}

/// The functions that repair a state come with the extension.
#[test]
fn the_extension_can_be_created_where_the_state_is_damaged() -> Result<()> {
    let mut server = auto().start()?;
    let text = || fs::read_to_string(server.state_file()).unwrap_or_default();
    let chosen = || Ok(text().contains("\"source\":\"Alone\""));
    wait::until_true("a worker id", chosen)?;
    server.stop(Shutdown::Fast)?;
    server.damage_state_file(|_| b"nonsense".to_vec())?;
    server.start_again()?;
    let mut client = server.session()?;
    let error = client.error(NEXT)?;
    ensure!(error.message().contains("damaged"), "{error:?}");
    client.run("select snowflake_ids.state_reset()")?;
    wait_for_id(&mut client).map(drop)
}

/// A standby that was set up before the library was loaded has no state file.
#[test]
fn a_standby_without_a_state_file_shares_no_id_with_its_primary() -> Result<()> {
    let primary = auto().start()?;
    let mut client = primary.session()?;
    let first = next(&mut client)?;
    let chosen = worker(&mut client, first)?;
    let mut standby = primary.standby()?;
    standby.stop(Shutdown::Fast)?;
    forget(&standby)?;
    standby.start_again()?;
    standby.promote()?;
    let mut client = standby.connect("postgres")?;
    let id = wait_for_id(&mut client)?;
    let other = worker(&mut client, id)?;
    ensure!(other % 8 == (chosen + 1) % 8, "{other} after {chosen}");
    Ok(())
}

#[test]
fn without_a_free_background_worker_the_error_says_so() -> Result<()> {
    // There is room only for the launcher and the launcher of logical replication.
    let (_server, mut client) = auto().set("max_worker_processes", "2").with_session()?;
    let error = refused(&mut client)?;
    sql::explains(&error, sql::NOT_IN_STATE, NO_ID)?;
    assert!(error.detail().is_some_and(|detail| detail.contains("max_worker_processes")), "{error:?}");
    Ok(())
}
