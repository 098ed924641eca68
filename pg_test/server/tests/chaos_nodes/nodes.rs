//! A registry and its nodes, the sessions on them, and the outcomes of actions.

use super::database::Database;
use super::judge;
use super::load::{self, All, Load, Orders};
use super::story::Story;
use snowflake_ids_server_tests::cluster::{self};
use snowflake_ids_server_tests::prelude::*;
use snowflake_ids_server_tests::random::Random;
use std::env;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};

pub const NODES: usize = 2;
/// The scope of ids from the registry. A node that has left the registry has another scope.
pub const SHARED: usize = 0;

const TAGS: &str = "select snowflake_ids.segment_create('t', step => 5, max_step => 50);
    select snowflake_ids.segment_create('u', step => 2, max_step => 20);
    select snowflake_ids.segment_create('d', reset => 'day', step => 10)";
const TABLES: &str = "create table t (id bigint primary key default segment_nextval('t'), note text);
    create table s (id bigint primary key default snowflake_nextval(), note text);
    create table a (id bigserial primary key, note text);
    select snowflake_ids.attach('a', 'id', kind => 'segment')";

pub struct World {
    pub cluster: Cluster,
    pub databases: Vec<Arc<Database>>,
    pub loads: Vec<Load>,
    pub random: Random,
    pub story: Story,
    pub stop: Arc<AtomicBool>,
    pub faults: Receiver<String>,
    /// The start of a recreated tag, above all earlier ids.
    pub begin: u64,
}

impl World {
    pub fn start(seed: u64) -> Result<Self> {
        // There are enough worker ids for nodes that leave and join.
        let settings = |builder: Builder| {
            builder
                .set("snowflake_ids.layout", "41/0/10/12")
                .set("log_line_prefix", "%m [%p] %b %e ")
                .set("lock_timeout", "3s")
        };
        let cluster = Cluster::of(settings(auto()), &settings(cluster::node()), NODES)?;
        cluster.registry.connect("postgres")?.batch_execute(TAGS)?;
        let (sender, faults) = channel();
        let (mut random, story) = (Random::new(seed), Story::new(env::var_os("CHAOS_STORY").is_some()));
        let (stop, mut databases, mut loads) = (Arc::default(), Vec::new(), Vec::new());
        for (number, node) in cluster.nodes.iter().enumerate() {
            wait_for_id(&mut node.connect("postgres")?)?;
            node.connect("postgres")?.batch_execute(TABLES)?;
            let database = Database::new(number, "postgres", node);
            database.scope.store(SHARED, Ordering::SeqCst);
            databases.push(Arc::new(database));
        }
        for number in 0..2 * NODES {
            loads.push(Load::start(Orders {
                number,
                database: Arc::clone(&databases[number % NODES]),
                shared: SHARED,
                random: Random::new(random.below(u64::MAX)),
                start: story.start,
                stop: Arc::clone(&stop),
                faults: sender.clone(),
            }));
        }
        Ok(Self { cluster, databases, loads, random, story, stop, faults, begin: 0 })
    }

    /// Runs statements at the registry or a node. Returns whether all succeeded.
    pub fn run(&mut self, node: Option<usize>, what: &str) -> Result<bool> {
        let server = node.map_or(&self.cluster.registry, |node| &self.cluster.nodes[node]);
        let who = node.map_or("registry".to_owned(), |node| format!("node {node}"));
        let result =
            server.config("postgres").connect(NoTls).and_then(|mut client| client.batch_execute(what));
        self.story.tell(format!(
            "{who}: {what}{}",
            result.as_ref().err().map(|error| format!(": {}", judge::describe(error))).unwrap_or_default()
        ));
        match result {
            Ok(()) => Ok(true),
            // Without the registry, many errors are allowed.
            Err(error) => match error.as_db_error() {
                Some(db) if db.code().code().starts_with("XX") || db.code().code() == "23505" => {
                    bail!("{who}: {what}: {}", judge::describe(&error))
                }
                _ => Ok(false),
            },
        }
    }

    /// Fails if a session has reported a fault.
    pub fn check(&self) -> Result<()> {
        if let Ok(fault) = self.faults.try_recv() {
            bail!("an error that must not come: {fault}");
        }
        if let Some(hanging) = load::hanging(&self.loads, self.story.start) {
            bail!("{hanging}");
        }
        Ok(())
    }

    /// Lines about worker ids in the nodes' logs.
    fn worker_ids(&self) -> String {
        let lines = self.cluster.nodes.iter().enumerate().flat_map(|(number, node)| {
            let log = node.log();
            let lines = log.lines().filter(|line| line.contains("worker id"));
            lines.map(|line| format!("node {number}: {line}\n")).collect::<Vec<_>>()
        });
        lines.collect()
    }

    /// Ends the run: ids are issued again, sessions end, no id was given twice, and the servers stop.
    pub fn end(&mut self) -> Result<()> {
        self.story.tell("the end");
        for node in 0..NODES {
            let database = Arc::clone(&self.databases[node]);
            let mut said = String::new();
            let comes = wait::until(wait::LONG, "ids to come again", || {
                let insert = "insert into t default values; insert into s default values; insert into a default values";
                let took = database.connect().and_then(|mut client| client.batch_execute(insert));
                Ok(took.map_err(|error| said = judge::describe(&error)).ok())
            });
            comes.with_context(|| format!("node {node}: {said}"))?;
        }
        self.stop.store(true, Ordering::SeqCst);
        let mut given = All::default();
        std::mem::take(&mut self.loads).into_iter().try_for_each(|load| given.add(load))?;
        self.check()?;
        given.unique().with_context(|| self.worker_ids())?;
        for server in self.cluster.nodes.iter_mut().chain([&mut self.cluster.registry]) {
            server.stop(Shutdown::Fast)?;
            judge::has_no_faults(&server.log(), true)?;
        }
        Ok(())
    }
}
