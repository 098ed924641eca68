//! Sessions insert through all nodes of a Citus cluster, while a worker is added, another is killed, and the coordinator is down
//! and then moves. No id repeats, no acknowledged row is lost, and shards have about the same size. A stand-in takes the place of
//! Citus. `SNOWFLAKE_IDS_FULL=1` runs the test for a minute.

#![allow(clippy::disallowed_types, reason = "threads of one process share it")]

use postgres::Config;
use snowflake_ids_server_tests::citus::{Citus, well};
use snowflake_ids_server_tests::full;
use snowflake_ids_server_tests::prelude::*;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::{self, sleep};

const SESSIONS: usize = 8;
/// The number of inserts after which a session changes to the next node.
const INSERTS: usize = 10;
const SHARDS: usize = 32;
/// With this many ids per shard, every shard is within 2 % of the mean, except in fewer than one in ten thousand runs.
const PER_SHARD: i64 = 70_000;

/// An acknowledged row: its snowflake id and its number.
type Row = (i64, i64);

/// The nodes that sessions use, and the inserts so far.
#[derive(Default)]
struct Load {
    nodes: Mutex<Vec<u16>>,
    /// The inserts acknowledged by each node.
    inserts: Mutex<BTreeMap<u16, u64>>,
    ended: AtomicBool,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn connect(port: u16) -> Result<Client> {
    let mut config = Config::new();
    config.host("127.0.0.1").port(port).user("postgres").dbname("postgres");
    Ok(config.connect_timeout(Duration::from_secs(2)).connect(NoTls)?)
}

/// The results of a session.
#[derive(Default)]
struct Done {
    rows: Vec<Row>,
    /// How often a node was down, or refused an insert.
    refusals: usize,
}

impl Load {
    /// Inserts through one node after another.
    fn insert(&self, number: usize) -> Done {
        let mut done = Done::default();
        for turn in number.. {
            if self.ended.load(Ordering::Relaxed) {
                break;
            }
            let port = {
                let nodes = lock(&self.nodes);
                nodes[turn % nodes.len()]
            };
            if self.insert_at(port, &mut done).is_err() {
                done.refusals += 1;
                sleep(Duration::from_millis(20));
            }
        }
        done
    }

    fn insert_at(&self, port: u16, done: &mut Done) -> Result<()> {
        let mut client = connect(port)?;
        for count in [1, 100].into_iter().cycle().take(INSERTS) {
            let insert = format!(
                "insert into orders (port) select {port} from generate_series(1, {count}) returning id, number"
            );
            let rows = client.query(&insert, &[])?;
            done.rows.extend(rows.iter().map(|row| (row.get::<_, i64>(0), row.get::<_, i64>(1))));
            *lock(&self.inserts).entry(port).or_default() += 1;
        }
        Ok(())
    }

    /// Waits until each of these nodes has acknowledged more rows.
    fn goes_on(&self, ports: &[u16]) -> Result<()> {
        let now = || {
            let inserts = lock(&self.inserts);
            ports.iter().map(|port| inserts.get(port).copied().unwrap_or_default()).collect::<Vec<_>>()
        };
        let before = now();
        wait::until_true("every node to acknowledge more rows", || {
            Ok(now().iter().zip(&before).all(|(now, before)| *now > before + 2))
        })
    }

    fn set_nodes(&self, cluster: &Citus) {
        *lock(&self.nodes) = ports(cluster);
    }
}

fn ports(cluster: &Citus) -> Vec<u16> {
    cluster.servers().map(Server::port).collect()
}

/// Kills a worker and starts it again, then kills the coordinator and starts it elsewhere. Rows arrive all the time.
fn strike(cluster: &mut Citus, load: &Load, worker: usize) -> Result<()> {
    load.goes_on(&ports(cluster))?;
    cluster.workers[worker].kill9()?;
    let killed = cluster.workers[worker].port();
    let others: Vec<u16> = ports(cluster).into_iter().filter(|port| *port != killed).collect();
    load.goes_on(&others)?;
    cluster.workers[worker].start_again()?;
    load.goes_on(&ports(cluster))?;
    cluster.coordinator.kill9()?;
    let workers: Vec<u16> = cluster.workers.iter().map(Server::port).collect();
    load.goes_on(&workers)?;
    cluster.coordinator.move_port()?;
    cluster.coordinator.start_again()?;
    cluster.set_coordinator("postgres")?;
    load.set_nodes(cluster);
    load.goes_on(&ports(cluster))
}

/// Causes all events while sessions insert. Returns how often a worker was killed and the coordinator moved.
fn happen(cluster: &mut Citus, load: &Load) -> Result<usize> {
    let start = Instant::now();
    load.goes_on(&ports(cluster))?;
    cluster.add()?;
    load.set_nodes(cluster);
    load.goes_on(&ports(cluster))?;
    for round in 0.. {
        strike(cluster, load, round % cluster.workers.len())?;
        if !full() || start.elapsed() > Duration::from_mins(1) {
            return Ok(round + 1);
        }
    }
    Ok(0)
}

/// Checks that all acknowledged rows exist, and that no id is in two rows on any nodes.
fn check_rows(cluster: &Citus, acknowledged: &[Row]) -> Result<Vec<i64>> {
    let mut stored = BTreeMap::new();
    let mut numbers = Vec::new();
    for server in cluster.servers() {
        for row in server.connect("postgres")?.query("select id, number, port from orders", &[])? {
            let (id, number): Row = (row.get(0), row.get(1));
            numbers.push(number);
            match stored.entry(id) {
                Entry::Vacant(free) => free.insert((number, row.get::<_, i32>(2))),
                Entry::Occupied(taken) => {
                    anyhow::bail!("id {id} is in rows of {:?} and of {}", taken.get(), server.port())
                }
            };
        }
    }
    ids::unique(numbers)?;
    for (id, number) in acknowledged {
        let (there, _) = stored.get(id).with_context(|| format!("row {id} is lost"))?;
        ensure!(there == number, "row {id} has number {there}, and {number} was acknowledged");
    }
    ids::unique(acknowledged.iter().map(|(id, _)| *id).collect())?;
    Ok(stored.into_keys().collect())
}

/// The largest relative distance of a shard's size from the mean size. A size counts all rows, and as many further ids from all nodes
/// as the comparison needs.
fn unevenness(cluster: &Citus, rows: i64) -> Result<f64> {
    let missing = (PER_SHARD * i64::try_from(SHARDS)? - rows).max(0);
    let further = missing / i64::try_from(cluster.workers.len() + 1)? + 1;
    let mut shards = [0u32; SHARDS];
    for server in cluster.servers() {
        // A shard has the ids of one range of hashes, as Citus divides them.
        let count = format!(
            "select (hashint8(id)::bigint + 2147483648) * {SHARDS} / 4294967296, count(*)
             from (select id from orders union all select snowflake_nextvals({further})) i (id) group by 1"
        );
        for row in server.connect("postgres")?.query(&count, &[])? {
            shards[usize::try_from(row.get::<_, i64>(0))?] += u32::try_from(row.get::<_, i64>(1))?;
        }
    }
    let mean = f64::from(shards.iter().sum::<u32>()) / f64::from(u32::try_from(SHARDS)?);
    Ok(shards.iter().map(|count| (f64::from(*count) / mean - 1.0).abs()).fold(0.0, f64::max))
}

#[test]
fn no_id_comes_twice_and_no_row_is_lost_whatever_happens_to_the_nodes() -> Result<()> {
    let mut cluster = Citus::joined(3)?;
    for server in cluster.servers() {
        wait_for_id(&mut server.connect("postgres")?)?;
    }
    cluster.session()?.run(
        "select snowflake_ids.segment_create('orders', step => 20000);
         create table orders (id bigint primary key default snowflake_nextval(),
             number bigint not null default segment_nextval('orders'), port int);
         select create_distributed_table('orders', 'id')",
    )?;
    let load = Load::default();
    load.set_nodes(&cluster);
    let (rounds, done) = thread::scope(|scope| {
        let load = &load;
        let sessions: Vec<_> = (0..SESSIONS).map(|number| scope.spawn(move || load.insert(number))).collect();
        let rounds = happen(&mut cluster, load);
        load.ended.store(true, Ordering::Relaxed);
        let done = sessions.into_iter().map(Ends::ended);
        (rounds, done.collect::<Vec<_>>())
    });
    let rounds = rounds?;
    let refusals: usize = done.iter().map(|done| done.refusals).sum();
    let acknowledged: Vec<Row> = done.into_iter().flat_map(|done| done.rows).collect();
    let stored = check_rows(&cluster, &acknowledged)?;
    let uneven = unevenness(&cluster, i64::try_from(stored.len())?)?;
    println!(
        "{} rows acknowledged, {} stored, of {} nodes, in {rounds} rounds, {refusals} refusals; uneven by {:.2} %",
        acknowledged.len(),
        stored.len(),
        cluster.workers.len() + 1,
        uneven * 100.0
    );
    ensure!(uneven < 0.02, "a shard is off by {:.2} %", uneven * 100.0);
    well(&mut cluster.session()?, 5)
}
