//! A login may create objects in a schema on every user's path. The login plants functions and operators there that match better
//! than Postgres's own. None of them runs when superusers use the extension.

use snowflake_ids_server_tests::prelude::*;
use snowflake_ids_server_tests::server::Server;

/// Plants each operator for all pairs of some types, and each function of `pg_catalog` with other argument types than its own. Each
/// of these traps records the role that called it.
const TRAPS: &str = "
    create role mallory login;
    grant create, usage on schema public to mallory;
    create table public.loot (who name, what text);
    grant insert on public.loot to public;
    set role mallory;
    set search_path = pg_catalog, public;
    create function public.note(what text) returns void language plpgsql as
        $$ begin insert into public.loot values (current_user, what); end $$;
    do $$
    declare
        types regtype[] := '{bool,\"char\",name,int2,int4,int8,float8,numeric,text,varchar,oid,regclass,regproc,regrole,date,timestamptz,interval,jsonb}';
        plain regtype[] := '{int4,int8,text,name,oid,regclass,float8,numeric,timestamptz}';
        one regtype;
        other regtype;
        op record;
        called record;
        arguments text;
    begin
        foreach one in array types loop
            foreach other in array types loop
                execute format('create function public.trap(%1$s, %2$s) returns bool language plpgsql as
                    $body$begin perform public.note(%3$L); return null; end$body$', one, other, pg_catalog.concat('operator on ', one, ', ', other));
                for op in select distinct oprname from pg_catalog.pg_operator
                    where oprname in ('=', '<>', '<', '>', '<=', '>=', '+', '-', '*', '/', '%', '||', '~~', '->', '->>', '?')
                loop
                    begin
                        execute format('create operator public.%s (leftarg = %s, rightarg = %s, function = public.trap)',
                            op.oprname, one, other);
                    exception when others then null;
                    end;
                end loop;
            end loop;
        end loop;
        for called in select distinct p.proname, p.pronargs from pg_catalog.pg_proc p
            where p.pronamespace = 'pg_catalog'::regnamespace and p.pronargs between 0 and 3
              and p.proname in ('format', 'left', 'lower', 'random', 'clock_timestamp', 'coalesce', 'greatest', 'now',
                  'set_config', 'current_setting', 'current_database', 'pg_get_userbyid', 'array_to_string', 'unnest',
                  'date_trunc', 'trunc', 'floor', 'quote_ident', 'quote_literal', 'starts_with', 'cardinality', 'count', 'max',
                  'has_table_privilege', 'pg_backend_pid', 'pg_has_role', 'replace', 'octet_length', 'ceil', 'setval', 'nextval',
                  'to_regclass', 'pg_get_expr', 'pg_get_serial_sequence', 'jsonb_build_object', 'to_jsonb', 'convert_from',
                  'convert_to', 'jsonb_populate_record', 'pg_extension_config_dump', 'snowflake_nextval', 'segment_nextval')
        loop
            foreach one in array plain loop
                arguments := (select string_agg(one::text, ', ') from generate_series(1, called.pronargs));
                begin
                    execute format('create function public.%I(%s) returns %s language plpgsql as
                        $body$begin perform public.note(%L); return null; end$body$', called.proname, arguments, one,
                        pg_catalog.concat(called.proname, '(', arguments, ')'));
                exception when others then null;
                end;
            end loop;
        end loop;
        create function public.format(text, text, text) returns text language plpgsql as
            'begin perform public.note(''format''); return null; end';
        create function public.format(text, text, int8) returns text language plpgsql as
            'begin perform public.note(''format''); return null; end';
    end $$;
    reset role;
    reset search_path;";

/// Statements of superusers.
const USES: [&str; 26] = [
    "create extension snowflake_ids",
    "select snowflake_nextval()",
    "select snowflake_ids.segment_create('a'), snowflake_ids.segment_create('b', reset => 'day', time_zone => 'Europe/Berlin')",
    "select segment_nextval('a'), segment_nextval('b'), segment_nextval_text('b')",
    "select snowflake_ids.segment_alter('a', step => 20), snowflake_ids.segment_set('a', 5000)",
    "select snowflake_ids.segment_raise('a', 9000)",
    "insert into snowflake_ids.segment (tag) values ('by hand')",
    "update snowflake_ids.segment set max_id = 500 where tag operator(pg_catalog.=) 'by hand'",
    "select * from snowflake_ids.segment_status",
    "select * from snowflake_ids.status",
    "select * from snowflake_ids.registry_status",
    "select snowflake_ids.segment_grant('a', 'mallory', 'ALL'), snowflake_ids.segment_revoke('a', 'mallory', 'ALL')",
    "create table rows (id bigserial primary key); insert into rows select from generate_series(1, 10)",
    "select * from snowflake_ids.attach_plan()",
    "call snowflake_ids.attach_all()",
    "select 1 operator(pg_catalog./) pg_catalog.count(*) from snowflake_ids.attach_plan() where relation operator(pg_catalog.=)
         'rows'::regclass and found operator(pg_catalog.=) 'attached'",
    "call snowflake_ids.detach_all()",
    "select snowflake_ids.attach('rows', 'id')",
    "insert into rows default values",
    "select snowflake_ids.detach('rows', 'id')",
    "select snowflake_ids.attach('rows', 'id', kind => 'segment')",
    "select snowflake_ids.administration_grant('state', 'mallory'), snowflake_ids.administration_revoke('state', 'mallory')",
    "select snowflake_ids.segment_drop('a')",
    "select snowflake_decode(snowflake_nextval()), snowflake_encode(1, 'base62')",
    "select snowflake_ids.use_local_registry()",
    "drop extension snowflake_ids cascade",
];

/// The roles that called a trap, except the login that planted it.
fn caught(client: &mut Client) -> Result<Vec<String>> {
    client.column("select distinct pg_catalog.concat(who, ': ', what) from public.loot where who operator(pg_catalog.<>) 'mallory'")
}

fn what_others_planted_in_public_never_runs(server: &mut Server) -> Result<()> {
    let mut client = server.connect("postgres")?;
    client.run(TRAPS)?;
    // The traps work: a call without a schema finds them.
    client.run("select pg_catalog.set_config('search_path', 'public', false); select format('%s%s', 'x'::text, 'y'::text)")?;
    assert_eq!(caught(&mut client)?, ["postgres: format"]);
    client.run("delete from public.loot; reset search_path")?;
    for statement in USES {
        client.batch_execute(statement).map_err(|error| anyhow::anyhow!("{statement}: {error:?}"))?;
        assert_eq!(caught(&mut client)?, Vec::<String>::new(), "{statement}");
    }
    Ok(())
}

/// A login's own database with the extension, and a trap that records its caller.
fn own_database(server: &Server) -> Result<Client> {
    let mut client = server.connect("postgres")?;
    client.run("create role holder login")?;
    client.run("create database held owner holder")?;
    let mut holder = server.config("held").user("holder").connect(NoTls)?;
    holder.run(
        "create extension snowflake_ids; create schema own;
         select snowflake_ids.series_create('g'), snowflake_ids.generator_create('web', 'twitter');
         create table own.loot (who name);
         create function own.trap() returns boolean language plpgsql as
             $$ begin insert into own.loot values (current_user); return true; end $$;
         create function own.trigger() returns trigger language plpgsql as
             $$ begin perform own.trap(); return new; end $$",
    )?;
    Ok(holder)
}

/// Calls that wait for a lock of the extension, each with the objects that the owner creates in place of the extension's objects.
const WAITERS: [(&str, &str); 2] = [
    (
        "select series_nextval('g', 1::bigint)",
        "create table snowflake_ids.series_bigint as table own.series_bigint;
         create trigger trap before update on snowflake_ids.series_bigint for each row execute function own.trigger()",
    ),
    (
        "select snowflake_ids_internal.generator_keep('web')",
        "create view snowflake_ids.generator as select * from own.generator where own.trap()",
    ),
];

fn who_drops_the_extension_has_no_code_of_theirs_run_with_other_rights(server: &mut Server) -> Result<()> {
    for (call, planted) in WAITERS {
        server.renew()?;
        let mut holder = own_database(server)?;
        let mut waiter = server.config("held").user("holder").connect(NoTls)?;
        // The session caches the objects of the call.
        waiter.run(&format!("{call}; {call}"))?;
        holder.run(&format!(
            "create table own.series_bigint as table snowflake_ids.series_bigint;
             create table own.generator as table snowflake_ids.generator;
             begin; drop extension snowflake_ids cascade; create schema snowflake_ids; {planted}"
        ))?;
        let called = server.while_waiting(
            &mut waiter,
            |waiter| waiter.batch_execute(call),
            || holder.run("commit"),
        )?;
        let error =
            called.err().with_context(|| format!("{call}: it has used what is not the extension's"))?;
        assert_eq!(error.code(), Some(sql::NOT_IN_STATE), "{call}: {error:?}");
        assert_eq!(holder.column::<String>("select who::text from own.loot")?, [""; 0], "{call}");
        // The trap works when it is called.
        holder.run("select own.trap()")?;
        assert_eq!(holder.column::<String>("select who::text from own.loot")?, ["holder"]);
    }
    Ok(())
}

fn temporary_tables_of_others_keep_nothing_in_place(server: &mut Server) -> Result<()> {
    let mut client = server.session()?;
    client.run(
        "create role login_only login;
         select snowflake_ids.generator_create('web');
         select snowflake_ids.series_create('invoices');
         create table counted (id bigserial);
         select snowflake_ids.bind_sequence('counted_id_seq', 'segment', 'counted');
         insert into counted select from generate_series(1, 5)",
    )?;
    // This role may only create temporary tables.
    let mut other = server.config("postgres").user("login_only").connect(NoTls)?;
    other.run(
        "create temp table generated (id bigint default snowflake_nextval('web'), note text);
         create temp table numbered (tenant bigint, number bigint);
         select snowflake_ids.series_attach('numbered', 'number', 'invoices', 'tenant');
         create temp table taken (id bigint default segment_nextval('counted'), typed snowflake_id);
         create domain pg_temp.taken_too as bigint default segment_nextval('counted')",
    )?;
    // The session's own temporary table prevents the drop of the generator; other sessions' temporary tables do not.
    client.run("create temp table own (id bigint default snowflake_nextval('web'))")?;
    client.fails("select snowflake_ids.generator_drop('web')", &SqlState::DEPENDENT_OBJECTS_STILL_EXIST)?;
    client.run(
        "drop table own;
         select snowflake_ids.generator_drop('web');
         select snowflake_ids.series_drop('invoices');
         truncate counted restart identity",
    )?;
    ensure!(client.one::<i64>("select nextval('counted_id_seq')")? == 1, "it was not restarted");
    for insert in [
        "insert into generated (note) values ('late')",
        "insert into numbered (tenant) values (1)",
        "select snowflake_nextval('web')",
    ] {
        other.fails(insert, &SqlState::UNDEFINED_OBJECT)?;
    }
    client.run("drop extension snowflake_ids cascade")
}

fn tables_that_others_have_locked_are_not_waited_for(server: &mut Server) -> Result<()> {
    let mut client = server.session()?;
    client.run(
        "create role login_only login; create role tenant login; create schema app; create schema other authorization tenant;
         create table app.t1 (id bigserial); create table app.t2 (id bigserial check (id > 0));
         create table app.t3 (id integer default segment_nextval('app.t1'))",
    )?;
    let mut other = server.config("postgres").user("login_only").connect(NoTls)?;
    other.run(
        "create temp table x (id bigint default snowflake_nextval(), tagged integer default segment_nextval('app.t1'));
         begin; lock table x",
    )?;
    let mut tenant = server.config("postgres").user("tenant").connect(NoTls)?;
    tenant.run(
        "create table other.x (id bigint default snowflake_nextval(), tagged bigint default segment_nextval('app.t1'));
         begin; lock table other.x",
    )?;
    client.run("set statement_timeout = '20s'")?;
    let left = "select relation::text || ' ' || action || ' ' || reason from snowflake_ids.attach_plan('app')
        where reason is not null order by 1";
    assert_eq!(client.column::<String>(left)?, ["app.t3 skip takes segment ids"]);
    client.run("select count(*) from snowflake_ids.attach_plan()")?;
    client.run("call snowflake_ids.attach_all('app', 'segment')")?;
    client.run("call snowflake_ids.detach_all('app')")?;
    let mut holder = server.session()?;
    holder.run("begin; lock table app.t2")?;
    assert_eq!(
        client.column::<String>(
            "select relation::text || ' ' || action from snowflake_ids.attach_plan('app') order by 1"
        )?,
        ["app.t1 attach", "app.t2 attach", "app.t3 skip"]
    );
    Ok(())
}

#[test]
fn what_others_made_never_runs() -> Result<()> {
    Server::builder().cases(cases![
        what_others_planted_in_public_never_runs,
        who_drops_the_extension_has_no_code_of_theirs_run_with_other_rights,
        temporary_tables_of_others_keep_nothing_in_place,
        tables_that_others_have_locked_are_not_waited_for
    ])
}
