//! Faults in a registry and its nodes.

use super::database::UNSURE;
use super::nodes::{NODES, SHARED, World};
use anyhow::Result;
use snowflake_ids_server_tests::Shutdown;
use snowflake_ids_server_tests::cluster::{JOIN, LEAVE};
use snowflake_ids_server_tests::snowflakes::status;
use std::env;
use std::sync::atomic::Ordering;

impl World {
    /// Causes a random fault.
    pub fn strike(&mut self) -> Result<()> {
        let node = self.random.of(NODES);
        match self.random.below(17) {
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
            13 => {
                self.story.tell(format!("node {node} hangs"));
                let _paused = self.cluster.nodes[node].pause()?;
                self.random.sleep(1000);
            }
            14 if self.databases[node].scope.load(Ordering::SeqCst) == SHARED => {
                self.run(Some(node), JOIN)?;
            }
            15 => self.release(node)?,
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

    /// Lets a node leave or join. A node that has left continues above all ids that it received. Meanwhile other nodes may issue
    /// the same ids. Once the node has joined again, no id repeats.
    fn leave_or_join(&mut self, node: usize) -> Result<()> {
        let scope = self.databases[node].scope.swap(UNSURE, Ordering::SeqCst);
        self.databases[node].scope_changes.fetch_add(1, Ordering::SeqCst);
        let (what, other) = if scope == SHARED { (LEAVE, node + 1) } else { (JOIN, SHARED) };
        let done = self.run(Some(node), what)?;
        self.databases[node].scope.store(if done { other } else { scope }, Ordering::SeqCst);
        Ok(())
    }

    /// Adds rows from elsewhere and attaches the column again. No later insert may collide with these rows.
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

    /// Releases a node's worker id at the registry, and gives the node a reason to renew its lease.
    fn release(&mut self, node: usize) -> Result<()> {
        let worker = self.databases[node]
            .connect()
            .ok()
            .and_then(|mut client| status::<Option<i32>>(&mut client, "worker_id").ok().flatten());
        if let Some(worker) = worker {
            self.run(None, &format!("select snowflake_ids.worker_release({worker})"))?;
        }
        let hours = 2 + self.random.below(20);
        self.story.tell(format!("node {node}: lease_duration = {hours}h"));
        self.cluster.nodes[node].reload("snowflake_ids.lease_duration", &format!("{hours}h"))
    }

    /// Drops a tag at the registry, and creates it again above all earlier ids.
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
}
