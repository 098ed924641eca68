//! Sessions that take ids without a pause and note each one down; snowflake ids in every way there is.

use crate::ids;
use crate::server::Server;
use crate::wait;
use anyhow::Result;
use postgres::error::DbError;
use postgres::{Client, Statement};
use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle, sleep};
use std::time::Duration;

/// How long a session that was refused waits before it asks again.
const PAUSE: Duration = Duration::from_millis(5);

/// What sessions were given, and why they were refused.
#[derive(Debug, Default)]
pub struct Taken {
    /// The ids, in the order in which each session was given them.
    pub ids: Vec<i64>,
    /// The errors of the calls that gave none.
    pub refusals: Vec<DbError>,
}

impl Taken {
    /// What others were given too.
    pub fn add(&mut self, other: Self) {
        self.ids.extend(other.ids);
        self.refusals.extend(other.refusals);
    }

    /// No id is in it twice.
    ///
    /// # Errors
    /// The first id that is.
    pub fn unique(&self) -> Result<()> {
        ids::unique(self.ids.clone())
    }

    /// The first refusal that does not say `message`.
    pub fn other_than(&self, message: &str) -> Option<&DbError> {
        self.refusals.iter().find(|refusal| !refusal.message().contains(message))
    }
}

/// Sessions at work.
#[derive(Debug)]
#[must_use]
pub struct Load {
    stop: Arc<AtomicBool>,
    /// How many ids each session has been given.
    given: Vec<Arc<AtomicU64>>,
    threads: Vec<JoinHandle<Taken>>,
}

impl Server {
    /// Lets so many sessions take snowflake ids in the database `postgres`.
    ///
    /// # Errors
    /// The server refuses a session.
    pub fn load(&self, sessions: usize) -> Result<Load> {
        let mut clients = self.sessions("postgres", sessions)?;
        for client in clients.iter_mut().skip(1).step_by(4) {
            client.batch_execute("set snowflake_ids.cache = 100")?;
        }
        Load::start(clients, |number| {
            if number % 4 == 2 { "select snowflake_nextvals(50)" } else { "select snowflake_nextval()" }
        })
    }

    /// Lets so many sessions take ids of a tag in the database `postgres`.
    ///
    /// # Errors
    /// The server refuses a session.
    pub fn load_of_tag(&self, tag: &str, sessions: usize) -> Result<Load> {
        let call = format!("select segment_nextval('{tag}')");
        Load::start(self.sessions("postgres", sessions)?, |_| &call)
    }
}

/// Calls until told to stop, or until the server ends the session.
fn take(client: &mut Client, call: &Statement, stop: &AtomicBool, count: &AtomicU64) -> Taken {
    let mut taken = Taken::default();
    while !stop.load(Ordering::Relaxed) {
        match client.query(call, &[]) {
            Ok(rows) => {
                taken.ids.extend(rows.iter().map(|row| row.get::<_, i64>(0)));
                count.fetch_add(rows.len() as u64, Ordering::Relaxed);
            }
            Err(error) => match error.as_db_error() {
                Some(refusal) if !refusal.code().code().starts_with("57P") => {
                    taken.refusals.push(refusal.clone());
                    sleep(PAUSE);
                }
                _ => break,
            },
        }
    }
    taken
}

impl Load {
    /// Sets each session to work at the call for its number.
    fn start<'a>(clients: Vec<Client>, call: impl Fn(usize) -> &'a str) -> Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        let (mut given, mut threads) = (Vec::new(), Vec::new());
        for (number, mut client) in clients.into_iter().enumerate() {
            let call = client.prepare(call(number))?;
            let (stop, count) = (Arc::clone(&stop), Arc::new(AtomicU64::new(0)));
            given.push(Arc::clone(&count));
            threads.push(thread::spawn(move || take(&mut client, &call, &stop, &count)));
        }
        Ok(Self { stop, given, threads })
    }

    /// Waits until every session has been given another id.
    ///
    /// # Errors
    /// One is not, for half a minute.
    pub fn goes_on(&self) -> Result<()> {
        let now = || self.given.iter().map(|given| given.load(Ordering::Relaxed)).collect::<Vec<_>>();
        let before = now();
        wait::until(Duration::from_secs(30), "every session to get another id", || {
            Ok(now().iter().zip(&before).all(|(now, before)| now > before).then_some(()))
        })
    }

    /// The same of several.
    ///
    /// # Errors
    /// A session of one of them is given none.
    pub fn all_go_on(loads: &[Self]) -> Result<()> {
        loads.iter().try_for_each(Self::goes_on)
    }

    /// Ends several, and puts together what they were given.
    pub fn end_all(loads: Vec<Self>) -> Taken {
        let mut taken = Taken::default();
        for load in loads {
            taken.add(load.end());
        }
        taken
    }

    /// Lets them work for a while longer.
    pub fn run(&self, time: Duration) {
        sleep(time);
    }

    /// Ends the sessions, those that the server has not ended already.
    pub fn end(self) -> Taken {
        self.stop.store(true, Ordering::Relaxed);
        let mut taken = Taken::default();
        for thread in self.threads {
            taken.add(thread.join().unwrap_or_else(|panic| resume_unwind(panic)));
        }
        taken
    }
}
