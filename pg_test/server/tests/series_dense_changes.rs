//! Dense series whose keys, rows or definitions are changed or locked while they are in use.

use anyhow::{Result, ensure};
use postgres::error::{DbError, SqlState};
use postgres::{Client, SimpleQueryMessage};
use snowflake_ids_server_tests::cluster::{wait_as_long_as_it_takes, wait_at_most};
use snowflake_ids_server_tests::series::{next, refused_with, take};
use snowflake_ids_server_tests::{Server, Shutdown, ids, sql, wait};
use std::thread;
use std::time::Duration;

fn server() -> Result<(Server, Client)> {
    let server = Server::builder().small().start()?;
    let mut client = server.session()?;
    client.batch_execute(
        "select snowflake_ids.series_create('d', kind => 'dense');
         select snowflake_ids.series_create('texts', kind => 'dense', key_type => 'text')",
    )?;
    Ok((server, client))
}

/// A session that has the row of a key locked.
fn locker(server: &Server, key: i64) -> Result<Client> {
    let mut locker = server.connect("postgres")?;
    locker.batch_execute(&format!(
        "begin; select 1 from snowflake_ids.series_bigint where key = {key} for update"
    ))?;
    Ok(locker)
}

/// Takes numbers of a key whose row is locked until a call fails and says so. One may fail before that is known.
fn take_until_refused(client: &mut Client, key: i64) -> Result<(Vec<i64>, DbError)> {
    wait_at_most(client, Duration::from_secs(2))?;
    let refused =
        refused_with(client, "d", key, "A transaction has the key's row in the tables of snowflake_ids")?;
    wait_as_long_as_it_takes(client)?;
    Ok(refused)
}

#[test]
fn a_row_that_is_locked_keeps_other_keys_from_nothing() -> Result<()> {
    let (server, mut client) = server()?;
    let mut all = take(&mut client, "d", 1, 3)?;
    let mut locker = locker(&server, 1)?;
    let (taken, error) = take_until_refused(&mut client, 1)?;
    all.extend(taken);
    let message = "no number for key 1 of series \"d\" within 2 s";
    sql::explains(&error, &SqlState::INSUFFICIENT_RESOURCES, message)?;
    // A call that waits, and keys beside it.
    let mut waiting = server.connect("postgres")?;
    let waits = thread::spawn(move || next(&mut waiting, "d", 1));
    let mut other = server.connect("postgres")?;
    assert_eq!(take(&mut other, "d", 2, 100)?, (1..=100).collect::<Vec<i64>>());
    ensure!(!waits.is_finished(), "did not wait for the row");
    locker.batch_execute("commit")?;
    let Ok(waited) = waits.join() else { anyhow::bail!("the call panicked") };
    all.push(waited?);
    all.extend(take(&mut client, "d", 1, 30)?);
    ids::dense(all)
}

/// Fails when a call that was cancelled still gets the number, which nobody reads then.
#[test]
fn a_call_that_is_cancelled_leaves_no_gap_where_it_got_none() -> Result<()> {
    let (server, mut client) = server()?;
    let mut all = take(&mut client, "d", 1, 3)?;
    let mut locker = locker(&server, 1)?;
    all.extend(take_until_refused(&mut client, 1)?.0);
    let mut waiting = server.connect("postgres")?;
    let token = waiting.cancel_token();
    let waits = thread::spawn(move || (sql::error(&mut waiting, "select series_nextval('d', 1)"), waiting));
    sql::becomes_true(
        &mut client,
        "select count(*) = 1 from pg_stat_activity where query = 'select series_nextval(''d'', 1)' and wait_event is not null",
    )?;
    token.cancel_query(postgres::NoTls)?;
    let Ok((error, mut waiting)) = waits.join() else { anyhow::bail!("the call panicked") };
    assert_eq!(error?.code(), &SqlState::QUERY_CANCELED);
    locker.batch_execute("commit")?;
    all.extend(take(&mut client, "d", 1, 30)?);
    all.extend(take(&mut waiting, "d", 1, 30)?);
    ids::dense(all)
}

/// Fails when memory goes on with what it had, or the row is not set to what was given out.
#[test]
fn a_key_that_is_set_goes_on_there() -> Result<()> {
    let (server, mut client) = server()?;
    assert_eq!(take(&mut client, "d", 1, 4)?, [1, 2, 3, 4]);
    // More are reserved; as 4 was the last that was given out, 4 will do.
    client.batch_execute("select snowflake_ids.series_set('d', 1::bigint, 4)")?;
    assert_eq!(next(&mut client, "d", 1)?, 5);
    let error = sql::error(&mut client, "select snowflake_ids.series_set('d', 1::bigint, 4)")?;
    ensure!(error.detail().is_some_and(|detail| detail.contains("Numbers up to 5")), "{error:?}");
    client.batch_execute("select snowflake_ids.series_set('d', 1::bigint, 100)")?;
    assert_eq!(take(&mut client, "d", 1, 30)?, (101..=130).collect::<Vec<i64>>());
    client.batch_execute("select snowflake_ids.series_set('d', 1::bigint, 10, force => true)")?;
    let mut other = server.connect("postgres")?;
    assert_eq!(take(&mut other, "d", 1, 30)?, (11..=40).collect::<Vec<i64>>());
    // One that has no row.
    client.batch_execute("select snowflake_ids.series_set('d', 2::bigint, 10)")?;
    assert_eq!(take(&mut other, "d", 2, 30)?, (11..=40).collect::<Vec<i64>>());
    Ok(())
}

#[test]
fn a_key_that_an_open_transaction_has_set_waits_for_it() -> Result<()> {
    for (end, first) in [("commit", 103), ("rollback", 5)] {
        let (server, mut client) = server()?;
        assert_eq!(take(&mut client, "d", 1, 4)?, [1, 2, 3, 4]);
        let mut setter = server.connect("postgres")?;
        setter.batch_execute("begin; select snowflake_ids.series_set('d', 1::bigint, 100)")?;
        assert_eq!(take(&mut setter, "d", 1, 2)?, [101, 102]);
        let waits = thread::spawn(move || (next(&mut client, "d", 1), client));
        wait::until_true("the call to wait", || {
            let mut observer = server.connect("postgres")?;
            sql::one(
                &mut observer,
                "select count(*) = 1 from pg_stat_activity where query like 'select series_nextval%' and state = 'active' and wait_event is not null and pid <> pg_backend_pid()",
            )
        })?;
        ensure!(!waits.is_finished(), "did not wait");
        setter.batch_execute(end)?;
        let Ok((number, mut client)) = waits.join() else { anyhow::bail!("the call panicked") };
        let number = number?;
        // What was reserved and is taken away is missing after a rollback.
        ensure!(
            if end == "commit" { number == first } else { number >= first && number < 100 },
            "{number} after {end}"
        );
        assert_eq!(take(&mut client, "d", 1, 2)?, [number + 1, number + 2]);
        let mut both = take(&mut setter, "d", 1, 30)?;
        both.extend(take(&mut client, "d", 1, 30)?);
        ids::growing(&both)?;
    }
    Ok(())
}

/// Numbers of a savepoint that is rolled back come again, as the row says; those of memory go on.
#[test]
fn savepoints_give_the_key_back() -> Result<()> {
    let (server, mut client) = server()?;
    assert_eq!(take(&mut client, "d", 1, 2)?, [1, 2]);
    client.batch_execute("begin; savepoint a; select snowflake_ids.series_set('d', 1::bigint, 100)")?;
    assert_eq!(next(&mut client, "d", 1)?, 101);
    client.batch_execute("rollback to a")?;
    // The row is free again: the worker reserves, and others are not kept waiting.
    let mut got = vec![next(&mut client, "d", 1)?];
    got.extend(take(&mut server.connect("postgres")?, "d", 1, 20)?);
    got.push(next(&mut client, "d", 1)?);
    client.batch_execute("commit")?;
    ids::growing(&got)?;
    ensure!(got.iter().all(|number| (3..100).contains(number)), "{got:?}");
    // The same where it was one of another that is rolled back.
    client.batch_execute(
        "begin; savepoint b; savepoint a; select snowflake_ids.series_set('d', 1::bigint, 150); release a; rollback to b",
    )?;
    let number = next(&mut client, "d", 1)?;
    let others = next(&mut server.connect("postgres")?, "d", 1)?;
    ensure!(others > number && others < 100, "{others} after {number}");
    client.batch_execute("commit")?;
    client.batch_execute(
        "begin; savepoint a; select snowflake_ids.series_set('d', 1::bigint, 200); release a",
    )?;
    assert_eq!(next(&mut client, "d", 1)?, 201);
    client.batch_execute("commit")?;
    assert_eq!(next(&mut client, "d", 1)?, 202);
    Ok(())
}

/// No worker sees a series of a transaction that has not committed.
#[test]
fn a_new_series_gives_numbers_in_the_transaction_that_makes_it() -> Result<()> {
    let (server, mut client) = server()?;
    client.batch_execute("begin; select snowflake_ids.series_create('new', kind => 'dense')")?;
    assert_eq!(take(&mut client, "new", 1, 30)?, (1..=30).collect::<Vec<i64>>());
    client.batch_execute("commit")?;
    assert_eq!(take(&mut server.connect("postgres")?, "new", 1, 3)?, [31, 32, 33]);
    client.batch_execute("begin; select snowflake_ids.series_create('gone', kind => 'dense')")?;
    assert_eq!(take(&mut client, "gone", 1, 3)?, [1, 2, 3]);
    client.batch_execute("rollback; select snowflake_ids.series_create('gone', kind => 'dense')")?;
    assert_eq!(take(&mut client, "gone", 1, 3)?, [1, 2, 3]);
    Ok(())
}

/// Workers wait for the tables that it drops.
#[test]
fn a_transaction_that_creates_the_extension_anew_takes_numbers() -> Result<()> {
    let (_server, mut client) = server()?;
    assert_eq!(take(&mut client, "d", 1, 3)?, [1, 2, 3]);
    let anew = "drop extension snowflake_ids; create extension snowflake_ids;
         select snowflake_ids.series_create('d', kind => 'dense')";
    for end in ["rollback", "commit"] {
        client.batch_execute(&format!("begin; {anew}"))?;
        assert_eq!(take(&mut client, "d", 1, 30)?, (1..=30).collect::<Vec<i64>>(), "{end}");
        client.batch_execute(end)?;
        let next = if end == "commit" { 31 } else { 4 };
        assert_eq!(take(&mut client, "d", 1, 1)?, [next], "{end}");
    }
    Ok(())
}

#[test]
fn a_renamed_or_altered_series_goes_on() -> Result<()> {
    let (server, mut client) = server()?;
    assert_eq!(take(&mut client, "d", 1, 2)?, [1, 2]);
    let mut changer = server.connect("postgres")?;
    changer.batch_execute("select snowflake_ids.series_alter('d', new_name => 'e')")?;
    assert_eq!(take(&mut client, "e", 1, 2)?, [3, 4]);
    // Lowered below what is reserved.
    changer.batch_execute("select snowflake_ids.series_alter('e', max_value => 6)")?;
    assert_eq!(take(&mut client, "e", 1, 2)?, [5, 6]);
    let error = sql::error(&mut client, "select series_nextval('e', 1)")?;
    assert_eq!(error.code(), &SqlState::SEQUENCE_GENERATOR_LIMIT_EXCEEDED, "{error:?}");
    changer.batch_execute("select snowflake_ids.series_alter('e', max_value => 1000)")?;
    let mut rest = take(&mut client, "e", 1, 990)?;
    rest.extend([1, 2, 3, 4, 5, 6]);
    ids::dense(rest)
}

/// No worker sees what is not committed, and a renamed row is locked. Fails when the transaction does not count the keys itself.
#[test]
fn a_transaction_that_alters_a_series_takes_numbers_of_it() -> Result<()> {
    let (server, mut client) = server()?;
    client.batch_execute("select snowflake_ids.series_alter('d', max_value => 4)")?;
    assert_eq!(take(&mut client, "d", 1, 4)?, [1, 2, 3, 4]);
    client.batch_execute("begin; select snowflake_ids.series_alter('d', max_value => 200)")?;
    assert_eq!(take(&mut client, "d", 1, 3)?, [5, 6, 7]);
    client.batch_execute("savepoint a; select snowflake_ids.series_alter('d', max_value => 8)")?;
    assert_eq!(next(&mut client, "d", 1)?, 8);
    let error = sql::error(&mut client, "select series_nextval('d', 1)")?;
    assert_eq!(error.code(), &SqlState::SEQUENCE_GENERATOR_LIMIT_EXCEEDED, "{error:?}");
    client.batch_execute("rollback to a; commit")?;
    assert_eq!(next(&mut server.connect("postgres")?, "d", 1)?, 8);
    // Memory has numbers up to more than that.
    assert_eq!(next(&mut client, "d", 1)?, 9);
    client.batch_execute("begin; select snowflake_ids.series_alter('d', max_value => 10)")?;
    assert_eq!(next(&mut client, "d", 1)?, 10);
    let error = sql::error(&mut client, "select series_nextval('d', 1)")?;
    assert_eq!(error.code(), &SqlState::SEQUENCE_GENERATOR_LIMIT_EXCEEDED, "{error:?}");
    client.batch_execute(
        "rollback; begin; set local snowflake_ids.segment_wait_timeout = '300ms';
         select snowflake_ids.series_alter('d', new_name => 'e')",
    )?;
    let renamed = take(&mut client, "e", 1, 2)?;
    assert_eq!(take(&mut client, "e", 9, 2)?, [1, 2]);
    assert_eq!(renamed, [renamed[0], renamed[0] + 1]);
    client.batch_execute("commit")?;
    assert_eq!(next(&mut server.connect("postgres")?, "e", 1)?, renamed[1] + 1);
    assert_eq!(next(&mut client, "e", 9)?, 3);
    // Others go on with other keys where it is not renamed.
    client.batch_execute("begin; select snowflake_ids.series_alter('e', step => 3)")?;
    assert_eq!(next(&mut client, "e", 9)?, 4);
    assert_eq!(take(&mut server.connect("postgres")?, "e", 10, 20)?, (1..=20).collect::<Vec<i64>>());
    client.batch_execute("commit")?;
    Ok(())
}

/// The caller has the numbers still. Fails when they are not kept, or not for long enough, or are kept where they shall come again.
#[test]
fn what_goes_with_a_savepoint_does_not_come_again() -> Result<()> {
    let (server, mut client) = server()?;
    client.batch_execute("begin; select snowflake_ids.series_set('d', 7::bigint, 100); savepoint a")?;
    assert_eq!(next(&mut client, "d", 7)?, 101);
    client.batch_execute("rollback to a")?;
    assert_eq!(next(&mut client, "d", 7)?, 102);
    client.batch_execute("savepoint b; savepoint c")?;
    assert_eq!(take(&mut client, "d", 7, 2)?, [103, 104]);
    // It is part of b now, and goes with that.
    client.batch_execute("release c; rollback to b")?;
    assert_eq!(next(&mut client, "d", 7)?, 105);
    // As it is forced to; that goes, too.
    client.batch_execute(
        "rollback to a; savepoint d; select snowflake_ids.series_set('d', 7::bigint, 10, force => true)",
    )?;
    assert_eq!(next(&mut client, "d", 7)?, 11);
    client.batch_execute("rollback to d")?;
    assert_eq!(next(&mut client, "d", 7)?, 106);
    client
        .batch_execute("rollback to a; select snowflake_ids.series_set('d', 7::bigint, 20, force => true)")?;
    assert_eq!(next(&mut client, "d", 7)?, 21);
    client.batch_execute("commit")?;
    assert_eq!(next(&mut server.connect("postgres")?, "d", 7)?, 22);
    // Not beyond the transaction's end.
    client.batch_execute(
        "begin; select snowflake_ids.series_set('d', 8::bigint, 100); savepoint a; select series_nextval('d', 8); rollback",
    )?;
    assert_eq!(next(&mut client, "d", 8)?, 1);
    client.batch_execute("begin; select snowflake_ids.series_set('d', 8::bigint, 100)")?;
    assert_eq!(next(&mut client, "d", 8)?, 101);
    client.batch_execute("commit")?;
    Ok(())
}

/// Fails when what memory has left is taken away before the value is looked at.
#[test]
fn a_row_is_locked_once_for_all_subtransactions() -> Result<()> {
    let (_server, mut client) = server()?;
    client.batch_execute(
        "select snowflake_ids.series_create('g');
         create function take(series text, count integer) returns void language plpgsql as $$
         begin
             for i in 1..count loop
                 begin
                     perform series_nextval(series, 1::bigint);
                 exception when division_by_zero then null;
                 end;
             end loop;
         end $$",
    )?;
    // A lock leaves one more version of the row to look through for each of the subtransactions that follow.
    let mut scans_of = |series: &str| -> Result<i64> {
        let scans = "select seq_scan + idx_scan from pg_stat_xact_all_tables where relid = 'snowflake_ids.series_bigint'::regclass";
        client
            .batch_execute(&format!("begin; select snowflake_ids.series_set('{series}', 1::bigint, 100)"))?;
        let before: i64 = sql::one(&mut client, scans)?;
        client.batch_execute(&format!("select take('{series}', 100)"))?;
        let after: i64 = sql::one(&mut client, scans)?;
        assert_eq!(next(&mut client, series, 1)?, 201);
        client.batch_execute("rollback")?;
        Ok(after - before)
    };
    let (gapless, dense) = (scans_of("g")?, scans_of("d")?);
    ensure!(dense < gapless + 50, "dense looks at the row {dense} times, gapless {gapless} times");
    Ok(())
}

#[test]
fn a_value_that_is_refused_costs_no_numbers() -> Result<()> {
    let (mut server, mut client) = server()?;
    let refused = |client: &mut Client, value: i64, last: i64| {
        let error = sql::error(client, &format!("select snowflake_ids.series_set('d', 1::bigint, {value})"))?;
        assert_eq!(error.code(), &SqlState::INVALID_PARAMETER_VALUE, "{error:?}");
        ensure!(
            error.detail().is_some_and(|detail| detail.contains(&format!("Numbers up to {last} "))),
            "{error:?}"
        );
        anyhow::Ok(())
    };
    assert_eq!(take(&mut client, "d", 1, 4)?, [1, 2, 3, 4]);
    refused(&mut client, 3, 4)?;
    assert_eq!(next(&mut client, "d", 1)?, 5);
    server.stop(Shutdown::Fast)?;
    server.start_again()?;
    let mut client = server.session()?;
    refused(&mut client, 4, 5)?;
    assert_eq!(next(&mut client, "d", 1)?, 6);
    Ok(())
}

/// Whoever moves the row up by hand, or a restore does, has given out what it says. Fails when memory is believed instead, also where
/// that is left over by the last stop.
#[test]
fn a_row_that_was_moved_by_hand_is_right() -> Result<()> {
    for restarts in [false, true] {
        let (mut server, mut client) = server()?;
        assert_eq!(take(&mut client, "d", 1, 4)?, [1, 2, 3, 4]);
        if restarts {
            server.stop(Shutdown::Fast)?;
            server.start_again()?;
            client = server.session()?;
        }
        client.batch_execute("update snowflake_ids.series_bigint set last_value = 1000")?;
        let error = sql::error(&mut client, "select snowflake_ids.series_set('d', 1::bigint, 500)")?;
        ensure!(error.detail().is_some_and(|detail| detail.contains("Numbers up to 1000 ")), "{error:?}");
        client.batch_execute("begin; select snowflake_ids.series_set('d', 1::bigint, 1000)")?;
        assert_eq!(take(&mut client, "d", 1, 2)?, [1001, 1002]);
        client.batch_execute("commit")?;
        assert_eq!(next(&mut client, "d", 1)?, 1003);
    }
    Ok(())
}

#[test]
fn copy_fills_the_column_in_the_order_of_rows() -> Result<()> {
    let (server, mut client) = server()?;
    client.batch_execute(
        "create table t (tenant bigint, number bigint, line bigint);
         insert into t select k % 3, 1 + k / 3, -1 from generate_series(0, 29) as k;
         select snowflake_ids.series_attach('t', 'number', 'd', 'tenant')",
    )?;
    let mut copy = client.copy_in("copy t (tenant, line) from stdin")?;
    for line in 0..3_000 {
        std::io::Write::write_all(&mut copy, format!("{}\t{line}\n", line % 3).as_bytes())?;
    }
    copy.finish()?;
    server.connect("postgres")?.batch_execute("insert into t (tenant) values (0), (1), (2)")?;
    let wrong: i64 = sql::one(
        &mut client,
        "select count(*) from (select number, row_number() over (partition by tenant order by line, number) as place from t where line is not null) as t
         where number <> place",
    )?;
    assert_eq!(wrong, 0);
    let last: Vec<i64> = sql::column(&mut client, "select number from t where line is null")?;
    assert_eq!(last, [1011; 3]);
    Ok(())
}

/// A trigger on the tables would have the worker wait for itself.
#[test]
fn a_trigger_on_the_counters_is_refused() -> Result<()> {
    let (_server, mut client) = server()?;
    client.batch_execute(
        "create function f() returns trigger language plpgsql as $$ begin perform series_nextval('texts', 'x'); return new; end $$;
         create trigger t before insert on snowflake_ids.series_bigint for each row execute function f();
         set snowflake_ids.segment_wait_timeout = '300ms'",
    )?;
    let error = sql::error(&mut client, "select series_nextval('d', 1)")?;
    sql::explains(
        &error,
        &SqlState::INSUFFICIENT_RESOURCES,
        "no number for key 1 of series \"d\" within 300 ms",
    )?;
    client.batch_execute(
        "drop trigger t on snowflake_ids.series_bigint; reset snowflake_ids.segment_wait_timeout",
    )?;
    assert_eq!(next(&mut client, "d", 1)?, 1);
    let _: Vec<SimpleQueryMessage> = client.simple_query("discard all")?;
    Ok(())
}
