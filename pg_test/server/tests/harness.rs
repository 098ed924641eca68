//! The library for tests with servers, tested on a server without the extension.

use anyhow::{Result, ensure};
use postgres::Client;
use snowflake_ids_server_tests::snowflakes::now;
use snowflake_ids_server_tests::{Builder, Server, Shutdown, sql::Session};

fn plain() -> Builder {
    Server::builder().without_preload().without("snowflake_ids.worker_id")
}

#[test]
fn what_is_committed_outlives_every_way_to_stop() -> Result<()> {
    let mut server = plain().start()?;
    server.connect("postgres")?.run("create table t as select 1 as a")?;
    server.restart_by(Shutdown::Fast)?;
    server.restart_by(Shutdown::Immediate)?;
    server.crash()?;
    assert_eq!(server.connect("postgres")?.one::<i32>("select a from t")?, 1);
    Ok(())
}

#[test]
fn a_standby_has_what_its_primary_had() -> Result<()> {
    let server = plain().start()?;
    server.connect("postgres")?.run("create table t as select 1 as a")?;
    let standby = server.standby()?;
    let mut client = standby.connect("postgres")?;
    assert_eq!(client.one::<i32>("select a from t")?, 1);
    assert!(client.one::<bool>("select pg_is_in_recovery()")?);
    Ok(())
}

#[test]
fn copies_and_moved_servers_run_beside_each_other() -> Result<()> {
    let mut server = plain().start()?;
    server.connect("postgres")?.run("create table t as select 1 as a")?;
    let mut backup = server.base_backup()?;
    backup.start_again()?;
    server.stop(Shutdown::Fast)?;
    let mut copy = server.copy()?;
    copy.start_again()?;
    let mut moved = server.moved()?;
    moved.start_again()?;
    for server in [&backup, &copy, &moved] {
        let mut client = server.connect("postgres")?;
        assert_eq!(client.one::<i32>("select a from t")?, 1);
        assert!(!client.one::<bool>("select pg_is_in_recovery()")?);
        client.run("drop table t")?;
    }
    Ok(())
}

#[test]
fn a_former_primary_follows_the_one_promoted_in_its_stead() -> Result<()> {
    let mut first = plain().rewindable().start()?;
    first.connect("postgres")?.run("create table t as select 1 as a")?;
    let second = first.standby()?;
    second.promote()?;
    first.connect("postgres")?.run("update t set a = 2")?;
    first.rewind(&second)?;
    second.connect("postgres")?.run("update t set a = 3")?;
    first.catch_up(&second)?;
    assert_eq!(first.connect("postgres")?.one::<i32>("select a from t")?, 3);
    first.cut_off()?;
    second.connect("postgres")?.run("update t set a = 4")?;
    first.promote()?;
    assert_eq!(first.connect("postgres")?.one::<i32>("select a from t")?, 3);
    Ok(())
}

/// Checks that the server's clock is ahead of true time by this much.
fn is_ahead(client: &mut Client, seconds: f64) -> Result<()> {
    let before = now()?;
    let shown: f64 = client.one("select extract(epoch from clock_timestamp())::float8")?;
    let expected = before + seconds - 0.1..now()? + seconds + 0.1;
    ensure!(expected.contains(&shown), "the clock is at {shown}, not at {expected:?}");
    Ok(())
}

#[test]
fn a_standby_has_a_clock_of_its_own() -> Result<()> {
    let server = plain().false_clock().start()?;
    let standby = server.standby()?;
    standby.set_clock("-1h")?;
    for (server, seconds) in [(&server, 0.0), (&standby, -3600.0)] {
        is_ahead(&mut server.connect("postgres")?, seconds)?;
    }
    Ok(())
}

#[test]
fn a_stepped_clock_is_seen_by_a_running_session() -> Result<()> {
    let server = plain().false_clock().start()?;
    let mut client = server.connect("postgres")?;
    for (offset, seconds) in [("+0", 0.0), ("-1h", -3600.0), ("+2.5", 2.5), ("+0", 0.0)] {
        server.set_clock(offset)?;
        is_ahead(&mut client, seconds)?;
    }
    Ok(())
}

#[test]
fn a_server_that_does_not_start_says_why() {
    let error = plain().set("shared_buffers", "nonsense").start().map(drop).unwrap_err();
    assert!(format!("{error:#}").contains("invalid value for parameter \"shared_buffers\""), "{error:#}");
}

#[test]
fn a_dropped_server_leaves_nothing() -> Result<()> {
    let server = plain().start()?;
    let (folder, port) = (server.socket_folder().to_owned(), server.port());
    drop(server);
    assert!(!folder.exists());
    assert!(std::net::TcpStream::connect(("127.0.0.1", port)).is_err(), "port {port} is still open");
    Ok(())
}
