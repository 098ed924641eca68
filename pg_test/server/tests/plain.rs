//! The functions in plain SQL, on a server without the library, and the way from there to the extension.

use snowflake_ids_server_tests::prelude::*;
use std::path::PathBuf;

/// A script of `sql/plain`.
fn script(name: &str) -> Result<String> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../sql/plain").join(name);
    std::fs::read_to_string(&path).with_context(|| path.display().to_string())
}

/// Starts a server without the library. The ordinary role `app` owns the databases. Each database has the plain SQL functions and
/// its own worker id.
fn plain(databases: &[&str]) -> Result<Server> {
    let server = Server::builder().without_preload().without("snowflake_ids.worker_id").start()?;
    let mut client = server.connect("postgres")?;
    client.run("create role app login; grant pg_execute_server_program to app")?;
    for (worker, database) in databases.iter().enumerate() {
        client.run(&format!("create database {database} owner app"))?;
        let mut owner = session(&server, database)?;
        owner.run(&format!("begin; set local snowflake_ids.worker_id = {}", worker + 3))?;
        owner.run(&script("snowflake_ids.sql")?)?;
        owner.run(
            "commit;
             select snowflake_ids.segment_create('t'), snowflake_ids.segment_create('late', start => 1000, description => 'd');
             create table s (id bigint primary key default snowflake_nextval(), note text);
             create table t (id bigint primary key default segment_nextval('t'), note text, other bigint default snowflake_id());
             create table p (id bigint default segment_id('late'), note text) partition by list (note);
             create table p_a partition of p for values in ('a')",
        )?;
    }
    Ok(server)
}

/// The owner's session.
fn session(server: &Server, database: &str) -> Result<Client> {
    let mut client = server.connect(database)?;
    client.run("set session authorization app")?;
    Ok(client)
}

fn fill(client: &mut Client) -> Result<Vec<i64>> {
    let mut taken: Vec<i64> =
        client.column("insert into s (note) select 'a' from generate_series(1, 500) returning id")?;
    taken.extend(client.column::<i64>("select snowflake_nextvals(500)")?);
    taken.push(client.one("select snowflake_id()")?);
    assert_eq!(client.one::<i64>("select snowflake_lastval()")?, taken[taken.len() - 1]);
    ids::growing(&taken)?;
    taken.extend(
        client
            .column::<i64>("insert into t (note) select 'a' from generate_series(1, 100) returning other")?,
    );
    client.run("copy s (note) from program 'printf \"a\\nb\\n\"'; insert into p (note) values ('a')")?;
    Ok(taken)
}

#[test]
fn ids_are_distinct_over_sessions_and_servers() -> Result<()> {
    let server = plain(&["one", "two"])?;
    let clients = ["one", "one", "one", "two", "two"].map(|database| session(&server, database));
    let clients = clients.into_iter().collect::<Result<Vec<_>>>()?;
    let taken = at_once(clients, |_, mut client| fill(&mut client))?;
    ids::unique(taken.into_iter().flatten().collect())?;
    for (database, sessions) in [("one", 3), ("two", 2)] {
        let mut client = session(&server, database)?;
        ids::dense(client.column("select id from t")?)?;
        assert_eq!(client.one::<i64>("select count(*) from t")?, sessions * 100);
        assert_eq!(client.one::<i64>("select min(id) from p")?, 1000);
    }
    Ok(())
}

#[test]
fn what_is_read_of_an_id_is_what_it_was_made_of() -> Result<()> {
    let server = plain(&["one"])?;
    let mut client = session(&server, "one")?;
    client.run("select snowflake_nextval()")?;
    let right = "select snowflake_worker_id(id) = 3 and snowflake_datacenter_id(id) = 0
        and abs(extract(epoch from clock_timestamp() - snowflake_timestamp(id))) < 3600
        and id between snowflake_min_id(snowflake_timestamp(id)) and snowflake_max_id(snowflake_timestamp(id))
        and id = snowflake_compose(snowflake_timestamp(id), 0, 3, snowflake_sequence(id))
        from snowflake_lastval() id";
    assert!(client.one::<bool>(right)?);
    client.run("select snowflake_ids.worker_set(1, 9)")?;
    let (before, after): (i64, i64) =
        (client.one("select snowflake_lastval()")?, client.one("select snowflake_nextval()")?);
    ensure!(after > before, "{after} after {before}");
    let node =
        "select array[snowflake_datacenter_id(id), snowflake_worker_id(id)] from snowflake_lastval() id";
    assert_eq!(client.one::<Vec<i32>>(node)?, [1, 9]);
    Ok(())
}

/// No id repeats after a rollback, or while the clock is behind the last id.
#[test]
fn nothing_comes_twice_after_a_rollback_or_a_step_of_the_clock() -> Result<()> {
    let server = plain(&["one"])?;
    let mut client = session(&server, "one")?;
    client.run("begin")?;
    let mut taken = fill(&mut client)?;
    client.run("rollback")?;
    taken.extend(fill(&mut client)?);
    ids::unique(taken)?;
    // The new value simulates a clock that was an hour ahead, with all ids of that millisecond used up.
    client.run(
        "select setval('snowflake_ids.plain_last', snowflake_max_id(clock_timestamp() + interval '1 hour'))",
    )?;
    let ahead: i64 = client.one("select last_value from snowflake_ids.plain_last")?;
    let next: Vec<i64> = client.column("select snowflake_nextvals(5000)")?;
    ids::growing(&next)?;
    ensure!(next[0] > ahead, "{} after {ahead}", next[0]);
    Ok(())
}

/// A cancelled call leaves no lock behind, and an open transaction keeps no lock.
#[test]
fn no_session_waits_for_another() -> Result<()> {
    let server = plain(&["one"])?;
    let (mut one, mut two) = (session(&server, "one")?, session(&server, "one")?);
    one.run("begin; select snowflake_nextval(), segment_nextval('t')")?;
    two.run("set statement_timeout = '30s'; select snowflake_nextval(), segment_nextval('t')")?;
    one.run("set local statement_timeout = '50ms'")?;
    one.fails("select snowflake_nextvals(2000000)", &SqlState::QUERY_CANCELED)?;
    two.run("select snowflake_nextval()")?;
    one.run("rollback")?;
    let locks = "select count(*) from pg_locks where locktype = 'advisory'";
    assert_eq!(two.one::<i64>(locks)?, 0);
    Ok(())
}

#[test]
fn other_roles_take_ids_and_change_nothing() -> Result<()> {
    let server = plain(&["one"])?;
    let mut client = server.connect("one")?;
    client.run("create role web; set session authorization web")?;
    client
        .run("select snowflake_nextval(), segment_nextval('t'), segment_currval('t'), snowflake_lastval()")?;
    for call in [
        "select snowflake_ids.segment_create('u')",
        "select snowflake_ids.segment_drop('t')",
        "select snowflake_ids.worker_set(0, 0)",
        "select setval('snowflake_ids.plain_last', 1)",
        "delete from snowflake_ids.plain_segment",
    ] {
        client.fails(call, &SqlState::INSUFFICIENT_PRIVILEGE)?;
    }
    for call in ["select segment_nextval('unknown')", "select segment_nextval(null)"] {
        client.fails(call, &SqlState::UNDEFINED_OBJECT)?;
    }
    Ok(())
}

#[test]
fn the_extension_goes_on_above_all_ids_that_were_given() -> Result<()> {
    let mut server = plain(&["one"])?;
    let mut taken = fill(&mut session(&server, "one")?)?;
    server.connect("one")?.fails(&format!("begin; {}", script("to_extension.sql")?), sql::NOT_IN_STATE)?;
    taken.extend(fill(&mut session(&server, "one")?)?);
    server.set("shared_preload_libraries", "snowflake_ids")?;
    server.restart()?;
    let mut client = server.connect("one")?;
    client.run(&format!("begin; {}; commit", script("to_extension.sql")?))?;
    taken.extend(fill(&mut session(&server, "one")?)?);
    ids::unique(taken)?;
    ids::dense(client.column("select id from t")?)?;
    let defaults: Vec<String> = client.column(
        "select distinct pg_get_expr(adbin, adrelid) from pg_attrdef
         where adrelid in ('s'::regclass, 't'::regclass, 'p'::regclass) order by 1",
    )?;
    assert_eq!(
        defaults,
        ["segment_id('late'::text)", "segment_nextval('t'::text)", "snowflake_id()", "snowflake_nextval()"]
    );
    let left = "select count(*) from pg_proc where pronamespace = 'public'::regnamespace";
    assert_eq!(client.one::<i64>(left)?, 0);
    assert_eq!(client.column::<i64>("select id from p order by id")?, [1000, 1001, 1002]);
    Ok(())
}

/// The change to the extension happens completely or not at all.
#[test]
fn what_cannot_go_over_stays_as_it_is() -> Result<()> {
    let mut server = plain(&["one"])?;
    server.set("shared_preload_libraries", "snowflake_ids")?;
    server.restart()?;
    let mut client = server.connect("one")?;
    let over = format!("begin; {}", script("to_extension.sql")?);
    client.run("create view v as select snowflake_nextval() as id")?;
    client.fails(&over, &SqlState::DEPENDENT_OBJECTS_STILL_EXIST)?;
    client.run("rollback; drop view v")?;
    client.run(
        "select setval('snowflake_ids.plain_last', snowflake_max_id(clock_timestamp() + interval '1 hour'))",
    )?;
    client.explained(&over, sql::NOT_IN_STATE, "the clock is behind ids that were given")?;
    client.run("rollback; insert into s (note) values ('a')")?;
    assert_eq!(client.one::<i64>("select count(*) from s")?, 1);
    Ok(())
}

/// A superuser who changes to the extension runs no code of the database's owner.
#[test]
fn what_the_owner_has_changed_is_refused_and_never_runs() -> Result<()> {
    let mut server = plain(&["one"])?;
    server.set("shared_preload_libraries", "snowflake_ids")?;
    server.restart()?;
    let (mut owner, mut client) = (session(&server, "one")?, server.connect("one")?);
    owner.run(
        "create function note() returns boolean language plpgsql as $$
         begin perform setval('public.ran', 1); raise notice 'ran as %', current_user; return true; end $$;
         create function quiet(number integer) returns integer language plpgsql immutable as $$
         begin perform public.note(); return number; end $$;
         create function noted() returns trigger language plpgsql as $$ begin perform public.note(); return new; end $$;
         create sequence ran start 5; create view v as select 1::bigint as last_value, note() as is_called",
    )?;
    let segment = "drop table snowflake_ids.plain_segment; create";
    for (change, detail) in [
        (format!("{segment} view snowflake_ids.plain_segment as select 't'::text as tag, 's'::regclass as sequence where note()"),
            "It is not a table."),
        ("drop table snowflake_ids.plain; create view snowflake_ids.plain as
             select true as only_row, 0 as datacenter_id, 0 as worker_id, 'public'::name as functions where note()".to_owned(),
            "It is not a table."),
        ("drop sequence snowflake_ids.plain_last; create view snowflake_ids.plain_last as
             select 1::bigint as last_value, 0::bigint as log_cnt, note() as is_called".to_owned(),
            "It is not a sequence."),
        ("create index on snowflake_ids.plain_segment ((quiet(1)))".to_owned(), "It has an index of an expression."),
        ("create index on snowflake_ids.plain_segment (tag) where quiet(1) = 1".to_owned(), "It has an index of an expression."),
        ("create statistics snowflake_ids.about on tag, sequence from snowflake_ids.plain_segment".to_owned(),
            "It has statistics of its own."),
        ("create trigger noted before update on snowflake_ids.plain for each row execute function noted()".to_owned(),
            "It has a trigger."),
        ("create rule noted as on update to snowflake_ids.plain do also select note()".to_owned(), "It has a rule."),
        ("alter table snowflake_ids.plain_segment enable row level security".to_owned(), "It has row security."),
        ("create table below () inherits (snowflake_ids.plain_segment)".to_owned(), "Other tables are above or below it."),
        (format!("{segment} table snowflake_ids.plain_segment (tag text, sequence text)"), "Its columns are others."),
        ("update snowflake_ids.plain_segment set sequence = 'v'::regclass where tag = 't'".to_owned(), "It is said to be public.v."),
        ("update snowflake_ids.plain_segment set sequence = 'ran'::regclass where tag = 't'".to_owned(), "It is said to be public.ran."),
        ("update snowflake_ids.plain set functions = 'elsewhere'".to_owned(), "Looked for are those that role \"app\" owns."),
    ] {
        client.run("begin; set local session authorization app")?;
        client.batch_execute(&change).with_context(|| change.clone())?;
        client.run("set local session authorization default; select setval('ran', 5)")?;
        let error = client.fails(&script("to_extension.sql")?, sql::NOT_IN_STATE)?;
        assert_eq!(error.detail(), Some(detail), "{change}: {error:?}");
        assert!(error.hint().is_some(), "{change}: {error:?}");
        client.run("rollback")?;
        assert_eq!(client.one::<i64>("select last_value from ran")?, 5, "{change}");
    }
    // The plain objects look unchanged. The traps are a CHECK constraint that the planner would evaluate, and a search path with
    // the owner's functions.
    owner.run(
        "alter database one set constraint_exclusion = on;
         alter table snowflake_ids.plain_segment add check (quiet(1) = 1);
         create function format(text, name) returns text language plpgsql as $$ begin perform note(); return $1; end $$;
         create function quote_ident(name) returns text language plpgsql as $$ begin perform note(); return $1; end $$;
         select setval('ran', 5)",
    )?;
    // Another role's table has a default that also calls a function that is not the extension's.
    client.run(
        "create role other;
         create table o (id bigint default snowflake_id() + quiet(1));
         alter table o owner to other",
    )?;
    let mut client = server.connect("one")?;
    client.run(&format!("begin; {}; commit", script("to_extension.sql")?))?;
    assert_eq!(client.one::<i64>("select last_value from ran")?, 5);
    let default: String =
        client.one("select pg_get_expr(adbin, adrelid) from pg_attrdef where adrelid = 'o'::regclass")?;
    assert_eq!(default, "(snowflake_id() + quiet(1))");
    fill(&mut session(&server, "one")?)?;
    Ok(())
}

/// On a server with the library, a worker id need not be a number.
#[test]
fn a_worker_id_that_is_no_number_is_named() -> Result<()> {
    let mut server = plain(&[])?;
    let mut client = server.connect("postgres")?;
    let without =
        format!("begin; set local snowflake_ids.worker_id = 'auto'; {}", script("snowflake_ids.sql")?);
    client.explained(
        &without,
        &SqlState::INVALID_PARAMETER_VALUE,
        "invalid value for snowflake_ids.worker_id: \"auto\"",
    )?;
    server.set("shared_preload_libraries", "snowflake_ids")?;
    server.set("snowflake_ids.worker_id", "auto")?;
    server.restart()?;
    let mut client = server.connect("postgres")?;
    client.explained(
        &format!("begin; {}", script("snowflake_ids.sql")?),
        sql::NOT_IN_STATE,
        "the server has the library of snowflake_ids",
    )?;
    Ok(())
}
