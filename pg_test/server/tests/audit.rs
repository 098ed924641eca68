//! Audits of large tables with planted faults: in partitions, behind a foreign table, and on another server. An audit finds the
//! planted faults and nothing else. Some tables belong to roles that want superuser rights.

use snowflake_ids_server_tests::full;
use snowflake_ids_server_tests::prelude::*;

/// The number of correct ids in the local partitions, behind the foreign table, and on the second server together.
fn rows() -> i64 {
    if full() { 10_000_000 } else { 1_000_000 }
}

fn server(worker: &str) -> Result<(Server, Client)> {
    let server =
        Server::builder().set("snowflake_ids.worker_id", worker).set("statement_timeout", "20min").start()?;
    let client = server.session()?;
    Ok((server, client))
}

type Fault = (String, i64, i64, String);

fn faults(client: &mut Client, arguments: &str) -> Result<Vec<Fault>> {
    let query = format!(
        "select finding, id, count, detail from snowflake_ids.audit({arguments}) where is_fault order by id, finding"
    );
    let rows = client.query(&query, &[]).with_context(|| query.clone())?;
    Ok(rows.iter().map(|row| (row.get(0), row.get(1), row.get(2), row.get(3))).collect())
}

/// Ids of the layout from the past. All are different, and none is from the future.
const PAST: &str =
    "snowflake_compose('2021-01-01'::timestamptz + i / 100 * interval '1 second', 0, WORKER, (i % 100)::int)";

fn past(worker: u32) -> String {
    PAST.replace("WORKER", &worker.to_string())
}

/// A table with two local partitions and one foreign one.
fn create_table(server: &Server, client: &mut Client) -> Result<()> {
    client.run("create extension postgres_fdw")?;
    client.run("create database far")?;
    let mut far = server.connect("far")?;
    let third = rows() / 3;
    far.run("create table orders_c (id bigint not null, part text not null)")?;
    client.run(&format!(
        "create server far foreign data wrapper postgres_fdw options (host '{}', port '{}', dbname 'far', fetch_size '10000');
         create user mapping for postgres server far options (user 'postgres');
         create table orders (id bigint not null, part text not null) partition by list (part);
         create table orders_a partition of orders for values in ('a');
         create table orders_b partition of orders for values in ('b');
         create foreign table orders_c partition of orders for values in ('c') server far;
         insert into orders_a select {}, 'a' from generate_series(1::bigint, {third}) i;
         insert into orders_b select {}, 'b' from generate_series(1::bigint, {third}) i;
         create index on orders_b (id)",
        server.socket_folder().display(),
        server.port(),
        past(1),
        past(2),
    ))?;
    far.run("create extension snowflake_ids")?;
    far.run(&format!(
        "insert into orders_c select {}, 'c' from generate_series(1::bigint, {}) i",
        past(3),
        rows() - 2 * third
    ))?;
    client.run("analyze")?;
    Ok(())
}

#[test]
fn what_was_planted_is_found_and_nothing_else() -> Result<()> {
    let (first, mut client) = server("1")?;
    let (second, mut other) = server("4")?;
    create_table(&first, &mut client)?;
    other.run(&format!(
        "create table orders (id bigint not null, part text not null);
         insert into orders select {}, 'd' from generate_series(1, 100000) i",
        past(4)
    ))?;
    second.connect_from(&mut client, "second", "postgres")?;
    let all = "'orders', 'id', connections => '{second}'";
    ensure!(faults(&mut client, all)?.is_empty(), "faults where there are none");
    let total: i64 =
        client.one(&format!("select count from snowflake_ids.audit({all}) where finding = 'total'"))?;
    assert_eq!(total, rows() + 100_000);

    // Ids that exist only once so far, from each part.
    let id = |client: &mut Client, worker, i: i64| {
        client.one::<i64>(&format!("select {} from generate_series({i}::bigint, {i}) i", past(worker)))
    };
    let [first_id, last_id] = [id(&mut client, 1, 1)?, id(&mut client, 1, rows() / 3)?];
    let [second_id, third_id, fourth_id] =
        [id(&mut client, 2, 77)?, id(&mut client, 3, 78)?, id(&mut client, 4, 79)?];
    let future: i64 = client.one("select snowflake_min_id(now() + interval '2 days')")?;
    // Duplicates: at both ends of one partition, across two partitions, across a partition and the foreign table, and across two
    // servers.
    client.run(&format!(
        "insert into orders values ({first_id}, 'a'), ({last_id}, 'a'), ({second_id}, 'a'), ({third_id}, 'b'),
             ({fourth_id}, 'b'), (-1, 'a'), ({future}, 'a')"
    ))?;
    first.connect("far")?.run(&format!(
        "insert into orders_c values ({second_id}, 'c'), (-9223372036854775808, 'c'), ({future} + 4194304, 'c')"
    ))?;
    other.run(&format!("insert into orders values ({}, 'd'), (-7, 'd')", id(&mut client, 1, 500)?))?;

    let found = faults(&mut client, all)?;
    let of = |finding: &str| {
        let ids = found.iter().filter(|fault| fault.0 == finding).map(|(_, id, count, places)| {
            let places = places.strip_prefix("In ").unwrap_or(places);
            (*id, *count, places.to_owned())
        });
        ids.collect::<Vec<_>>()
    };
    let fault = |id: i64, count: i64, places: &str| (id, count, places.to_owned());
    let mut duplicates = vec![
        fault(first_id, 2, "public.orders_a (2 rows)."),
        fault(last_id, 2, "public.orders_a (2 rows)."),
        fault(second_id, 3, "public.orders_a, public.orders_b, public.orders_c."),
        fault(third_id, 2, "public.orders_b, public.orders_c."),
        fault(fourth_id, 2, "public.orders_b, connection 1."),
        fault(id(&mut client, 1, 500)?, 2, "public.orders_a, connection 1."),
    ];
    duplicates.sort_unstable();
    assert_eq!(of("duplicate"), duplicates);
    let unfit = "It is negative; ids are 0 or more. In ";
    assert_eq!(
        of("unfit"),
        [
            fault(i64::MIN, 1, &format!("{unfit}public.orders_c.")),
            fault(-7, 1, &format!("{unfit}connection 1.")),
            fault(-1, 1, &format!("{unfit}public.orders_a.")),
        ]
    );
    let ids: Vec<_> = of("future").iter().map(|(id, count, _)| (*id, *count)).collect();
    assert_eq!(ids, [(future, 1), (future + (1 << 22), 1)]);
    assert_eq!(found.len(), 6 + 3 + 2, "{found:?}");

    // All rows are counted by day and by worker.
    let sums = "select array_agg(s order by finding)::bigint[] from (select finding, sum(count) s from snowflake_ids.audit(ALL)
                    where finding in ('day', 'worker', 'total') group by finding) s";
    let sums: Vec<i64> = client.one(&sums.replace("ALL", all))?;
    let total = rows() + 100_000 + 7 + 3 + 2;
    assert_eq!(sums, [total - 3, total, total - 3]);
    // Audits of single parts find fewer faults.
    assert_eq!(faults(&mut client, "'orders_c', 'id'")?.len(), 2);
    assert_eq!(faults(&mut other, "'orders', 'id'")?.len(), 1);
    Ok(())
}

#[test]
fn a_cancel_ends_it() -> Result<()> {
    let (server, mut client) = server("1")?;
    client.run("create table orders (id bigint); insert into orders select generate_series(1, 100000)")?;
    let cancel = client.cancel_token();
    let mut watcher = server.connect("postgres")?;
    let pid = client.process()?;
    let cancelled = thread::scope(|scope| -> Result<Option<SqlState>> {
        let auditing = scope.spawn(move || {
            let again =
                "do $$ begin loop perform * from snowflake_ids.audit('orders', 'id'); end loop; end $$";
            client.batch_execute(again).err().and_then(|error| error.code().cloned())
        });
        let active = format!("select state = 'active' from pg_stat_activity where pid = {pid}");
        watcher.becomes_true(&active)?;
        cancel.cancel_query(NoTls)?;
        Ok(auditing.ended())
    })?;
    assert_eq!(cancelled, Some(SqlState::QUERY_CANCELED));
    Ok(())
}

/// A query for the number of all rows, local and remote.
fn total(server: &str) -> String {
    format!(
        "select count from snowflake_ids.audit('orders', 'id', connections => '{{{server}}}')
             where finding = 'total'"
    )
}

#[test]
fn another_server_that_refuses_or_is_silent_or_gone() -> Result<()> {
    let (_first, mut client) = server("1")?;
    let (second, mut other) = server("2")?;
    let orders = "create table orders (id bigint); insert into orders values (1), (2)";
    client.run(orders)?;
    // The other server checks rights too, and row security hides no rows silently.
    other.run("create role reader login")?;
    second.connect_from(&mut client, "as_reader", "reader")?;
    second.connect_from(&mut client, "second", "postgres")?;
    let [as_reader, there] = ["as_reader", "second"].map(total);
    client.fails(&there, &SqlState::UNDEFINED_TABLE)?;
    other.run(orders)?;
    client.fails(&as_reader, &SqlState::INSUFFICIENT_PRIVILEGE)?;
    other.run("grant select on orders to reader")?;
    assert_eq!(client.one::<i64>(&as_reader)?, 4);

    // The audit waits for a locked remote table until the caller's time limit.
    let mut locking = second.connect("postgres")?;
    locking.run("begin; lock table orders")?;
    assert_eq!(client.error_within("2s", &there)?.code(), &SqlState::QUERY_CANCELED);
    locking.run("rollback")?;
    assert_eq!(client.one::<i64>(&there)?, 4);
    // No temporary table is left, even after an error.
    let left = "select count(*) from pg_class where relname like 'snowflake_ids_audit%'";
    assert_eq!(client.one::<i64>(left)?, 0);

    // A superuser may audit a tenant's table, through a user mapping that the tenant does not have.
    client.run(
        "create role tenant; grant create on schema public to tenant; alter table orders owner to tenant",
    )?;
    assert_eq!(client.one::<i64>(&there)?, 4);
    // Mallory's foreign server could connect to any host as any user, so the audit refuses it.
    client.run("create role mallory; grant usage on foreign data wrapper postgres_fdw to mallory")?;
    client.run("alter server second owner to mallory")?;
    client.explained(
        &there,
        &SqlState::INSUFFICIENT_PRIVILEGE,
        "foreign server \"second\" must belong to a superuser",
    )?;

    drop((second, other, locking));
    let gone = client.error(&as_reader)?;
    ensure!(gone.message().contains("could not") || gone.code() == &SqlState::CONNECTION_FAILURE, "{gone:?}");
    Ok(())
}

/// The library was not preloaded.
#[test]
fn it_does_not_take_the_library() -> Result<()> {
    let server = Server::builder().without_preload().set("snowflake_ids.layout", "twitter").start()?;
    let mut client = server.session()?;
    client.run("create table orders (id bigint); insert into orders values (-1), (5), (5)")?;
    assert_eq!(faults(&mut client, "'orders', 'id'")?.len(), 2);
    let day = "select day::text from snowflake_ids.audit('orders', 'id') where finding = 'day'";
    assert_eq!(client.one::<String>(day)?, "2010-11-04");
    Ok(())
}

#[test]
fn it_does_not_take_a_primary() -> Result<()> {
    let primary = Server::builder().start()?;
    primary.session()?.run(
        "select snowflake_ids.segment_create('tag');
         create table orders (id bigint); insert into orders values (-1), (5), (5);
         create table numbers (id bigint default segment_nextval('tag')); insert into numbers values (1), (3)",
    )?;
    let standby = primary.standby()?;
    standby.catch_up(&primary)?;
    let mut client = standby.connect("postgres")?;
    assert_eq!(faults(&mut client, "'orders', 'id'")?.len(), 2);
    let found = client.column::<String>("select finding from snowflake_ids.audit('numbers', 'id')")?;
    assert_eq!(found, ["future", "future", "total"]);
    Ok(())
}

/// Mallory's foreign table refers to this server, and mallory made a mapping for everybody. A superuser reading it would connect
/// as the server's own account.
#[test]
fn a_foreign_table_is_read_with_its_owners_rights() -> Result<()> {
    let (server, mut client) = server("1")?;
    client.run(
        "create extension postgres_fdw; create role mallory login; grant usage on foreign data wrapper postgres_fdw to mallory;
         create schema hostile authorization mallory; grant usage on schema hostile to public",
    )?;
    let mut mallory = server.connect_as("mallory", "")?;
    mallory.run(&format!(
        "create table hostile.loot (who name default current_user);
         create function hostile.grab() returns bigint language sql as
             'insert into hostile.loot default values returning 1::bigint';
         create view hostile.trap as select hostile.grab() as id;
         create server self foreign data wrapper postgres_fdw options (host '{}', port '{}', dbname 'postgres');
         create user mapping for public server self options (user 'postgres');
         create foreign table hostile.t (id bigint) server self options (schema_name 'hostile', table_name 'trap')",
        server.socket_folder().display(),
        server.port()
    ))?;
    let refused = client.error("select * from snowflake_ids.audit('hostile.t', 'id')")?;
    ensure!(refused.message().contains("password"), "{refused:?}");
    assert_eq!(client.one::<i64>("select count(*) from hostile.loot")?, 0);
    Ok(())
}

/// The planner runs code of the table's owner that is in an index predicate. This code finds nothing that has remote rows, even
/// if the caller's new tables are readable for everybody.
#[test]
fn remote_rows_are_only_for_who_called() -> Result<()> {
    let (first, mut client) = server("1")?;
    let (second, mut other) = server("2")?;
    other.run("create table orders (id bigint); insert into orders values (777)")?;
    second.connect_from(&mut client, "second", "postgres")?;
    client.run(
        "create role mallory login; create schema hostile authorization mallory;
         grant create on schema public to mallory;
         create table orders (id bigint); insert into orders values (1); alter table orders owner to mallory;
         alter default privileges grant select on tables to public",
    )?;
    first.connect_as("mallory", "")?.run(
        "create table hostile.loot (id bigint, of name);
         create function hostile.look() returns boolean language plpgsql as $$
             declare found name;
             begin
                 for found in select relname from pg_class where relname like 'snowflake_ids_audit%' loop
                     insert into hostile.loot values (null, found);
                     execute format('insert into hostile.loot select id, %L from pg_temp.%I', found, found);
                 end loop;
                 return true;
             end $$;
         create function hostile.peek() returns boolean language plpgsql immutable as
             'begin return hostile.look(); end';
         create index on orders (id) where hostile.peek()",
    )?;
    assert_eq!(client.one::<i64>(&total("second"))?, 2);
    ensure!(client.one::<i64>("select count(*) from hostile.loot")? > 0, "the owner's code did not run");
    assert_eq!(client.one::<i64>("select count(*) from hostile.loot where id = 777")?, 0);
    let left = "select count(*) from pg_class where relname like 'snowflake_ids_audit%'";
    assert_eq!(client.one::<i64>(left)?, 0);
    Ok(())
}

/// If the caller cannot become the owner, the table is read with the caller's rights.
#[test]
fn the_owners_rights_are_not_lent() -> Result<()> {
    let (first, mut client) = server("1")?;
    let (second, mut other) = server("2")?;
    other.run("create table orders (id bigint); insert into orders values (7)")?;
    second.connect_from(&mut client, "second", "postgres")?;
    client.run(
        "create role reader login; create foreign table orders (id bigint) server second;
         grant select on orders to reader",
    )?;
    assert_eq!(faults(&mut client, "'orders', 'id'")?, []);
    let mut reader = first.connect_as("reader", "")?;
    let refused = reader.error("select * from snowflake_ids.audit('orders', 'id')")?;
    ensure!(refused.message().contains("user mapping not found"), "{refused:?}");
    Ok(())
}

/// A session checks the table again after waiting for its lock.
#[test]
fn a_table_that_changes_while_its_lock_is_waited_for_is_looked_at_again() -> Result<()> {
    let (server, mut client) = server("1")?;
    for (change, expected) in [
        ("alter table s.orders rename to aside; create view s.orders as select 1::bigint as id", None),
        ("drop table s.orders", Some("42P01")),
        ("alter table s.orders drop column id", Some("42703")),
        ("alter table s.orders alter column id type text", Some("42804")),
        ("revoke select on s.orders from reader", Some("42501")),
    ] {
        client.run(
            "create role reader login;
             create schema s; grant usage on schema s to reader;
             create table s.orders (id bigint); grant select on s.orders to reader",
        )?;
        let mut other = server.connect("postgres")?;
        other.run(&format!("begin; lock table s.orders; {change}"))?;
        let mut reader = server.connect_as("reader", "")?;
        let audited = server.while_waiting(
            &mut reader,
            |reader| reader.batch_execute("select * from snowflake_ids.audit('s.orders'::regclass, 'id')"),
            || other.run("commit"),
        )?;
        let error = audited.as_ref().err().and_then(|error| error.code().map(SqlState::code));
        assert_eq!(error, expected, "{change}");
        client.run("drop schema s cascade; drop role reader")?;
    }
    Ok(())
}
