//! A role that may only create objects in a database drops the extension in the middle of a statement. The role plants its own
//! tables, functions and views under the extension's names. The library reads and runs only objects of the extension.

use snowflake_ids_server_tests::prelude::*;

/// Tables with the extension's names and one row each. Their columns have other types: numbers in place of texts. Read as text
/// addresses, these numbers are invalid.
const PLANTED: &str = r#"
    drop extension snowflake_ids cascade;
    create schema snowflake_ids;
    create table snowflake_ids.segment (tag text collate "C" primary key, max_id text, increment text, remainder text, reset bigint);
    insert into snowflake_ids.segment values ('tg', 'many', 'many', 'many', 77), ('restricted', 'many', 'many', 'many', 77);
    create table snowflake_ids.segment_restricted (tag text collate "C" primary key);
    insert into snowflake_ids.segment_restricted values ('tg'), ('restricted');
    create table snowflake_ids.segment_privilege (tag text collate "C", grantee oid, privileges bigint, primary key (tag, grantee));
    insert into snowflake_ids.segment_privilege values ('tg', 0, 77), ('restricted', 0, 77);
    create table snowflake_ids.generator
        (name text collate "C" primary key, layout bigint, modulus text, remainder text, sequence_start bigint, cache text);
    insert into snowflake_ids.generator values ('web', 77, 'many', 'many', 77, 'many');
    create table snowflake_ids.series (name text collate "C" primary key, kind bigint, key_type bigint, start text, max_value text,
        reset bigint, time_zone bigint, format bigint, restricted text, id text, step text, max_step text, sections text);
    insert into snowflake_ids.series
        select name, 77, 77, 'many', 'many', 77, 77, 77, 'many', 'many', 'many', 'many', 'many'
        from unnest('{gapless,monotonic,restricted}'::text[]) as name;
    create table snowflake_ids.series_privilege (series bigint, grantee oid, privileges bigint, primary key (series, grantee));
    insert into snowflake_ids.series_privilege values (1, 0, 77);
    create table snowflake_ids.series_bigint (series bigint, key bigint, last_value text, period bigint, primary key (series, key));
    insert into snowflake_ids.series_bigint values (1, 1, 'many', 77);
    create table snowflake_ids.registry_server (position text primary key, server bigint, identity bigint);
    insert into snowflake_ids.registry_server values ('many', 77, 77);
    create table snowflake_ids.received (identity bigint, tag bigint, primary key (identity, tag));
    insert into snowflake_ids.received values (77, 77);
    create table snowflake_ids.sequence_binding (sequence text primary key, tag bigint, generator bigint);
    insert into snowflake_ids.sequence_binding values ('sq', 77, 77);
    create table snowflake_ids.worker_lease (datacenter_id text primary key);
    insert into snowflake_ids.worker_lease values ('many');"#;

/// The tables, each with a query that reads it for the first row and again for each later row `i`.
const READERS: [(&str, &str); 10] = [
    ("segment_restricted", "snowflake_ids.has_segment_privilege('tg', 'USAGE')"),
    ("segment_privilege", "snowflake_ids.has_segment_privilege('restricted', 'USAGE')"),
    ("segment", "segment_nextval('tg')"),
    ("registry_server and received", "segment_nextval(case i when 1 then 'tg' else 'nowhere' end)"),
    ("audit's", AUDIT),
    ("generator", "snowflake_nextval('web')"),
    ("series and series_bigint", "series_nextval('gapless', 1::bigint)"),
    ("series of a key in memory", "series_nextval('monotonic', i::bigint)"),
    ("series_privilege", "series_nextval('restricted', 1::bigint)"),
    ("sequence_binding", "nextval('sq')"),
];

/// Reads the extension's tables at each call.
const AUDIT: &str = "(select max(t.increment) from snowflake_ids_internal.audit_tag(left('tg', i + 1)) as t)";

/// A session of a role that may create objects in its database and owns the extension. The objects for its calls exist.
fn tenant(server: &Server) -> Result<Client> {
    server
        .connect("postgres")?
        .run("create role tenant login; grant create on database postgres to tenant")?;
    let mut tenant = connect(server)?;
    tenant.run("create extension snowflake_ids; create schema tenant; create table tenant.own (id bigint); create sequence tenant.sq")?;
    server.connect("postgres")?.run(
        "select snowflake_ids.segment_create('tg'), snowflake_ids.segment_create('restricted', owner => 'tenant'),
             snowflake_ids.generator_create('web', 'twitter'), snowflake_ids.bind_sequence('tenant.sq', 'segment'),
             snowflake_ids.series_create('gapless'), snowflake_ids.series_create('monotonic', 'monotonic'),
             snowflake_ids.series_create('restricted', owner => 'tenant')",
    )?;
    tenant.run("set search_path = tenant")?;
    Ok(tenant)
}

fn connect(server: &Server) -> Result<Client> {
    Ok(server.config("postgres").user("tenant").connect(NoTls)?)
}

/// Checks that the error names what is missing, and that the session continues.
#[track_caller]
fn check(client: &mut Client, what: &str, error: &DbError) -> Result<()> {
    // Without the extension, the sequence is only the server's own, and is at its end.
    let is_at_end =
        what == "sequence_binding" && *error.code() == SqlState::SEQUENCE_GENERATOR_LIMIT_EXCEEDED;
    let meant = [SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE, SqlState::UNDEFINED_TABLE];
    ensure!(is_at_end || meant.contains(error.code()), "{what}: {error:?}");
    client.batch_execute("rollback").context(what.to_owned())?;
    assert_eq!(client.one::<i32>("select 1")?, 1, "{what}");
    Ok(())
}

/// Objects to plant for a call. A role that owns the table of tags needs no rights on tags. So calls that check rights find no
/// planted table of tags.
fn planted_for(call: &str) -> String {
    let is_of_rights = call.contains("has_segment_privilege");
    format!("{PLANTED}{}", if is_of_rights { "drop table snowflake_ids.segment" } else { "" })
}

/// Begins a transaction with a cursor that has fetched one row of the call.
fn open(client: &mut Client, call: &str) -> Result<()> {
    client.run(&format!(
        "begin; declare c cursor for select {call} from generate_series(1, 100) as i; fetch 1 from c"
    ))
}

fn one_transaction_of_all(server: &mut Server) -> Result<()> {
    server
        .connect("postgres")?
        .run("create role tenant login; grant create on database postgres to tenant")?;
    let mut tenant = connect(server)?;
    tenant.run("begin; create extension snowflake_ids")?;
    let call = "snowflake_ids.has_segment_privilege('tg', 'USAGE')";
    tenant
        .run(&format!("declare c cursor for select {call} from generate_series(1, 100); fetch 1 from c"))?;
    tenant.run(&planted_for(call))?;
    let error = tenant.error("fetch 1 from c")?;
    check(&mut tenant, "the transaction that created the extension", &error)
}

fn tables_that_a_cursor_meets(server: &mut Server) -> Result<()> {
    let mut tenant = tenant(server)?;
    for (what, call) in READERS {
        open(&mut tenant, call).with_context(|| what.to_owned())?;
        tenant.run(&planted_for(call))?;
        let error = tenant.error("fetch 1 from c").with_context(|| what.to_owned())?;
        check(&mut tenant, what, &error)?;
    }
    Ok(())
}

fn tables_that_a_loop_meets(server: &mut Server) -> Result<()> {
    let mut tenant = tenant(server)?;
    for (what, call) in READERS {
        // The loop fetches ten rows in advance.
        let call = call.replace("case i when 1", "case when i <= 10");
        let planted = planted_for(&call);
        let error = tenant.error(&format!(
            "begin; do $do$ declare r record; begin
                     for r in select i, {call} from generate_series(1, 100) as i loop
                         if r.i = 1 then execute $planted${planted}$planted$; end if;
                     end loop;
                 end $do$"
        ));
        check(&mut tenant, what, &error.with_context(|| what.to_owned())?)?;
    }
    Ok(())
}

/// Changes by the owner of all tables, with the calls that find them.
const ALTERED: [(&str, &str, &str); 6] = [
    (
        "segment_privilege",
        "alter table snowflake_ids.segment_privilege alter column privileges type bigint using 77",
        "snowflake_ids.has_segment_privilege('restricted', 'USAGE')",
    ),
    (
        "segment_privilege",
        "alter table snowflake_ids.segment_privilege rename column privileges to rights",
        "snowflake_ids.has_segment_privilege('restricted', 'USAGE')",
    ),
    (
        "segment_privilege",
        "alter table snowflake_ids.segment_privilege drop column privileges",
        "snowflake_ids.has_segment_privilege('restricted', 'USAGE')",
    ),
    (
        "registry_server",
        "alter extension snowflake_ids drop table snowflake_ids.registry_server;
         alter table snowflake_ids.registry_server rename to former;
         create table snowflake_ids.registry_server as select 0 as position, 77::bigint as server, 'r'::text as identity;
         alter extension snowflake_ids add table snowflake_ids.registry_server",
        AUDIT,
    ),
    (
        "registry_server",
        "alter extension snowflake_ids drop table snowflake_ids.registry_server;
         alter table snowflake_ids.registry_server rename to former;
         create view snowflake_ids.registry_server as select position, server, identity from snowflake_ids.former;
         alter extension snowflake_ids add view snowflake_ids.registry_server",
        AUDIT,
    ),
    (
        "generator",
        "alter extension snowflake_ids drop table snowflake_ids.generator;
         alter table snowflake_ids.generator rename to former;
         create table snowflake_ids.generator (like snowflake_ids.former including all) partition by range (name);
         alter extension snowflake_ids add table snowflake_ids.generator",
        "snowflake_nextval('web')",
    ),
];

fn tables_that_their_owner_alters(server: &mut Server) -> Result<()> {
    tenant(server)?;
    let mut owner = server.connect("postgres")?;
    for (table, alter, call) in ALTERED {
        // For a superuser, the rights on tags would not be read.
        owner.run("set role tenant")?;
        open(&mut owner, call).with_context(|| alter.to_owned())?;
        owner
            .batch_execute(&format!("reset role; {alter}; set role tenant"))
            .with_context(|| alter.to_owned())?;
        let error = owner.error("fetch 1 from c").with_context(|| alter.to_owned())?;
        let message = format!(
            "table \"snowflake_ids.{table}\" differs from its definition in extension \"snowflake_ids\""
        );
        sql::explains(&error, sql::NOT_IN_STATE, &message)?;
        check(&mut owner, alter, &error)?;
        owner.run("reset role")?;
    }
    Ok(())
}

/// A function that drops the extension, and plants a stub for each of its internal functions.
const STUBS: &str = "
    create function tenant.trap(boolean) returns boolean language plpgsql as 'begin raise exception $$planted$$; end';
    create function tenant.swap() returns void language plpgsql as $do$
    declare stubs text;
    begin
        select string_agg(format($$create function snowflake_ids_internal.%I(%s) returns %s language plpgsql as
                'begin perform tenant.trap(true); %s end'$$, proname, pg_get_function_arguments(p.oid),
                pg_get_function_result(p.oid), case when prorettype = 'void'::regtype then ''
                    when proretset or 'o' = any (proargmodes) then 'return;' else 'return null;' end), ';')
            into stubs from pg_proc p
            where pronamespace = 'snowflake_ids_internal'::regnamespace and prorettype <> 'trigger'::regtype
                and pg_get_function_arguments(p.oid) || pg_get_function_result(p.oid) !~ 'snowflake_id';
        drop extension snowflake_ids cascade;
        create schema snowflake_ids_internal;
        grant usage on schema snowflake_ids_internal to public;
        execute stubs;
    end $do$";

/// Functions that run with a superuser's rights, for roles with a part of the administration. The first call lets the session
/// cache the objects that all these functions use. So the session learns of the drop only when a function begins.
const DEFINED: [&str; 6] = [
    "snowflake_ids_internal.generator_keep('web')",
    "snowflake_ids.segment_create('new')",
    "snowflake_ids.series_create('new')",
    "snowflake_ids.use_local_registry()",
    "snowflake_ids.use_registry('elsewhere')",
    "snowflake_ids.worker_release(5)",
];

/// Functions that run with a calling superuser's rights.
const INVOKED: [&str; 8] = [
    "snowflake_ids.administration_grant('tags', 'tenant')",
    "snowflake_ids.administration_revoke('tags', 'tenant')",
    "snowflake_ids.generator_create('new')",
    "snowflake_ids.generator_alter('web', cache => 5)",
    "snowflake_ids.attach('tenant.own', 'id')",
    "snowflake_ids.detach('tenant.own', 'id')",
    "snowflake_ids.series_attach('tenant.own', 'id', 'gapless', 'id')",
    "snowflake_ids.series_detach('tenant.own', 'id')",
];

/// The first objects that these functions name, each planted as a trap.
const TRAPS: &str = "
    select tenant.swap();
    create schema snowflake_ids;
    grant usage on schema snowflake_ids to public;
    create domain snowflake_ids.worker_lease as boolean check (tenant.trap(value));
    create domain snowflake_ids.generator as boolean check (tenant.trap(value))";

fn functions_that_a_waiting_call_meets(server: &mut Server) -> Result<()> {
    for call in &DEFINED[1..] {
        server.renew()?;
        let tenant = tenant(server)?;
        server.connect("postgres")?.run(
            "select snowflake_ids.administration_grant(part, 'tenant')
             from unnest('{tags,generators,series,registry,state}'::text[]) as part",
        )?;
        let waiter = connect(server)?;
        run_what_is_planted(server, tenant, waiter, call)?;
    }
    for call in INVOKED {
        server.renew()?;
        let tenant = tenant(server)?;
        let waiter = server.connect("postgres")?;
        run_what_is_planted(server, tenant, waiter, call)?;
    }
    Ok(())
}

/// Fails if a call waits while the extension is replaced, and then runs planted objects.
#[track_caller]
fn run_what_is_planted(server: &Server, mut tenant: Client, mut waiter: Client, call: &str) -> Result<()> {
    tenant.run(STUBS)?;
    waiter.run(&format!("select {}", DEFINED[0]))?;
    tenant.run("select pg_advisory_lock(1)")?;
    let statement = format!("select pg_advisory_lock(1), {call}");
    let error = server.while_waiting(
        &mut waiter,
        |waiter| waiter.error(&statement),
        || {
            tenant.run(TRAPS)?;
            tenant.run("select pg_advisory_unlock(1)")
        },
    )??;
    ensure!(error.message() != "planted", "{call} has run what is not the extension's: {error:?}");
    Ok(())
}

/// Functions that superusers call and that run with their rights.
const CALLED: [&str; 3] = [
    "select snowflake_ids.layout_change('twitter', 'web')",
    "select snowflake_ids.status_page()",
    "call snowflake_ids.use_citus()",
];

/// The objects whose locks these functions wait for, each planted as a trap.
const VIEWS: &str = "
    create function tenant.trap() returns boolean language plpgsql as 'begin raise exception $$planted$$; end';
    drop extension snowflake_ids cascade;
    create schema snowflake_ids;
    create view snowflake_ids.generator as select 'web'::text as name, ''::text as layout where tenant.trap();
    create view snowflake_ids.status as select 1 as datacenter_id where tenant.trap();
    create view snowflake_ids.registry_server as select 'r'::name as server, 0 as position where tenant.trap()";

fn views_that_a_superuser_meets(server: &mut Server) -> Result<()> {
    for call in CALLED {
        server.renew()?;
        let mut tenant = tenant(server)?;
        let mut superuser = server.connect("postgres")?;
        tenant.run(&format!("begin; {VIEWS}"))?;
        let error = server.while_waiting(
            &mut superuser,
            |superuser| superuser.error(call),
            || tenant.run("commit"),
        )??;
        assert_eq!(error.code(), sql::NOT_IN_STATE, "{call}: {error:?}");
    }
    Ok(())
}

/// Functions that superusers call on another role's table, and that read or change it.
const FOLDED: [&str; 5] = [
    "snowflake_ids.attach('tenant.orders', 'id')",
    "snowflake_ids.attach('tenant.orders', 'id', 'segment')",
    "snowflake_ids.detach('tenant.attached', 'id')",
    "snowflake_ids.series_attach('tenant.orders', 'number', 'gapless', 'tenant')",
    "snowflake_ids.audit('tenant.orders', 'id')",
];

/// Creates an index whose computation replaces the extension while another role reads the table.
const INDEXES: &str = "
    create function tenant.fold(integer) returns integer immutable language plpgsql as $$
    begin
        if session_user <> 'tenant' and to_regprocedure('pg_catalog.snowflake_extension_keep()') is not null then
            perform tenant.swap();
        end if;
        return 1;
    end $$;
    create index on tenant.orders (tenant.fold(1));
    create index on tenant.attached (tenant.fold(1))";

fn an_index_that_a_superuser_meets(server: &mut Server) -> Result<()> {
    for call in FOLDED {
        server.renew()?;
        let mut tenant = tenant(server)?;
        let mut superuser = server.connect("postgres")?;
        tenant.run(
            "create table tenant.orders (id bigserial, tenant bigint, number bigint); create table tenant.attached (id bigserial);
             insert into tenant.orders default values; insert into tenant.attached default values",
        )?;
        superuser.run("select snowflake_ids.attach('tenant.attached', 'id')")?;
        tenant.run(STUBS)?;
        tenant.run(INDEXES)?;
        let error = superuser.error(&format!("select {call}")).context(call)?;
        let message = "extension \"snowflake_ids\" no longer exists";
        sql::explains(&error, sql::NOT_IN_STATE, message).context(call)?;
        let is_there = "select count(*) from pg_extension where extname = 'snowflake_ids'";
        assert_eq!(superuser.one::<i64>(is_there)?, 1, "{call}");
    }
    Ok(())
}

fn a_partition_key_that_a_superuser_meets(server: &mut Server) -> Result<()> {
    let mut tenant = tenant(server)?;
    tenant.run(
        "create function tenant.key(bigint) returns bigint immutable language plpgsql as $$
         begin
             if session_user <> 'tenant' and (select rolsuper from pg_roles where rolname = current_user) then
                 raise exception 'planted';
             end if;
             return 1;
         end $$;
         create table tenant.parts (id bigint, number bigint) partition by list ((tenant.key(8) + id))",
    )?;
    let attach = "select snowflake_ids.series_attach('tenant.parts', 'number', 'gapless', 'id')";
    let message = "cannot attach table tenant.parts, which is partitioned by an expression";
    server.connect("postgres")?.explained(attach, &SqlState::FEATURE_NOT_SUPPORTED, message).map(drop)
}

#[test]
fn what_is_planted_never_runs() -> Result<()> {
    Server::builder().cases(cases![
        one_transaction_of_all,
        tables_that_a_cursor_meets,
        tables_that_a_loop_meets,
        tables_that_their_owner_alters,
        functions_that_a_waiting_call_meets,
        views_that_a_superuser_meets,
        an_index_that_a_superuser_meets,
        a_partition_key_that_a_superuser_meets
    ])
}
