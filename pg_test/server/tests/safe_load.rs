//! `snowflake_safe_id` under load: writers of many kinds, faults of the server, and readers that continue after their last id.
//! With `SAFE_READ_SECONDS=1800` the test runs for half an hour, with more writers.

use snowflake_ids_server_tests::prelude::*;
use snowflake_ids_server_tests::random::Random;
use snowflake_ids_server_tests::registry::{lose_lease, serving};
use snowflake_ids_server_tests::sessions::PARALLEL;
use snowflake_ids_server_tests::setting;
use snowflake_ids_server_tests::sql::NOT_IN_STATE;
use std::error::Error;
use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{self, ScopedJoinHandle};

/// The number of seconds that the test runs. Without this number, each strike comes once.
fn seconds() -> Option<u64> {
    setting("SAFE_READ_SECONDS")
}

/// How often a reader reads beside committing writers, ten times in a row.
const READS: usize = 100;

const SEVERAL: &str = "insert into events (v) select n from generate_series(1, 20) n";

/// Runs a random transaction. No other transaction has the name `name`.
fn write(random: &mut Random, client: &mut Client, name: &str) -> Result<(), postgres::Error> {
    let one = "insert into events default values";
    let pause = format!("select pg_sleep({}::float / 1000)", random.below(20));
    let statements = match random.below(13) {
        0 => one.into(),
        1 => SEVERAL.into(),
        2 => format!("begin; savepoint s; {one}; rollback to s; {one}; {pause}; commit"),
        3 => format!("begin; {one}; {pause}; rollback"),
        4 => {
            client.batch_execute("begin")?;
            let id: i64 = client.query_one("select snowflake_nextval()", &[])?.try_get(0)?;
            format!("{pause}; insert into events values ({id}); commit")
        }
        5 => {
            let end = ["commit", "rollback"][random.of(2)];
            format!("begin; {SEVERAL}; prepare transaction '{name}'; {pause}; {end} prepared '{name}'")
        }
        6 => format!("set snowflake_ids.cache = {}; begin; {one}; {pause}; {one}; commit", 1 + random.below(100)),
        7 => {
            let mut rows = client.copy_in("copy events (v) from stdin")?;
            // A write fails only if the server is gone, which `finish` reports.
            let _ = rows.write_all("1\n2\n3\n".repeat(10).as_bytes());
            return rows.finish().map(drop);
        }
        8 => format!("begin; {SEVERAL}; {pause}; select 1 / 0"),
        9 => "insert into events (v) select pg_cancel_backend(pg_backend_pid())::int from generate_series(1, 20)".into(),
        10 => format!(
            "begin; create temp table drawn on commit drop as select snowflake_nextval() as id from many; {pause};
             insert into events (id) select id from drawn; commit"
        ),
        11 => format!("begin; insert into far (v) select n from generate_series(1, 5) n; {pause}; commit"),
        _ => format!("begin; insert into events values (snowflake_nextval('own')), (nextval('s')); {pause}; commit"),
    };
    // Statements that are sent together would share a transaction.
    statements.split(';').try_for_each(|statement| client.batch_execute(statement))
}

/// True if the error means that the session has ended.
fn has_ended(error: &postgres::Error) -> bool {
    let over = [SqlState::CRASH_SHUTDOWN, SqlState::ADMIN_SHUTDOWN];
    let is_cut = || error.source().is_some_and(<dyn Error>::is::<io::Error>);
    error.is_closed() || is_cut() || error.code().is_some_and(|code| over.contains(code))
}

/// Rolls back the transaction that an error has left open, unless the session has ended.
fn roll_back(client: &mut Client) -> Result<(), postgres::Error> {
    client
        .batch_execute("rollback; reset snowflake_ids.cache")
        .or_else(|error| if has_ended(&error) { Ok(()) } else { Err(error) })
}

/// Writes until `stop` is set or the session ends. An error ends its own transaction only.
fn write_until(stop: &AtomicBool, mut client: Client, number: usize, written: &AtomicUsize) -> Result<()> {
    client.run(PARALLEL)?;
    let mut random = Random::new(u64::try_from(number)?);
    while !stop.load(Ordering::Acquire) {
        let name = format!("{number} {}", written.load(Ordering::Relaxed));
        match write(&mut random, &mut client, &name) {
            Ok(()) => {
                written.fetch_add(1, Ordering::Relaxed);
            }
            Err(error) if has_ended(&error) => break,
            Err(error) if error.code().is_none_or(|code| code.code().starts_with("XX")) => {
                return Err(error.into());
            }
            Err(_) => roll_back(&mut client)?,
        }
    }
    Ok(())
}

/// A way to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// Uses the index.
    Index,
    /// Uses a sequential scan, which asks for the bound at each row.
    Scan,
    /// Uses a parallel plan that looks up the bound first.
    Lookup,
    RepeatableRead,
    /// Uses a cursor, which is fetched while other transactions commit.
    Cursor,
    /// Reads without the bound, which loses rows.
    Naive,
}

impl Way {
    const ALL: [Self; 6] =
        [Self::Index, Self::Scan, Self::Lookup, Self::RepeatableRead, Self::Cursor, Self::Naive];

    const fn settings(self) -> &'static str {
        match self {
            Self::Index | Self::Cursor | Self::Naive => "",
            Self::Scan => {
                "set enable_indexscan = off; set enable_bitmapscan = off; set enable_indexonlyscan = off"
            }
            Self::Lookup => PARALLEL,
            Self::RepeatableRead => "set default_transaction_isolation = 'repeatable read'",
        }
    }
}

/// A reader that continues after its last id.
struct Reader {
    way: Way,
    last: i64,
    seen: Vec<i64>,
}

impl Reader {
    fn read(&mut self, client: &mut Client) -> Result<(), postgres::Error> {
        let bound = match self.way {
            Way::Naive => "",
            Way::Lookup => "and id < (select snowflake_safe_id())",
            _ => "and id < snowflake_safe_id()",
        };
        let query = format!("select id from events where id > {} {bound} order by id", self.last);
        let found = if self.way == Way::Cursor {
            client.batch_execute(&format!("begin; declare c cursor for {query}"))?;
            let mut found = Vec::new();
            loop {
                let rows = client.query("fetch 10 from c", &[])?;
                if rows.is_empty() {
                    break;
                }
                found.extend(rows);
            }
            client.batch_execute("commit")?;
            found
        } else {
            client.query(&query, &[])?
        };
        for row in found {
            self.last = row.try_get(0)?;
            self.seen.push(self.last);
        }
        Ok(())
    }

    /// Reads until no writer is left, then once more, or until the session ends.
    fn follow(&mut self, mut client: Client, writing: &AtomicUsize) -> Result<()> {
        client.run(self.way.settings())?;
        loop {
            let is_last = writing.load(Ordering::Acquire) == 0;
            match self.read(&mut client) {
                Ok(()) if is_last => return Ok(()),
                Err(error) if has_ended(&error) => return Ok(()),
                // The session's first call takes an id, but the server issues no ids at the moment.
                Err(error) if error.code() == Some(NOT_IN_STATE) => roll_back(&mut client)?,
                read => read.with_context(|| format!("{:?} after {}", self.way, self.last))?,
            }
        }
    }
}

/// A fault of the server or its surroundings, under load.
#[derive(Clone, Copy, Debug)]
enum Strike {
    None,
    Clock,
    /// `kill -9` of a session, which ends all sessions.
    Crash,
    Lease,
}

impl Strike {
    const ALL: [Self; 4] = [Self::None, Self::Clock, Self::Crash, Self::Lease];

    /// Carries out the strike. `goes_on` waits until more is written.
    fn fall(self, server: &Server, mut client: Client, goes_on: &dyn Fn() -> Result<()>) -> Result<()> {
        match self {
            Self::None => Ok(()),
            Self::Clock => ["-2", "+3", "+0"].iter().try_for_each(|offset| {
                server.set_clock(offset)?;
                goes_on()
            }),
            Self::Crash => {
                let process = client.process()?;
                server.crash_by(process)
            }
            Self::Lease => {
                lose_lease(server, &mut client)?;
                server.reload("snowflake_ids.lease_duration", "1h")
            }
        }
    }
}

/// Writes and reads while the strike comes.
fn strike_under_load(server: &Server, strike: Strike, readers: &mut [Reader]) -> Result<()> {
    let (writers, enough) = if seconds().is_some() { (32, 3_000) } else { (8, 60) };
    let (stop, writing, written) =
        (&AtomicBool::new(false), &AtomicUsize::new(writers), &AtomicUsize::new(0));
    let goes_on = || {
        let before = written.load(Ordering::Relaxed);
        wait::until_true("transactions", || {
            Ok(written.load(Ordering::Relaxed) >= before + enough || writing.load(Ordering::Acquire) == 0)
        })
    };
    let striker = server.connect("postgres")?;
    let mut sessions = server.sessions("postgres", writers + readers.len())?;
    thread::scope(|scope| {
        let mut threads = Vec::new();
        for (number, client) in sessions.drain(..writers).enumerate() {
            threads.push(scope.spawn(move || {
                let ended = write_until(stop, client, number, written);
                writing.fetch_sub(1, Ordering::AcqRel);
                ended
            }));
        }
        for (reader, client) in readers.iter_mut().zip(sessions) {
            threads.push(scope.spawn(move || reader.follow(client, writing)));
        }
        let fell = goes_on().and_then(|()| strike.fall(server, striker, &goes_on)).and_then(|()| goes_on());
        let left = writing.load(Ordering::Acquire);
        stop.store(true, Ordering::Release);
        fell.and(threads.into_iter().try_for_each(Ends::ended))?;
        ensure!(left == writers || matches!(strike, Strike::Crash), "{left} of {writers} writers were left");
        Ok(())
    })
}

/// Commits the transactions that a crash has left prepared.
fn settle(server: &Server) -> Result<()> {
    let mut client = wait::until(wait::LONG, "a session", || Ok(server.connect("postgres").ok()))?;
    for name in client.column::<String>("select gid from pg_prepared_xacts")? {
        client.run(&format!("commit prepared '{name}'"))?;
    }
    Ok(())
}

#[test]
fn each_reader_has_each_committed_row_exactly_once() -> Result<()> {
    let server =
        auto().false_clock().set("max_prepared_transactions", "40").set("max_connections", "100").start()?;
    let mut client = serving(&server)?;
    server.connect_from(&mut client, "here", "postgres")?;
    client.run(
        "create table events (id bigint primary key default snowflake_nextval(), v int) partition by hash (id);
         create table events_0 partition of events for values with (modulus 2, remainder 0);
         create table events_1 partition of events for values with (modulus 2, remainder 1);
         create foreign table far (id bigint default snowflake_nextval(), v int) server here options (table_name 'events');
         create table many as select n from generate_series(1, 300) n;
         select snowflake_ids.generator_create('own', current_setting('snowflake_ids.layout'));
         create sequence s; select snowflake_ids.bind_sequence('s', 'snowflake')",
    )?;
    let mut readers = Way::ALL.map(|way| Reader { way, last: 0, seen: Vec::new() });
    let (start, time) = (Instant::now(), Duration::from_secs(seconds().unwrap_or(0)));
    loop {
        for strike in Strike::ALL {
            strike_under_load(&server, strike, &mut readers).with_context(|| format!("{strike:?}"))?;
            settle(&server)?;
        }
        if start.elapsed() >= time {
            break;
        }
    }
    for reader in &mut readers {
        reader.read(&mut server.connect("postgres")?)?;
    }
    let committed: Vec<i64> = server.connect("postgres")?.column("select id from events order by id")?;
    for Reader { way, seen, .. } in &readers {
        ids::growing(seen)?;
        let missed = committed.iter().filter(|id| seen.binary_search(id).is_err());
        let (count, first) = (missed.clone().count(), missed.min());
        if *way == Way::Naive {
            eprintln!("{} rows, of which the naive reader missed {count}", committed.len());
            ensure!(count > 0 || seconds().is_none(), "even the naive reader missed none");
        } else if count > 0 || seen.len() != committed.len() {
            bail!(
                "{way:?} read {} of {} rows, and missed {count}, first {first:?}",
                seen.len(),
                committed.len()
            );
        }
    }
    Ok(())
}

/// Of eight writers that commit all the time, each has committed a transaction of its own between two reads. So a read is above the
/// ids of the read before. The test prints by how much readers are behind.
#[test]
fn readers_keep_up_with_eight_committing_writers() -> Result<()> {
    const WRITERS: usize = 8;
    const READ: &str = "select id, extract(epoch from clock_timestamp() - snowflake_timestamp(id))::float8
                        from (select snowflake_safe_id() as id) as safe";
    let server = Server::builder().set("snowflake_ids.worker_id", "9").start()?;
    let mut reader = server.session()?;
    reader.run("create table events (id bigint primary key default snowflake_nextval(), v int)")?;
    let (stop, committed) = (&AtomicBool::new(false), &[const { AtomicUsize::new(0) }; WRITERS]);
    let writers = server.sessions("postgres", WRITERS)?;
    let (mut nulls, mut behind) = (0, Vec::new());
    thread::scope(|scope| {
        let threads = writers.into_iter().zip(committed).map(|(mut client, committed)| {
            scope.spawn(move || {
                while !stop.load(Ordering::Acquire) {
                    client.run("insert into events default values")?;
                    committed.fetch_add(1, Ordering::Release);
                }
                Ok(())
            })
        });
        let threads: Vec<ScopedJoinHandle<'_, Result<()>>> = threads.collect();
        let mut read = || -> Result<()> {
            let mut passed = 0;
            for _ in 0..READS {
                let taken: i64 = reader.one("select snowflake_nextval()")?;
                for _ in 0..10 {
                    let row = reader.query_one(READ, &[])?;
                    match row.try_get::<_, Option<i64>>(0)? {
                        Some(safe) => {
                            ensure!(safe > passed, "{safe} is not above {passed}");
                            behind.push(row.try_get::<_, f64>(1)?);
                        }
                        None => nulls += 1,
                    }
                }
                passed = taken;
                let before = committed.each_ref().map(|count| count.load(Ordering::Acquire));
                wait::until_true("two commits of each writer", || {
                    let mut counts = committed.iter().zip(before);
                    Ok(counts.all(|(count, before)| count.load(Ordering::Acquire) >= before + 2)
                        || threads.iter().any(ScopedJoinHandle::is_finished))
                })?;
            }
            Ok(())
        };
        let read = read();
        stop.store(true, Ordering::Release);
        threads.into_iter().try_for_each(Ends::ended).and(read)
    })?;
    behind.sort_by(f64::total_cmp);
    let (median, most) = (behind.get(behind.len() / 2), behind.last());
    eprintln!(
        "{nulls} of {} reads are null; the others are {median:?} s behind, at most {most:?} s",
        10 * READS
    );
    ensure!(nulls * 100 <= 10 * READS, "{nulls} of {} reads are null", 10 * READS);
    Ok(())
}
