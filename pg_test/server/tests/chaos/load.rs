//! Sessions that take ids in every way, one call after the other, and reconnect whenever they are ended.

use super::calls;
use super::database::{Database, TAGS, UNSURE};
use super::generations::{self, Given};
use super::judge::{describe, is_expected};
use postgres::Error;
use snowflake_ids_server_tests::load::Taken as Ids;
use snowflake_ids_server_tests::prelude::*;
use snowflake_ids_server_tests::random::Random;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, Ordering};
use std::sync::mpsc::Sender;
use std::thread::{self, JoinHandle, sleep};

/// The pause of a session after a failed call.
const PAUSE: Duration = Duration::from_millis(20);

/// A session's progress, for other threads.
#[derive(Debug, Default)]
pub struct Shown {
    /// The session's process in the server; 0 if there is none.
    pub process: AtomicI32,
    /// The millisecond in which the present call began; 0 if there is none.
    pub since: AtomicU64,
    /// The number of ids so far.
    pub given: AtomicU64,
}

/// All ids of a session.
#[derive(Debug, Default)]
pub struct Taken {
    pub session: usize,
    pub segments: Vec<Given>,
    pub snowflakes: Vec<i64>,
    /// Snowflake ids that another server may repeat by chance, because both chose their worker ids independently.
    pub by_itself: Vec<i64>,
}

/// The instructions that a session follows.
pub struct Orders {
    pub number: usize,
    pub database: Arc<Database>,
    /// The scope in which the session's snowflake ids are unique.
    pub shared: usize,
    pub random: Random,
    pub start: Instant,
    pub stop: Arc<AtomicBool>,
    pub faults: Sender<String>,
}

/// A running session.
#[derive(Debug)]
pub struct Load {
    pub shown: Arc<Shown>,
    pub thread: JoinHandle<Taken>,
    pub database: usize,
}

impl Load {
    pub fn start(orders: Orders) -> Self {
        let shown = Arc::new(Shown::default());
        let (theirs, database) = (Arc::clone(&shown), orders.database.number);
        let taken = Taken { session: orders.number, ..Taken::default() };
        Self {
            shown,
            database,
            thread: thread::spawn(move || Session { orders, shown: theirs, taken }.work()),
        }
    }
}

/// A session whose call takes too long. Each call waits at most 2 s for a lock or for ids.
pub fn hanging(loads: &[Load], start: Instant) -> Option<String> {
    let now = u64::try_from(start.elapsed().as_millis()).unwrap_or(u64::MAX);
    loads.iter().enumerate().find_map(|(number, load)| {
        let since = load.shown.since.load(Ordering::SeqCst);
        let process = load.shown.process.load(Ordering::SeqCst);
        (since > 0 && Duration::from_millis(now.saturating_sub(since)) > wait::LONG)
            .then(|| format!("session {number}, process {process}, hangs since {since} ms"))
    })
}

/// The ids of all sessions.
#[derive(Debug, Default)]
pub struct All {
    pub segments: Vec<Given>,
    pub snowflakes: Ids,
    /// The ids of each database, including those that another database may repeat by chance.
    pub of_one: HashMap<usize, Ids>,
}

impl All {
    /// Adds the ids of a session, after its call has ended.
    pub fn add(&mut self, load: Load) -> Result<()> {
        wait::until_true("a session to end its call", || Ok(load.thread.is_finished()))?;
        let database = load.database;
        let Ok(taken) = load.thread.join() else { bail!("a session panicked") };
        let by = |ids| Ids::by(format!("session {}", taken.session), ids);
        self.segments.extend(taken.segments);
        let of_one = self.of_one.entry(database).or_default();
        of_one.add(by(taken.snowflakes.clone()));
        of_one.add(by(taken.by_itself));
        self.snowflakes.add(by(taken.snowflakes));
        Ok(())
    }

    /// Checks that no id was given twice.
    pub fn unique(&self) -> Result<()> {
        println!("{} segment ids, {} snowflake ids", self.segments.len(), self.snowflakes.ids.len());
        generations::unique(&self.segments)?;
        self.of_one.values().try_for_each(Ids::unique)?;
        self.snowflakes.unique()
    }
}

struct Session {
    orders: Orders,
    shown: Arc<Shown>,
    taken: Taken,
}

impl Session {
    fn work(mut self) -> Taken {
        while !self.stopped() {
            match self.orders.database.connect() {
                Ok(client) => self.use_up(client),
                Err(error) => self.failed(&error),
            }
            self.shown.process.store(0, Ordering::SeqCst);
            sleep(PAUSE);
        }
        self.taken
    }

    fn stopped(&self) -> bool {
        self.orders.stop.load(Ordering::SeqCst)
    }

    fn now(&self) -> u64 {
        u64::try_from(self.orders.start.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// Takes ids until the session ends.
    fn use_up(&mut self, mut client: Client) {
        let Ok(process) = client.query_one("select pg_backend_pid()", &[]) else { return };
        self.shown.process.store(process.get(0), Ordering::SeqCst);
        if self.orders.random.once_in(2) {
            // The session may have ended already.
            let _ = client.batch_execute("set snowflake_ids.cache = 20");
        }
        while !self.stopped() && !client.is_closed() {
            if let Err(error) = self.call(&mut client) {
                self.failed(&error);
                let _ = client.batch_execute("rollback");
                sleep(PAUSE);
            }
            self.orders.random.sleep(8);
        }
    }

    fn call(&mut self, client: &mut Client) -> Result<(), Error> {
        let earliest: [u32; TAGS.len()] =
            std::array::from_fn(|tag| self.orders.database.generations[tag].earliest());
        let database = Arc::clone(&self.orders.database);
        let changes = database.scope_changes.load(Ordering::SeqCst);
        let scope = database.scope.load(Ordering::SeqCst);
        self.shown.since.store(self.now().max(1), Ordering::SeqCst);
        let ids = calls::any(client, &mut self.orders.random);
        self.shown.since.store(0, Ordering::SeqCst);
        let Some(taken) = ids? else { return Ok(()) };
        self.shown.given.fetch_add(taken.ids.len() as u64, Ordering::SeqCst);
        let is_sure = scope != UNSURE && changes == database.scope_changes.load(Ordering::SeqCst);
        let Some(tag) = taken.tag else {
            let is_shared = is_sure && scope == self.orders.shared;
            let ids = if is_shared { &mut self.taken.snowflakes } else { &mut self.taken.by_itself };
            ids.extend(taken.ids);
            return Ok(());
        };
        let (at, latest) = (self.now(), self.orders.database.generations[tag].latest());
        let (session, database) = (self.orders.number, scope);
        if !is_sure {
            return Ok(());
        }
        let given = |id| Given { database, tag, id, earliest: earliest[tag], latest, session, at };
        self.taken.segments.extend(taken.ids.into_iter().map(given));
        Ok(())
    }

    fn failed(&self, error: &Error) {
        if error.as_db_error().is_some_and(|db| !is_expected(db)) {
            // The receiver is gone if the test has failed.
            let _ = self.orders.faults.send(format!(
                "session {} at {} ms: {}",
                self.orders.number,
                self.now(),
                describe(error)
            ));
        }
    }
}
