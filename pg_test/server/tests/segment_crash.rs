//! `kill -9` under load: of the server, of a session, of the segments' worker. Every client writes down every
//! id it was given, and no id may come twice, ever.

use anyhow::{Context, Result};
use postgres::Client;
use snowflake_ids_server_tests::load::Load;
use snowflake_ids_server_tests::segments::{TIMEOUT, WORKER, create, process, take};
use snowflake_ids_server_tests::{Server, full, ids, sql, wait};

/// Sessions that insert rows.
const INSERTING: usize = 12;
/// Sessions that only ask for ids.
const ASKING: usize = 4;
const INSERT: &str = "insert into t values (default) returning id";

/// How often each victim is killed: as often as it takes to trust it, or in a moment.
fn rounds() -> usize {
    if full() { 20 } else { 2 }
}

/// Segments so small that there is always a refill under way.
fn server() -> Result<Server> {
    let (server, mut client) = Server::builder().with_session()?;
    create(&mut client, "t", "step => 20, max_step => 100")?;
    client.batch_execute("create table t (id bigint primary key default segment_nextval('t'))")?;
    Ok(server)
}

/// The ids that sessions were given, by inserts and without.
#[derive(Default)]
struct Taken {
    inserted: Vec<i64>,
    asked: Vec<i64>,
}

impl Taken {
    fn all(&self) -> Vec<i64> {
        [self.inserted.as_slice(), &self.asked].concat()
    }

    fn newest(&self) -> i64 {
        self.all().into_iter().max().unwrap_or(0)
    }

    /// Lets all sessions work for a while, then runs `end`, which must end them all.
    fn add_load(&mut self, server: &mut Server, end: impl FnOnce(&mut Server) -> Result<()>) -> Result<()> {
        let loads = [server.load_of(INSERT, INSERTING)?, server.load_of_tag("t", ASKING)?];
        for _ in 0..20 {
            Load::all_go_on(&loads)?;
        }
        end(server)?;
        for (load, all) in loads.into_iter().zip([&mut self.inserted, &mut self.asked]) {
            let taken = load.until_ended();
            assert!(taken.refusals.is_empty(), "{:?}", taken.refusals);
            taken.growing()?;
            all.extend(taken.ids);
        }
        Ok(())
    }

    /// What was acknowledged is there; what is there besides was committed unheard, one a session and round.
    fn check(mut self, client: &mut Client, rounds: usize) -> Result<()> {
        let rows: Vec<i64> = sql::column(client, "select id from t order by id")?;
        let lost = self.inserted.iter().find(|id| rows.binary_search(id).is_err());
        assert_eq!(lost, None, "a committed row is gone");
        self.inserted.sort_unstable();
        let unheard: Vec<i64> =
            rows.into_iter().filter(|id| self.inserted.binary_search(id).is_err()).collect();
        assert!(unheard.len() <= rounds * INSERTING, "{} rows that no session was told of", unheard.len());
        ids::unique([self.all(), unheard].concat())
    }
}

/// Kills something again and again, under load.
fn kill_again_and_again(kill: impl Fn(&mut Server) -> Result<()>) -> Result<()> {
    let (mut server, mut taken, rounds) = (server()?, Taken::default(), rounds());
    for _ in 0..rounds {
        let before = taken.newest();
        taken.add_load(&mut server, &kill)?;
        let mut client = wait::until(TIMEOUT, "sessions again", || Ok(server.connect("postgres").ok()))?;
        let after = take(&mut client, "t", 1).context("the first call after a crash")?;
        assert!(before < taken.newest() && taken.newest() < after[0], "{} after the crash", after[0]);
        taken.asked.extend(after);
    }
    taken.check(&mut server.connect("postgres")?, rounds)
}

#[test]
fn no_id_comes_twice_when_the_whole_server_is_killed() -> Result<()> {
    kill_again_and_again(|server| server.crash())
}

#[test]
fn no_id_comes_twice_when_a_session_is_killed() -> Result<()> {
    kill_again_and_again(|server| {
        let session = "select pid from pg_stat_activity where query like 'insert%' limit 1";
        server.kill9_process(sql::one(&mut server.connect("postgres")?, session)?)
    })
}

#[test]
fn no_id_comes_twice_when_the_worker_is_killed() -> Result<()> {
    kill_again_and_again(|server| {
        let worker = process(&mut server.connect("postgres")?, WORKER)?;
        server.kill9_process(worker)
    })
}

#[test]
fn a_reservation_is_durable_on_a_server_whose_commits_are_not() -> Result<()> {
    let mut server =
        Server::builder().set("synchronous_commit", "off").set("wal_writer_delay", "10s").start()?;
    let mut client = server.session()?;
    client.batch_execute("set synchronous_commit = on")?;
    create(&mut client, "t", "step => 10")?;
    let mut taken = Vec::new();
    for _ in 0..3 {
        taken.extend(take(&mut server.connect("postgres")?, "t", 1000)?);
        server.crash()?;
    }
    ids::growing(&taken)
}
