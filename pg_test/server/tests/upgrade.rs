//! `ALTER EXTENSION snowflake_ids UPDATE`, from each release and to a made-up next version, in databases that use the extension.
//! Until then, the library runs the former version's SQL. One test covers the part of `pg_upgrade` that needs only one server.

use snowflake_ids_server_tests::catalog::{self, Told};
use snowflake_ids_server_tests::installation::Installation;
use snowflake_ids_server_tests::next::{self, FORMER, NEXT, Upgrade};
use snowflake_ids_server_tests::prelude::*;
use snowflake_ids_server_tests::upgrades::{self, Drawn};

/// A server with the scripts of all upgrades.
fn server() -> Result<(Server, Vec<Upgrade>)> {
    let installation = Installation::new()?;
    let upgrades = next::put_upgrades(&installation)?;
    Ok((builder().installation(&installation).start()?, upgrades))
}

fn builder() -> Builder {
    Server::builder().set("snowflake_ids.worker_id", "auto")
}

/// Creates a database with this version of the extension.
fn database(server: &Server, name: &str, version: &str) -> Result<Client> {
    server.connect("postgres")?.run(&format!("create database {name}"))?;
    let mut client = server.connect(name)?;
    create(&mut client, version)?;
    Ok(client)
}

fn create(client: &mut Client, version: &str) -> Result<()> {
    let create = format!("create extension snowflake_ids version '{version}'");
    client.batch_execute(&create).context(create)
}

fn update(client: &mut Client, version: &str) -> Result<()> {
    let update = format!("alter extension snowflake_ids update to '{version}'");
    client.batch_execute(&update).context(update)
}

fn ensure_equal(upgraded: &BTreeSet<Told>, fresh: &BTreeSet<Told>) -> Result<()> {
    let found = catalog::differences(("upgraded", upgraded), ("new", fresh));
    ensure!(
        found.is_empty(),
        "upgraded is not as created: sql/upgrade misses {} things:\n{}",
        found.len(),
        found.join("\n")
    );
    Ok(())
}

#[test]
fn an_upgraded_database_is_what_a_new_one_is_and_its_ids_go_on() -> Result<()> {
    let (server, upgrades) = server()?;
    for (number, Upgrade { from, to }) in upgrades.iter().enumerate() {
        let fresh = catalog::objects(&mut database(&server, &format!("fresh_{number}"), to)?)?;
        let name = format!("upgraded_{number}");
        let mut client = database(&server, &name, from)?;
        let mut drawn = Drawn::default();
        client.run("drop role if exists clerk")?;
        upgrades::create(&mut client)?;
        // Until somebody runs UPDATE, the new library runs the former SQL.
        drawn.go_on(&mut client, true)?;
        let rows = upgrades::rows(&mut client)?;
        update(&mut client, to)?;
        ensure_equal(&catalog::objects(&mut client)?, &fresh)?;
        assert_eq!(upgrades::rows(&mut client)?, rows);
        drawn.go_on(&mut client, true)?;
        // A session that connects later works as well as the old session.
        drawn.go_on(&mut server.connect(&name)?, true)?;
        client.run("drop owned by clerk cascade")?;
    }
    Ok(())
}

/// Covers rights that administrators granted and revoked, and those of roles that administer a part of the extension.
#[test]
fn rights_that_administrators_changed_survive_an_upgrade() -> Result<()> {
    let (server, upgrades) = server()?;
    server.connect("postgres")?.run("create role web; create role clerk")?;
    for (number, Upgrade { from, to }) in upgrades.iter().enumerate() {
        let mut client = database(&server, &format!("used_{number}"), from)?;
        client.run(
            "revoke execute on function snowflake_nextval() from public;
             grant execute on function snowflake_nextval() to web;
             revoke select on snowflake_ids.segment_status from public;
             grant select on snowflake_ids.segment to web with grant option;
             select snowflake_ids.administration_grant('tags', 'clerk')",
        )?;
        let rights = "select has_function_privilege('web', 'snowflake_nextval()', 'execute')
                and not has_function_privilege('pg_monitor', 'snowflake_nextval()', 'execute')
                and not has_table_privilege('web', 'snowflake_ids.segment_status', 'select')
                and has_table_privilege('web', 'snowflake_ids.segment', 'select with grant option')
                and has_function_privilege('clerk', (select p.oid from pg_proc as p where p.proname = 'segment_create'), 'execute')
                and has_table_privilege('clerk', 'snowflake_ids.segment', 'update')";
        ensure!(client.one::<bool>(rights)?, "{from}: the rights were not there before");
        update(&mut client, to)?;
        ensure!(client.one::<bool>(rights)?, "{from}: the rights are gone");
        client.run("set role clerk; select snowflake_ids.segment_create('theirs'); reset role")?;
    }
    let mut client = server.connect("used_0")?;
    let new = "select has_function_privilege('clerk', 'snowflake_ids_internal.trial_tag()', 'execute')
            and not has_function_privilege('web', 'snowflake_ids_internal.trial_tag()', 'execute')
            and has_function_privilege('web', 'snowflake_ids.trial_new()', 'execute')
            and not has_function_privilege('web', 'snowflake_ids.trial_default(integer)', 'execute')
            and has_table_privilege('web', 'snowflake_ids.trial_added', 'select')";
    ensure!(client.one::<bool>(new)?, "rights on new objects");
    Ok(())
}

/// The extension is trusted, so each role that may create it may also upgrade it.
#[test]
fn the_owner_of_a_database_upgrades_it_without_being_a_superuser() -> Result<()> {
    let (server, upgrades) = server()?;
    server.connect("postgres")?.run("create role landlord login")?;
    let as_landlord = |name: &str, version: &str| -> Result<Client> {
        server.connect("postgres")?.run(&format!("create database {name} owner landlord"))?;
        let mut client = server.config(name).user("landlord").connect(NoTls)?;
        create(&mut client, version)?;
        Ok(client)
    };
    for (number, Upgrade { from, to }) in upgrades.iter().enumerate() {
        let fresh = catalog::objects(&mut as_landlord(&format!("fresh_{number}"), to)?)?;
        let mut client = as_landlord(&format!("theirs_{number}"), from)?;
        update(&mut client, to)?;
        ensure_equal(&catalog::objects(&mut client)?, &fresh)?;
        ensure!(!client.one::<bool>("select rolsuper from pg_roles where rolname = current_user")?);
    }
    Ok(())
}

/// What the made-up next version changes, before and after.
#[test]
fn the_library_runs_the_former_sql_until_an_upgrade_changes_it() -> Result<()> {
    let (server, _) = server()?;
    let mut client = database(&server, "made_up", FORMER)?;
    client.run(
        "insert into snowflake_ids.trial values (1, 7);
         create view told as select g.* from snowflake_ids.trial_grown as g",
    )?;
    let body = "select snowflake_ids.trial_body(7)";
    let (dropped, symbol) = ("select snowflake_ids.trial_dropped()", "select snowflake_ids.trial_symbol()");
    ensure!(client.one::<String>(body)? == "former 7");
    ensure!(client.one::<i32>(dropped)? == 7);
    ensure!(client.one::<i64>(symbol)? > 0);
    ensure!(
        client
            .one::<i32>("select snowflake_ids.trial_renamed(number => 7) + snowflake_ids.trial_default()")?
            == 14
    );

    update(&mut client, NEXT)?;
    ensure!(client.one::<String>(body)? == "next 7");
    for gone in [dropped, symbol, "select snowflake_ids.trial_default()"] {
        client.fails(gone, &SqlState::UNDEFINED_FUNCTION)?;
    }
    ensure!(client.one::<i32>("select snowflake_ids.trial_renamed(value => 7)")? == 7);
    // The step filled the new column after the functions were replaced.
    ensure!(client.one::<String>("select note from snowflake_ids.trial_grown")? == "next 7");
    // A user's view keeps the columns that it was created with.
    ensure!(client.one::<String>("select told::text from told")? == "(1,7)");
    ensure!(
        client.one::<String>("select pg_typeof(number)::text from snowflake_ids.trial_retyped")? == "bigint"
    );
    Ok(())
}

/// Postgres cannot change the type of a column that another view uses. Nothing is dropped that users made: the upgrade names
/// their view, and changes nothing.
#[test]
fn an_upgrade_that_retypes_a_column_waits_for_the_users_of_the_view() -> Result<()> {
    let (server, _) = server()?;
    let mut client = database(&server, "with_view", FORMER)?;
    client.run(
        "insert into snowflake_ids.trial values (1, 7);
         create view mine as select r.number from snowflake_ids.trial_retyped as r",
    )?;
    let before = catalog::objects(&mut client)?;
    let refused = client.batch_execute(&format!("alter extension snowflake_ids update to '{NEXT}'"));
    let refused = refused.err().and_then(|error| error.as_db_error().cloned()).context("not refused")?;
    ensure!(*refused.code() == SqlState::DEPENDENT_OBJECTS_STILL_EXIST, "{refused:?}");
    ensure!(refused.detail().is_some_and(|detail| detail.contains("view public.mine")), "{refused:?}");
    ensure_equal(&catalog::objects(&mut client)?, &before)?;
    client.run("drop view mine")?;
    update(&mut client, NEXT)?;
    client.run("create view mine as select r.number from snowflake_ids.trial_retyped as r")?;
    ensure!(client.one::<i64>("select number from mine")? == 7);
    Ok(())
}

/// Checks the comparison itself: it must show every change that an upgrade script may have left out.
#[test]
fn each_change_of_an_object_is_a_difference() -> Result<()> {
    let (_server, mut client) = Server::builder().with_session()?;
    let fresh = catalog::objects(&mut client)?;
    let changes = [
        "comment on function snowflake_nextval() is 'other'",
        "comment on column snowflake_ids.segment.tag is 'other'",
        "comment on extension snowflake_ids is 'other'",
        "alter function snowflake_nextval() cost 7",
        "alter function snowflake_nextval() parallel unsafe",
        "alter function snowflake_nextval() stable",
        "alter function snowflake_ids.segment_create set work_mem = '1MB'",
        "alter function snowflake_ids.generator_create security definer",
        "update pg_proc set prosrc = prosrc || ' ' where oid = 'snowflake_ids_internal.generator_follow'::regproc",
        "revoke execute on function snowflake_nextval() from public",
        "grant select on snowflake_ids.worker_lease to public",
        "grant usage on schema snowflake_ids_internal to pg_monitor",
        "alter table snowflake_ids.segment add column other integer",
        "alter table snowflake_ids.segment alter column step set default 7",
        "alter table snowflake_ids.segment alter column description set not null",
        "alter table snowflake_ids.segment drop constraint segment_pkey cascade",
        "alter table snowflake_ids.segment set (fillfactor = 17)",
        "alter table snowflake_ids.segment disable trigger segment_check",
        "alter table snowflake_ids.segment enable trigger segment_check",
        "create index other on snowflake_ids.segment (step)",
        "create trigger other after insert on snowflake_ids.segment execute function snowflake_ids_internal.segment_changed()",
        "create or replace view snowflake_ids.generator_status as select * from snowflake_ids.generator_status where true",
        "alter extension snowflake_ids drop function snowflake_nextval()",
        "alter function snowflake_ids.segment_create owner to pg_monitor",
        "update pg_extension set extcondition[1] = 'where false' where extname = 'snowflake_ids'",
        "update pg_extension set extconfig = extconfig[2:], extcondition = extcondition[2:] where extname = 'snowflake_ids'",
    ];
    for change in changes {
        client.run("begin")?;
        // A change that fails here shows that this list is outdated.
        client.batch_execute(change).with_context(|| change)?;
        let found = catalog::differences(("changed", &catalog::objects(&mut client)?), ("new", &fresh));
        client.run("rollback")?;
        ensure!(!found.is_empty(), "no difference: {change}");
    }
    assert!(catalog::differences(("again", &catalog::objects(&mut client)?), ("new", &fresh)).is_empty());
    Ok(())
}

/// A worker would connect to databases that `pg_upgrade` drops, and write to databases that `pg_upgrade` reads.
#[test]
fn a_server_that_pg_upgrade_starts_runs_no_worker() -> Result<()> {
    let mut server = builder().set("log_min_messages", "debug1").start()?;
    let registered =
        |server: &Server| server.logged("registering background worker \"snowflake_ids launcher\"");
    server.stop(Shutdown::Fast)?;
    ensure!(registered(&server) == 1, "a start as any other registers the launcher");
    server.start_with(&["-b"])?;
    server.stop(Shutdown::Fast)?;
    assert_eq!(registered(&server), 1);
    Ok(())
}
