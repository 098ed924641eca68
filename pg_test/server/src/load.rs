//! Sessions that take ids without a pause, and record each id. Snowflake ids are taken in several ways.

use crate::ids;
use crate::server::Server;
use crate::sessions::Ends;
use crate::sql::Session;
use crate::wait;
use anyhow::{Context, Result, bail};
use postgres::error::DbError;
use postgres::{Client, Statement};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle, sleep};
use std::time::Duration;

/// The pause of a session after a failed call.
const PAUSE: Duration = Duration::from_millis(5);

/// The ids that sessions were given, and their errors.
#[derive(Debug, Default)]
pub struct Taken {
    /// The ids, in order within each session.
    pub ids: Vec<i64>,
    /// The errors of failed calls.
    pub refusals: Vec<DbError>,
    /// The index of each taker's first id, with the taker's name.
    takers: Vec<(usize, String)>,
}

impl Taken {
    /// Ids that the test itself took.
    pub fn own(ids: Vec<i64>) -> Self {
        Self::by("the test itself".to_owned(), ids)
    }

    /// Ids of one taker.
    pub fn by(taker: String, ids: Vec<i64>) -> Self {
        Self { ids, refusals: Vec::new(), takers: vec![(0, taker)] }
    }

    /// Adds the ids of other takers.
    pub fn add(&mut self, other: Self) {
        let before = self.ids.len();
        self.takers.extend(other.takers.into_iter().map(|(start, taker)| (before + start, taker)));
        self.ids.extend(other.ids);
        // Ids that are added after this point belong to the test itself.
        self.takers.push((self.ids.len(), "the test itself".to_owned()));
        self.refusals.extend(other.refusals);
    }

    /// Checks that no id is repeated.
    #[track_caller]
    pub fn unique(&self) -> Result<()> {
        match ids::twice(&self.ids) {
            Some([one, other]) => bail!(
                "id {} was issued twice, among {} ids: to {} and to {}",
                self.ids[one],
                self.ids.len(),
                self.taker(one),
                self.taker(other)
            ),
            None => Ok(()),
        }
    }

    /// Checks that each taker's ids grow.
    #[track_caller]
    pub fn growing(&self) -> Result<()> {
        let ends = self.takers.iter().skip(1).map(|(start, _)| *start).chain([self.ids.len()]);
        self.takers.iter().zip(ends).try_for_each(|((start, taker), end)| {
            ids::growing(&self.ids[*start..end]).with_context(|| taker.clone())
        })
    }

    /// The taker of the id at an index, and the id's place among that taker's ids.
    fn taker(&self, place: usize) -> String {
        let after = self.takers.partition_point(|(start, _)| *start <= place);
        match after.checked_sub(1).map(|last| &self.takers[last]) {
            Some((start, taker)) => format!("{taker} as id {}", place - start),
            None => format!("the test itself as id {place}"),
        }
    }

    /// The first error whose message lacks this text.
    pub fn other_than(&self, message: &str) -> Option<&DbError> {
        self.refusals.iter().find(|refusal| !refusal.message().contains(message))
    }
}

/// Sessions that take ids.
#[derive(Debug)]
#[must_use]
pub struct Load {
    stop: Arc<AtomicBool>,
    /// The number of ids per session.
    given: Vec<Arc<AtomicU64>>,
    threads: Vec<JoinHandle<Taken>>,
}

impl Server {
    /// Starts this many sessions that take snowflake ids in the database `postgres`.
    #[track_caller]
    pub fn load(&self, sessions: usize) -> Result<Load> {
        let mut clients = self.sessions("postgres", sessions)?;
        for client in clients.iter_mut().skip(1).step_by(4) {
            client.run("set snowflake_ids.cache = 100")?;
        }
        Load::start(self.port(), clients, |number| {
            if number % 4 == 2 { "select snowflake_nextvals(50)" } else { "select snowflake_nextval()" }
        })
    }

    /// Starts this many sessions that take ids of a tag in the database `postgres`.
    #[track_caller]
    pub fn load_of_tag(&self, tag: &str, sessions: usize) -> Result<Load> {
        self.load_of(&format!("select segment_nextval('{tag}')"), sessions)
    }

    /// Starts this many sessions that take ids by a statement in the database `postgres`.
    #[track_caller]
    pub fn load_of(&self, call: &str, sessions: usize) -> Result<Load> {
        self.load_in("postgres", call, sessions)
    }

    /// Starts this many sessions that take ids by a statement in a database.
    #[track_caller]
    pub fn load_in(&self, database: &str, call: &str, sessions: usize) -> Result<Load> {
        Load::start(self.port(), self.sessions(database, sessions)?, |_| call)
    }
}

/// Takes ids until `stop` is set, or until the server ends the session.
fn take(who: String, client: &mut Client, call: &Statement, stop: &AtomicBool, count: &AtomicU64) -> Taken {
    let mut taken = Taken::by(who, Vec::new());
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
    /// Starts a thread for each session. `call`: the statement for a session, by the session's index; `port`: the server's port,
    /// for messages.
    fn start<'a>(port: u16, clients: Vec<Client>, call: impl Fn(usize) -> &'a str) -> Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        let (mut given, mut threads) = (Vec::new(), Vec::new());
        for (number, mut client) in clients.into_iter().enumerate() {
            let call = client.prepare(call(number))?;
            let process: i32 = client.one("select pg_backend_pid()")?;
            let taker = format!("process {process} of the server on port {port}");
            let (stop, count) = (Arc::clone(&stop), Arc::new(AtomicU64::new(0)));
            given.push(Arc::clone(&count));
            threads.push(thread::spawn(move || take(taker, &mut client, &call, &stop, &count)));
        }
        Ok(Self { stop, given, threads })
    }

    /// Waits until every session has received another id.
    #[track_caller]
    pub fn goes_on(&self) -> Result<()> {
        let now = || self.given.iter().map(|given| given.load(Ordering::Relaxed)).collect::<Vec<_>>();
        let before = now();
        wait::until_true("every session to get another id", || {
            Ok(now().iter().zip(&before).all(|(now, before)| now > before))
        })
    }

    /// Waits until every session of several loads has received another id.
    #[track_caller]
    pub fn all_go_on(loads: &[Self]) -> Result<()> {
        loads.iter().try_for_each(Self::goes_on)
    }

    /// Ends several loads, and joins their results.
    pub fn end_all(loads: Vec<Self>) -> Taken {
        let mut taken = Taken::default();
        for load in loads {
            taken.add(load.end());
        }
        taken
    }

    /// Lets the sessions work for a while.
    pub fn run(&self, time: Duration) {
        sleep(time);
    }

    /// Ends the sessions.
    pub fn end(self) -> Taken {
        self.stop.store(true, Ordering::Relaxed);
        self.until_ended()
    }

    /// Waits until the server has ended the sessions.
    pub fn until_ended(self) -> Taken {
        let mut taken = Taken::default();
        for thread in self.threads {
            taken.add(thread.ended());
        }
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_given_twice_names_the_two_that_were_given_it() {
        let mut taken = Taken::by("one".to_owned(), vec![1, 2, 3]);
        taken.add(Taken::by("other".to_owned(), vec![4, 5]));
        assert!(taken.unique().is_ok());
        taken.ids.push(3);
        let said = taken.unique().map_err(|error| error.to_string());
        let told = "id 3 was issued twice, among 6 ids: to one as id 2 and to the test itself as id 0";
        assert_eq!(said, Err(told.to_owned()));
        taken.ids.pop();
        taken.add(Taken::by("third".to_owned(), vec![6, 5]));
        let said = taken.unique().map_err(|error| error.to_string());
        let told = "id 5 was issued twice, among 7 ids: to other as id 1 and to third as id 1";
        assert_eq!(said, Err(told.to_owned()));
    }
}
