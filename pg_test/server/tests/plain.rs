//! The functions in plain SQL, on a server that does not have the library loaded, and from there to the extension.

use anyhow::{Context, Result, ensure};
use postgres::Client;
use postgres::error::SqlState;
use snowflake_ids_server_tests::sessions::at_once;
use snowflake_ids_server_tests::{Server, ids, sql};
use std::path::PathBuf;

/// A script of `sql/plain`.
fn script(name: &str) -> Result<String> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../sql/plain").join(name);
    std::fs::read_to_string(&path).with_context(|| path.display().to_string())
}

/// A server without the library, and databases of an ordinary role that have the functions, each with a worker id of its own.
fn plain(databases: &[&str]) -> Result<Server> {
    let server = Server::builder().without_preload().without("snowflake_ids.worker_id").start()?;
    let mut client = server.connect("postgres")?;
    client.batch_execute("create role app login; grant pg_execute_server_program to app")?;
    for (worker, database) in databases.iter().enumerate() {
        client.batch_execute(&format!("create database {database} owner app"))?;
        let mut owner = session(&server, database)?;
        owner.batch_execute(&format!("begin; set local snowflake_ids.worker_id = {}", worker + 3))?;
        owner.batch_execute(&script("snowflake_ids.sql")?)?;
        owner.batch_execute(
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
    client.batch_execute("set session authorization app")?;
    Ok(client)
}

fn fill(client: &mut Client) -> Result<Vec<i64>> {
    let mut taken: Vec<i64> =
        sql::column(client, "insert into s (note) select 'a' from generate_series(1, 500) returning id")?;
    taken.extend(sql::column::<i64>(client, "select snowflake_nextvals(500)")?);
    taken.push(sql::one(client, "select snowflake_id()")?);
    assert_eq!(sql::one::<i64>(client, "select snowflake_lastval()")?, taken[taken.len() - 1]);
    ids::growing(&taken)?;
    taken.extend(sql::column::<i64>(
        client,
        "insert into t (note) select 'a' from generate_series(1, 100) returning other",
    )?);
    client.batch_execute(
        "copy s (note) from program 'printf \"a\\nb\\n\"'; insert into p (note) values ('a')",
    )?;
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
        ids::dense(sql::column(&mut client, "select id from t")?)?;
        assert_eq!(sql::one::<i64>(&mut client, "select count(*) from t")?, sessions * 100);
        assert_eq!(sql::one::<i64>(&mut client, "select min(id) from p")?, 1000);
    }
    Ok(())
}

#[test]
fn what_is_read_of_an_id_is_what_it_was_made_of() -> Result<()> {
    let server = plain(&["one"])?;
    let mut client = session(&server, "one")?;
    client.batch_execute("select snowflake_nextval()")?;
    let right = "select snowflake_worker_id(id) = 3 and snowflake_datacenter_id(id) = 0
        and abs(extract(epoch from clock_timestamp() - snowflake_timestamp(id))) < 3600
        and id between snowflake_min_id(snowflake_timestamp(id)) and snowflake_max_id(snowflake_timestamp(id))
        and id = snowflake_compose(snowflake_timestamp(id), 0, 3, snowflake_sequence(id))
        from snowflake_lastval() id";
    assert!(sql::one::<bool>(&mut client, right)?);
    client.batch_execute("select snowflake_ids.worker_set(1, 9)")?;
    let (before, after): (i64, i64) = (
        sql::one(&mut client, "select snowflake_lastval()")?,
        sql::one(&mut client, "select snowflake_nextval()")?,
    );
    ensure!(after > before, "{after} after {before}");
    let node =
        "select array[snowflake_datacenter_id(id), snowflake_worker_id(id)] from snowflake_lastval() id";
    assert_eq!(sql::one::<Vec<i32>>(&mut client, node)?, [1, 9]);
    Ok(())
}

/// Neither a rollback nor a clock that was behind the last id has it come again.
#[test]
fn nothing_comes_twice_after_a_rollback_or_a_step_of_the_clock() -> Result<()> {
    let server = plain(&["one"])?;
    let mut client = session(&server, "one")?;
    client.batch_execute("begin")?;
    let mut taken = fill(&mut client)?;
    client.batch_execute("rollback")?;
    taken.extend(fill(&mut client)?);
    ids::unique(taken)?;
    // As if the clock had been an hour ahead, and the millisecond were used up.
    client.batch_execute(
        "select setval('snowflake_ids.plain_last', snowflake_max_id(clock_timestamp() + interval '1 hour'))",
    )?;
    let ahead: i64 = sql::one(&mut client, "select last_value from snowflake_ids.plain_last")?;
    let next: Vec<i64> = sql::column(&mut client, "select snowflake_nextvals(5000)")?;
    ids::growing(&next)?;
    ensure!(next[0] > ahead, "{} after {ahead}", next[0]);
    Ok(())
}

/// A call that is cancelled leaves no lock behind, and a transaction that goes on holds none.
#[test]
fn no_session_waits_for_another() -> Result<()> {
    let server = plain(&["one"])?;
    let (mut one, mut two) = (session(&server, "one")?, session(&server, "one")?);
    one.batch_execute("begin; select snowflake_nextval(), segment_nextval('t')")?;
    two.batch_execute("set statement_timeout = '30s'; select snowflake_nextval(), segment_nextval('t')")?;
    one.batch_execute("set local statement_timeout = '50ms'")?;
    sql::fails(&mut one, "select snowflake_nextvals(2000000)", &SqlState::QUERY_CANCELED)?;
    two.batch_execute("select snowflake_nextval()")?;
    one.batch_execute("rollback")?;
    let locks = "select count(*) from pg_locks where locktype = 'advisory'";
    assert_eq!(sql::one::<i64>(&mut two, locks)?, 0);
    Ok(())
}

#[test]
fn other_roles_take_ids_and_change_nothing() -> Result<()> {
    let server = plain(&["one"])?;
    let mut client = server.connect("one")?;
    client.batch_execute("create role web; set session authorization web")?;
    client.batch_execute(
        "select snowflake_nextval(), segment_nextval('t'), segment_currval('t'), snowflake_lastval()",
    )?;
    for call in [
        "select snowflake_ids.segment_create('u')",
        "select snowflake_ids.segment_drop('t')",
        "select snowflake_ids.worker_set(0, 0)",
        "select setval('snowflake_ids.plain_last', 1)",
        "delete from snowflake_ids.plain_segment",
    ] {
        sql::fails(&mut client, call, &SqlState::INSUFFICIENT_PRIVILEGE)?;
    }
    for call in ["select segment_nextval('unknown')", "select segment_nextval(null)"] {
        sql::fails(&mut client, call, &SqlState::UNDEFINED_OBJECT)?;
    }
    Ok(())
}

#[test]
fn the_extension_goes_on_above_all_ids_that_were_given() -> Result<()> {
    let mut server = plain(&["one"])?;
    let mut taken = fill(&mut session(&server, "one")?)?;
    sql::fails(
        &mut server.connect("one")?,
        &format!("begin; {}", script("to_extension.sql")?),
        sql::NOT_IN_STATE,
    )?;
    taken.extend(fill(&mut session(&server, "one")?)?);
    server.set("shared_preload_libraries", "snowflake_ids")?;
    server.restart()?;
    let mut client = server.connect("one")?;
    client.batch_execute(&format!("begin; {}; commit", script("to_extension.sql")?))?;
    taken.extend(fill(&mut session(&server, "one")?)?);
    ids::unique(taken)?;
    ids::dense(sql::column(&mut client, "select id from t")?)?;
    let defaults: Vec<String> = sql::column(
        &mut client,
        "select distinct pg_get_expr(adbin, adrelid) from pg_attrdef
         where adrelid in ('s'::regclass, 't'::regclass, 'p'::regclass) order by 1",
    )?;
    assert_eq!(
        defaults,
        ["segment_id('late'::text)", "segment_nextval('t'::text)", "snowflake_id()", "snowflake_nextval()"]
    );
    let left = "select count(*) from pg_proc where pronamespace = 'public'::regnamespace";
    assert_eq!(sql::one::<i64>(&mut client, left)?, 0);
    assert_eq!(sql::column::<i64>(&mut client, "select id from p order by id")?, [1000, 1001, 1002]);
    Ok(())
}

/// All of it happens or nothing.
#[test]
fn what_cannot_go_over_stays_as_it_is() -> Result<()> {
    let mut server = plain(&["one"])?;
    server.set("shared_preload_libraries", "snowflake_ids")?;
    server.restart()?;
    let mut client = server.connect("one")?;
    let over = format!("begin; {}", script("to_extension.sql")?);
    client.batch_execute("create view v as select snowflake_nextval() as id")?;
    sql::fails(&mut client, &over, &SqlState::DEPENDENT_OBJECTS_STILL_EXIST)?;
    client.batch_execute("rollback; drop view v")?;
    client.batch_execute(
        "select setval('snowflake_ids.plain_last', snowflake_max_id(clock_timestamp() + interval '1 hour'))",
    )?;
    sql::explained(&mut client, &over, sql::NOT_IN_STATE, "the clock is behind ids that were given")?;
    client.batch_execute("rollback; insert into s (note) values ('a')")?;
    assert_eq!(sql::one::<i64>(&mut client, "select count(*) from s")?, 1);
    Ok(())
}

/// A superuser who goes over to the extension runs no code of the database's owner.
#[test]
fn what_the_owner_has_changed_is_refused_and_never_runs() -> Result<()> {
    let mut server = plain(&["one"])?;
    server.set("shared_preload_libraries", "snowflake_ids")?;
    server.restart()?;
    let (mut owner, mut client) = (session(&server, "one")?, server.connect("one")?);
    owner.batch_execute(
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
        client.batch_execute("begin; set local session authorization app")?;
        client.batch_execute(&change).with_context(|| change.clone())?;
        client.batch_execute("set local session authorization default; select setval('ran', 5)")?;
        let error = sql::fails(&mut client, &script("to_extension.sql")?, sql::NOT_IN_STATE)?;
        assert_eq!(error.detail(), Some(detail), "{change}: {error:?}");
        assert!(error.hint().is_some(), "{change}: {error:?}");
        client.batch_execute("rollback")?;
        assert_eq!(sql::one::<i64>(&mut client, "select last_value from ran")?, 5, "{change}");
    }
    // What cannot be seen in the plain objects: a check that planning would compute, and a path with functions of the owner's.
    owner.batch_execute(
        "alter database one set constraint_exclusion = on;
         alter table snowflake_ids.plain_segment add check (quiet(1) = 1);
         create function format(text, name) returns text language plpgsql as $$ begin perform note(); return $1; end $$;
         create function quote_ident(name) returns text language plpgsql as $$ begin perform note(); return $1; end $$;
         select setval('ran', 5)",
    )?;
    // A table of another role, whose default calls a function beside ours.
    client.batch_execute(
        "create role other;
         create table o (id bigint default snowflake_id() + quiet(1));
         alter table o owner to other",
    )?;
    let mut client = server.connect("one")?;
    client.batch_execute(&format!("begin; {}; commit", script("to_extension.sql")?))?;
    assert_eq!(sql::one::<i64>(&mut client, "select last_value from ran")?, 5);
    let default: String = sql::one(
        &mut client,
        "select pg_get_expr(adbin, adrelid) from pg_attrdef where adrelid = 'o'::regclass",
    )?;
    assert_eq!(default, "(snowflake_id() + quiet(1))");
    fill(&mut session(&server, "one")?)?;
    Ok(())
}

/// A server that has the library, where a worker id need be no number.
#[test]
fn a_worker_id_that_is_no_number_is_named() -> Result<()> {
    let mut server = plain(&[])?;
    let mut client = server.connect("postgres")?;
    let without =
        format!("begin; set local snowflake_ids.worker_id = 'auto'; {}", script("snowflake_ids.sql")?);
    sql::explained(
        &mut client,
        &without,
        &SqlState::INVALID_PARAMETER_VALUE,
        "invalid value for snowflake_ids.worker_id: \"auto\"",
    )?;
    server.set("shared_preload_libraries", "snowflake_ids")?;
    server.set("snowflake_ids.worker_id", "auto")?;
    server.restart()?;
    let mut client = server.connect("postgres")?;
    sql::explained(
        &mut client,
        &format!("begin; {}", script("snowflake_ids.sql")?),
        sql::NOT_IN_STATE,
        "the server has the library of snowflake_ids",
    )?;
    Ok(())
}
