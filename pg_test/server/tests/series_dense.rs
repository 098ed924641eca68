//! Dense series: no number twice whatever ends, and none missing where nothing crashes, however few keys memory has room for.

use anyhow::{Result, ensure};
use postgres::Client;
use postgres::error::SqlState;
use snowflake_ids_server_tests::segments::{WORKER, processes};
use snowflake_ids_server_tests::series::{
    Load, Numbers, add, load, next, take, take_all, unique, without_gaps,
};
use snowflake_ids_server_tests::{Server, Shutdown, full, sql, wait};
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread;

/// A server with memory for some keys, and series for keys of each type.
fn server(memory: &str) -> Result<Server> {
    let server = Server::builder().small().set("snowflake_ids.series_memory", memory).start()?;
    create(&mut server.session()?)?;
    Ok(server)
}

fn create(client: &mut Client) -> Result<()> {
    Ok(client.batch_execute(
        "create extension if not exists snowflake_ids;
         select snowflake_ids.series_create('d', kind => 'dense');
         select snowflake_ids.series_create('texts', kind => 'dense', key_type => 'text');
         select snowflake_ids.series_create('uuids', kind => 'dense', key_type => 'uuid', start => 0)",
    )?)
}

/// The file with what a stop left over.
fn file(server: &Server) -> PathBuf {
    server.data().join("snowflake_ids.series.json")
}

/// Fails when what leaves memory is not written back, or numbers are reserved ahead for which there is no place.
#[test]
fn many_sessions_leave_no_gap_in_little_memory() -> Result<()> {
    let (memory, keys, statements) = if full() { ("20MB", 1_000_000, 2_000) } else { ("64kB", 2_000, 20) };
    let server = server(memory)?;
    let all = load(&server, "postgres", "d", Load { sessions: 16, statements, keys, seed: 1 })?;
    without_gaps(&all)
}

/// The keys of one database make room for those of another, whose worker has to come for that.
#[test]
fn databases_share_the_memory_and_leave_no_gap() -> Result<()> {
    let server = server("16kB")?;
    server.create_database("other")?;
    create(&mut server.connect("other")?)?;
    let (mut here, mut there) = (Numbers::new(), Numbers::new());
    for seed in 0..3 {
        let of =
            |database| load(&server, database, "d", Load { sessions: 2, statements: 5, keys: 300, seed });
        let both = thread::scope(|scope| {
            let other = scope.spawn(|| of("other"));
            (of("postgres"), other.join())
        });
        let (Ok(mine), Ok(Ok(theirs))) = both else { anyhow::bail!("a session failed: {both:?}") };
        for (all, more) in [(&mut here, mine), (&mut there, theirs)] {
            for (key, numbers) in more {
                all.entry(key).or_default().extend(numbers);
            }
        }
    }
    without_gaps(&here)?;
    without_gaps(&there)
}

#[test]
fn kill_9_repeats_nothing() -> Result<()> {
    let mut server = server("64kB")?;
    let mut all = Numbers::new();
    for round in 0..if full() { 20 } else { 4 } {
        let clients = server.sessions("postgres", 8)?;
        let threads: Vec<_> = (1_i64..)
            .zip(clients)
            .map(|(number, mut client)| {
                thread::spawn(move || {
                    let mut got = Vec::new();
                    for call in 0.. {
                        let keys = [number % 3, call % 200, 1_000 + round];
                        match take_all(&mut client, "d", &keys) {
                            Ok(some) => got.extend(some),
                            Err(_) => break,
                        }
                    }
                    got
                })
            })
            .collect();
        let mut client = server.session()?;
        let last = format!(
            "select coalesce(max(last_value), 0) > 300 from snowflake_ids.series_bigint where key = {}",
            1_000 + round
        );
        sql::becomes_true(&mut client, &last)?;
        server.kill9()?;
        for thread in threads {
            let Ok(got) = thread.join() else { anyhow::bail!("a session panicked") };
            add(&mut all, got);
        }
        server.start_again()?;
        unique(&all)?;
    }
    Ok(())
}

/// A worker that is ended in whatever it does is followed by another, which goes on.
#[test]
fn a_worker_that_is_ended_repeats_nothing() -> Result<()> {
    let server = server("64kB")?;
    let mut client = server.session()?;
    let mut all = Numbers::new();
    for seed in 0..5 {
        let done = AtomicBool::new(false);
        let ended = thread::scope(|scope| {
            let ending = scope.spawn(|| -> Result<()> {
                let mut ended = 0;
                // Without work there comes no other.
                while ended < 3 && !done.load(Relaxed) {
                    for worker in processes(&mut client, WORKER)? {
                        sql::one::<bool>(&mut client, &format!("select pg_terminate_backend({worker})"))?;
                        ended += 1;
                    }
                }
                Ok(())
            });
            let got = load(&server, "postgres", "d", Load { sessions: 4, statements: 20, keys: 500, seed });
            done.store(true, Relaxed);
            for (key, numbers) in got? {
                all.entry(key).or_default().extend(numbers);
            }
            match ending.join() {
                Ok(ended) => ended,
                Err(_) => anyhow::bail!("a session panicked"),
            }
        });
        ended?;
    }
    unique(&all)
}

/// How many numbers of keys are missing below the next one of each.
fn missing(client: &mut Client, all: &Numbers) -> Result<i64> {
    let mut missing = 0;
    for (key, numbers) in all {
        missing += next(client, "d", *key)? - 1 - i64::try_from(numbers.len())?;
    }
    Ok(missing)
}

/// Fails when what a worker was writing back as the server stopped is lost, or given again.
#[test]
fn a_stop_amid_write_backs_loses_only_what_calls_had_taken() -> Result<()> {
    const SESSIONS: usize = 4;
    const KEYS: usize = 3;
    const ROUNDS: usize = 4;
    let mut server = server("64kB")?;
    let mut all = Numbers::new();
    for _ in 0..ROUNDS {
        let calls = Arc::new(AtomicU64::new(0));
        let threads: Vec<_> = server
            .sessions("postgres", SESSIONS)?
            .into_iter()
            .map(|mut client| {
                let calls = calls.clone();
                thread::spawn(move || {
                    let mut got = Vec::new();
                    loop {
                        // More keys than memory has room for.
                        let call = i64::try_from(calls.fetch_add(1, Relaxed)).unwrap_or(0);
                        match take_all(&mut client, "d", &[call % 5, call % 700, 1_000 + call % 77]) {
                            Ok(some) => got.extend(some),
                            Err(_) => return got,
                        }
                    }
                })
            })
            .collect();
        wait::until_true("a thousand calls", || Ok(calls.load(Relaxed) > 1_000))?;
        server.stop(Shutdown::Fast)?;
        for thread in threads {
            let Ok(got) = thread.join() else { anyhow::bail!("a session panicked") };
            add(&mut all, got);
        }
        server.start_again()?;
    }
    unique(&all)?;
    let missing = missing(&mut server.session()?, &all)?;
    let most = i64::try_from(ROUNDS * SESSIONS * KEYS)?;
    ensure!(
        (0..=most).contains(&missing),
        "{missing} numbers are missing: the stops ended {most} calls at most"
    );
    Ok(())
}

/// Fails when a call takes what memory had of a key before the key was set.
#[test]
fn sets_beside_calls_repeat_nothing() -> Result<()> {
    let server = server("64kB")?;
    let mut setter = server.session()?;
    let mut all = Numbers::new();
    let got = thread::scope(|scope| {
        let calls = scope
            .spawn(|| load(&server, "postgres", "d", Load { sessions: 4, statements: 40, keys: 8, seed: 5 }));
        let mut above = 0;
        while !calls.is_finished() || above < 8 {
            let key = above % 8;
            let to = next(&mut setter, "d", key)? + 30;
            add(&mut all, [(key, to - 30)]);
            let set = setter.query_one("select snowflake_ids.series_set('d', $1::bigint, $2)", &[&key, &to]);
            match set {
                Ok(_) => {
                    let number = next(&mut setter, "d", key)?;
                    ensure!(number > to, "key {key} was set to {to}, and gave {number} then");
                    add(&mut all, [(key, number)]);
                }
                // Others had come further.
                Err(error) => {
                    let code = error.code().cloned();
                    ensure!(code == Some(SqlState::INVALID_PARAMETER_VALUE), "{error:?}");
                }
            }
            above += 1;
        }
        match calls.join() {
            Ok(got) => got,
            Err(_) => anyhow::bail!("a session panicked"),
        }
    })?;
    for (key, numbers) in got {
        add(&mut all, numbers.into_iter().map(|number| (key, number)));
    }
    unique(&all)
}

/// Fails when what is left over is not written to the file, or not taken up.
#[test]
fn a_restart_leaves_no_gap() -> Result<()> {
    let mut server = server("1MB")?;
    let mut numbers = Vec::new();
    for round in 0..4 {
        let mut client = server.session()?;
        if round != 2 {
            numbers.extend(take(&mut client, "d", 5, 57)?);
        }
        for (series, key, first) in
            [("texts", "'a'::text", 1), ("uuids", "'00000000-0000-0000-0000-0000000000ff'::uuid", 0)]
        {
            let got: Vec<i64> = sql::column(
                &mut client,
                &format!("select series_nextval('{series}', {key}) from generate_series(1, 33)"),
            )?;
            let from = first + 33 * round;
            assert_eq!(got, (from..from + 33).collect::<Vec<i64>>());
        }
        drop(client);
        server.stop(if round % 2 == 0 { Shutdown::Fast } else { Shutdown::Smart })?;
        ensure!(file(&server).exists(), "nothing was left over");
        server.start_again()?;
        ensure!(!file(&server).exists(), "what is in memory is still in the file");
    }
    assert_eq!(numbers, (1..=3 * 57).collect::<Vec<i64>>());
    Ok(())
}

/// Fails when keys are hashed with another secret then, so that others share a partition.
#[test]
fn a_restart_leaves_no_gap_where_memory_is_full() -> Result<()> {
    let mut server = server("1MB")?;
    let calls = "select min(n), max(n) from (select series_nextval('d', key) as n from generate_series(1, 3500) as key) as t";
    for round in 1..=3_i64 {
        let mut client = server.session()?;
        for call in [2 * round - 1, 2 * round] {
            let row = client.query_one(calls, &[])?;
            assert_eq!((row.get::<_, i64>(0), row.get::<_, i64>(1)), (call, call));
        }
        drop(client);
        server.stop(Shutdown::Fast)?;
        server.start_again()?;
    }
    ensure!(!server.log().contains("numbers of series will be missing"), "keys found no room");
    Ok(())
}

/// Fails when the file is believed whatever the cluster's last checkpoint is.
#[test]
fn an_old_file_is_not_believed() -> Result<()> {
    let mut server = server("1MB")?;
    let mut all = take(&mut server.session()?, "d", 1, 13)?;
    server.stop(Shutdown::Fast)?;
    let old = fs::read(file(&server))?;
    server.start_again()?;
    all.extend(take(&mut server.session()?, "d", 1, 3)?);
    server.stop(Shutdown::Fast)?;
    fs::write(file(&server), &old)?;
    server.start_again()?;
    ensure!(server.logged("it is of another stop than the last one") == 1, "{}", server.log());
    all.extend(take(&mut server.session()?, "d", 1, 100)?);
    // Nor after a crash.
    fs::write(file(&server), &old)?;
    server.kill9()?;
    server.start_again()?;
    ensure!(server.logged("the server did not stop with what it says") == 1, "{}", server.log());
    all.extend(take(&mut server.session()?, "d", 1, 100)?);
    snowflake_ids_server_tests::ids::growing(&all)
}

#[test]
fn a_file_that_is_damaged_or_finds_no_room_does_no_harm() -> Result<()> {
    let mut server = server("1MB")?;
    let mut all = take(&mut server.session()?, "d", 1, 13)?;
    server.stop(Shutdown::Fast)?;
    let mut text = fs::read(file(&server))?;
    text.truncate(text.len() - 3);
    fs::write(file(&server), &text)?;
    server.start_again()?;
    all.extend(take(&mut server.session()?, "d", 1, 13)?);
    server.stop(Shutdown::Fast)?;
    server.set("snowflake_ids.series_memory", "0")?;
    server.start_again()?;
    let refused = sql::error(&mut server.session()?, "select series_nextval('d', 1)")?;
    ensure!(refused.hint().is_some_and(|hint| hint.contains("restart")), "{refused:?}");
    ensure!(
        refused.detail().is_some_and(|detail| detail.contains("snowflake_ids.series_memory")),
        "{refused:?}"
    );
    server.set("snowflake_ids.series_memory", "1MB")?;
    server.restart()?;
    all.extend(take(&mut server.session()?, "d", 1, 13)?);
    snowflake_ids_server_tests::ids::growing(&all)
}

/// What was reserved is in the log before a number of it is in a row: a standby that has the rows goes on above them.
#[test]
fn a_promoted_standby_repeats_no_row() -> Result<()> {
    let mut server = server("64kB")?;
    server.session()?.batch_execute("create table t (key bigint, number bigint)")?;
    let standby = server.standby()?;
    let mut client = server.session()?;
    let insert = "insert into t select k % 7, series_nextval('d', k % 7) from generate_series(1, 500) as k";
    client.batch_execute(insert)?;
    let refused = sql::error(&mut standby.connect("postgres")?, "select series_nextval('d', 1)")?;
    ensure!(refused.message().contains("recovery"), "{refused:?}");
    standby.catch_up(&server)?;
    drop(client);
    server.stop(Shutdown::Immediate)?;
    standby.promote()?;
    let mut client = standby.session()?;
    client.batch_execute(insert)?;
    let twice: i64 = sql::one(&mut client, "select count(*) - count(distinct (key, number)) from t")?;
    assert_eq!(twice, 0);
    Ok(())
}

/// A former primary that was stopped in good order has its file; as a standby it must not take it up.
#[test]
fn a_file_is_not_taken_up_by_a_standby() -> Result<()> {
    let mut server = Server::builder().small().rewindable().start()?;
    let mut client = server.session()?;
    create(&mut client)?;
    let standby = server.standby()?;
    let mut all = take(&mut client, "d", 1, 13)?;
    drop(client);
    server.stop(Shutdown::Fast)?;
    ensure!(file(&server).exists(), "nothing was left over");
    standby.promote()?;
    all.extend(take(&mut standby.session()?, "d", 1, 13)?);
    server.start_again()?;
    server.rewind(&standby)?;
    standby.connect("postgres")?.batch_execute("checkpoint")?;
    server.catch_up(&standby)?;
    drop(standby);
    server.promote()?;
    all.extend(take(&mut server.session()?, "d", 1, 13)?);
    snowflake_ids_server_tests::ids::growing(&all)
}

#[test]
fn a_series_or_database_that_is_made_again_begins_at_1() -> Result<()> {
    let server = server("64kB")?;
    let mut client = server.session()?;
    assert_eq!(take(&mut client, "d", 1, 3)?, [1, 2, 3]);
    client.batch_execute(
        "select snowflake_ids.series_drop('d'); select snowflake_ids.series_create('d', kind => 'dense')",
    )?;
    assert_eq!(take(&mut client, "d", 1, 3)?, [1, 2, 3]);
    for _ in 0..2 {
        server.create_database("short")?;
        let mut short = server.connect("short")?;
        create(&mut short)?;
        assert_eq!(take(&mut short, "d", 1, 3)?, [1, 2, 3]);
        drop(short);
        client.batch_execute("drop database short")?;
    }
    // Their keys leave memory like others, though nobody can write them back.
    let all = load(&server, "postgres", "d", Load { sessions: 2, statements: 20, keys: 1_000, seed: 1 })?;
    ensure!(all.len() > 100, "{}", all.len());
    client.batch_execute("drop extension snowflake_ids; create extension snowflake_ids")?;
    create(&mut client)?;
    assert_eq!(take(&mut client, "d", 1, 3)?, [1, 2, 3]);
    Ok(())
}

/// A dump says up to which number all are reserved.
#[test]
fn a_dump_goes_on_above() -> Result<()> {
    let server = server("64kB")?;
    let mut client = server.session()?;
    let before = take(&mut client, "d", 1, 13)?;
    let dump = snowflake_ids_server_tests::programs::output(server.command("pg_dump").arg("postgres"))?;
    let path = server.socket_folder().join("dump.sql");
    fs::write(&path, dump)?;
    take(&mut client, "d", 1, 100)?;
    // Into the same database: its keys are in memory, and the series have the numbers that they had.
    client.batch_execute("drop extension snowflake_ids")?;
    let mut psql = server.command("psql");
    psql.args(["--quiet", "--no-psqlrc", "--set=ON_ERROR_STOP=1", "--dbname=postgres"]);
    snowflake_ids_server_tests::programs::output(psql.arg("--file").arg(path))?;
    let after: Vec<i64> = take(&mut server.session()?, "d", 1, 200)?;
    let last = before.last().copied().unwrap_or_default();
    ensure!(after.first().is_some_and(|first| *first > last), "{after:?}");
    snowflake_ids_server_tests::ids::growing(&after)
}

/// Long keys are never in memory.
#[test]
fn long_keys_have_no_gaps_either() -> Result<()> {
    let mut server = server("64kB")?;
    let mut numbers: Vec<i64> = Vec::new();
    for length in [80, 81, 512] {
        numbers.clear();
        for _ in 0..2 {
            let mut client = server.session()?;
            let call =
                format!("select series_nextval('texts', repeat('x', {length})) from generate_series(1, 15)");
            numbers.extend(sql::column::<i64>(&mut client, &call)?);
            drop(client);
            server.restart()?;
        }
        assert_eq!(numbers, (1..=30).collect::<Vec<i64>>(), "{length}");
    }
    Ok(())
}

/// The worker leaves where nothing is to be done, and comes again.
#[test]
fn a_database_with_numbers_in_memory_can_be_dropped() -> Result<()> {
    let server = server("64kB")?;
    let mut client = server.session()?;
    assert_eq!(next(&mut client, "d", 1)?, 1);
    wait::until_true("the worker to leave", || {
        Ok(sql::one::<i64>(
            &mut client,
            &format!("select count(*) from pg_stat_activity where backend_type = '{WORKER}'"),
        )? == 0)
    })?;
    assert_eq!(take(&mut client, "d", 1, 30)?, (2..=31).collect::<Vec<i64>>());
    Ok(())
}
