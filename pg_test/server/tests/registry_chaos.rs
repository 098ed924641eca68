//! Faults of all kinds in a random order, under load; whatever happens, no id comes twice and ids come again.

use anyhow::{Context, Result};
use snowflake_ids_server_tests::cluster::{self, Cluster, JOIN};
use snowflake_ids_server_tests::load::{Load, Taken};
use snowflake_ids_server_tests::random::Random;
use snowflake_ids_server_tests::registry::{auto, wait_for_id};
use snowflake_ids_server_tests::snowflakes::status;
use snowflake_ids_server_tests::{Builder, Server, Shutdown, full};
use std::time::{SystemTime, UNIX_EPOCH};

const NODES: usize = 3;

/// The loads of a node, and what all ended ones were given.
struct Ids {
    of_tag: Taken,
    snowflakes: Taken,
    loads: Vec<[Load; 2]>,
}

fn loads(node: &Server) -> Result<[Load; 2]> {
    Ok([node.load_of_tag("t", 1)?, node.load(1)?])
}

impl Ids {
    fn start(cluster: &Cluster) -> Result<Self> {
        let loads = cluster.nodes.iter().map(loads).collect::<Result<_>>()?;
        Ok(Self { of_tag: Taken::default(), snowflakes: Taken::default(), loads })
    }

    fn end(&mut self, [of_tag, snowflakes]: [Load; 2]) {
        self.of_tag.add(of_tag.end());
        self.snowflakes.add(snowflakes.end());
    }

    /// A node was started again; its former sessions are over.
    fn renew(&mut self, number: usize, node: &Server) -> Result<()> {
        let former = std::mem::replace(&mut self.loads[number], loads(node)?);
        self.end(former);
        Ok(())
    }
}

/// One fault, and its end.
fn strike(cluster: &mut Cluster, ids: &mut Ids, random: &mut Random) -> Result<()> {
    let number = random.of(NODES);
    match random.below(9) {
        0 => {
            let _paused = cluster.registry.pause()?;
            random.sleep(2000);
        }
        1 => {
            let _paused = cluster.nodes[number].pause()?;
            random.sleep(1000);
        }
        2 => cluster.registry.end_nodes_sessions()?,
        3 => cluster.registry.restart()?,
        4 => {
            cluster.registry.kill9()?;
            random.sleep(1000);
            cluster.registry.start_again()?;
        }
        5 | 6 => {
            let node = &mut cluster.nodes[number];
            match random.below(2) {
                0 => node.kill9()?,
                _ => node.stop(Shutdown::Fast)?,
            }
            node.start_again()?;
            ids.renew(number, &cluster.nodes[number])?;
        }
        7 => {
            cluster.nodes[number].connect("postgres")?.batch_execute(JOIN)?;
        }
        _ => {
            let mut client = cluster.nodes[number].connect("postgres")?;
            if let Some(worker) = status::<Option<i32>>(&mut client, "worker_id")? {
                let release = format!("select snowflake_ids.worker_release({worker})");
                // It may have been given up already.
                let _ = cluster.registry.connect("postgres")?.batch_execute(&release);
                cluster.nodes[number]
                    .reload("snowflake_ids.lease_duration", &format!("{}h", 2 + random.below(20)))?;
            }
        }
    }
    Ok(())
}

fn chaos(seed: u64, faults: usize) -> Result<()> {
    let layout = |builder: Builder| builder.set("snowflake_ids.layout", "41/0/10/12");
    let mut cluster = Cluster::of(layout(auto()), &layout(cluster::node()), NODES)?;
    cluster.create("t", "step => 10, max_step => 1000")?;
    for node in &cluster.nodes {
        wait_for_id(&mut node.connect("postgres")?)?;
    }
    let (mut ids, mut random) = (Ids::start(&cluster)?, Random::new(seed));
    for _ in 0..faults {
        random.sleep(300);
        strike(&mut cluster, &mut ids, &mut random)?;
    }
    for loads in &ids.loads {
        Load::all_go_on(loads)?;
    }
    for loads in std::mem::take(&mut ids.loads) {
        ids.end(loads);
    }
    ids.of_tag.unique()?;
    ids.snowflakes.unique()
}

#[test]
fn no_id_comes_twice_and_ids_come_again() -> Result<()> {
    let seed = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs();
    chaos(seed, if full() { 300 } else { 8 }).with_context(|| format!("seed {seed}"))
}
