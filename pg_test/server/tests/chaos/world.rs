//! The server, its sessions, things left open, and the outcomes of actions.

use super::database::{ALL, CONTENTS, D, Database, U};
use super::generations::Given;
use super::held::Held;
use super::judge::{describe, is_expected};
use super::load::{Load, Orders};
use super::story::Story;
use postgres::Error;
use snowflake_ids_server_tests::prelude::*;
use snowflake_ids_server_tests::random::Random;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{Receiver, Sender, channel};

const DATABASES: usize = 3;
const SESSIONS_OF_EACH: usize = 2;

/// The longest time that an action and its consequences may take.
pub const TIMEOUT: Duration = wait::LONG;

/// The outcome of an action.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    Done,
    /// The action changed nothing.
    Refused,
    /// The session was lost during the action.
    Unknown,
}

pub struct World {
    pub server: Server,
    pub databases: Vec<Arc<Database>>,
    pub loads: Vec<Load>,
    pub held: Vec<Held>,
    pub dumps: Vec<PathBuf>,
    pub random: Random,
    pub story: Story,
    /// Ids that the test itself took in transactions that changed the tag and were rolled back.
    pub own: Vec<Given>,
    /// Other ids that the test itself took.
    pub taken: Vec<Given>,
    pub snowflakes: Vec<i64>,
    /// Whether a process was killed.
    pub killed: bool,
    /// A counter for new names.
    pub counter: u64,
    pub stop: Arc<AtomicBool>,
    pub faults: Receiver<String>,
}

impl World {
    pub fn start(seed: u64, told: bool) -> Result<Self> {
        let settings = [
            ("max_prepared_transactions", "20"),
            ("log_line_prefix", "%m [%p] %b %e "),
            ("statement_timeout", "30s"),
            ("lock_timeout", "3s"),
            ("snowflake_ids.lease_duration", "1min"),
        ];
        let builder = settings.iter().fold(auto(), |builder, (name, value)| builder.set(name, value));
        let server = builder.start()?;
        wait_for_id(&mut server.session()?)?;
        for database in ["tpl", "unrelated"] {
            server.connect("postgres")?.batch_execute(&format!("create database {database}"))?;
        }
        server.connect("tpl")?.batch_execute(CONTENTS)?;
        let database = |number| Arc::new(Database::new(number, &format!("d{number}"), &server));
        let databases: Vec<_> = (0..DATABASES).map(database).collect();
        let (sender, faults) = channel();
        let mut world = Self {
            server,
            databases,
            loads: Vec::new(),
            held: Vec::new(),
            dumps: Vec::new(),
            random: Random::new(seed),
            story: Story::new(told),
            own: Vec::new(),
            taken: Vec::new(),
            snowflakes: Vec::new(),
            killed: false,
            counter: 0,
            stop: Arc::default(),
            faults,
        };
        for database in 0..DATABASES {
            world.replace(database)?;
        }
        world.set_to_work(&sender);
        Ok(world)
    }

    fn set_to_work(&mut self, faults: &Sender<String>) {
        for number in 0..DATABASES * SESSIONS_OF_EACH {
            self.loads.push(Load::start(Orders {
                number,
                database: Arc::clone(&self.databases[number % DATABASES]),
                shared: number % DATABASES,
                random: Random::new(self.random.below(u64::MAX)),
                start: self.story.start,
                stop: Arc::clone(&self.stop),
                faults: faults.clone(),
            }));
        }
    }

    /// A random database.
    pub fn any(&mut self) -> usize {
        self.random.of(DATABASES)
    }

    pub fn name(&self, database: usize) -> String {
        self.databases[database].name.clone()
    }

    /// A number that was not used before.
    pub fn fresh(&mut self) -> u64 {
        self.counter += 1;
        self.counter
    }

    /// Opens a session of the test itself.
    pub fn client(&self, database: &str) -> Result<Client, Error> {
        self.server.config(database).connect(NoTls)
    }

    /// Records an attempt, and returns its outcome.
    ///
    /// # Errors
    /// The error is never allowed.
    pub fn became<T>(&mut self, what: &str, result: Result<T, Error>) -> Result<Outcome> {
        let Err(error) = result else {
            self.story.tell(what);
            return Ok(Outcome::Done);
        };
        let said = describe(&error);
        self.story.tell(format!("{what}: {said}"));
        match error.as_db_error() {
            Some(db) if !is_expected(db) => bail!("{what}: {said}"),
            Some(db) if !db.code().code().starts_with("57P") => Ok(Outcome::Refused),
            _ => Ok(Outcome::Unknown),
        }
    }

    /// Runs statements in a session of their own, in one transaction unless they control transactions themselves.
    pub fn run(&mut self, database: &str, what: &str) -> Result<Outcome> {
        let result = self.client(database).and_then(|mut client| client.batch_execute(what));
        self.became(&format!("{database}: {what}"), result)
    }

    /// Runs statements that begin new generations of a database's tags, if they succeed.
    pub fn anew(
        &mut self,
        database: usize,
        tags: &[usize],
        what: impl FnOnce(&mut Self) -> Result<Outcome>,
    ) -> Result<Outcome> {
        let generations = Arc::clone(&self.databases[database]);
        generations.open(tags);
        let outcome = what(self)?;
        match outcome {
            Outcome::Done => {
                generations.confirm(tags);
                self.use_up(database)?;
            }
            Outcome::Refused => generations.retract(tags),
            Outcome::Unknown => self.replace(database)?,
        }
        Ok(outcome)
    }

    /// Takes more ids than the former generation had left, so that wrongly repeated ids would collide.
    fn use_up(&mut self, database: usize) -> Result<()> {
        if self.random.once_in(2) {
            return Ok(());
        }
        let took = self.databases[database].connect().and_then(|mut client| {
            client.batch_execute("insert into t (note) select 'many' from generate_series(1, 1500)")?;
            let earliest = self.databases[database].generations[U].earliest();
            let rows = client.query("select segment_nextvals('u', 500)", &[])?;
            rows.iter()
                .map(|row| Ok(Given { earliest, ..self.given(database, U, row.try_get(0)?) }))
                .collect()
        });
        match took {
            Ok(given) => self.taken.extend::<Vec<_>>(given),
            Err(error) => drop(self.became::<()>("use up", Err(error))?),
        }
        Ok(())
    }

    /// Replaces a database, whatever its state, by a copy of the template.
    pub fn replace(&mut self, database: usize) -> Result<()> {
        self.release_all(Some(database))?;
        let name = self.name(database);
        let tags = &ALL;
        let generations = Arc::clone(&self.databases[database]);
        generations.open(tags);
        for what in [
            format!("drop database if exists {name} with (force)"),
            format!("create database {name} template tpl"),
        ] {
            self.must("postgres", &what)?;
        }
        generations.confirm(tags);
        Ok(())
    }

    /// Runs statements that must succeed eventually.
    pub fn must(&mut self, database: &str, what: &str) -> Result<()> {
        let start = Instant::now();
        while self.run(database, what)? != Outcome::Done {
            if start.elapsed() > TIMEOUT {
                bail!("not possible for {TIMEOUT:?}: {what}\n{}", self.activity());
            }
            // Things left open may be in the way.
            self.release_all(None)?;
        }
        Ok(())
    }

    /// Records an id that a session of the test itself got.
    pub fn given(&self, database: usize, tag: usize, id: i64) -> Given {
        debug_assert!(tag < D);
        let generations = &self.databases[database].generations[tag];
        let at = u64::try_from(self.story.start.elapsed().as_millis()).unwrap_or(u64::MAX);
        Given {
            database,
            tag,
            id,
            earliest: generations.earliest(),
            latest: generations.latest(),
            session: usize::MAX,
            at,
        }
    }
}
