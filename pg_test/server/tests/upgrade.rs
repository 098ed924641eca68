//! `ALTER EXTENSION snowflake_ids UPDATE` from every released version, in databases that use the extension. The present library
//! runs the SQL of each version. One test covers the part of `pg_upgrade` that needs only one server.

use anyhow::{Context, Result, ensure};
use postgres::error::SqlState;
use postgres::{Client, NoTls};
use snowflake_ids_server_tests::catalog::{self, Told};
use snowflake_ids_server_tests::installation::{Installation, released};
use snowflake_ids_server_tests::registry::wait_for_id;
use snowflake_ids_server_tests::upgrades::{self, Drawn};
use snowflake_ids_server_tests::{Builder, Server, Shutdown, sql::Session};
use std::collections::BTreeSet;

const UPDATE: &str = "alter extension snowflake_ids update";

fn server() -> Result<Server> {
    let installation = Installation::new()?;
    installation.put_released_scripts()?;
    builder().installation(&installation).start()
}

fn builder() -> Builder {
    Server::builder().set("snowflake_ids.worker_id", "auto")
}

/// Creates a database with this version of the extension.
fn database(server: &Server, name: &str, version: &str) -> Result<Client> {
    server.connect("postgres")?.run(&format!("create database {name}"))?;
    let mut client = server.connect(name)?;
    let create = format!("create extension snowflake_ids version '{version}'");
    client.batch_execute(&create).with_context(|| create)?;
    Ok(client)
}

/// The catalog's properties of an extension that was created in the present version.
fn fresh(server: &Server) -> Result<BTreeSet<Told>> {
    catalog::objects(&mut database(server, "fresh", env!("CARGO_PKG_VERSION"))?)
}

fn ensure_equal(upgraded: &BTreeSet<Told>, fresh: &BTreeSet<Told>) -> Result<()> {
    let found = catalog::differences(("upgraded", upgraded), ("new", fresh));
    ensure!(
        found.is_empty(),
        "upgraded is not as created: sql/snowflake_ids--*.sql or the sources miss {} things:\n{}",
        found.len(),
        found.join("\n")
    );
    Ok(())
}

#[test]
fn a_database_of_each_version_is_upgraded_to_what_a_new_one_is_and_its_ids_go_on() -> Result<()> {
    let versions = released()?;
    ensure!(!versions.is_empty(), "there is no install script of a released version");
    for version in versions {
        let server = server()?;
        let fresh = fresh(&server)?;
        let mut client = database(&server, "upgraded", &version)?;
        let mut drawn = Drawn::default();
        upgrades::create(&mut client)?;
        client.run(
            "set snowflake_ids.new_columns = 'snowflake'; create table before (id bigserial); drop table before;
             reset snowflake_ids.new_columns",
        )?;
        // Until somebody runs UPDATE, the new library runs the old SQL.
        drawn.go_on(&mut client, true)?;
        drawn.go_on(&mut client, true)?;
        let rows = upgrades::rows(&mut client)?;
        client.batch_execute(UPDATE).context(version)?;
        ensure_equal(&catalog::objects(&mut client)?, &fresh)?;
        assert_eq!(upgrades::rows(&mut client)?, rows);
        drawn.go_on(&mut client, true)?;
        // A session that connects later works as well as the old session.
        drawn.go_on(&mut server.connect("upgraded")?, true)?;
    }
    Ok(())
}

/// Until somebody runs UPDATE, the table of leases has the columns of the older version.
#[test]
fn a_server_leases_its_worker_id_from_a_table_of_an_older_version() -> Result<()> {
    for version in released()? {
        let server = server()?;
        let mut client = database(&server, "older", &version)?;
        let before = wait_for_id(&mut client)?;
        client.batch_execute(UPDATE).context(version)?;
        ensure!(wait_for_id(&mut client)? > before);
    }
    Ok(())
}

/// Covers rights that users granted and revoked.
#[test]
fn what_users_did_to_the_objects_of_an_older_version_outlives_an_upgrade() -> Result<()> {
    for version in released()? {
        let server = server()?;
        let mut client = database(&server, "used", &version)?;
        client.run(
            "create role web;
             revoke execute on function snowflake_nextval() from public;
             grant execute on function snowflake_nextval() to web;
             select snowflake_ids.administration_grant('tags', 'web')",
        )?;
        let rights = "select has_function_privilege('web', 'snowflake_nextval()', 'execute')
                and not has_function_privilege('pg_monitor', 'snowflake_nextval()', 'execute')
                and has_function_privilege('web', (select p.oid from pg_proc as p where p.proname = 'segment_create'), 'execute')
                and has_table_privilege('web', 'snowflake_ids.segment', 'update')";
        ensure!(client.one::<bool>(rights)?, "{version}: the rights were not there before");
        client.batch_execute(UPDATE).with_context(|| version.clone())?;
        ensure!(client.one::<bool>(rights)?, "{version}: the rights are gone");
        client.run("set role web; select snowflake_ids.segment_create('webs'); reset role")?;
    }
    Ok(())
}

/// The extension is trusted, so each role that may create it may also upgrade it.
#[test]
fn the_owner_of_a_database_upgrades_it_without_being_a_superuser() -> Result<()> {
    let server = server()?;
    server.connect("postgres")?.run("create role landlord login")?;
    let as_landlord = |name: &str, create: &str| -> Result<Client> {
        server.connect("postgres")?.run(&format!("create database {name} owner landlord"))?;
        let mut client = server.config(name).user("landlord").connect(NoTls)?;
        client.run(create)?;
        Ok(client)
    };
    let fresh = catalog::objects(&mut as_landlord("fresh", "create extension snowflake_ids")?)?;
    for (number, version) in released()?.iter().enumerate() {
        let create = format!("create extension snowflake_ids version '{version}'");
        let mut client = as_landlord(&format!("theirs_{number}"), &create)?;
        client.batch_execute(UPDATE).with_context(|| version.clone())?;
        ensure_equal(&catalog::objects(&mut client)?, &fresh)?;
        ensure!(!client.one::<bool>("select rolsuper from pg_roles where rolname = current_user")?);
    }
    Ok(())
}

/// In earlier versions, a role that managed tags could write a binding for anybody's sequence.
#[test]
fn a_binding_that_was_planted_before_an_upgrade_counts_no_more() -> Result<()> {
    let server = server()?;
    server.connect("postgres")?.run("create role clerk")?;
    // Later versions allow no role to write such a binding.
    for (number, version) in released()?.iter().filter(|version| *version == "0.2.0").enumerate() {
        let mut client = database(&server, &format!("planted_{number}"), version)?;
        let next = "select nextval('taken')";
        client.run(
            "create sequence taken; create sequence bound; select nextval('taken');
             select snowflake_ids.bind_sequence('bound', 'segment', 'evil');
             select snowflake_ids.administration_grant('tags', 'clerk');
             grant delete on snowflake_ids.sequence_binding to public;
             set role clerk;
             insert into snowflake_ids.sequence_binding (sequence, tag, last_number) values ('taken', 'evil', 0);
             reset role",
        )?;
        client.batch_execute(UPDATE).with_context(|| version.clone())?;
        ensure!(client.one::<i64>(next)? == 2, "{version}");
        client.run("alter sequence taken restart")?;
        ensure!(client.one::<i64>(next)? == 1, "{version}");
        let bound = "select string_agg(sequence::text, ' ') from snowflake_ids.sequence_status";
        ensure!(client.one::<String>(bound)? == "bound", "{version}");
        client.run("set role clerk")?;
        for change in ["insert", "update", "delete", "truncate"] {
            let may = format!("select has_table_privilege('snowflake_ids.sequence_binding', '{change}')");
            ensure!(!client.one::<bool>(&may)?, "{version}: {change}");
        }
    }
    Ok(())
}

#[test]
fn owners_of_sequences_move_the_tags_that_they_alone_use_after_an_upgrade() -> Result<()> {
    let server = server()?;
    server.connect("postgres")?.run("create role app; create role tenant")?;
    // Later versions grant this right to the owner without an upgrade.
    for (number, version) in released()?.iter().filter(|version| *version == "0.2.0").enumerate() {
        let mut client = database(&server, &format!("moved_{number}"), version)?;
        client.run(
            "create sequence own; create sequence first; create sequence second;
             alter sequence own owner to app; alter sequence first owner to tenant;
             select snowflake_ids.bind_sequence('own', 'segment', 'own'), snowflake_ids.bind_sequence('first', 'segment', 'shared'),
                 snowflake_ids.bind_sequence('second', 'segment', 'shared')",
        )?;
        client.batch_execute(UPDATE).with_context(|| version.clone())?;
        client.run("select nextval('own'), nextval('own'); set role app; alter sequence own restart")?;
        ensure!(client.one::<i64>("select nextval('own')")? == 1, "{version}");
        client.run("set role tenant")?;
        client.fails("alter sequence first restart", &SqlState::INSUFFICIENT_PRIVILEGE)?;
    }
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
