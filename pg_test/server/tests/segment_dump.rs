//! Dumps: a restored database gives ids above every id in the dump, and only to roles that may take ids.

use snowflake_ids_server_tests::prelude::*;
use snowflake_ids_server_tests::segments::{create, next, take};

/// A query for the definitions of tags: the columns that calls do not change.
const DEFINITION: &str = "select tag || ': ' || row(start, step, max_step, increment, remainder, max_value,
    description, reset, time_zone, format)::text from snowflake_ids.segment order by tag";

fn a_restored_database_goes_on_above_every_id_of_the_dump(server: &mut Server) -> Result<()> {
    let mut client = server.session()?;
    create(&mut client, "t", "step => 50, max_step => 500, description => 'invoices: ''all'' of them'")?;
    create(&mut client, "odd", "increment => 2, remainder => 1, max_value => 9999, start => 101")?;
    create(
        &mut client,
        "dated",
        "reset => 'month', time_zone => 'Asia/Kathmandu', format => '{YYYY}/{MM}#{n:4}'",
    )?;
    create(&mut client, "unused", "start => 7")?;
    client.run("create table t (id bigint primary key default segment_nextval('t'), a int)")?;
    let rows = "insert into t (a) select 0 from generate_series(1, 333) returning id";
    let mut taken: Vec<i64> = client.column(rows)?;
    take(&mut client, "odd", 3)?;
    let label: String = client.one("select segment_nextval_text('dated')")?;

    client.run("create database copy")?;
    server.restore("copy", &server.dump()?)?;
    let mut copy = server.connect("copy")?;
    assert_eq!(copy.column::<String>(DEFINITION)?, client.column::<String>(DEFINITION)?);
    taken.extend(copy.column::<i64>(rows)?);
    ids::growing(&taken)?;
    assert_eq!(copy.one::<i64>("select count(*) from t")?, 666);
    let odd = take(&mut copy, "odd", 2)?;
    assert!(odd[0] > 105 && odd[0] % 2 == 1 && odd[1] == odd[0] + 2, "{odd:?}");
    let label_of_copy: String = copy.one("select segment_nextval_text('dated')")?;
    assert_eq!(label[..8], label_of_copy[..8], "of one month");
    assert!(label_of_copy > label, "{label_of_copy} after {label}");
    assert_eq!(next(&mut copy, "unused")?, 7);

    // The restore changes nothing in the first database.
    assert_eq!(next(&mut client, "t")?, 334);
    Ok(())
}

fn rows_of_a_data_dump_go_into_a_database_that_has_the_extension(server: &mut Server) -> Result<()> {
    let mut client = server.session()?;
    create(&mut client, "t", "")?;
    let before = take(&mut client, "t", 5)?;
    server.create_database("copy")?;
    // This session asks for the tag before the tag exists.
    let mut copy = server.connect("copy")?;
    assert!(next(&mut copy, "t").is_err());
    server.restore("copy", &server.dump_as("postgres", "postgres", &["--data-only"])?)?;
    let after = next(&mut copy, "t")?;
    assert!(after > before[4], "{after} after {before:?}");
    Ok(())
}

/// Creates a database owned by a role that is no superuser. A superuser creates the extension, tags and rights in it.
fn shop(server: &Server) -> Result<Client> {
    let mut client = server.connect("postgres")?;
    client.run("create role keeper login; create role alice login; create role bob login")?;
    client.run("create database shop owner keeper")?;
    let mut client = server.connect("shop")?;
    client.run(
        "create extension snowflake_ids;
         select snowflake_ids.segment_create('open'), snowflake_ids.segment_create('invoices');
         select snowflake_ids.segment_grant('invoices', 'alice', 'USAGE, SELECT');
         create role gone; select snowflake_ids.segment_grant('invoices', 'gone', 'USAGE'); drop role gone;
         set role keeper;
         create table t (id bigint primary key default segment_nextval('open'));
         create sequence numbers; select snowflake_ids.bind_sequence('numbers', 'segment', 'numbers')",
    )?;
    client.run("reset role; insert into snowflake_ids.worker_lease (datacenter_id, worker_id, expires_at) values (0, 3, now())")?;
    client.one::<i64>("select snowflake_nextval()")?;
    Ok(client)
}

fn may_take(server: &Server, role: &str) -> Result<bool> {
    let mut client = server.connect("copy")?;
    client.run(&format!("set role {role}"))?;
    match next(&mut client, "invoices") {
        Ok(_) => Ok(true),
        Err(error) => {
            let code = error.downcast_ref::<postgres::Error>().and_then(|error| error.code().cloned());
            ensure!(code == Some(SqlState::INSUFFICIENT_PRIVILEGE), "{error:?}");
            Ok(false)
        }
    }
}

fn the_owner_of_a_database_dumps_and_restores_it(server: &mut Server) -> Result<()> {
    let mut client = shop(server)?;
    let before: i64 = client.one("insert into t default values returning id")?;
    server.connect("postgres")?.run("create database copy owner keeper")?;
    server.restore_as("keeper", "copy", &server.dump_as("keeper", "shop", &[])?)?;
    let mut copy = server.connect("copy")?;
    assert_eq!(copy.column::<String>(DEFINITION)?, server.connect("shop")?.column::<String>(DEFINITION)?);
    let after: i64 = copy.one("insert into t default values returning id")?;
    assert!(after > before, "{after} after {before}");
    let bound = "select sequence::text || ' ' || tag from snowflake_ids.sequence_status";
    assert_eq!(copy.one::<String>(bound)?, "numbers numbers");
    assert_eq!(copy.one::<i64>("select nextval('numbers')")?, 1);
    assert!(may_take(server, "alice")? && may_take(server, "keeper")? && !may_take(server, "bob")?);
    // A dropped role's rights are left out, because in another cluster another role could receive them.
    assert_eq!(copy.one::<i64>("select count(*) from snowflake_ids.segment_privilege")?, 1);
    // A database owner may not change leases of worker ids.
    assert_eq!(copy.one::<i64>("select count(*) from snowflake_ids.worker_lease")?, 0);
    copy.run("set role keeper")?;
    for (wanted, statement) in [
        ("permission denied for table worker_lease", "update snowflake_ids.worker_lease set token = 1"),
        ("permission denied for table registry_server", "delete from snowflake_ids.registry_server"),
        (
            "permission denied to set the registry of this database",
            "insert into snowflake_ids.registry_server values (0, 'evil', 'evil', 1)",
        ),
        ("permission denied for function state_reset", "select snowflake_ids.state_reset('2088-01-01')"),
    ] {
        assert_eq!(copy.error(statement)?.message(), wanted);
    }
    Ok(())
}

fn what_was_restricted_stays_so_where_a_role_is_missing(server: &mut Server) -> Result<()> {
    let mut client = server.session()?;
    client.run(
        "create role alice; create role bob; select snowflake_ids.segment_create('invoices');
         select snowflake_ids.segment_grant('invoices', 'alice', 'USAGE')",
    )?;
    let dump = server.dump()?;
    client.run("select snowflake_ids.segment_drop('invoices'); drop role alice")?;
    client.run("create database copy")?;
    let file = server.socket_folder().join("dump.sql");
    std::fs::write(&file, dump)?;
    let mut psql = server.command("psql");
    let output = psql.args(["--quiet", "--no-psqlrc", "--dbname=copy", "--file"]).arg(file).output()?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("role \"alice\" does not exist"), "{said}");
    assert!(!may_take(server, "bob")?, "a tag that was restricted is open");
    Ok(())
}

/// Ids are skipped after a standby of the same cluster was promoted, and in no other case.
#[test]
fn a_dump_restored_on_a_server_that_was_promoted_skips_nothing() -> Result<()> {
    let (server, mut client) = Server::builder().with_session()?;
    create(&mut client, "t", "step => 10, max_step => 1000")?;
    let last = take(&mut client, "t", 7)?[6];
    let mut other = Server::builder().start()?;
    // The recovery ends with another timeline, as a promotion does.
    other.stop(Shutdown::Fast)?;
    other.set("restore_command", "false")?;
    std::fs::write(other.data().join("recovery.signal"), "")?;
    other.start_again()?;
    let mut copy = other.connect("postgres")?;
    wait::until_true("the end of recovery", || {
        let recovers: bool = copy.one("select pg_is_in_recovery()")?;
        Ok(!recovers)
    })?;
    let timeline = "select substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8)";
    assert_eq!(copy.one::<String>(timeline)?, "00000002");
    copy.run("create database copy")?;
    other.restore("copy", &server.dump()?)?;
    let reserved: i64 = client.one("select max_id from snowflake_ids.segment where tag = 't'")?;
    let after = next(&mut other.connect("copy")?, "t")?;
    assert_eq!(after, reserved + 1, "{last} was the last");
    Ok(())
}

/// A dump of the schema alone, as frameworks keep it, has no tags, because tags are rows. Each of the two ways that the error
/// names creates the tag.
fn a_table_of_a_schema_dump_says_how_to_get_its_tag(server: &mut Server) -> Result<()> {
    shop(server)?;
    server.connect("postgres")?.run("create database copy owner keeper")?;
    server.restore_as("keeper", "copy", &server.dump_as("keeper", "shop", &["--schema-only"])?)?;
    let mut copy = server.connect("copy")?;
    copy.run("set role keeper")?;
    let insert = "insert into t default values returning id";
    let error = copy.fails(insert, &SqlState::UNDEFINED_OBJECT)?;
    let hint = error.hint().unwrap_or_default();
    ensure!(
        hint.contains("snowflake_ids.segment_create('open')") && hint.contains("segment_auto_create"),
        "{hint}"
    );
    // The first way: an administrator changes the setting for the database, and users' first inserts create the tags.
    let mut admin = server.connect("copy")?;
    admin.run("alter database copy set snowflake_ids.segment_auto_create = on")?;
    let mut user = server.connect("copy")?;
    user.run("set role keeper")?;
    assert_eq!(user.one::<i64>(insert)?, 1);
    // The second way: the role gets the right to manage tags, and creates the tag.
    admin.run(
        "select snowflake_ids.segment_drop('open'), snowflake_ids.administration_grant('tags', 'keeper')",
    )?;
    copy.run("select snowflake_ids.segment_create('open', start => 10)")?;
    assert_eq!(copy.one::<i64>(insert)?, 10);
    for refused in ["state_reset('2088-01-01')", "clock_accept()", "use_local_registry()"] {
        copy.fails(&format!("select snowflake_ids.{refused}"), &SqlState::INSUFFICIENT_PRIVILEGE)?;
    }
    Ok(())
}

/// The dump contains only the table, without its tag and without the binding of its sequence. Ids continue above the table's
/// rows, whichever function is called.
fn a_table_that_was_dumped_alone_goes_on(server: &mut Server) -> Result<()> {
    let mut shop = server.create_database("shop")?;
    shop.run(
        "create extension if not exists snowflake_ids; create table t (id bigserial primary key); insert into t select from generate_series(1, 40);
         select snowflake_ids.attach('t', 'id', 'segment'); insert into t default values",
    )?;
    let insert = "insert into t default values returning id";
    for way in ["detach('t', 'id')", "detach('t', 'id', 'identity')", "attach('t', 'id', 'segment')"] {
        let mut copy = server.connect("postgres")?;
        copy.run("drop database if exists copy")?;
        copy.run("create database copy")?;
        let mut copy = server.connect("copy")?;
        copy.run("create extension if not exists snowflake_ids")?;
        server.restore_as("postgres", "copy", &server.dump_as("postgres", "shop", &["--table=t"])?)?;
        let error = copy.fails(insert, &SqlState::UNDEFINED_OBJECT)?;
        ensure!(error.hint().is_some_and(|hint| hint.contains("snowflake_ids.attach")), "{error:?}");
        copy.batch_execute(&format!("select snowflake_ids.{way}")).context(way)?;
        assert_eq!(copy.one::<i64>(insert)?, 42, "{way}");
    }
    Ok(())
}

/// Such a dump drops the default of a column that a child only inherits, although the column was an identity.
fn a_clean_dump_is_restored_in_one_transaction(server: &mut Server) -> Result<()> {
    server.session()?.run(
        "create table above (id bigint); create table beneath () inherits (above);
         alter table beneath alter id set not null, alter id add generated always as identity;
         select snowflake_ids.attach('beneath', 'id', 'segment'); insert into beneath default values",
    )?;
    let dump = server.dump_as("postgres", "postgres", &["--clean"])?;
    server.restore("postgres", &format!("begin;\n{dump}\ncommit;"))?;
    let mut client = server.connect("postgres")?;
    ensure!(client.one::<i64>("insert into beneath default values returning id")? == 2);
    client.fails("insert into beneath values (77)", &SqlState::GENERATED_ALWAYS)?;
    let error = server.connect("postgres")?.error("alter table beneath alter id set default 5")?;
    ensure!(error.code() == &SqlState::SYNTAX_ERROR, "a new session: {error:?}");
    Ok(())
}

#[test]
fn dumps_go_on_where_they_are_restored() -> Result<()> {
    Server::builder().set("snowflake_ids.worker_id", "auto").cases(cases![
        a_restored_database_goes_on_above_every_id_of_the_dump,
        rows_of_a_data_dump_go_into_a_database_that_has_the_extension,
        the_owner_of_a_database_dumps_and_restores_it,
        what_was_restricted_stays_so_where_a_role_is_missing,
        a_table_of_a_schema_dump_says_how_to_get_its_tag,
        a_table_that_was_dumped_alone_goes_on,
        a_clean_dump_is_restored_in_one_transaction
    ])
}
