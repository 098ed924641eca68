//! Nightly maintenance beside everything that gives numbers: the extension's tables are rewritten, reindexed, locked and dumped
//! in turn. No answer is wrong, and the only errors are the configured time-outs. Sessions that do not need a locked table do not
//! wait for it.
//!
//! `MAINTENANCE_SECONDS=3600` runs the test for an hour.

use snowflake_ids_server_tests::prelude::*;
use snowflake_ids_server_tests::setting;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

const MADE: &str = "
    create table items (id bigserial primary key, note text);
    create table identities (id bigint generated always as identity primary key, note text);
    create table orders (id bigint primary key default snowflake_nextval(), tag bigint unique default segment_nextval('orders'));
    create table invoices (tenant bigint, number bigint, primary key (tenant, number));
    create table receipts (tenant bigint, number bigint, primary key (tenant, number));
    create sequence plain; create sequence numbers;
    select snowflake_ids.segment_create('orders'), snowflake_ids.segment_create('restricted', owner => current_user);
    select snowflake_ids.attach('items', 'id', 'segment', 'items');
    select snowflake_ids.bind_sequence('identities_id_seq', 'segment', 'identities');
    select snowflake_ids.bind_sequence('numbers', 'snowflake');
    select snowflake_ids.generator_create('web', 'twitter');
    select snowflake_ids.series_create('invoices'), snowflake_ids.series_create('receipts', owner => current_user)";

/// Inserts, and checks that `lastval` and `currval` return the inserted ids.
fn insert(client: &mut Client) -> Result<()> {
    let pairs =
        [("items", "items_id_seq", "execute item"), ("identities", "identities_id_seq", "execute identity")];
    for (table, sequence, prepared) in pairs {
        let plain: i64 = client.one("select nextval('plain')")?;
        ensure!(client.one::<i64>("select lastval()")? == plain, "lastval is not the plain number");
        for statement in [prepared, &format!("insert into {table} (note) values ('y') returning id")] {
            let id: i64 = client.query_one(statement, &[])?.get(0);
            let said = client.query_one(&format!("select lastval(), currval('{sequence}')"), &[])?;
            let said: (i64, i64) = (said.get(0), said.get(1));
            ensure!(said == (id, id), "{statement} gave {id}, then {said:?}");
        }
    }
    client.run("insert into orders default values; select nextval('numbers'), segment_nextval('restricted'), snowflake_nextval('web')")?;
    Ok(())
}

/// Takes gapless numbers, and rolls some of them back.
fn number(client: &mut Client) -> Result<()> {
    let insert = |end| {
        format!(
            "begin; insert into invoices select k, series_nextval('invoices', k) from generate_series(1::bigint, 3) as k;
             insert into receipts values (1, series_nextval('receipts', 1)); {end}"
        )
    };
    client.run(&insert("commit"))?;
    client.run(&insert("rollback"))?;
    Ok(())
}

/// Calls that need no table of the extension.
const APART: &str = "
    create table apart (id bigint primary key default snowflake_nextval(), n serial);
    insert into apart default values;
    alter table apart alter column n type bigint, alter column id set default 5; reindex table apart;
    create table apart_2 (like apart including all); drop table apart_2;
    select nextval('apart_n_seq'), setval('apart_n_seq', 7);
    drop table apart";

fn is_one_of(error: &anyhow::Error, codes: &[SqlState]) -> bool {
    let code = error.chain().find_map(|cause| cause.downcast_ref::<postgres::Error>()?.code().cloned());
    code.is_some_and(|code| codes.contains(&code))
}

/// Errors from configured time-outs.
const OF_TIMEOUTS: [SqlState; 2] = [SqlState::LOCK_NOT_AVAILABLE, SqlState::QUERY_CANCELED];
/// DDL and rewrites of the server's own catalogs lock the catalogs in different orders. So either may fail with a deadlock on any
/// server.
const OF_CATALOGS: [SqlState; 1] = [SqlState::T_R_DEADLOCK_DETECTED];

/// A user, who repeats calls in one session or in new sessions until the end.
struct User {
    what: &'static str,
    work: fn(&mut Client) -> Result<()>,
    stays: bool,
    is_ddl: bool,
}

const USERS: [User; 5] = [
    User { what: "inserts", work: insert, stays: true, is_ddl: false },
    User { what: "inserts of new sessions", work: insert, stays: false, is_ddl: false },
    User { what: "numbers", work: number, stays: true, is_ddl: false },
    User { what: "numbers of new sessions", work: number, stays: false, is_ddl: false },
    User { what: "DDL", work: apart, stays: true, is_ddl: true },
];

fn apart(client: &mut Client) -> Result<()> {
    client.run(APART)
}

fn user(server: &Server) -> Result<Client> {
    let mut client = server.connect("postgres")?;
    client.run(
        "set snowflake_ids.segment_wait_timeout = '60s'; set statement_timeout = '120s';
         prepare item as insert into items (note) values ('x') returning id;
         prepare identity as insert into identities (note) values ('x') returning id",
    )?;
    Ok(client)
}

fn go_on(server: &Server, user_is: &User, ends: &AtomicBool, done: &AtomicU64) -> Result<()> {
    let mut client = user(server)?;
    while !ends.load(Relaxed) {
        if !user_is.stays {
            client = user(server).context(user_is.what)?;
        }
        if let Err(error) = (user_is.work)(&mut client) {
            let is_meant =
                is_one_of(&error, &OF_TIMEOUTS) || (user_is.is_ddl && is_one_of(&error, &OF_CATALOGS));
            ensure!(is_meant, "{}: {error:?}", user_is.what);
            client.run("rollback")?;
        } else {
            done.fetch_add(1, Relaxed);
        }
    }
    Ok(())
}

/// The tables of the extension.
fn tables(client: &mut Client) -> Result<Vec<String>> {
    client.column("select c.oid::regclass::text from pg_class as c where c.relnamespace = 'snowflake_ids'::regnamespace and c.relkind = 'r' order by 1")
}

/// Runs one chore after another until the time is over.
fn maintain(server: &Server, until: Instant, held: Duration) -> Result<u64> {
    let mut keeper = server.connect("postgres")?;
    let tables = tables(&mut keeper)?;
    let mut chores = 0;
    for table in tables.iter().cycle() {
        let statements = [
            format!("vacuum full {table}"),
            format!("reindex table {table}"),
            format!("reindex table concurrently {table}"),
            format!("analyze {table}"),
            "vacuum full".to_owned(),
            "reindex database postgres".to_owned(),
            "analyze".to_owned(),
        ];
        let done = keeper.batch_execute(&statements[chores % statements.len()]);
        let done = done.with_context(|| format!("{table}, chore {chores}"));
        ensure!(done.as_ref().map_or_else(|error| is_one_of(error, &OF_CATALOGS), |()| true), "{done:?}");
        keeper.run("cluster snowflake_ids.segment using segment_pkey")?;
        lock(server, table, held)?;
        dump_with_waiter(server, table)?;
        chores += 1;
        if Instant::now() >= until {
            break;
        }
    }
    u64::try_from(chores).map_err(Into::into)
}

/// Locks a table until a session that does not need it has finished.
fn lock(server: &Server, table: &str, held: Duration) -> Result<()> {
    let mut locker = server.connect("postgres")?;
    locker.run(&format!("begin; lock table {table}"))?;
    let mut other = server.connect("postgres")?;
    other.run("set statement_timeout = '60s'")?;
    other
        .batch_execute(&APART.replace("apart", "beside"))
        .with_context(|| format!("while {table} is locked"))?;
    thread::sleep(held);
    locker.run("commit")
}

fn dump_with_waiter(server: &Server, table: &str) -> Result<()> {
    thread::scope(|scope| {
        let dump = scope.spawn(|| server.dump().map(drop));
        let mut waiter = server.connect("postgres")?;
        waiter.run(&format!("vacuum full {table}"))?;
        dump.ended()
    })
}

#[test]
fn a_night_of_maintenance_changes_no_answer() -> Result<()> {
    let (length, held) = setting("MAINTENANCE_SECONDS").map_or((10, 100), |seconds| (seconds, 10_000));
    let server = Server::builder().set("max_connections", "40").start()?;
    server.session()?.run(MADE)?;
    let ends = AtomicBool::new(false);
    let done: [AtomicU64; USERS.len()] = std::array::from_fn(|_| AtomicU64::new(0));
    let until = Instant::now() + Duration::from_secs(length);
    thread::scope(|scope| -> Result<()> {
        let users: Vec<_> = USERS
            .iter()
            .zip(&done)
            .map(|(user_is, done)| {
                let (server, ends) = (&server, &ends);
                scope.spawn(move || go_on(server, user_is, ends, done))
            })
            .collect();
        let maintained = maintain(&server, until, Duration::from_millis(held));
        ends.store(true, Relaxed);
        for user in users {
            user.ended()?;
        }
        maintained.map(drop)
    })?;
    for (user_is, done) in USERS.iter().zip(&done) {
        ensure!(done.load(Relaxed) > 0, "{}: nothing was done", user_is.what);
    }
    let mut client = server.session()?;
    for table in ["invoices", "receipts"] {
        let gaps = format!(
            "select count(*) from (select from {table} group by tenant having count(*) <> max(number) or min(number) <> 1) as t"
        );
        assert_eq!(client.one::<i64>(&gaps)?, 0, "{table} has a gap");
    }
    let invalid = "select count(*) from pg_index where not indisvalid";
    assert_eq!(client.one::<i64>(invalid)?, 0, "invalid indexes are left");
    Ok(())
}
