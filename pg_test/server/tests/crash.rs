//! `kill -9` under load, of the server and of its processes. Issued ids do not repeat, ids are issued again, and at most
//! `reserve` is lost.

use snowflake_ids_server_tests::load::Load;
use snowflake_ids_server_tests::prelude::*;
use snowflake_ids_server_tests::segments::{LAUNCHER, WORKER, create, process};
use snowflake_ids_server_tests::snowflakes::{now, take, time};
use snowflake_ids_server_tests::{full, segments};

/// Tables with a default, and the default's call: snowflake ids of the server and of a named generator, ids of a tag, and ids of
/// a bound sequence.
const SOURCES: [(&str, &str); 4] = [
    ("s", "snowflake_nextval()"),
    ("g", "snowflake_nextval('web')"),
    ("t", "segment_nextval('t')"),
    ("b", "nextval('front')"),
];
/// The number of sessions that insert rows into each table. The same number of sessions only take ids.
const SESSIONS: usize = 3;

fn rounds() -> usize {
    if full() { 10 } else { 2 }
}

/// A tick has only 16 ids. Under load, ids run ahead of the clock, so time alone does not separate new ids from old ids.
fn builder() -> Builder {
    Server::builder().set("snowflake_ids.layout", "41/5/5/4").set("snowflake_ids.max_drift", "1h")
}

/// Creates the sources. Segments are small, so that a refill is always under way.
fn create_sources(server: &Server) -> Result<()> {
    let mut client = server.session()?;
    for tag in ["t", "front"] {
        create(&mut client, tag, "step => 20, max_step => 100")?;
    }
    client.run(
        "select snowflake_ids.generator_create('web', 'javascript'); create sequence front;
         select snowflake_ids.bind_sequence('front', 'segment', 'front')",
    )?;
    for (table, call) in SOURCES {
        client.run(&format!("create table {table} (id bigint primary key default {call})"))?;
    }
    Ok(())
}

/// Ids that sessions got from a source, by inserts and by calls.
#[derive(Default)]
struct Given {
    inserted: Vec<i64>,
    asked: Vec<i64>,
}

impl Given {
    fn newest(&self) -> i64 {
        self.inserted.iter().chain(&self.asked).max().copied().unwrap_or(0)
    }

    /// Fails if an id came twice, or an acknowledged row is missing. For each session and crash, one unacknowledged row may
    /// exist.
    fn check(mut self, client: &mut Client, table: &str) -> Result<()> {
        let rows: Vec<i64> = client.column(&format!("select id from {table} order by id"))?;
        let lost = self.inserted.iter().find(|id| rows.binary_search(id).is_err());
        ensure!(lost.is_none(), "{table}: committed row {lost:?} is gone");
        self.inserted.sort_unstable();
        let unheard: Vec<i64> =
            rows.into_iter().filter(|id| self.inserted.binary_search(id).is_err()).collect();
        ensure!(
            unheard.len() <= rounds() * SESSIONS,
            "{table}: {} rows that nobody asked for",
            unheard.len()
        );
        ids::unique([self.inserted, self.asked, unheard].concat())
    }
}

/// The ids of ended sessions, in their order.
fn given(load: Load) -> Result<Vec<i64>> {
    let taken = load.until_ended();
    ensure!(taken.refusals.is_empty(), "{:?}", taken.refusals);
    taken.growing()?;
    Ok(taken.ids)
}

/// Repeats load, a crash and the first ids afterwards, with this `reserve` in seconds.
fn crash_again_and_again(
    server: &mut Server,
    reserve: f64,
    crash: impl Fn(&mut Server) -> Result<()>,
) -> Result<()> {
    server.set("snowflake_ids.reserve", &format!("{}ms", reserve * 1000.0))?;
    server.restart()?;
    create_sources(server)?;
    let mut all: [Given; SOURCES.len()] = Default::default();
    for _ in 0..rounds() {
        let (mut inserting, mut asking) = (Vec::new(), Vec::new());
        for (table, call) in SOURCES {
            inserting
                .push(server.load_of(&format!("insert into {table} default values returning id"), SESSIONS)?);
            asking.push(server.load_of(&format!("select {call}"), SESSIONS)?);
        }
        // These sessions take ids in every way.
        let of_every_way = server.load(4)?;
        for _ in 0..10 {
            Load::all_go_on(&inserting)?;
            Load::all_go_on(&asking)?;
        }
        of_every_way.goes_on()?;
        crash(server)?;
        let mut client = wait::until(wait::LONG, "sessions again", || Ok(server.connect("postgres").ok()))?;
        all[0].asked.extend(given(of_every_way)?);
        for (((table, call), all), loads) in
            SOURCES.iter().zip(&mut all).zip(inserting.into_iter().zip(asking))
        {
            let before = all.newest();
            all.inserted.extend(given(loads.0)?);
            all.asked.extend(given(loads.1)?);
            let newest = all.newest();
            let first: i64 = client.one(&format!("select {call}"))?;
            ensure!(before <= newest && newest < first, "{table}: {first} after {newest} and a crash");
            if *table == "s" {
                let lost = time(&mut client, first)? - time(&mut client, newest)?.max(now()?);
                // The reservation may be a hundred milliseconds longer, and a call's ids may be lost with its answer.
                ensure!(lost <= reserve + 0.3, "{lost} s were lost by a crash");
            }
            all.asked.push(first);
        }
    }
    let mut client = server.connect("postgres")?;
    SOURCES.iter().zip(all).try_for_each(|((table, _), given)| given.check(&mut client, table))
}

fn the_whole_server_killed_costs_at_most_the_reserve(server: &mut Server) -> Result<()> {
    crash_again_and_again(server, 3.0, Server::crash)
}

/// The high-water mark moves ten times a second, so that kills meet its moves.
fn the_server_killed_while_the_mark_moves_repeats_nothing(server: &mut Server) -> Result<()> {
    crash_again_and_again(server, 0.1, Server::crash)
}

fn an_immediate_stop_costs_at_most_the_reserve(server: &mut Server) -> Result<()> {
    crash_again_and_again(server, 1.0, |server| server.restart_by(Shutdown::Immediate))
}

/// The server restarts all processes and its shared memory by itself.
fn the_launcher_killed_repeats_nothing(server: &mut Server) -> Result<()> {
    crash_again_and_again(server, 1.0, |server| {
        server.crash_by(process(&mut server.connect("postgres")?, LAUNCHER)?)
    })
}

fn a_refill_worker_killed_repeats_nothing(server: &mut Server) -> Result<()> {
    crash_again_and_again(server, 1.0, |server| {
        server.crash_by(process(&mut server.connect("postgres")?, WORKER)?)
    })
}

fn a_session_killed_repeats_nothing(server: &mut Server) -> Result<()> {
    crash_again_and_again(server, 0.1, |server| {
        let session = "select pid from pg_stat_activity where query like 'insert into %' limit 1";
        server.crash_by(server.connect("postgres")?.one(session)?)
    })
}

#[test]
fn a_crash_under_load_repeats_nothing() -> Result<()> {
    builder().cases(cases![
        the_whole_server_killed_costs_at_most_the_reserve,
        the_server_killed_while_the_mark_moves_repeats_nothing,
        an_immediate_stop_costs_at_most_the_reserve,
        the_launcher_killed_repeats_nothing,
        a_refill_worker_killed_repeats_nothing,
        a_session_killed_repeats_nothing
    ])
}

#[test]
fn a_clock_set_back_while_the_server_lay_dead_repeats_nothing() -> Result<()> {
    let mut server = builder().false_clock().start()?;
    server.session()?;
    let mut taken = Taken::default();
    for clock in ["-5", "-12", "-20", "-27"] {
        let load = server.load(8)?;
        load.goes_on()?;
        load.run(Duration::from_millis(300));
        server.kill9()?;
        taken.add(load.end());
        server.set_clock(clock)?;
        server.start_again()?;
        let after = take(&mut server.connect("postgres")?, 1000)?;
        ids::growing(&[taken.ids.iter().max().copied().unwrap_or(0), after[0]])?;
        taken.ids.extend(after);
    }
    ensure!(taken.refusals.is_empty(), "{:?}", taken.refusals);
    taken.unique()
}

#[test]
fn a_reservation_is_durable_on_a_server_whose_commits_are_not() -> Result<()> {
    let builder = Server::builder().set("synchronous_commit", "off").set("wal_writer_delay", "10s");
    let (mut server, mut client) = builder.with_session()?;
    client.run("set synchronous_commit = on")?;
    create(&mut client, "t", "step => 10")?;
    let mut taken = Vec::new();
    for _ in 0..3 {
        taken.extend(segments::take(&mut server.connect("postgres")?, "t", 1000)?);
        server.crash()?;
    }
    ids::growing(&taken)
}
