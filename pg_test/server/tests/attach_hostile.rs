//! A superuser attaches and detaches tables of roles that try to get superuser rights.

use snowflake_ids_server_tests::prelude::*;

/// Mallory's hostile code. It runs as any role that can be lured into running it, records that role under `what`, and takes the
/// role's rights if possible. The functions that call this code are declared immutable, so that the planner runs them.
const LOOTING: &str = "
    create table hostile.loot (who name default current_user, what text);
    grant insert on hostile.loot to public;
    create function hostile.note() returns boolean language sql as
        $$ insert into hostile.loot (what) values ('later') returning true $$;
    create function hostile.fire_later() returns trigger language plpgsql as
        $$ begin perform hostile.note(); return null; end $$;
    create table hostile.mine (id integer);
    create constraint trigger later after insert on hostile.mine deferrable initially deferred
        for each row execute function hostile.fire_later();
    create function hostile.grab(what text) returns void language plpgsql as $$
    declare
        attempt text;
    begin
        insert into hostile.loot (what) values ($1);
        foreach attempt in array array['alter role mallory superuser', 'reset role', 'set role postgres',
            'reset session authorization', 'set session authorization postgres', 'alter role mallory superuser',
            'create temp table left_behind ()', 'listen left_behind', 'prepare left_behind as select 1',
            'insert into hostile.mine values (1)',
            'declare left_behind cursor with hold for select hostile.note()', 'create temp view left_behind as select 1',
            'set search_path = hostile', 'set constraint_exclusion = off', 'set statement_timeout = 1234'] loop
            begin
                execute attempt;
            exception when others then null;
            end;
        end loop;
        insert into hostile.loot (what) values ($1);
    end
    $$;
    create function hostile.evil(n bigint) returns bigint immutable language plpgsql as $$
    begin
        perform hostile.grab('number');
        return $1;
    end
    $$;
    create function hostile.evil_text(n text) returns text immutable language plpgsql as $$
    begin
        perform hostile.grab('text');
        return $1;
    end
    $$;
    create function hostile.evil_check(n bigint) returns boolean immutable language plpgsql as $$
    begin
        perform hostile.grab('check');
        return true;
    end
    $$;
    create domain hostile.domain as bigint check (hostile.evil_check(value));
";

/// Tables with hostile code. Each setup creates `hostile.t (id bigint, note text)` with rows, as mallory.
const ATTACKS: &[(&str, &str)] = &[
    (
        "an index on an expression",
        "create table hostile.t (id bigint not null, note text);
         create index on hostile.t ((id + hostile.evil(1)))",
    ),
    (
        "an index on the column, where a predicate holds",
        "create table hostile.t (id bigint not null, note text);
         create index on hostile.t (id) where hostile.evil_check(1)",
    ),
    (
        "an index on a column that is computed",
        "create table hostile.t (id bigint not null, note text);
         create index on hostile.t (hostile.evil_text(note))",
    ),
    (
        "an index on a domain",
        "create table hostile.t (id bigint not null, note text);
         create index on hostile.t ((1::hostile.domain))",
    ),
    (
        "a check",
        "create table hostile.t (id bigint not null, note text, check (hostile.evil_check(1) and id > hostile.evil(0)))",
    ),
    ("a column of a domain", "create table hostile.t (id bigint not null, note text, other hostile.domain default 1)"),
    (
        "a generated column",
        "create table hostile.t (id bigint not null, note text,
                                other bigint generated always as (hostile.evil(1) + id) stored)",
    ),
    (
        "defaults",
        "create table hostile.t (id bigint not null default hostile.evil(1),
                                note text default hostile.evil_text('x'), other bigint default hostile.evil(2))",
    ),
    (
        "a policy",
        "create table hostile.t (id bigint not null, note text);
         alter table hostile.t enable row level security, force row level security;
         create policy evil on hostile.t using (hostile.evil_check(id) and hostile.evil_check(1))",
    ),
    (
        "a trigger",
        "create table hostile.t (id bigint not null, note text);
         create function hostile.fire() returns trigger language plpgsql as
             $$ begin perform hostile.grab('trigger'); return new; end $$;
         create trigger evil before insert or update on hostile.t for each statement execute function hostile.fire();
         create constraint trigger later after insert or update on hostile.t deferrable initially deferred
             for each row execute function hostile.fire()",
    ),
    (
        "a rule",
        "create table hostile.t (id bigint not null, note text);
         create rule evil as on insert to hostile.t do also select hostile.evil(1)",
    ),
    (
        "a child",
        "create table hostile.t (id bigint not null, note text);
         create table hostile.child (check (hostile.evil_check(1))) inherits (hostile.t);
         create index on hostile.child ((id + hostile.evil(1)))",
    ),
    (
        "a key of partitions",
        "create table hostile.t (id bigint not null, note text) partition by range ((id + hostile.evil(0)));
         create table hostile.child partition of hostile.t for values from (minvalue) to (maxvalue);
         create index on hostile.child (id) where hostile.evil_check(1)",
    ),
    (
        "a sequence that looks like the column's",
        "create table hostile.t (id bigserial, note text);
         alter sequence hostile.t_id_seq owned by none; alter table hostile.t alter column id drop default;
         alter sequence hostile.t_id_seq rename to s;
         create view hostile.t_id_seq as
             select hostile.evil(1) as last_value, hostile.evil_check(1) as is_called",
    ),
    (
        "a serial",
        "create table hostile.t (id bigserial primary key, note text);
         create index on hostile.t (id) where hostile.evil_check(1)",
    ),
    (
        "an identity",
        "create table hostile.t (id bigint generated always as identity primary key, note text);
         create index on hostile.t (id) where hostile.evil_check(1)",
    ),
];

/// Calls of audit, attach and detach, made one after another.
const CALLS: &[&str] = &[
    "audit('hostile.t', 'id')",
    "attach('hostile.t', 'id', kind => 'segment', sequence => 'keep')",
    "detach('hostile.t', 'id')",
    "attach('hostile.t', 'id', kind => 'segment')",
    "attach('hostile.t', 'id')",
    "detach('hostile.t', 'id', kind => 'none')",
    "attach('hostile.t', 'id', kind => 'segment')",
    "detach('hostile.t', 'id', kind => 'identity')",
    "attach('hostile.t', 'id', kind => 'segment', sequence => 'keep')",
    "detach('hostile.t', 'id', kind => 'identity')",
];

/// Opens a session of the superuser and one of mallory, who has created his code.
fn sessions(server: &Server) -> Result<(Client, Client)> {
    let mut client = server.session()?;
    client.run(
        "set constraint_exclusion = on;
         create role mallory login; create role alice login;
         create schema hostile authorization mallory; grant usage on schema hostile to public",
    )?;
    let mut mallory = server.connect_as("mallory", "")?;
    mallory.run(LOOTING)?;
    Ok((client, mallory))
}

/// Checks that code ran only with this role's rights, and that the session is unchanged.
fn check_loot(client: &mut Client, whose: &str, what: &str) -> Result<()> {
    let others = format!(
        "select format('%s with the rights of %s', what, who) from hostile.loot where who <> '{whose}'"
    );
    let others: Vec<String> = client.column(&others)?;
    ensure!(others.is_empty(), "{what}: {others:?}");
    ensure!(!client.one::<bool>("select rolsuper from pg_roles where rolname = 'mallory'")?, "{what}");
    let session = "select current_user || ',' || session_user || ',' || current_setting('search_path') || ','
                       || current_setting('statement_timeout') || ',' || current_setting('constraint_exclusion')";
    let session: String = client.one(session)?;
    assert_eq!(session, "postgres,postgres,\"$user\", public,2min,on", "{what}");
    let left =
        "select count(*) from pg_class where relname = 'left_behind' and relnamespace = pg_my_temp_schema()";
    assert_eq!(client.one::<i64>(left)?, 0, "{what}");
    let left = "select (select count(*) from pg_prepared_statements where name = 'left_behind')
                     + (select count(*) from pg_listening_channels())
                     + (select count(*) from pg_cursors where name = 'left_behind')";
    assert_eq!(client.one::<i64>(left)?, 0, "{what}");
    Ok(())
}

fn code_of_a_tables_owner_runs_with_no_more_than_the_owners_rights(server: &mut Server) -> Result<()> {
    let (mut client, mut mallory) = sessions(server)?;
    let mut ran = 0;
    for (attack, setup) in ATTACKS {
        mallory.batch_execute(setup).with_context(|| setup.to_string())?;
        mallory.run("insert into hostile.t (id, note) overriding system value values (1, 'x'), (2, 'y')")?;
        check_loot(&mut client, "mallory", attack)?;
        mallory.run("truncate hostile.loot")?;
        for call in CALLS {
            client
                .batch_execute(&format!("select snowflake_ids.{call}"))
                .with_context(|| format!("{attack}: {call}"))?;
            check_loot(&mut client, "mallory", &format!("{attack}: {call}"))?;
        }
        if client.one::<i64>("select count(*) from hostile.loot")? > 0 {
            ran += 1;
        }
        mallory.run(
            "drop table hostile.t cascade; drop view if exists hostile.t_id_seq;
                                 drop function if exists hostile.fire(); drop sequence if exists hostile.s",
        )?;
        client.run("select snowflake_ids.segment_drop(tag) from snowflake_ids.segment")?;
    }
    // At least some of the code runs for any role that reads the table, so the test is valid.
    ensure!(ran >= 4, "only {ran} of the tables had code that was run");
    Ok(())
}

/// A temporary table of mallory in the superuser's session.
fn code_of_a_temporary_table_runs_with_no_more_than_its_owners_rights(server: &mut Server) -> Result<()> {
    let (mut client, mut mallory) = sessions(server)?;
    client.run(
        "set role mallory;
         create temp table t (id bigint not null, note text);
         create index on t (id) where hostile.evil_check(1);
         reset role",
    )?;
    mallory.run("truncate hostile.loot")?;
    for call in CALLS {
        let call = call.replace("hostile.t", "pg_temp.t");
        client.batch_execute(&format!("select snowflake_ids.{call}")).with_context(|| call.clone())?;
        check_loot(&mut client, "mallory", &call)?;
    }
    ensure!(client.one::<i64>("select count(*) from hostile.loot")? > 0, "no code was run");
    Ok(())
}

/// A child of alice's table may be mallory's. Reading alice's table must not run mallory's code as alice.
fn code_of_a_childs_owner_runs_with_no_more_than_that_owners_rights(server: &mut Server) -> Result<()> {
    let (mut client, mut mallory) = sessions(server)?;
    client.run(
        "create schema fair authorization alice;
         set session authorization alice;
         create table fair.t (id bigint not null, note text);
         grant usage on schema fair to mallory;
         reset session authorization;
         set role alice; create table fair.child () inherits (fair.t); reset role;
         alter table fair.child owner to mallory;
         grant create on schema fair to mallory",
    )?;
    mallory.run(
        "create index on fair.child (id) where hostile.evil_check(1);
         insert into fair.child values (41, 'x');
         truncate hostile.loot",
    )?;
    client.run("select snowflake_ids.attach('fair.t', 'id', 'segment')")?;
    check_loot(&mut client, "mallory", "attach")?;
    let next = "insert into fair.child default values returning id";
    assert_eq!(mallory.one::<i64>(next)?, 42);
    client.run("set role alice; insert into fair.t default values; reset role")?;
    assert_eq!(client.one::<i64>("select id from only fair.t")?, 43);
    client.run("select snowflake_ids.detach('fair.t', 'id')")?;
    check_loot(&mut client, "mallory", "detach")?;
    ensure!(client.one::<i64>("select count(*) from hostile.loot")? > 0, "no code was run");
    let owner: String =
        client.one("select sequenceowner::text from pg_sequences where sequencename = 't_id_seq'")?;
    assert_eq!(owner, "alice");
    // Alice does not own mallory's child table, so her own call is refused.
    client.run(
        "grant usage on schema snowflake_ids to alice;
         grant execute on all functions in schema snowflake_ids, snowflake_ids_internal to alice;
         grant all on snowflake_ids.segment to alice;
         set session authorization alice",
    )?;
    let refused = client
        .fails("select snowflake_ids.attach('fair.t', 'id', 'segment')", &SqlState::INSUFFICIENT_PRIVILEGE)?;
    assert_eq!(refused.message(), "must be owner of table fair.child");
    Ok(())
}

/// A session checks the table again after waiting for its lock. By then the table may be a view, or belong to another role.
fn a_table_that_changes_while_its_lock_is_waited_for_is_looked_at_again(server: &mut Server) -> Result<()> {
    let (mut client, mut mallory) = sessions(server)?;
    let version: i32 = client.one("select current_setting('server_version_num')::integer")?;
    let into_view = "create rule \"_RETURN\" as on select to hostile.t do instead
                         select hostile.evil(7) as id, 'x'::text as note";
    let by_rename = "alter table hostile.t rename to aside;
                     create view hostile.t as select hostile.evil(7) as id, 'x'::text as note";
    let sequence = "alter sequence hostile.t_id_seq rename to aside_seq;
                    create view hostile.t_id_seq as
                        select hostile.evil(1) as last_value, hostile.evil_check(1) as is_called";
    let mut changes = vec![
        (by_rename, None),
        (sequence, None),
        ("drop table hostile.t", Some("42P01")),
        ("alter table hostile.t drop column id", Some("42703")),
        ("alter table hostile.t alter column id type text", Some("22023")),
    ];
    if version < 160_000 {
        changes.push((into_view, Some("42809")));
    }
    for (change, expected) in changes {
        mallory.run("create table hostile.t (id bigserial, note text); truncate hostile.loot")?;
        let mut other = server.connect_as("mallory", "")?;
        other.run(&format!("begin; {change}"))?;
        let attach = "select snowflake_ids.attach('hostile.t', 'id', 'segment')";
        let attached = server.while_waiting(
            &mut server.session()?,
            |adopter| adopter.batch_execute(attach),
            || other.run("commit"),
        )?;
        let error = attached.as_ref().err().and_then(|error| error.code().map(SqlState::code));
        assert_eq!(error, expected, "{change}");
        check_loot(&mut client, "mallory", change)?;
        drop(other);
        mallory
            .batch_execute("drop view if exists hostile.t")
            .or_else(|_| mallory.batch_execute("drop table if exists hostile.t"))?;
        mallory.run("drop table if exists hostile.aside; drop view if exists hostile.t_id_seq")?;
    }
    Ok(())
}

/// The internal functions of attach give no further rights to a role that may call them.
fn the_parts_of_attach_refuse_tables_of_others(server: &mut Server) -> Result<()> {
    let (mut client, mut mallory) = sessions(server)?;
    client.run(
        "create table public.precious (id bigserial);
         grant usage on schema snowflake_ids, snowflake_ids_internal to mallory;
         grant execute on all functions in schema snowflake_ids_internal to mallory",
    )?;
    for call in [
        "as_owner('precious'::regclass, 'alter role mallory superuser')",
        "as_owner('pg_authid'::regclass, 'alter role mallory superuser')",
        "lock_relation('precious'::regclass)",
        "lock_relation('pg_authid'::regclass)",
        "sequence_position('precious_id_seq'::regclass)",
        "create_sequence_for('precious'::regclass, 'create sequence hostile.s')",
        "lock_table('precious'::regclass)",
        "sequence_move('precious_id_seq'::regclass, 1, true)",
        "stored_id('precious', 'id')",
        "drop_sequences('precious', 'id')",
    ] {
        mallory.fails(&format!("select snowflake_ids_internal.{call}"), &SqlState::INSUFFICIENT_PRIVILEGE)?;
    }
    for (call, code) in [
        ("as_owner('hostile.loot'::regclass, 'reset role')", SqlState::INSUFFICIENT_PRIVILEGE),
        ("as_owner('hostile.loot'::regclass, 'commit')", SqlState::INVALID_PARAMETER_VALUE),
        ("as_owner('hostile.loot'::regclass, 'select ''x''')", SqlState::INVALID_PARAMETER_VALUE),
        ("as_owner('hostile.loot'::regclass, repeat('x', 1000000))", SqlState::INVALID_PARAMETER_VALUE),
        (
            "create_sequence_for('hostile.loot'::regclass, repeat('x', 1073741800))",
            SqlState::INVALID_PARAMETER_VALUE,
        ),
        ("as_owner(0, 'select 1')", SqlState::UNDEFINED_TABLE),
        ("create_sequence_for('hostile.loot'::regclass, 'select 1')", SqlState::INVALID_PARAMETER_VALUE),
        ("create_sequence_for('hostile.loot'::regclass, '')", SqlState::INVALID_PARAMETER_VALUE),
    ] {
        let refused = mallory.error(&format!("select snowflake_ids_internal.{call}"))?;
        assert_eq!(refused.code(), &code, "{call}: {refused:?}");
    }
    Ok(())
}

/// A default may name anybody's sequence. When a superuser attaches the column, that sequence is not bound for the column's
/// owner.
fn a_sequence_of_another_is_not_bound_for_a_table(server: &mut Server) -> Result<()> {
    let mut superuser = server.session()?;
    superuser.run(
        "create role victim; create role tenant; create schema v authorization victim; create schema t authorization tenant;
         grant usage on schema v to tenant;
         set role victim; create sequence v.numbers; create sequence v.bound; reset role;
         select snowflake_ids.bind_sequence('v.bound', 'segment', 'bound');
         set role tenant;
         create table t.of_numbers (id bigint primary key default nextval('v.numbers'));
         create table t.of_bound (id bigint primary key default nextval('v.bound')); insert into t.of_bound values (1000000);
         create table t.of_tag (id bigint primary key default segment_nextval('bound')); insert into t.of_tag values (1000000);
         reset role; select snowflake_ids.attach('t.of_tag', 'id', 'segment')",
    )?;
    for (table, sequence) in [("of_numbers", "numbers"), ("of_bound", "bound")] {
        let attach = format!("select snowflake_ids.attach('t.{table}', 'id', 'segment')");
        let message = format!("table owner must be owner of sequence \"v.{sequence}\"");
        superuser.explained(&attach, &SqlState::INSUFFICIENT_PRIVILEGE, &message)?;
    }
    let numbers = superuser.query_one("select nextval('v.numbers'), nextval('v.bound')", &[])?;
    assert_eq!((numbers.get::<_, i64>(0), numbers.get::<_, i64>(1)), (1, 1));
    Ok(())
}

/// Without the argument `tag`, the tag comes from a parent's default or from the table's name. This tag may belong to another
/// role.
fn a_tag_of_another_is_not_moved_for_a_table(server: &mut Server) -> Result<()> {
    let mut superuser = server.session()?;
    superuser.run(
        "create role victim; create role tenant; create schema t authorization tenant; create schema v authorization tenant;
         select snowflake_ids.segment_create('taken', owner => 'victim'), snowflake_ids.segment_create('v.items', owner => 'victim'),
             snowflake_ids.segment_create('v.numbers', owner => 'victim'), snowflake_ids.segment_create('v.shared', owner => 'victim');
         set role tenant;
         create table t.parent (id bigint default segment_nextval('taken'));
         create table t.child () inherits (t.parent);
         alter table t.child alter id set default segment_nextval('taken'); insert into t.child values (1000000);
         create table v.items (id bigint); insert into v.items values (1000000);
         create sequence v.numbers start 1000000; create sequence v.shared start 1000000;
         create table v.of_shared (id bigint default nextval('v.shared'));
         reset role",
    )?;
    for (call, tag) in [
        ("attach('v.items', 'id', 'segment')", "v.items"),
        ("attach('v.of_shared', 'id', 'segment')", "v.shared"),
        ("bind_sequence('v.numbers', 'segment')", "v.numbers"),
    ] {
        let message = format!("permission denied for segment tag \"{tag}\"");
        superuser.explained(
            &format!("select snowflake_ids.{call}"),
            &SqlState::INSUFFICIENT_PRIVILEGE,
            &message,
        )?;
    }
    // The table gets a tag of its own.
    superuser.run("select snowflake_ids.attach('t.child', 'id', 'segment')")?;
    for tag in ["taken", "v.items", "v.shared", "v.numbers"] {
        let number: i64 = superuser.one(&format!("select segment_nextval('{tag}')"))?;
        assert_eq!(number, 1, "{tag}");
    }
    Ok(())
}

/// A default may name any sequence by its OID. The default has no effect if the table's owner lacks rights on the sequence. It
/// also has none if the table is another session's temporary table.
fn a_default_without_a_right_to_a_sequence_shares_it_with_nobody(server: &mut Server) -> Result<()> {
    let mut superuser = server.session()?;
    superuser.run(
        "create role plain; create schema p authorization plain; create schema v; create table v.items (id bigserial primary key)",
    )?;
    let sequence: i64 = superuser.one("select 'v.items_id_seq'::regclass::oid::bigint")?;
    let narrow = format!("(id smallint default nextval('{sequence}'::regclass))");
    superuser.run(&format!("set role plain; create table p.narrow {narrow}; reset role"))?;
    let mut temporary = server.session()?;
    temporary.run(&format!("create temp table narrow {narrow}"))?;
    superuser.run("select snowflake_ids.attach('v.items', 'id', 'segment')")?;
    let most = "select max_value from snowflake_ids.segment where tag = 'v.items'";
    assert_eq!(superuser.one::<i64>(most)?, i64::MAX);
    superuser.run("select snowflake_ids.attach('v.items', 'id')")?;
    Ok(())
}

/// Even a function with a very low cost, which the planner runs first, sees no row that the view hides.
fn a_bound_sequence_of_a_restricted_tag_is_seen_by_no_function(server: &mut Server) -> Result<()> {
    let mut superuser = server.session()?;
    superuser.run(
        "create role plain; create sequence secret; select snowflake_ids.segment_create('secret', owner => current_user);
         select snowflake_ids.bind_sequence('secret', 'segment', 'secret');
         set role plain;
         create function pg_temp.leak(text) returns boolean language plpgsql cost 0.0000001 as
             $$begin if $1 is not null then raise exception 'leaked'; end if; return true; end$$",
    )?;
    let seen = "select count(*) from snowflake_ids.sequence_status where pg_temp.leak(tag)";
    assert_eq!(superuser.one::<i64>(seen)?, 0);
    Ok(())
}

/// A default may name any tag. If the table's owner lacks rights on the tag, the default neither blocks a restart by the tag's
/// owner nor reveals the tag's position.
fn a_default_without_a_right_to_a_tag_shares_it_with_nobody(server: &mut Server) -> Result<()> {
    let mut superuser = server.session()?;
    superuser.run(
        "create role plain; create schema p authorization plain;
         create role owner; create schema o authorization owner;
         set role owner; create table o.items (id bigserial); reset role;
         select snowflake_ids.attach('o.items', 'id', 'segment'), snowflake_ids.segment_grant('o.items', 'owner', 'ALL'),
             snowflake_ids.segment_raise('o.items', 123456789);
         set role plain; create table p.blocking (id bigint default segment_nextval('o.items')); reset role;
         set role owner; insert into o.items values (default), (default); truncate o.items restart identity; reset role",
    )?;
    assert_eq!(superuser.one::<i64>("insert into o.items values (default) returning id")?, 1);
    superuser.run(
        "select snowflake_ids.segment_raise('o.items', 123456789);
         select snowflake_ids.attach('p.blocking', 'id', 'segment', tag => 'blocking')",
    )?;
    assert_eq!(superuser.one::<i64>("insert into p.blocking values (default) returning id")?, 1);
    Ok(())
}

#[test]
fn code_of_others_has_no_more_rights_than_theirs() -> Result<()> {
    Server::builder().cases(cases![
        code_of_a_tables_owner_runs_with_no_more_than_the_owners_rights,
        code_of_a_temporary_table_runs_with_no_more_than_its_owners_rights,
        code_of_a_childs_owner_runs_with_no_more_than_that_owners_rights,
        a_table_that_changes_while_its_lock_is_waited_for_is_looked_at_again,
        the_parts_of_attach_refuse_tables_of_others,
        a_sequence_of_another_is_not_bound_for_a_table,
        a_tag_of_another_is_not_moved_for_a_table,
        a_default_without_a_right_to_a_sequence_shares_it_with_nobody,
        a_bound_sequence_of_a_restricted_tag_is_seen_by_no_function,
        a_default_without_a_right_to_a_tag_shares_it_with_nobody
    ])
}

/// The superuser gave the table of keys to a role. The role's triggers run with no other role's rights, neither during the
/// statement nor at COMMIT.
#[test]
fn the_owner_of_a_key_table_runs_nothing_with_the_callers_rights() -> Result<()> {
    let server = Server::builder().start()?;
    let mut client = server.session()?;
    client.run(
        "create role ops; create schema ops authorization ops;
         select snowflake_ids.series_create('invoices'), series_nextval('invoices', 1::bigint);
         alter table snowflake_ids.series_bigint owner to ops; set role ops;
         create function ops.rise() returns trigger language plpgsql as
             $$ begin alter role ops superuser; return null; end $$;
         create constraint trigger later after update on snowflake_ids.series_bigint
             deferrable initially deferred for each row execute function ops.rise();
         reset role",
    )?;
    client.fails("select series_nextval('invoices', 1::bigint)", &SqlState::INSUFFICIENT_PRIVILEGE)?;
    assert!(!client.one::<bool>("select rolsuper from pg_roles where rolname = 'ops'")?);
    Ok(())
}
