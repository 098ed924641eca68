//! A server that does not preload the library: it decodes ids, and says what generating them needs.

use snowflake_ids_server_tests::prelude::*;

fn without_preload() -> Builder {
    Server::builder().without_preload().without("snowflake_ids.worker_id")
}

/// An id of the default layout: tick 1000, datacenter 3, worker 7, sequence 9.
const ID: i64 = 1000 << 22 | 3 << 17 | 7 << 12 | 9;

fn ids_are_decoded_without_preload(server: &mut Server) -> Result<()> {
    let mut client = server.session()?;
    let row = client.query_one(
        "select snowflake_datacenter_id($1::bigint), snowflake_worker_id($1), snowflake_sequence($1),
         snowflake_timestamp($1) = '2020-01-01 00:00:01+00', snowflake_encode($1, 'hex') is not null",
        &[&ID],
    )?;
    assert_eq!((row.get(0), row.get(1), row.get(2)), (3_i32, 7_i32, 9_i32));
    assert_eq!((row.get(3), row.get(4)), (true, true));
    let read = "select snowflake_worker_id(id) || ' ' || snowflake_timestamp(id)
                from (select '016f5e66-ebe8-7abc-822f-ffffffffffff'::uuid as id) s";
    assert_eq!(client.one::<String>(read)?, "2 2020-01-01 00:00:01+00");
    client.run("select snowflake_ids.generator_create('web', 'javascript')")?;
    assert_eq!(client.one::<i32>("select snowflake_worker_id(512, 'web')")?, 1);
    Ok(())
}

fn generating_without_preload_says_what_to_do(server: &mut Server) -> Result<()> {
    let mut client = server.session()?;
    client.run(
        "select snowflake_ids.generator_create('web', 'javascript'), snowflake_ids.generator_create('own', '41/5/5/12')",
    )?;
    for call in [
        "select snowflake_nextval()",
        "select snowflake_nextvals(2)",
        "select snowflake_nextval('web')",
        "select snowflake_uuid()",
        "select snowflake_uuid_text()",
        "select * from snowflake_ids.status",
    ] {
        let error = client.fails(call, sql::NOT_IN_STATE)?;
        let function = call.trim_start_matches("select ").trim_end_matches("()");
        let names = error.detail().is_some_and(|detail| detail.starts_with(&format!("{function}() needs")));
        assert!(names || !call.contains("uuid"), "{error:?}");
        assert!(error.hint().is_some_and(|hint| hint.contains("shared_preload_libraries")), "{error:?}");
    }
    for (function, arguments) in [
        ("snowflake_ids.layout_check", "'41/5/5/12', 'web'"),
        ("snowflake_ids.layout_change", "'41/5/5/12', 'web'"),
        ("snowflake_ids.layout_change", "'javascript'"),
    ] {
        let error = client.fails(&format!("select {function}({arguments})"), sql::NOT_IN_STATE)?;
        let names = error.detail().is_some_and(|detail| detail.starts_with(&format!("{function}() needs")));
        assert!(names, "{function}({arguments}): {error:?}");
    }
    let status = "select count(*) from snowflake_ids.generator_status where state like '%not loaded%'";
    assert_eq!(client.one::<i64>(status)?, 2, "the session lives on");
    Ok(())
}

#[test]
fn creating_the_extension_without_preload_warns_of_it() -> Result<()> {
    let server = without_preload().start()?;
    let said =
        server.command("psql").args(["-d", "postgres", "-Xc", "create extension snowflake_ids"]).output()?;
    let (said, failed) = (String::from_utf8_lossy(&said.stderr).into_owned(), !said.status.success());
    assert!(
        !failed && said.contains("WARNING") && said.contains("HINT:  Add snowflake_ids to shared"),
        "{said}"
    );
    let preloaded = Server::builder().start()?;
    let said = preloaded
        .command("psql")
        .args(["-d", "postgres", "-Xc", "create extension snowflake_ids"])
        .output()?;
    assert!(said.stderr.is_empty(), "{}", String::from_utf8_lossy(&said.stderr));
    Ok(())
}

fn nothing_is_attached_without_preload(server: &mut Server) -> Result<()> {
    let mut client = server.session()?;
    client.run("create table t (id bigserial primary key, note text)")?;
    let before: String =
        client.one("select pg_get_expr(adbin, adrelid) from pg_attrdef where adrelid = 't'::regclass")?;
    for call in ["attach('t', 'id')", "attach('t', 'id', kind => 'segment')"] {
        let error = client.fails(&format!("select snowflake_ids.{call}"), sql::NOT_IN_STATE)?;
        assert!(error.hint().is_some_and(|hint| hint.contains("shared_preload_libraries")), "{error:?}");
    }
    let after: String =
        client.one("select pg_get_expr(adbin, adrelid) from pg_attrdef where adrelid = 't'::regclass")?;
    assert_eq!(before, after);
    assert_eq!(client.one::<i64>("insert into t (note) values ('a') returning id")?, 1);
    assert_eq!(client.one::<i64>("select count(*) from snowflake_ids.segment")?, 0);
    Ok(())
}

#[test]
fn the_layout_of_the_configuration_counts_without_preload() -> Result<()> {
    let (_server, mut client) = without_preload().set("snowflake_ids.layout", "sonyflake").with_session()?;
    // The sequence is above the worker: 1000 ticks of 10 ms, sequence 9, worker 7.
    let row = client.query_one(
        "select snowflake_worker_id($1::bigint), snowflake_sequence($1),
         snowflake_timestamp($1) = '2025-01-01 00:00:10+00'",
        &[&(1000_i64 << 24 | 9 << 16 | 7)],
    )?;
    assert_eq!((row.get(0), row.get(1), row.get(2)), (7_i32, 9_i32, true));
    Ok(())
}

#[test]
fn a_malformed_layout_is_an_error_without_preload_too() -> Result<()> {
    let (_server, mut client) = without_preload().set("snowflake_ids.layout", "41/5/5/99").with_session()?;
    let error = client.fails("select snowflake_worker_id(1)", &SqlState::INVALID_PARAMETER_VALUE)?;
    assert!(error.message().contains("sequence"), "{error:?}");
    assert_eq!(client.one::<i32>("select snowflake_worker_id(4096, '41/5/5/12')")?, 1);
    Ok(())
}

/// Each library calls the hook that was installed before it, in either order of loading.
#[test]
fn utility_statements_are_watched_beside_another_library() -> Result<()> {
    for libraries in ["pg_stat_statements, snowflake_ids", "snowflake_ids, pg_stat_statements"] {
        let (_server, mut client) =
            Server::builder().set("shared_preload_libraries", libraries).with_session()?;
        client.run(
            "create extension pg_stat_statements;
             create table plain (id bigint default snowflake_nextval(), note text)",
        )?;
        client.run("begin; set local track_functions = 'all'")?;
        client.run("copy plain (note) from program 'echo a'")?;
        let twin =
            "select calls from pg_stat_xact_user_functions where funcname = 'snowflake_nextval_in_copy'";
        assert_eq!(client.one::<i64>(twin)?, 1, "{libraries}");
        client.run("commit")?;
        let copies = "select count(*) from pg_stat_statements where query like 'copy plain%'";
        assert_eq!(client.one::<i64>(copies)?, 1, "{libraries}");
        client.run(
            "set snowflake_ids.new_columns = 'segment'; create table made (id serial, note text); create table other (note text);
             alter table made alter id type bigint; drop table made",
        )?;
        let ours = "select coalesce(string_agg(query, '; '), '') from pg_stat_statements
                    where toplevel and query like '%ids_internal.%'";
        assert_eq!(client.one::<String>(ours)?, "", "{libraries}");
    }
    Ok(())
}

/// A library with a planner hook may lose parts of an error. An error raised during planning keeps all of its parts.
#[test]
fn errors_of_planning_keep_all_that_they_say() -> Result<()> {
    let (_server, mut client) = Server::builder().with_session()?;
    client.run(
        "create function says_all(number int) returns int immutable language plpgsql as $$
         begin
             raise sqlstate 'U0001' using message = 'm', detail = 'd', hint = 'h', schema = 's', table = 't', column = 'c',
                 constraint = 'k', datatype = 'y';
         end $$;
         create sequence numbers",
    )?;
    // Plans are checked both without and with a bound sequence.
    for bound in [false, true] {
        if bound {
            client.run("select snowflake_ids.bind_sequence('numbers')")?;
        }
        let error = client.error("select says_all(1)")?;
        assert_eq!(
            (
                error.code().code(),
                error.message(),
                error.detail(),
                error.hint(),
                error.schema(),
                error.table()
            ),
            ("U0001", "m", Some("d"), Some("h"), Some("s"), Some("t")),
            "bound: {bound}"
        );
        assert_eq!(
            (error.column(), error.constraint(), error.datatype()),
            (Some("c"), Some("k"), Some("y")),
            "bound: {bound}"
        );
        assert!(error.where_().is_some_and(|place| place.contains("says_all")), "{error:?}");
    }
    Ok(())
}

#[test]
fn without_preload_ids_are_read() -> Result<()> {
    without_preload().cases(cases![
        ids_are_decoded_without_preload,
        generating_without_preload_says_what_to_do,
        nothing_is_attached_without_preload
    ])
}
