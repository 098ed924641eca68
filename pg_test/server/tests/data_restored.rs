//! Data-only dumps of production, restored into a staging database that has the tables and the extension's rows. Ids go on above
//! all restored rows, or the restore says what it met.

use snowflake_ids_server_tests::prelude::*;
use snowflake_ids_server_tests::programs;
use snowflake_ids_server_tests::segments::{create, next, take};

/// Tables whose ids come from an attached serial, a tag, a bound sequence and a parent's default, and a numbered table.
const TABLES: &str = "
    create table attached (id serial primary key);
    select snowflake_ids.attach('attached', 'id', 'segment'), snowflake_ids.segment_create('own');
    create table filled (id bigint primary key default segment_nextval('own'));
    create sequence s; select snowflake_ids.bind_sequence('s', 'segment');
    create table bound (id bigint primary key default nextval('s'));
    select snowflake_ids.segment_create('whole');
    create table whole (id bigint primary key default segment_nextval('whole')) partition by range (id);
    create table part partition of whole for values from (0) to (maxvalue);
    select snowflake_ids.generator_create('web', 'javascript'), snowflake_ids.series_create('invoices');
    create table invoices (tenant bigint, number bigint, primary key (tenant, number));
    select snowflake_ids.series_attach('invoices', 'number', 'invoices', 'tenant');
    select snowflake_ids.segment_revoke('own', 'public', 'SELECT')";
const NAMES: [&str; 4] = ["attached", "filled", "bound", "whole"];

fn fill(client: &mut Client, rows: u32) -> Result<()> {
    for table in NAMES {
        client.run(&format!("insert into {table} select from generate_series(1, {rows})"))?;
    }
    client.run(&format!("insert into invoices select 7 from generate_series(1, {rows})"))
}

/// Makes both databases. Production has given more ids since staging was copied from it, and staging has other ids in memory.
fn production_and_staging(server: &Server) -> Result<(Client, Client)> {
    let mut production = server.create_database("production")?;
    production.run(TABLES)?;
    fill(&mut production, 5)?;
    production.run("create database staging")?;
    server.restore("staging", &server.dump_as("postgres", "production", &[])?)?;
    let mut staging = server.connect("staging")?;
    fill(&mut staging, 5)?;
    fill(&mut production, 3_000)?;
    Ok((production, staging))
}

fn empty(staging: &mut Client) -> Result<()> {
    staging.run(&format!("truncate {}, invoices", NAMES.join(", ")))
}

/// Inserts a row into each table, and expects a number above those of production.
fn goes_on(production: &mut Client, staging: &mut Client, tables: &[&str]) -> Result<()> {
    for table in tables {
        let (column, insert) = match *table {
            "invoices" => ("number", "(tenant) values (7)"),
            _ => ("id", "default values"),
        };
        let restored: i64 = production.one(&format!("select max({column})::bigint from {table}"))?;
        let inserted = staging.one(&format!("insert into {table} {insert} returning {column}::bigint"));
        let id: i64 = inserted.with_context(|| format!("{table}: up to {restored}"))?;
        ensure!(id > restored, "{table}: {id} after {restored}");
    }
    Ok(())
}

fn a_data_dump_goes_over_the_rows_that_are_there(server: &mut Server) -> Result<()> {
    production_and_staging(server)?;
    // The clean stop saves staging's unused ids for the next start.
    server.restart()?;
    let (mut production, mut staging) = (server.connect("production")?, server.connect("staging")?);
    for role in ["", "set session_replication_role = replica;\n"] {
        empty(&mut staging)?;
        let dump = server.dump_as("postgres", "production", &["--data-only"])?;
        server.restore("staging", &format!("{role}{dump}"))?;
        goes_on(&mut production, &mut staging, &[&NAMES[..], &["invoices"]].concat())?;
        fill(&mut production, 3_000)?;
    }
    Ok(())
}

fn an_archive_goes_in_within_one_transaction(server: &mut Server) -> Result<()> {
    let (mut production, mut staging) = production_and_staging(server)?;
    staging.run("select snowflake_ids.generator_alter('web', cache => 7)")?;
    empty(&mut staging)?;
    let archive = server.socket_folder().join("archive");
    programs::output(server.command("pg_dump").args(["-a", "-Fc", "-f"]).arg(&archive).arg("production"))?;
    programs::output(server.command("pg_restore").args(["-1", "-d", "staging"]).arg(&archive))?;
    goes_on(&mut production, &mut staging, &[&NAMES[..], &["invoices"]].concat())?;
    // Definitions stay, and the log names the one that differs.
    assert_eq!(staging.one::<i32>("select cache from snowflake_ids.generator")?, 7);
    ensure!(server.logged("skipping a row of snowflake_ids.generator") == 1, "no warning");
    // Only COPY restores.
    staging.fails("insert into snowflake_ids.segment (tag) values ('own')", &SqlState::UNIQUE_VIOLATION)?;
    staging.fails(
        "insert into snowflake_ids.generator values ('web', '41/5/5/12')",
        &SqlState::UNIQUE_VIOLATION,
    )?;
    Ok(())
}

fn one_call_raises_the_tags_of_a_dump_without_them(server: &mut Server) -> Result<()> {
    let (mut production, mut staging) = production_and_staging(server)?;
    empty(&mut staging)?;
    let without = ["--data-only", "--exclude-table-data=snowflake_ids.*", "--exclude-table-data=invoices"];
    server.restore("staging", &server.dump_as("postgres", "production", &without)?)?;
    let raised: Vec<String> = staging.column("select tag from snowflake_ids.raise_all() order by tag")?;
    assert_eq!(raised, ["own", "public.attached", "public.s", "whole"]);
    goes_on(&mut production, &mut staging, &NAMES)?;
    let again: i64 = staging.one("select count(*) from snowflake_ids.raise_all()")?;
    assert_eq!(again, 0, "tags in use are above their columns");
    Ok(())
}

/// Without the extension's triggers, a restored row meets the primary key as any other row.
fn a_restore_without_triggers_fails(server: &mut Server) -> Result<()> {
    let (_production, mut staging) = production_and_staging(server)?;
    empty(&mut staging)?;
    let dump = server.dump_as("postgres", "production", &["--data-only", "--disable-triggers"])?;
    let failed = server.restore("staging", &dump).err().context("restored")?;
    ensure!(failed.to_string().contains("duplicate key value"), "{failed}");
    Ok(())
}

/// Any role may name a tag in a default, and insert any number.
fn a_column_raises_only_tags_that_its_owner_may_move(server: &mut Server) -> Result<()> {
    let mut client = server.session()?;
    for tag in ["open", "given", "free"] {
        create(&mut client, tag, "")?;
        take(&mut client, tag, 3)?;
    }
    client.run(
        "create role tenant; create schema tenant authorization tenant;
         select snowflake_ids.segment_grant('given', 'tenant', 'UPDATE'), snowflake_ids.segment_grant('given', 'public', 'USAGE');
         set role tenant; set search_path = tenant, public;
         create table a (id bigint default segment_nextval('open')); insert into a values (9e18);
         create table b (id bigint default segment_nextval('given')); insert into b values (5000);
         reset role; create table f (id bigint default segment_nextval('free')); insert into f values (7000)",
    )?;
    let locked = server.locker("postgres", "given")?;
    let raise = "select tag from snowflake_ids.raise_all()";
    assert_eq!(client.column::<String>(raise)?, ["free"], "the row of the other tag is locked");
    drop(locked);
    assert_eq!(client.column::<String>(&format!("{raise} where tag = 'given'"))?, ["given"]);
    assert_eq!((next(&mut client, "given")?, next(&mut client, "free")?), (5001, 7001));
    assert_eq!(next(&mut client, "open")?, 4, "a tenant's number moves no tag of others");
    client.run("set role tenant")?;
    client.fails("select snowflake_ids.raise_all()", &SqlState::INSUFFICIENT_PRIVILEGE)?;
    Ok(())
}

#[test]
fn data_dumps_go_over_what_is_there() -> Result<()> {
    Server::builder().cases(cases![
        a_data_dump_goes_over_the_rows_that_are_there,
        an_archive_goes_in_within_one_transaction,
        one_call_raises_the_tags_of_a_dump_without_them,
        a_restore_without_triggers_fails,
        a_column_raises_only_tags_that_its_owner_may_move
    ])
}
