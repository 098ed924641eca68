//! Changes of a layout: the server's layout changes at its next start, and a named generator's layout changes while in use.

use anyhow::{Result, ensure};
use postgres::Client;
use snowflake_ids_server_tests::{Server, Shutdown, ids, sessions, sql::Session};

const OLD: &str = "41/5/5/12 epoch=2020-01-01";
const NEW: &str = "41/5/5/12 epoch=2015-01-01";

fn take(client: &mut Client, call: &str) -> Result<Vec<i64>> {
    client.column(&format!("select {call} from generate_series(1, 1000)"))
}

/// After a stop or a crash, ids continue above all ids of the old layout. A generator keeps the old layout.
#[test]
fn a_server_goes_on_in_another_layout_after_its_next_start() -> Result<()> {
    for crash in [false, true] {
        let (mut server, mut client) = Server::builder().with_session()?;
        client.run(&format!(
            "create extension if not exists snowflake_ids;
             select snowflake_ids.generator_create('old', '{OLD}')"
        ))?;
        let mut all = take(&mut client, "snowflake_nextval()")?;
        client.run(&format!("select snowflake_ids.layout_change('{NEW}')"))?;
        // Until the restart nothing changes.
        all.extend(take(&mut client, "snowflake_nextval()")?);
        drop(client);
        if crash {
            server.crash()?;
        } else {
            server.restart_by(Shutdown::Fast)?;
        }
        let mut client = server.session()?;
        let layout: String = client.one("select layout from snowflake_ids.status")?;
        assert_eq!(layout, NEW);
        all.extend(take(&mut client, "snowflake_nextval()")?);
        ids::growing(&all)?;
        let read: bool = client.one(&format!(
                "select abs(extract(epoch from snowflake_timestamp({}, '{OLD}') - snowflake_timestamp({}))) < 600",
                all[0], all[2_999]
            ))?;
        assert!(read, "old ids are read by naming the old layout");
        // The generator's ids are still in the old layout, and none repeats.
        let of_old = take(&mut client, "snowflake_nextval('old')")?;
        ensure!(of_old.iter().all(|id| !all.contains(id)), "an id came twice");
    }
    Ok(())
}

/// Nothing is recorded or set if new ids would be below old ones, or if the caller lacks the right.
#[test]
fn a_layout_below_the_present_one_is_refused() -> Result<()> {
    let (mut server, mut client) = Server::builder().set("snowflake_ids.layout", NEW).with_session()?;
    client.run("create extension if not exists snowflake_ids; create role app")?;
    let before = take(&mut client, "snowflake_nextval()")?;
    let error = client.error(&format!("select snowflake_ids.layout_change('{OLD}')"))?;
    assert_eq!(error.code().code(), "55000", "{error:?}");
    client.run(
        "grant execute on all functions in schema snowflake_ids, snowflake_ids_internal to app; set role app",
    )?;
    let error = client.error("select snowflake_ids.layout_change('41/5/5/12 epoch=2010-01-01')")?;
    assert_eq!(error.code().code(), "42501", "{error:?}");
    client.run("reset role")?;
    let written: String = client.one("select pg_read_file('postgresql.auto.conf')")?;
    assert!(!written.contains("snowflake_ids"), "{written}");
    drop(client);
    // A layout that an administrator sets by hand is still refused.
    server.stop(Shutdown::Fast)?;
    server.set("snowflake_ids.layout", OLD)?;
    server.start_again()?;
    let mut client = server.session()?;
    let error = client.error("select snowflake_nextval()")?;
    assert!(error.hint().is_some_and(|hint| hint.contains("layout_change")), "{error:?}");
    drop(client);
    server.stop(Shutdown::Fast)?;
    server.set("snowflake_ids.layout", NEW)?;
    server.start_again()?;
    let after = take(&mut server.session()?, "snowflake_nextval()")?;
    ids::growing(&[before, after].concat())
}

/// Sessions take ids during the change. Each session's ids grow, and ids after the change are above all ids before it.
#[test]
fn a_generators_layout_changes_under_its_sessions() -> Result<()> {
    let (server, mut client) = Server::builder().with_session()?;
    client.run(&format!(
        "create extension if not exists snowflake_ids;
         select snowflake_ids.generator_create('web', '{OLD}', cache => 10)"
    ))?;
    let taken = sessions::at_once(server.sessions("postgres", 6)?, |number, mut session| {
        if number == 0 {
            session.run(&format!("select snowflake_ids.layout_change('{NEW}', 'web')"))?;
        }
        let mut taken = Vec::new();
        for _ in 0..200 {
            taken.extend(
                session.column::<i64>("select snowflake_nextval('web') from generate_series(1, 20)")?,
            );
        }
        Ok(taken)
    })?;
    for of_session in &taken {
        ids::growing(of_session)?;
    }
    ids::unique(taken.concat())?;
    let last: i64 = taken.concat().into_iter().max().unwrap_or_default();
    ensure!(client.one::<i64>("select snowflake_nextval('web')")? > last, "below one that was given");
    Ok(())
}
