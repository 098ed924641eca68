//! The second form of `chaos.rs`: a registry and two nodes, under sessions that take ids in every way, while they are restarted, killed
//! and held up, nodes leave and join, columns are attached again after rows came from elsewhere, and tags are changed at the
//! registry. The settings are the same; of actions only `import` can be left out.

#[path = "chaos/calls.rs"]
mod calls;
#[path = "chaos/database.rs"]
#[allow(dead_code, reason = "what the form with one server needs")]
mod database;
#[path = "chaos/judge.rs"]
mod judge;
#[path = "chaos/lives.rs"]
#[allow(dead_code, reason = "what the form with one server needs")]
mod lives;
#[path = "chaos/load.rs"]
#[allow(dead_code, reason = "what the form with one server needs")]
mod load;
#[path = "chaos/story.rs"]
mod story;

use anyhow::{Context, Result, bail, ensure};
use database::{Database, UNSURE};
use load::{Load, Orders};
use postgres::{Client, NoTls};
use snowflake_ids_server_tests::cluster::{self, Cluster, JOIN, LEAVE};
use snowflake_ids_server_tests::random::Random;
use snowflake_ids_server_tests::registry::{auto, wait_for_id};
use snowflake_ids_server_tests::{Server, Shutdown, ids, wait};
use std::env;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;
use story::Story;

const NODES: usize = 2;
const HANGS: Duration = Duration::from_secs(30);
const TIMEOUT: Duration = Duration::from_mins(1);
/// The scope of ids that come from the registry; a node on its own has another.
const SHARED: usize = 0;

const TAGS: &str = "select snowflake_ids.segment_create('t', step => 5, max_step => 50);
    select snowflake_ids.segment_create('u', step => 2, max_step => 20);
    select snowflake_ids.segment_create('d', reset => 'day', step => 10)";
const TABLES: &str = "create table t (id bigint primary key default segment_nextval('t'), note text);
    create table s (id bigint primary key default snowflake_nextval(), note text);
    create table a (id bigserial primary key, note text);
    select snowflake_ids.attach('a', 'id', kind => 'segment')";

struct World {
    cluster: Cluster,
    databases: Vec<Arc<Database>>,
    loads: Vec<Load>,
    random: Random,
    story: Story,
    stop: Arc<AtomicBool>,
    faults: Receiver<String>,
    /// Where a tag that is made anew begins, above all that was given.
    begin: u64,
}

impl World {
    fn start(seed: u64) -> Result<Self> {
        // Worker ids enough for nodes that leave and join.
        let settings = |builder: snowflake_ids_server_tests::Builder| {
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
            let database = Database::new(number, "postgres", node.socket_folder().to_owned(), node.port());
            database.scope.store(SHARED, Ordering::SeqCst);
            databases.push(Arc::new(database));
        }
        for number in 0..2 * NODES {
            loads.push(Load::start(Orders {
                number,
                database: Arc::clone(&databases[number % NODES]),
                random: Random::new(random.below(u64::MAX)),
                start: story.start,
                stop: Arc::clone(&stop),
                faults: sender.clone(),
            }));
        }
        Ok(Self { cluster, databases, loads, random, story, stop, faults, begin: 0 })
    }

    fn run(&mut self, node: Option<usize>, what: &str) -> Result<bool> {
        let server = node.map_or(&self.cluster.registry, |node| &self.cluster.nodes[node]);
        let who = node.map_or("registry".to_owned(), |node| format!("node {node}"));
        let result = client(server).and_then(|mut client| client.batch_execute(what));
        self.story.tell(format!(
            "{who}: {what}{}",
            result.as_ref().err().map(|error| format!(": {}", judge::describe(error))).unwrap_or_default()
        ));
        match result {
            Ok(()) => Ok(true),
            // What the registry's absence leads to is told in many ways.
            Err(error) => match error.as_db_error() {
                Some(db) if db.code().code().starts_with("XX") || db.code().code() == "23505" => {
                    bail!("{who}: {what}: {}", judge::describe(&error))
                }
                _ => Ok(false),
            },
        }
    }

    fn strike(&mut self) -> Result<()> {
        let node = self.random.of(NODES);
        match self.random.below(14) {
            0 => {
                self.story.tell("the registry hangs");
                let _paused = self.cluster.registry.pause()?;
                self.random.sleep(1500);
            }
            1 => self.restart(None)?,
            2 => self.restart(Some(node))?,
            3 | 4 => self.leave_or_join(node)?,
            5 | 6 => self.import(node)?,
            7 => self.cluster.registry.end_nodes_sessions()?,
            8 => self.begin_anew()?,
            9 => {
                let step = 1 + self.random.below(20);
                self.run(None, &format!("select snowflake_ids.segment_alter('t', step => {step})"))?;
            }
            10 => {
                let raise = "select snowflake_ids.segment_raise(tag, max_id + 100) from snowflake_ids.segment where reset is null";
                self.run(None, raise)?;
            }
            11 => {
                let number = self.random.of(self.loads.len());
                let process = self.loads[number].shown.process.load(Ordering::SeqCst);
                let how = ["cancel", "terminate"][self.random.of(2)];
                self.run(
                    Some(number % NODES),
                    &format!("select pg_{how}_backend({process}) where {process} > 0"),
                )?;
            }
            12 => {
                let workers = "select pg_terminate_backend(pid) from pg_stat_activity where backend_type like 'snowflake_ids%'";
                self.run(Some(node), workers)?;
            }
            _ => {
                self.run(
                    None,
                    "begin; select * from snowflake_ids.segment for update; select pg_sleep(0.7); commit",
                )?;
            }
        }
        Ok(())
    }

    fn restart(&mut self, node: Option<usize>) -> Result<()> {
        let how = self.random.below(3);
        self.story.tell(format!("restart of {node:?}, {how}"));
        let server = node.map_or(&mut self.cluster.registry, |node| &mut self.cluster.nodes[node]);
        match how {
            0 => server.kill9()?,
            1 => server.stop(Shutdown::Immediate)?,
            _ => server.stop(Shutdown::Fast)?,
        }
        server.start_again()
    }

    /// A node on its own goes on above all that it received; others may give the same meanwhile, and never after it has joined
    /// again.
    fn leave_or_join(&mut self, node: usize) -> Result<()> {
        let scope = self.databases[node].scope.swap(UNSURE, Ordering::SeqCst);
        let (what, other) = if scope == SHARED { (LEAVE, node + 1) } else { (JOIN, SHARED) };
        let done = self.run(Some(node), what)?;
        self.databases[node].scope.store(if done { other } else { scope }, Ordering::SeqCst);
        Ok(())
    }

    /// Rows come from elsewhere, and the column is attached again: nobody who inserts meets them.
    fn import(&mut self, node: usize) -> Result<()> {
        if env::var("CHAOS_WITHOUT").is_ok_and(|without| without.split(',').any(|out| out == "import")) {
            return Ok(());
        }
        let rows = "insert into a (id, note) select coalesce(max(id), 0) + 5 + i, 'from elsewhere' from a, generate_series(1, 20) i group by i";
        let attach = "select snowflake_ids.attach('a', 'id', kind => 'segment')";
        self.run(
            Some(node),
            &format!("begin; lock table a; {rows} on conflict do nothing; {attach}; commit"),
        )?;
        self.run(Some(node), "insert into a (note) select 'many' from generate_series(1, 100)").map(drop)
    }

    /// A tag is dropped at the registry, and made anew above all that was given.
    fn begin_anew(&mut self) -> Result<()> {
        self.run(None, "select snowflake_ids.segment_drop('u')")?;
        self.random.sleep(300);
        self.begin += 1_000_000_000;
        let create = format!(
            "select snowflake_ids.segment_create('u', start => {}, step => 2, max_step => 20)",
            self.begin
        );
        self.run(None, &create).map(drop)
    }

    fn check(&self) -> Result<()> {
        if let Ok(fault) = self.faults.try_recv() {
            bail!("an error that must not come: {fault}");
        }
        let now = self.story.start.elapsed().as_millis();
        for (number, load) in self.loads.iter().enumerate() {
            let since = load.shown.since.load(Ordering::SeqCst);
            ensure!(
                since == 0 || now < u128::from(since) + HANGS.as_millis(),
                "session {number} hangs since {since} ms"
            );
        }
        Ok(())
    }

    fn end(&mut self) -> Result<()> {
        self.story.tell("the end");
        for node in 0..NODES {
            let database = Arc::clone(&self.databases[node]);
            let mut said = String::new();
            let comes = wait::until(TIMEOUT, "ids to come again", || {
                let insert = "insert into t default values; insert into s default values; insert into a default values";
                let took = database.connect().and_then(|mut client| client.batch_execute(insert));
                Ok(took.map_err(|error| said = judge::describe(&error)).ok())
            });
            comes.with_context(|| format!("node {node}: {said}"))?;
        }
        self.stop.store(true, Ordering::SeqCst);
        let (mut segments, mut snowflakes) = (Vec::new(), Vec::new());
        for load in std::mem::take(&mut self.loads) {
            wait::until(TIMEOUT, "a session to end its call", || {
                Ok(load.thread.is_finished().then_some(()))
            })?;
            let Ok(taken) = load.thread.join() else { bail!("a session panicked") };
            segments.extend(taken.segments);
            snowflakes.extend(taken.snowflakes);
        }
        self.check()?;
        println!("{} segment ids, {} snowflake ids", segments.len(), snowflakes.len());
        lives::unique(&segments)?;
        ids::unique(snowflakes)?;
        for server in self.cluster.nodes.iter_mut().chain([&mut self.cluster.registry]) {
            server.stop(Shutdown::Fast)?;
            let log = server.log();
            let faults = judge::faults(&log, true);
            ensure!(
                faults.is_empty(),
                "a server's log has lines that must not be there: {:#?}",
                &faults[..faults.len().min(5)]
            );
        }
        Ok(())
    }
}

fn client(server: &Server) -> Result<Client, postgres::Error> {
    let mut config = postgres::Config::new();
    config.host_path(server.socket_folder()).port(server.port()).user("postgres").dbname("postgres");
    config.connect(NoTls)
}

fn setting(name: &str, default: u64) -> u64 {
    env::var(name).ok().and_then(|value| value.parse().ok()).unwrap_or(default)
}

#[test]
fn nodes_and_their_registry_repeat_no_id_whatever_is_done_to_them() -> Result<()> {
    let seed = setting("CHAOS_SEED", 12);
    let time = Duration::from_secs(setting("CHAOS_SECONDS", 15));
    let mut world = World::start(seed)?;
    let done = (|| {
        while world.story.start.elapsed() < time {
            world.random.sleep(300);
            world.strike()?;
            world.check()?;
        }
        world.end()
    })();
    done.with_context(|| format!("seed {seed}\n{}", world.story))
}
