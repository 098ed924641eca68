//! Bound sequences: across sessions, restarts and a dump, on a standby, and with a registry.

use snowflake_ids_server_tests::cluster::{self, JOIN, NAME};
use snowflake_ids_server_tests::full;
use snowflake_ids_server_tests::prelude::*;
use std::io::Write;

const INCREMENT: i64 = 50;

/// Runs `take` in eight sessions at once, and joins their results.
fn from_eight(server: &Server, take: impl Fn(usize, Client) -> Result<Vec<i64>> + Sync) -> Result<Vec<i64>> {
    Ok(at_once(server.sessions("postgres", 8)?, take)?.concat())
}

/// Hibernate's pooled optimizer uses the ids up to the number that it got, or up to the number before. Its pooled-lo optimizer uses
/// the ids from that number on. All sessions also take single ids.
fn blocks_of_many_sessions_never_meet(server: &mut Server) -> Result<()> {
    let mut client = server.session()?;
    client.run(
        "create sequence of_tag increment by 50; create sequence of_clock increment by 50;
         select snowflake_ids.bind_sequence('of_tag', 'segment', 'pooled');
         select snowflake_ids.bind_sequence('of_clock')",
    )?;
    for (sequence, single) in [("of_tag", "segment_nextval('pooled')"), ("of_clock", "snowflake_nextval()")] {
        let taken = from_eight(server, |of, mut session| {
            let mut taken = Vec::new();
            for _ in 0..40 {
                let number: i64 = session.one(&format!("select nextval('{sequence}')"))?;
                taken.extend(match of % 3 {
                    0 => number - INCREMENT..number,
                    1 => number - INCREMENT + 1..number + 1,
                    _ => number..number + INCREMENT,
                });
                taken.push(session.one(&format!("select {single}"))?);
            }
            Ok(taken)
        })?;
        ids::unique(taken).context(sequence)?;
    }
    Ok(())
}

/// An identity column and a serial column that share a tag, and calls of their sequences.
const MIXED: &str = "create table adopted (id bigserial primary key, note text);
    create table identity (id bigint generated always as identity primary key, note text);
    select snowflake_ids.attach('adopted', 'id', 'segment', 'mixed');
    select snowflake_ids.bind_sequence('identity_id_seq', 'segment', 'mixed')";

fn mix(server: &Server) -> Result<Vec<i64>> {
    from_eight(server, |_, mut session| {
        let mut taken = Vec::new();
        for _ in 0..25 {
            taken.push(session.one("select nextval('adopted_id_seq')")?);
            session.one::<i64>("insert into adopted (note) values ('one') returning id")?;
            session.one::<i64>("insert into identity (note) values ('one') returning id")?;
            let mut copy = session.copy_in("copy adopted (note) from stdin")?;
            copy.write_all(&b"copied\n".repeat(5))?;
            copy.finish()?;
        }
        Ok(taken)
    })
}

/// The number of restarts. A full run takes about a minute.
fn restarts() -> usize {
    if full() { 40 } else { 2 }
}

/// All numbers of sessions that take ids as in [`mix`]. The server restarts in between, by each shutdown in `kinds` in turn; None:
/// kill -9.
fn mixed_over_restarts(server: &mut Server, kinds: &[Option<Shutdown>]) -> Result<Vec<i64>> {
    server.session()?.run(MIXED)?;
    let mut taken = mix(server)?;
    for kind in kinds.iter().cycle().take(restarts()) {
        match kind {
            Some(how) => server.stop(*how)?,
            None => server.kill9()?,
        }
        server.start_again()?;
        taken.extend(mix(server)?);
    }
    let mut client = server.session()?;
    taken.extend(client.column::<i64>("select id from adopted union all select id from identity")?);
    ensure!(taken.len() == (1 + restarts()) * 8 * 25 * 8, "{}", taken.len());
    Ok(taken)
}

fn no_number_comes_twice_over_restarts(server: &mut Server) -> Result<()> {
    ids::unique(mixed_over_restarts(server, &[Some(Shutdown::Fast), None])?)
}

fn numbers_are_dense_where_the_server_was_always_stopped(server: &mut Server) -> Result<()> {
    ids::dense(mixed_over_restarts(server, &[Some(Shutdown::Fast)])?)
}

/// Before the first binding, sessions plan functions and statements. Their plans name no sequence.
fn the_first_binding_reaches_plans_that_were_made_before(server: &mut Server) -> Result<()> {
    let (mut client, mut other) = (server.session()?, server.session()?);
    client.run(
        "create sequence numbers;
         create function take(sequence regclass) returns bigint language plpgsql as
             $$ begin return nextval(sequence); end $$",
    )?;
    let warm = "execute given('numbers'); select take('numbers')";
    other.run("set plan_cache_mode = force_generic_plan; prepare given(regclass) as select nextval($1)")?;
    for _ in 0..7 {
        other.run(warm)?;
    }
    client.run("select snowflake_ids.bind_sequence('numbers', 'segment', 'numbers')")?;
    other.run(warm)?;
    ensure!(client.one::<i64>("select segment_nextval('numbers')")? == 17);
    client.run("select snowflake_ids.unbind_sequence('numbers')")?;
    other.run(warm)?;
    ensure!(client.one::<i64>("select last_value from numbers")? == 19);
    Ok(())
}

/// A database that uses another database of the server as its registry.
fn node(server: &Server) -> Result<Client> {
    let mut client = server.create_database("node")?;
    server.connect_from(&mut client, NAME, "postgres")?;
    client.run(JOIN)?;
    Ok(client)
}

#[test]
fn a_sequence_gives_ids_of_a_registrys_tag() -> Result<()> {
    let server = cluster::node().start()?;
    let mut registry = server.session()?;
    let mut node = node(&server)?;
    node.run(
        "create table orders (id bigserial primary key, note text);
         insert into orders (note) values ('one'), ('two');
         select snowflake_ids.attach('orders', 'id', 'segment', 'orders')",
    )?;
    let mut taken: Vec<i64> = node.column("select id from orders")?;
    for _ in 0..10 {
        taken.push(node.one("select nextval('orders_id_seq')")?);
        taken.push(node.one("insert into orders (note) values ('more') returning id")?);
        taken.push(registry.one("select segment_nextval('orders')")?);
    }
    // Other servers may have ids of the tag, so a restart of the sequence on this node repeats no ids.
    node.run("alter sequence orders_id_seq restart; truncate orders restart identity")?;
    for _ in 0..10 {
        taken.push(node.one("select nextval('orders_id_seq')")?);
    }
    // Tools call setval after loading fixtures. A lower value moves nothing; a higher value raises the tag at the registry. Other
    // servers first use up their reserved ids.
    node.run("select setval('orders_id_seq', 1); select setval('orders_id_seq', 50000)")?;
    let after = node.one::<i64>("select nextval('orders_id_seq')")?;
    ensure!(after > 50_000, "id {after} after setval to 50000");
    let reserved = registry.one::<i64>("select max_id from snowflake_ids.segment where tag = 'orders'")?;
    ensure!(reserved >= after, "the registry is at {reserved}");
    taken.extend([after, registry.one("select segment_nextval('orders')")?]);
    ids::unique(taken)
}

fn plans_of_other_sessions_are_made_anew(server: &mut Server) -> Result<()> {
    let (mut client, mut other) = (server.session()?, server.session()?);
    client.run("create sequence first; create sequence second")?;
    // From now on the other session knows that bound sequences exist, and in which table.
    client.run("select snowflake_ids.bind_sequence('first', 'segment', 'first')")?;
    other.run(
        "prepare named as select nextval('second'); prepare given(regclass) as select nextval($1);
         execute named; execute given('second')",
    )?;
    client.run("select snowflake_ids.bind_sequence('second', 'segment', 'second')")?;
    other.run("execute named; execute given('second')")?;
    ensure!(other.one::<i64>("select currval('second')")? == 4);
    ensure!(client.one::<i64>("select segment_nextval('second')")? == 5);
    client.run("select snowflake_ids.unbind_sequence('second')")?;
    other.run("execute named; execute given('second')")?;
    ensure!(client.one::<i64>("select last_value from second")? == 7);
    Ok(())
}

fn a_dump_carries_what_is_bound(server: &mut Server) -> Result<()> {
    let mut client = server.session()?;
    client.run(
        "create sequence numbers; create sequence \"Odd name\";
         select nextval('numbers');
         select snowflake_ids.bind_sequence('numbers', 'segment', 'numbers');
         select snowflake_ids.bind_sequence('\"Odd name\"');
         create sequence gone; select snowflake_ids.bind_sequence('gone'); drop sequence gone",
    )?;
    client.run("create database copy")?;
    let last: i64 = client.one("select nextval('numbers')")?;
    server.restore("copy", &server.dump()?)?;
    let mut copy = server.connect("copy")?;
    let bound = "select sequence::text || ' ' || kind from snowflake_ids.sequence_status order by 1";
    ensure!(copy.column::<String>(bound)? == ["\"Odd name\" snowflake", "numbers segment"]);
    let next: i64 = copy.one("select nextval('numbers')")?;
    ensure!(next > last && next < 1_000_000, "{next} after {last}");
    ensure!(copy.one::<bool>("select snowflake_worker_id(nextval('\"Odd name\"')) >= 0")?);
    ensure!(
        copy.one::<i64>("select last_value from numbers")? == i64::MAX,
        "the copied sequence is at its last value too"
    );
    Ok(())
}

/// The dump inserts ids into a column that was GENERATED ALWAYS, before it sets the column's sequence to its end.
fn a_dump_of_inserts_fills_a_former_identity(server: &mut Server) -> Result<()> {
    let mut client = server.session()?;
    client.run(
        "create table former (id bigint generated always as identity, note text); insert into former default values;
         select snowflake_ids.attach('former', 'id', 'segment')",
    )?;
    client.run("create database copy")?;
    server.restore("copy", &server.dump_as("postgres", "postgres", &["--inserts"])?)?;
    let mut copy = server.connect("copy")?;
    copy.fails("insert into former values (77)", &SqlState::GENERATED_ALWAYS)?;
    ensure!(copy.column::<i64>("select id from former")? == [1]);
    Ok(())
}

fn a_sequence_dropped_in_a_prepared_transaction_leaves_with_it(server: &mut Server) -> Result<()> {
    let mut client = server.session()?;
    client.run("create sequence numbers; select snowflake_ids.bind_sequence('numbers')")?;
    let drop = "begin; drop sequence numbers; prepare transaction 'drop'";
    let bound = "select count(*) from snowflake_ids.sequence_binding";
    client.run(drop)?;
    client.run("rollback prepared 'drop'")?;
    ensure!(client.one::<i64>(bound)? == 1);
    client.run(drop)?;
    client.run("commit prepared 'drop'")?;
    ensure!(client.one::<i64>(bound)? == 0);
    Ok(())
}

/// A database that `keeper` owns, with a sequence that `victim` owns. `keeper` and `clerk` may manage tags.
fn tenants(server: &Server) -> Result<Client> {
    let mut client = server.session()?;
    client.run("create role keeper login; create role victim login; create role clerk login")?;
    client.run("create database shop owner keeper")?;
    let mut client = server.connect("shop")?;
    client.run(
        "create extension snowflake_ids; create schema own authorization victim;
         select snowflake_ids.administration_grant('tags', 'clerk'), snowflake_ids.segment_create('evil', start => 1000);
         set role victim;
         create table own.rows (id bigserial, note text); create sequence own.short maxvalue 9999; select nextval('own.short');
         reset role",
    )?;
    Ok(client)
}

const PLANTED: &str = "insert into snowflake_ids.sequence_binding (sequence, tag, last_number, checked)
     values ('own.rows_id_seq', 'evil', 0, true)";

fn no_role_writes_rows_of_others_sequences(server: &mut Server) -> Result<()> {
    let mut client = tenants(server)?;
    for role in ["keeper", "clerk", "victim"] {
        client.run(&format!("set role {role}"))?;
        for statement in [
            PLANTED,
            "update snowflake_ids.sequence_binding set tag = 'evil'",
            "delete from snowflake_ids.sequence_binding",
        ] {
            if let Ok(error) = client.error(statement) {
                let is_denied = error.code() == &SqlState::INSUFFICIENT_PRIVILEGE;
                ensure!(is_denied, "{role}, {statement}: {error:?}");
            }
        }
    }
    client.run("reset role")?;
    ensure!(client.one::<i64>("select count(*) from snowflake_ids.sequence_binding")? == 0);
    Ok(())
}

fn a_row_that_came_by_hand_takes_no_sequence_over(server: &mut Server) -> Result<()> {
    let mut client = tenants(server)?;
    // A superuser restores such rows from a dump.
    client.run(PLANTED)?;
    let mut victim = server.connect("shop")?;
    victim.run("set role victim")?;
    let next = "select nextval('own.rows_id_seq')";
    ensure!(victim.one::<i64>(next)? == 1);
    victim.run("insert into own.rows (note) values ('x'); select setval('own.rows_id_seq', 41)")?;
    ensure!(victim.one::<i64>(next)? == 42);
    victim.run("truncate own.rows restart identity")?;
    ensure!(victim.one::<i64>(next)? == 1);
    victim.run("alter sequence own.rows_id_seq restart with 7")?;
    ensure!(victim.one::<i64>(next)? == 7);
    ensure!(client.one::<i64>("select count(*) from snowflake_ids.sequence_status")? == 0);
    // Binding the sequence has no effect either.
    client.run("select snowflake_ids.bind_sequence('own.rows_id_seq', 'segment', 'right')")?;
    ensure!(victim.one::<i64>(next)? == 8);
    Ok(())
}

fn a_row_that_was_restored_counts_once_its_sequence_stands_at_its_end(server: &mut Server) -> Result<()> {
    let mut client = server.session()?;
    client.run(
        "create sequence numbers;
         insert into snowflake_ids.sequence_binding (sequence, tag, last_number) values ('numbers', 'numbers', 0);
         select snowflake_ids.segment_create('numbers', start => 100)",
    )?;
    let is_checked = "select checked from snowflake_ids.sequence_binding";
    ensure!(!client.one::<bool>(is_checked)?);
    ensure!(client.one::<i64>("select nextval('numbers')")? == 1);
    client.run("select pg_catalog.setval('numbers', 9223372036854775807, true)")?;
    ensure!(client.one::<bool>(is_checked)?);
    ensure!(client.one::<i64>("select nextval('numbers')")? == 100);
    // A restore leaves such a row if it sets the sequence before it commits the row.
    client.run("update snowflake_ids.sequence_binding set checked = false")?;
    ensure!(client.one::<i64>("select nextval('numbers')")? == 101);
    ensure!(client.one::<bool>(is_checked)?);
    client.run("alter sequence numbers restart")?;
    ensure!(client.one::<bool>("select last_value = 9223372036854775807 from numbers")?);
    Ok(())
}

fn a_row_that_cannot_be_read_fails_by_itself(server: &mut Server) -> Result<()> {
    let mut client = server.session()?;
    client.run("create sequence bad; create sequence twofold; create sequence good")?;
    for sequence in ["bad", "twofold", "good"] {
        client.run(&format!("select snowflake_ids.bind_sequence('{sequence}', 'segment', 'good')"))?;
    }
    client.run(
        "update snowflake_ids.sequence_binding set tag = repeat('x', 100000) where sequence = 'bad'::regclass;
         update snowflake_ids.sequence_binding set generator = 'web' where sequence = 'twofold'::regclass",
    )?;
    for sequence in ["bad", "twofold"] {
        for call in ["nextval('{}')", "setval('{}', 5)"] {
            let message = format!("the binding of sequence \"{sequence}\" is not valid");
            client.explained(
                &format!("select {}", call.replace("{}", sequence)),
                sql::NOT_IN_STATE,
                &message,
            )?;
        }
    }
    ensure!(client.one::<i64>("select nextval('good')")? == 1);
    let shown = "select sequence::text || ' ' || kind from snowflake_ids.sequence_status order by 1";
    let shown = client.column::<String>(shown)?;
    ensure!(shown == ["bad unreadable", "good segment", "twofold unreadable"], "{shown:?}");
    ensure!(client.one::<String>("select snowflake_ids.status_page()::text")?.contains("unreadable"));
    Ok(())
}

fn many_rows_cost_a_new_session_nothing(server: &mut Server) -> Result<()> {
    let mut client = server.session()?;
    client.run(
        "create table items (id bigserial, note text); select snowflake_ids.attach('items', 'id', 'segment', 'items');
         create sequence plain;
         insert into snowflake_ids.sequence_binding (sequence, tag, last_number, checked)
             select n::oid, 'items', 0, true from generate_series(1000000, 1300000) n",
    )?;
    let pages: i64 = client.one(
        "select pg_relation_size('snowflake_ids.sequence_binding') / current_setting('block_size')::int",
    )?;
    let mut session = server.connect("postgres")?;
    let explained = session.column::<String>(
        "explain (analyze, buffers) insert into items (note) select nextval('plain')::text",
    )?;
    let words =
        explained.iter().filter(|line| line.contains("Buffers:")).flat_map(|line| line.split(['=', ' ']));
    let touched: i64 = words.filter_map(|word| word.parse::<i64>().ok()).sum();
    ensure!(touched > 0, "{explained:?}");
    ensure!(touched < pages, "{touched} of {pages} pages");
    Ok(())
}

#[test]
fn so_many_sequences_are_bound_and_no_more() -> Result<()> {
    let (_server, mut client) =
        Server::builder().set("snowflake_ids.max_bound_sequences", "2").with_session()?;
    client.run(
        "create sequence one; create sequence two; create sequence three;
         select snowflake_ids.bind_sequence('one'), snowflake_ids.bind_sequence('two')",
    )?;
    client.explained(
        "select snowflake_ids.bind_sequence('three')",
        &SqlState::CONFIGURATION_LIMIT_EXCEEDED,
        "too many bound sequences",
    )?;
    client.run("drop sequence one; select snowflake_ids.bind_sequence('three')")?;
    Ok(())
}

fn a_session_sees_at_once_that_another_has_changed_a_right(server: &mut Server) -> Result<()> {
    let (mut admin, mut session) = (server.session()?, server.session()?);
    admin.run(
        "create role members; create role watcher in role members; create sequence watched;
         select snowflake_ids.bind_sequence('watched')",
    )?;
    for (grant, revoke) in [
        ("grant usage on sequence watched to watcher", "revoke usage on sequence watched from watcher"),
        ("grant usage on sequence watched to members", "revoke members from watcher"),
        ("alter role watcher superuser", "alter role watcher nosuperuser"),
    ] {
        admin.run(grant)?;
        session.run("set role watcher; select nextval('watched'); select nextval('watched')")?;
        admin.run(revoke)?;
        session.fails("select nextval('watched')", &SqlState::INSUFFICIENT_PRIVILEGE)?;
    }
    Ok(())
}

#[test]
fn bound_sequences_give_ids() -> Result<()> {
    Server::builder().set("max_prepared_transactions", "2").cases(cases![
        the_first_binding_reaches_plans_that_were_made_before,
        blocks_of_many_sessions_never_meet,
        no_number_comes_twice_over_restarts,
        numbers_are_dense_where_the_server_was_always_stopped,
        plans_of_other_sessions_are_made_anew,
        a_dump_carries_what_is_bound,
        a_dump_of_inserts_fills_a_former_identity,
        a_sequence_dropped_in_a_prepared_transaction_leaves_with_it,
        no_role_writes_rows_of_others_sequences,
        a_row_that_came_by_hand_takes_no_sequence_over,
        a_row_that_was_restored_counts_once_its_sequence_stands_at_its_end,
        a_row_that_cannot_be_read_fails_by_itself,
        many_rows_cost_a_new_session_nothing,
        a_session_sees_at_once_that_another_has_changed_a_right
    ])
}
