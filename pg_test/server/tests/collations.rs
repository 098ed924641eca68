//! Names and text keys are told apart by their bytes: neither a database's collation nor a column's makes two of them one.

use anyhow::{Result, ensure};
use postgres::Client;
use snowflake_ids_server_tests::{Server, sql};

/// All the same to somebody who looks at letters only.
const ALIKE: [&str; 4] = ["app", "APP", "a\u{301}pp", "\u{e1}pp"];

/// A session where a collation takes these for one text; none where the server was built without ICU.
fn loose(server: &Server) -> Result<Option<Client>> {
    let mut client = server.session()?;
    if sql::one::<bool>(&mut client, "select not exists (select from pg_collation where collprovider = 'i')")?
    {
        println!("skipped: this server has no ICU");
        return Ok(None);
    }
    client.batch_execute(
        "create collation loose (provider = icu, locale = 'und-u-ks-level1', deterministic = false)",
    )?;
    let alike: bool =
        sql::one(&mut client, &format!("select '{}' = '{}' collate loose", ALIKE[1], ALIKE[3]))?;
    ensure!(alike, "the collation tells letters apart");
    Ok(Some(client))
}

/// A table of the texts, in a column of that collation.
fn table(client: &mut Client) -> Result<()> {
    client.batch_execute("create table texts (text text collate loose)")?;
    for text in ALIKE {
        client.execute("insert into texts values ($1)", &[&text])?;
    }
    Ok(())
}

#[test]
fn tags_series_and_keys_are_what_their_bytes_are() -> Result<()> {
    let server = Server::builder().small().start()?;
    let Some(mut client) = loose(&server)? else { return Ok(()) };
    table(&mut client)?;
    // Each begins at 1, and each goes on alone.
    for create in [
        "select count(snowflake_ids.segment_create(text)) from texts",
        "select count(snowflake_ids.series_create(text, 'gapless', 'text')) from texts",
        "select count(snowflake_ids.generator_create(text, 'twitter')) from texts",
    ] {
        assert_eq!(sql::one::<i64>(&mut client, create)?, 4, "{create}");
    }
    for take in
        ["segment_nextval(text)", "series_nextval(text, text)", "series_nextval('app', 'key ' || text)"]
    {
        for expected in 1..=2 {
            let taken: Vec<i64> = sql::column(&mut client, &format!("select {take} from texts"))?;
            assert_eq!(taken, [expected; 4], "{take}");
        }
    }
    let found: i64 = sql::one(
        &mut client,
        "select count(*) from texts cross join lateral
             (select from snowflake_ids.segment_status as s where s.tag = texts.text collate \"C\") as found",
    )?;
    assert_eq!(found, 4);
    Ok(())
}

#[test]
fn a_column_that_takes_texts_for_one_has_a_key_for_each() -> Result<()> {
    let server = Server::builder().small().start()?;
    let Some(mut client) = loose(&server)? else { return Ok(()) };
    for kind in ["gapless", "dense"] {
        client.batch_execute(&format!(
            "create table {kind} (project text collate loose, number bigint);
             insert into {kind} values ('app', 3), ('APP', 5);
             select snowflake_ids.series_create('{kind}', '{kind}', 'text');
             select snowflake_ids.series_attach('{kind}', 'number', '{kind}', 'project')"
        ))?;
        let next =
            format!("insert into {kind} (project) values ('app'), ('APP'), ('\u{e1}pp') returning number");
        assert_eq!(sql::column::<i64>(&mut client, &next)?, [4, 6, 1], "{kind}");
    }
    Ok(())
}

/// A database all of whose texts are compared by ICU.
#[test]
fn a_database_of_icu_serves() -> Result<()> {
    let server = Server::builder().small().start()?;
    let version = "select current_setting('server_version_num')::integer";
    if loose(&server)?.is_none() || sql::one::<i32>(&mut server.session()?, version)? < 150_000 {
        return Ok(());
    }
    server.session()?.batch_execute(
        "create database tongues template template0 encoding 'UTF8' locale 'C'
             locale_provider icu icu_locale 'und-u-ks-level1'",
    )?;
    let mut client = server.connect("tongues")?;
    client.batch_execute("create extension snowflake_ids")?;
    for text in ALIKE {
        client.execute("select snowflake_ids.segment_create($1)", &[&text])?;
        let first: i64 = client.query_one("select segment_nextval($1)", &[&text])?.try_get(0)?;
        assert_eq!(first, 1, "{text}");
    }
    let mut keys = vec![0; ALIKE.len()];
    client.batch_execute("select snowflake_ids.series_create('keys', 'gapless', 'text')")?;
    for (key, text) in keys.iter_mut().zip(ALIKE) {
        *key = client.query_one("select series_nextval('keys', $1::text)", &[&text])?.try_get::<_, i64>(0)?;
    }
    assert_eq!(keys, [1; ALIKE.len()]);
    Ok(())
}
