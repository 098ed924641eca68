//! A server joins a registry in one call on each side, and leaves in one call.

use snowflake_ids_server_tests::cluster::{NAME, PASSWORD, ROLE, becomes, node, strangers};
use snowflake_ids_server_tests::port::Port;
use snowflake_ids_server_tests::prelude::*;
use snowflake_ids_server_tests::segments::{create, next};
use snowflake_ids_server_tests::snowflakes::status;

const LEAVE: &str = "select snowflake_ids.registry_leave()";
const MADE: &str = "snowflake_registry";

fn connection(port: u16) -> String {
    format!("host=127.0.0.1 port={port} dbname=postgres user={ROLE} password={PASSWORD}")
}

fn join(connection: &str) -> String {
    format!("select snowflake_ids.registry_join('{connection}')")
}

fn allow(client: &mut Client) -> Result<()> {
    client.run(&format!("select snowflake_ids.registry_allow('{ROLE}', '{PASSWORD}')"))
}

/// A registry that has allowed its nodes, and a server.
fn pair() -> Result<(Server, Server, Client)> {
    let (registry, node) = (auto().start()?, node().start()?);
    registry.serve_nodes()?;
    let client = node.session()?;
    Ok((registry, node, client))
}

fn servers(client: &mut Client) -> Result<Vec<String>> {
    client.column("select srvname::text from pg_foreign_server order by 1")
}

#[test]
fn one_call_joins_and_one_call_leaves_and_each_may_be_repeated() -> Result<()> {
    let (registry, _node, mut client) = pair()?;
    let mut at_registry = registry.connect("postgres")?;
    create(&mut at_registry, "t", "")?;
    for _ in 0..2 {
        client.run(&join(&connection(registry.port())))?;
        wait_for_id(&mut client)?;
        ensure!(status::<Option<String>>(&mut client, "leased_from")?.as_deref() == Some(MADE));
        next(&mut client, "t")?;
    }
    becomes(&mut client, MADE, "up")?;

    // A call with other options changes those that the first call made. The registry keeps the password of its role.
    at_registry.run(&format!("alter role {ROLE} password 'other'"))?;
    allow(&mut at_registry)?;
    client.error(&join(&connection(registry.port())))?;
    let other = format!("postgresql://{ROLE}:other@127.0.0.1:{}/postgres?connect_timeout=9", registry.port());
    client.run(&join(&other))?;
    let options =
        "select srvoptions::text || umoptions::text from pg_user_mappings natural join pg_foreign_server";
    ensure!(client.one::<String>(options)?.contains("connect_timeout=9"));

    let received = next(&mut client, "t")?;
    client.run(LEAVE)?;
    ensure!(servers(&mut client)?.is_empty(), "the foreign server is still there");
    ensure!(next(&mut client, "t")? > received);
    let held = "select count(*) from snowflake_ids.worker_lease where released_at is null and host <> ''";
    let before: i64 = at_registry.one(held)?;
    client.run(LEAVE)?;
    client.run(&join(&other))?;
    wait_for_id(&mut client)?;
    ensure!(at_registry.one::<i64>(held)? == before + 1, "the worker id was not given back");
    Ok(())
}

/// A foreign server that somebody made is used as it is, and stays. One that others use stays, too.
#[test]
fn what_others_made_or_need_stays() -> Result<()> {
    let (registry, _node, mut client) = strangers()?;
    let options = "target_session_attrs=read-write";
    let same = format!("{} {options}", connection(registry.port()));
    client.run(&format!("select snowflake_ids.registry_join('{same}', '{NAME}')"))?;
    let other = format!(
        "select snowflake_ids.registry_join('{} sslmode=disable', '{NAME}')",
        connection(registry.port())
    );
    let message = format!("foreign server \"{NAME}\" was not made by registry_join");
    client.explained(&other, sql::NOT_IN_STATE, &message)?;
    client.run(LEAVE)?;

    client.run(&join(&connection(registry.port())))?;
    client.run(&format!("create user mapping for public server {MADE}"))?;
    client.run(LEAVE)?;
    ensure!(servers(&mut client)? == [NAME, MADE]);
    let secrets =
        "select count(*) from pg_user_mappings where srvname = 'snowflake_registry' and umuser <> 0";
    ensure!(client.one::<i64>(secrets)? == 0, "the password is still there");
    client.run(&format!("drop user mapping for public server {MADE}; {LEAVE}"))?;
    ensure!(servers(&mut client)? == [NAME]);
    Ok(())
}

/// Each error comes at once, with the cause in DETAIL and the remedy in HINT. It leaves nothing behind, and shows no password.
#[test]
fn what_stands_in_the_way_is_told_at_once() -> Result<()> {
    let (registry, node, mut client) = pair()?;
    let mut at_registry = registry.connect("postgres")?;
    at_registry.run("create database bare")?;
    at_registry
        .run("create role shut_out login password 'sesame'; create role poor login password 'sesame'")?;
    registry.rule("host all shut_out 127.0.0.1/32 reject")?;
    let standby = registry.standby()?;
    let closed = Port::free()?;
    let right = connection(registry.port());
    let with = |from: &str, to: &str| right.replace(from, to);
    for (connection, code, cause, remedy) in [
        (with("127.0.0.1", "no.such.host.invalid"), "08001", "no.such.host.invalid", "host '...'"),
        (
            with(&registry.port().to_string(), &closed.number().to_string()),
            "08001",
            "Connection refused",
            "listen_addresses",
        ),
        (with(PASSWORD, "sesame2"), "08001", "password authentication failed", "SET password"),
        (with(&format!(" password={PASSWORD}"), ""), "08001", "no password supplied", "ADD password"),
        (with(ROLE, "nobody"), "08001", "role \"nobody\" does not exist", "registry_allow"),
        (with("dbname=postgres", "dbname=nowhere"), "08001", "\"nowhere\" does not exist", "dbname"),
        (with(ROLE, "shut_out"), "08001", "pg_hba.conf", "above other lines"),
        (format!("{right} sslmode=require"), "08001", "SSL", "ssl = on"),
        (connection(standby.port()), "25006", "recovery", "primary"),
        (with("dbname=postgres", "dbname=bare"), "55000", "3F000", "If it is, CREATE EXTENSION"),
        (with(ROLE, "poor"), "42501", "registry_serve", "If it is, SELECT snowflake_ids.registry_allow"),
        (
            connection(node.port()).replace(ROLE, "postgres"),
            "22023",
            "this database itself",
            "use_local_registry",
        ),
        (format!("{right} sesame"), "22023", "password", "libpq"),
    ] {
        let error = client.error(&join(&connection))?;
        let (detail, hint) = (error.detail().unwrap_or_default(), error.hint().unwrap_or_default());
        ensure!(error.code().code() == code && detail.contains(cause), "{connection}: {error:?}");
        ensure!(hint.contains(remedy) && !format!("{error:?}").contains("sesame"), "{connection}: {error:?}");
        ensure!(servers(&mut client)?.is_empty(), "{connection} left a foreign server");
    }
    for null in ["null", "'', null", "'', ''"] {
        client.fails(
            &format!("select snowflake_ids.registry_join({null})"),
            &SqlState::INVALID_PARAMETER_VALUE,
        )?;
    }
    ensure!(node.logged(PASSWORD) == 0, "the password is in the log");
    let unknown = client.error("select segment_nextval('t')")?;
    ensure!(unknown.hint().is_some_and(|hint| hint.contains("registry_join")), "{unknown:?}");

    client.run(&join(&right))?;
    client.run("update snowflake_ids.registry_server set timeline = 9")?;
    let former = client.explained(&join(&right), sql::NOT_IN_STATE, "could not join the registry")?;
    ensure!(former.detail().is_some_and(|detail| detail.contains("It is a former primary")), "{former:?}");

    let (_other, mut other) = self::node().set("snowflake_ids.layout", "41/0/10/12").with_session()?;
    let layout = other.explained(&join(&right), sql::NOT_IN_STATE, "could not join the registry")?;
    ensure!(
        layout.detail().is_some_and(|detail| detail.contains("this server has layout 41/0/10/12")),
        "{layout:?}"
    );
    Ok(())
}

/// A password is nowhere but in the catalog: not in the log, in `pg_stat_statements`, in `pg_stat_activity`, and not where an
/// event trigger looks. Calls that fail, also within a function, do not change this.
#[test]
fn no_password_is_left_behind() -> Result<()> {
    let watched = |builder: Builder| {
        let builder = builder.set("shared_preload_libraries", "pg_stat_statements, snowflake_ids");
        builder.set("pg_stat_statements.track", "all").with_session()
    };
    let ((registry, mut at_registry), (node, mut client)) = (watched(auto())?, watched(node())?);
    registry.rule(&format!("host all {ROLE} 127.0.0.1/32 scram-sha-256"))?;
    for session in [&mut at_registry, &mut client] {
        session.run(
            "create extension pg_stat_statements;
             create table seen (query text);
             create function see() returns event_trigger language plpgsql as $$
             begin insert into seen values (current_query()); end $$;
             create event trigger started on ddl_command_start execute function see();
             create event trigger ended on ddl_command_end execute function see()",
        )?;
    }
    allow(&mut at_registry)?;
    let right = join(&connection(registry.port()));
    let wrong = right.replace("user=", "sslmode=require user=");
    client.error(&format!("{right}; select 1 / 0"))?;
    client.error(&wrong)?;
    client.error(&format!("do $$ begin perform {}; end $$", wrong.trim_start_matches("select ")))?;
    client.error(&right.replace("port=", "port"))?;
    client.run(&right)?;
    for server in [&node, &registry] {
        ensure!(server.logged(PASSWORD) == 0, "the log: {}", server.log());
        let mut session = server.connect("postgres")?;
        for table in ["pg_stat_statements", "seen", "pg_stat_activity"] {
            // The password is a parameter, so that this query does not contain it.
            let found = session
                .query(&format!("select query from {table} where strpos(query, $1) > 0"), &[&PASSWORD])?;
            let found: Vec<String> = found.iter().map(|row| row.get(0)).collect();
            // The text of a DO block is a constant that pg_stat_statements keeps.
            ensure!(found.iter().all(|query| query.starts_with("do ")), "{table}: {found:?}");
        }
        let fired: i64 = session.one("select count(*) from seen")?;
        ensure!(fired > 0, "no event trigger fired");
    }
    ensure!(
        client.one::<bool>(&format!("select umoptions::text like '%{PASSWORD}%' from pg_user_mappings"))?
    );
    Ok(())
}

#[test]
fn only_a_role_without_power_is_allowed_and_only_a_superuser_joins() -> Result<()> {
    let (registry, mut client) = auto().with_session()?;
    let allow =
        |role: &str, password: &str| format!("select snowflake_ids.registry_allow({role}, {password})");
    client.run("create role boss superuser; create role deputy login; grant boss to deputy; create role group_of_nodes")?;
    for (role, password, code) in [
        ("'boss'", "'p'", &SqlState::INVALID_PARAMETER_VALUE),
        ("'deputy'", "null", &SqlState::INVALID_PARAMETER_VALUE),
        ("null", "'p'", &SqlState::INVALID_PARAMETER_VALUE),
        ("'new'", "''", &SqlState::INVALID_PARAMETER_VALUE),
        ("'group_of_nodes'", "null", sql::NOT_IN_STATE),
        ("'public'", "null", &SqlState::RESERVED_NAME),
    ] {
        client.fails(&allow(role, password), code)?;
    }
    client.run("begin; set transaction read only")?;
    client.fails(&allow("'new'", "'p'"), &SqlState::READ_ONLY_SQL_TRANSACTION)?;
    client.run("rollback")?;
    // A name and a password that need quotes, and a password that stays.
    client.run(
        "revoke connect on database postgres from public; revoke usage on schema snowflake_ids from public",
    )?;
    client.run(&allow("'sh\"ard'", "$$it's \\ one$$"))?;
    client.run(&allow("'sh\"ard'", "'another'"))?;
    registry.rule("host all \"sh\"\"ard\" 127.0.0.1/32 scram-sha-256")?;
    let mut shard = registry.connect_as("sh\"ard", "it's \\ one")?;
    shard.fails("select snowflake_ids.registry_serve('')", &SqlState::INVALID_PARAMETER_VALUE)?;
    shard.fails("select snowflake_ids.registry_leave()", &SqlState::INSUFFICIENT_PRIVILEGE)?;

    client.run("grant execute on function snowflake_ids.registry_join to \"sh\"\"ard\"")?;
    shard.explained(
        &join("host=x"),
        &SqlState::INSUFFICIENT_PRIVILEGE,
        "permission denied to join a registry",
    )?;
    client.run(
        "set allow_system_table_mods = on; create table pg_catalog.pg_dist_local_group (groupid integer not null);
         insert into pg_catalog.pg_dist_local_group values (1)",
    )?;
    client
        .explained(&join("host=x"), sql::NOT_IN_STATE, "this server is a worker of a Citus cluster")
        .map(drop)
}
