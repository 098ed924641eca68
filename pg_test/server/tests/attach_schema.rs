//! `attach_all` and `detach_all` of a schema in use, and columns that are attached when they are created.

use snowflake_ids_server_tests::ids::unique;
use snowflake_ids_server_tests::installation::Installation;
use snowflake_ids_server_tests::prelude::*;
use std::sync::atomic::{AtomicBool, Ordering};

const TABLES: usize = 120;

/// Tables that refer to each other. Some of them share a sequence.
const SCHEMA: &str = "
    create schema app;
    create sequence app.common;
    create function app.make(number int) returns void language plpgsql as $$
    begin
        execute format('create table app.t%s (id %s primary key%s, other bigint%s)', number,
            (array['bigserial', 'bigint generated always as identity', 'bigint'])[number % 3 + 1],
            case number % 3 when 2 then ' default nextval(''app.common'')' else '' end,
            case when number > 0 then format(' references app.t%s', number - 1) else '' end);
    end
    $$;";

fn schema(server: &Server) -> Result<Vec<String>> {
    let dump = server.dump_as("postgres", "postgres", &["--schema-only", "--schema=app"])?;
    // Newer versions of pg_dump write lines that begin with a backslash and contain a random key.
    Ok(dump.lines().filter(|line| !line.starts_with('\\')).map(str::to_owned).collect())
}

/// Tables with a column that a repeated call would attach or bind.
const LEFT: &str =
    "select relation::text from snowflake_ids.attach_plan('app') where action <> 'skip' order by 1";

fn a_schema_in_use_is_attached_but_for_a_table_that_is_locked(server: &mut Server) -> Result<()> {
    let server = &*server;
    let mut client = server.session()?;
    client.run(SCHEMA)?;
    client.run(&format!("select app.make(i) from generate_series(0, {}) i", TABLES - 1))?;
    client.run("insert into app.t0 default values")?;
    let before = schema(server)?;
    assert_eq!(client.column::<String>(LEFT)?.len(), TABLES);
    let mut holder = server.session()?;
    holder.run("begin; lock table app.t9 in access share mode")?;
    let ends = AtomicBool::new(false);
    let ids = thread::scope(|scope| -> Result<Vec<(usize, i64)>> {
        let inserting: Vec<_> = (0..3)
            .map(|session| {
                let ends = &ends;
                scope.spawn(move || -> Result<Vec<(usize, i64)>> {
                    let mut client = server.session()?;
                    let mut ids = Vec::new();
                    for turn in session.. {
                        if ends.load(Ordering::Relaxed) {
                            break;
                        }
                        let table = turn * 7 % TABLES;
                        let insert = format!("insert into app.t{table} (other) values (null) returning id");
                        ids.push((table, client.one(&insert)?));
                    }
                    Ok(ids)
                })
            })
            .collect();
        client.run("set lock_timeout = '500ms'; set client_min_messages = error")?;
        // On a busy machine, an insert may lock a table for long. The call then skips this table too.
        let mut called = client.run("call snowflake_ids.attach_all('app')");
        for _ in 0..20 {
            if called.is_err() || client.column::<String>(LEFT)? == ["app.t9"] {
                break;
            }
            called = client.run("call snowflake_ids.attach_all('app')");
        }
        ends.store(true, Ordering::Relaxed);
        called?;
        let ids: Result<Vec<_>> = inserting.into_iter().map(Ends::ended).collect();
        Ok(ids?.concat())
    })?;
    ensure!(ids.len() > TABLES, "only {} rows were inserted meanwhile", ids.len());
    assert_eq!(client.column::<String>(LEFT)?, ["app.t9"]);
    holder.run("commit")?;
    client.run("call snowflake_ids.attach_all('app')")?;
    assert_eq!(client.column::<String>(LEFT)?, Vec::<String>::new());
    // Columns that share a sequence never had the same number.
    unique(ids.iter().filter(|(table, _)| table % 3 == 2).map(|(_, id)| *id).collect())?;
    for table in [0, 1, 2, 9] {
        let id: i64 = client.one(&format!("insert into app.t{table} (other) values (null) returning id"))?;
        ensure!(id > 1 << 40, "{id} in table {table} is no snowflake id");
    }
    client.run("call snowflake_ids.detach_all('app')")?;
    assert_eq!(schema(server)?, before);
    Ok(())
}

/// A tenant owns the database and the extension. The tenant may drop the extension between two groups of tables, and create
/// functions with the extension's names.
fn functions_planted_between_groups_are_not_called(server: &mut Server) -> Result<()> {
    let mut client = server.session()?;
    client.run(
        "create role tenant login; grant create on database postgres to tenant; drop extension snowflake_ids",
    )?;
    let mut tenant = server.config("postgres").user("tenant").connect(NoTls)?;
    tenant.run(
        "create extension snowflake_ids; create schema app; create table app.loot (who name);
         grant all on schema app to public; grant insert on app.loot to public",
    )?;
    for call in ["attach_all", "detach_all"] {
        tenant.run("create table app.t1 (id bigserial); create table app.t2 (id bigserial); create table app.t3 (id bigserial)")?;
        if call == "detach_all" {
            client.run("call snowflake_ids.attach_all('app', 'segment')")?;
        }
        let mut holder = server.session()?;
        holder.run("begin; lock table app.t2 in access share mode")?;
        let process = client.process()?;
        let error = thread::scope(|scope| -> Result<_> {
            let calling = scope.spawn(|| client.error(&format!("call snowflake_ids.{call}('app')")));
            server.wait_for_lock(process)?;
            let planting = scope.spawn(|| {
                tenant.run(
                    "begin; drop extension snowflake_ids cascade; create schema snowflake_ids; create schema snowflake_ids_internal;
                     create function snowflake_ids_internal.change_columns(oid[], int2[], oid, text) returns void language sql as
                         'insert into app.loot values (current_user)';
                     commit",
                )
            });
            let waiting = "select exists (select from pg_locks where not granted and locktype = 'object')";
            server.connect("postgres")?.becomes_true(waiting)?;
            holder.run("commit")?;
            planting.ended()?;
            calling.ended()
        })?;
        ensure!(
            [
                SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE,
                SqlState::UNDEFINED_TABLE,
                SqlState::UNDEFINED_OBJECT
            ]
            .contains(error.code()),
            "{call}: {error:?}"
        );
        assert_eq!(
            tenant.column::<String>("select who::text from app.loot")?,
            Vec::<String>::new(),
            "{call}"
        );
        tenant.run(
            "drop schema snowflake_ids, snowflake_ids_internal cascade; create extension snowflake_ids;
             drop table app.t1, app.t2, app.t3",
        )?;
    }
    Ok(())
}

fn what_changes_between_the_plan_and_its_group_is_left(server: &mut Server) -> Result<()> {
    let mut client = server.session()?;
    client.run(
        "create schema app;
         create table app.t1 (id bigserial); create table app.t2 (id bigserial); create table app.t3 (id bigserial);
         create table app.t4 (id bigserial); create table app.t5 (id bigserial)",
    )?;
    let mut other = server.session()?;
    other.run("create temp table passing (id bigserial); begin; lock table app.t1 in access share mode")?;
    let changes = "drop table app.t2;
        alter table app.t3 drop column id; alter table app.t3 add column id bigint default 7;
        alter sequence app.t4_id_seq owned by none; alter table app.t4 alter id set default 7;
        commit";
    server.while_waiting(
        &mut client,
        |client| client.run("call snowflake_ids.attach_all(kind => 'segment')"),
        || other.run(changes),
    )??;
    let defaults: Vec<String> = client.column(
        "select pg_get_expr(adbin, adrelid) from pg_attrdef where adrelid in
             ('app.t1'::regclass, 'app.t3'::regclass, 'app.t4'::regclass, 'app.t5'::regclass) order by adrelid",
    )?;
    let attached = |table| format!("segment_nextval('app.{table}'::text)");
    assert_eq!(defaults, [attached("t1"), "7".to_owned(), "7".to_owned(), attached("t5")]);
    // No role can attach temporary tables of other sessions.
    assert_eq!(
        client.column::<String>(
            "select relation::text from snowflake_ids.attach_plan() where action <> 'skip'"
        )?,
        Vec::<String>::new()
    );
    Ok(())
}

#[test]
fn a_schema_is_attached_in_one_call() -> Result<()> {
    Server::builder().cases(cases![
        a_schema_in_use_is_attached_but_for_a_table_that_is_locked,
        functions_planted_between_groups_are_not_called,
        what_changes_between_the_plan_and_its_group_is_left
    ])
}

#[test]
fn new_columns_of_an_extensions_script_stay_as_it_makes_them() -> Result<()> {
    let installation = Installation::new()?;
    installation.put_extension("maker", "create table made (id bigserial)")?;
    let (_server, mut client) = Server::builder()
        .installation(&installation)
        .set("snowflake_ids.new_columns", "snowflake")
        .with_session()?;
    client.run("create extension maker; create table own (id bigserial)")?;
    let found: Vec<String> = client.column(
        "select pg_get_expr(adbin, adrelid) from pg_attrdef where adrelid in ('made'::regclass, 'own'::regclass) order by 1",
    )?;
    assert_eq!(found, ["nextval('made_id_seq'::regclass)", "snowflake_nextval()"]);
    Ok(())
}

#[test]
fn new_columns_of_two_servers_never_have_the_same_id() -> Result<()> {
    let mut ids: Vec<i64> = Vec::new();
    for worker in ["1", "2"] {
        let (server, mut client) = Server::builder()
            .set("snowflake_ids.worker_id", worker)
            .set("snowflake_ids.new_columns", "snowflake")
            .with_session()?;
        client.run(
            "create table t (id bigserial primary key, note text);
             insert into t (note) select 'x' from generate_series(1, 5000);
             alter table t add column other bigint generated always as identity;
             insert into t (note) select 'y' from generate_series(1, 5000);
             set snowflake_ids.new_columns = off; create table counted (id bigserial, other bigint generated always as identity)",
        )?;
        ids.extend(client.column::<i64>("select id from t union all select other from t where note = 'y'")?);
        // A restore keeps unattached columns as they are.
        let dump = server.dump().context("a dump")?;
        client.run("create database copy")?;
        server.restore("copy", &dump)?;
        let found: Vec<String> = server.connect("copy")?.column(
            "select relation::text || '.' || \"column\" || ' ' || found from snowflake_ids.attach_plan('public') order by 1",
        )?;
        assert_eq!(
            found,
            ["counted.id serial", "counted.other identity", "t.id attached", "t.other attached"]
        );
    }
    unique(ids)
}
