//! Names and text keys are compared by their bytes. No collation of a database or a column makes two different names equal, and
//! no caller's collation disturbs a function.

use snowflake_ids_server_tests::functions;
use snowflake_ids_server_tests::prelude::*;

/// Texts that are equal under a collation that compares letters only.
const ALIKE: [&str; 4] = ["app", "APP", "a\u{301}pp", "\u{e1}pp"];

/// A session with a collation under which these texts are equal. None: the server was built without ICU.
fn loose(server: &Server) -> Result<Option<Client>> {
    let mut client = server.session()?;
    if client.one::<bool>("select not exists (select from pg_collation where collprovider = 'i')")? {
        println!("skipped: this server has no ICU");
        return Ok(None);
    }
    client
        .run("create collation loose (provider = icu, locale = 'und-u-ks-level1', deterministic = false)")?;
    let alike: bool = client.one(&format!("select '{}' = '{}' collate loose", ALIKE[1], ALIKE[3]))?;
    ensure!(alike, "the collation tells letters apart");
    Ok(Some(client))
}

/// Creates a table of the texts [`ALIKE`], in a column with the collation `loose`.
fn table(client: &mut Client) -> Result<()> {
    client.run("create table texts (text text collate loose)")?;
    for text in ALIKE {
        client.execute("insert into texts values ($1)", &[&text])?;
    }
    Ok(())
}

fn tags_series_and_keys_are_what_their_bytes_are(server: &mut Server) -> Result<()> {
    let Some(mut client) = loose(server)? else { return Ok(()) };
    table(&mut client)?;
    // Each text has a counter of its own, which begins at 1.
    for create in [
        "select count(snowflake_ids.segment_create(text)) from texts",
        "select count(snowflake_ids.series_create(text, 'gapless', 'text')) from texts",
        "select count(snowflake_ids.generator_create(text, 'twitter')) from texts",
    ] {
        assert_eq!(client.one::<i64>(create)?, 4, "{create}");
    }
    for take in
        ["segment_nextval(text)", "series_nextval(text, text)", "series_nextval('app', 'key ' || text)"]
    {
        for expected in 1..=2 {
            let taken: Vec<i64> = client.column(&format!("select {take} from texts"))?;
            assert_eq!(taken, [expected; 4], "{take}");
        }
    }
    let found: i64 = client.one(
        "select count(*) from texts cross join lateral
             (select from snowflake_ids.segment_status as s where s.tag = texts.text collate \"C\") as found",
    )?;
    assert_eq!(found, 4);
    Ok(())
}

fn a_column_that_takes_texts_for_one_has_a_key_for_each(server: &mut Server) -> Result<()> {
    let Some(mut client) = loose(server)? else { return Ok(()) };
    client.run(
        "create table t (project text collate loose, number bigint);
         insert into t values ('app', 3), ('APP', 5);
         select snowflake_ids.series_create('t', key_type => 'text');
         select snowflake_ids.series_attach('t', 'number', 't', 'project')",
    )?;
    let next = "insert into t (project) values ('app'), ('APP'), ('\u{e1}pp') returning number";
    assert_eq!(client.column::<i64>(next)?, [4, 6, 1]);
    Ok(())
}

/// Each function with a text or name argument is called, with existing and missing values.
fn a_callers_collation_is_in_no_functions_way(server: &mut Server) -> Result<()> {
    let Some(mut client) = loose(server)? else { return Ok(()) };
    client.run(
        "set statement_timeout = '30s'; set snowflake_ids.segment_wait_timeout = '100ms';
         select snowflake_ids.segment_create('app');
         select snowflake_ids.series_create('app', 'gapless', 'text');
         select snowflake_ids.generator_create('app', 'twitter');
         create temp table victim (id bigint, app text)",
    )?;
    let functions = functions::with_texts(&mut client)?;
    ensure!(functions.len() > 30, "the catalog has only {} functions with texts", functions.len());
    let mut complaints = Vec::new();
    for function in &functions {
        for text in ["app", "APP", "id", "day", "USAGE", "41/5/5/12 unit=10ms epoch=2020-01-01"] {
            let call = function.call(&format!("('{text}' collate loose)"));
            complaints.extend(complaint(&mut client, &call)?);
        }
    }
    ensure!(complaints.is_empty(), "{}", complaints.join("\n"));
    Ok(())
}

/// The error of a call, if it concerns the call's collation.
fn complaint(client: &mut Client, call: &str) -> Result<Option<String>> {
    let no_bytes: &[u8] = b"";
    let arguments: &[&(dyn postgres::types::ToSql + Sync)] =
        if call.contains("$1") { &[&no_bytes] } else { &[] };
    // Calls that cannot run within a block fail with an error that says so; the effects of all other calls are rolled back.
    let Err(error) = client.transaction()?.query(call, arguments) else { return Ok(None) };
    let db = error.as_db_error().with_context(|| format!("{call}: {error:?}"))?;
    let about_collation = [SqlState::INDETERMINATE_COLLATION, SqlState::COLLATION_MISMATCH]
        .contains(db.code())
        || db.message().contains("collation");
    Ok(about_collation.then(|| format!("{call}: {db:?}")))
}

/// An argument that equals a keyword only under its collation, such as 'SEGMENT' under one that ignores case, is refused.
fn keywords_are_what_their_bytes_are(server: &mut Server) -> Result<()> {
    let Some(mut client) = loose(server)? else { return Ok(()) };
    client.run(
        "create table victim (id bigint not null); create sequence front; create role clerk;
         select snowflake_ids.generator_create('web', 'twitter')",
    )?;
    for (call, word) in [
        ("attach('victim', 'id', $)", "segment"),
        ("attach('victim', 'id', sequence => $)", "keep"),
        ("detach('victim', 'id', $)", "none"),
        ("bind_sequence('front', $)", "segment"),
        ("administration_grant($, 'clerk')", "tags"),
        ("administration_revoke($, 'clerk')", "series"),
        ("series_create('orders', $)", "monotonic"),
        ("generator_alter('web', sequence_start => $)", "default"),
    ] {
        let given = format!("'{}' collate loose", word.to_uppercase());
        let error = client.fails(
            &format!("select snowflake_ids.{}", call.replace('$', &given)),
            &SqlState::INVALID_PARAMETER_VALUE,
        )?;
        assert!(error.message().starts_with("unrecognized "), "{call}: {error:?}");
    }
    Ok(())
}

/// A database that compares all texts by ICU.
fn a_database_of_icu_serves(server: &mut Server) -> Result<()> {
    let version = "select current_setting('server_version_num')::integer";
    if loose(server)?.is_none() || server.session()?.one::<i32>(version)? < 150_000 {
        return Ok(());
    }
    server.session()?.run(
        "create database tongues template template0 encoding 'UTF8' locale 'C'
             locale_provider icu icu_locale 'und-u-ks-level1'",
    )?;
    let mut client = server.connect("tongues")?;
    client.run("create extension snowflake_ids")?;
    for text in ALIKE {
        client.execute("select snowflake_ids.segment_create($1)", &[&text])?;
        let first: i64 = client.query_one("select segment_nextval($1)", &[&text])?.try_get(0)?;
        assert_eq!(first, 1, "{text}");
    }
    let mut keys = vec![0; ALIKE.len()];
    client.run("select snowflake_ids.series_create('keys', 'gapless', 'text')")?;
    for (key, text) in keys.iter_mut().zip(ALIKE) {
        *key = client.query_one("select series_nextval('keys', $1::text)", &[&text])?.try_get::<_, i64>(0)?;
    }
    assert_eq!(keys, [1; ALIKE.len()]);
    Ok(())
}

#[test]
fn names_are_what_their_bytes_are() -> Result<()> {
    Server::builder().cases(cases![
        tags_series_and_keys_are_what_their_bytes_are,
        a_column_that_takes_texts_for_one_has_a_key_for_each,
        a_callers_collation_is_in_no_functions_way,
        keywords_are_what_their_bytes_are,
        a_database_of_icu_serves
    ])
}
