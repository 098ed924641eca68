//! A stand-in for Citus: SQL that gives throwaway servers the catalog and functions of Citus, and a cluster of such servers. The
//! stand-in's behaviour was compared with Citus 13.2.

use crate::builder::Builder;
use crate::cases::{self, Case};
use crate::cluster;
use crate::server::Server;
use crate::sql::Session;
use crate::wait;
use anyhow::{Context, Result, ensure};
use postgres::Client;
use postgres::error::SqlState;
use std::collections::BTreeMap;
use std::panic::Location;

/// SQL that makes a database a Citus database.
const STAND_IN: [&str; 5] = [
    include_str!("citus/catalog.sql"),
    include_str!("citus/run.sql"),
    include_str!("citus/nodes.sql"),
    include_str!("citus/propagation.sql"),
    include_str!("citus/tables.sql"),
];

/// Makes all workers use the coordinator as their registry.
pub const USE_CITUS: &str = "call snowflake_ids.use_citus()";

/// A server of a Citus cluster, with the settings that Citus defines.
pub fn node() -> Builder {
    cluster::node()
        .set("citus.enable_ddl_propagation", "on")
        .set("citus.node_conninfo", "sslmode=prefer")
        .set("citus.cluster_name", "default")
        .set("citus.local_hostname", "127.0.0.1")
        .set("citus.node_connection_timeout", "30000")
}

impl Server {
    /// Makes a database of this server a Citus database.
    #[track_caller]
    pub fn create_citus(&self, database: &str) -> Result<Client> {
        let mut client = self.connect(database)?;
        client.run(&format!("set client_min_messages = warning;\n{}", STAND_IN.concat()))?;
        Ok(client)
    }
}

/// The stages of a cluster's setup in its database `postgres`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SetUp {
    /// The servers are nodes of one cluster.
    Bare,
    /// All nodes have the extension.
    Extension,
    /// Ids come from the coordinator.
    Joined,
}

/// A coordinator and its workers.
#[derive(Debug)]
pub struct Citus {
    /// The coordinator.
    pub coordinator: Server,
    /// The coordinator's workers, in the order in which they were added.
    pub workers: Vec<Server>,
}

impl Citus {
    /// Starts a coordinator and this many workers, set up to this stage.
    #[track_caller]
    pub fn of(workers: usize, set_up: SetUp) -> Result<Self> {
        let start = |_| node().start();
        let cluster =
            Self { coordinator: start(0)?, workers: (0..workers).map(start).collect::<Result<_>>()? };
        cluster.set_up(set_up)?;
        Ok(cluster)
    }

    /// Starts a cluster whose ids come from the coordinator.
    #[track_caller]
    pub fn joined(workers: usize) -> Result<Self> {
        Self::of(workers, SetUp::Joined)
    }

    fn set_up(&self, set_up: SetUp) -> Result<()> {
        for server in self.servers() {
            server.create_citus("postgres")?;
        }
        self.set_coordinator("postgres")?;
        let mut client = self.session()?;
        for worker in &self.workers {
            add(&mut client, worker)?;
        }
        if set_up >= SetUp::Extension {
            client.run("create extension snowflake_ids")?;
        }
        match set_up {
            SetUp::Joined => client.run(USE_CITUS),
            _ => Ok(()),
        }
    }

    /// Runs cases on one cluster with this many workers. The cluster is set up anew for each case, and workers that a case added
    /// are removed.
    ///
    /// # Errors
    /// A case failed.
    pub fn cases(workers: usize, set_up: SetUp, cases: &[Case<Self>]) -> Result<()> {
        cases::run(
            cases,
            || Self::of(workers, set_up),
            |cluster| {
                cluster.workers.truncate(workers);
                for server in cluster.servers() {
                    server.renew()?;
                    // A Citus worker without a registry refuses the reset of its state, so the reset comes before the database
                    // becomes a Citus database.
                    let mut client = server.connect("postgres")?;
                    client.run("create extension snowflake_ids")?;
                    cases::forget_leases(&mut client)?;
                    client.run("drop extension snowflake_ids")?;
                }
                cluster.set_up(set_up.min(SetUp::Extension))?;
                // Servers that lost their registry may take a while to find another one.
                wait::until_true("all nodes to give ids", || {
                    Ok(set_up < SetUp::Joined || cluster.session()?.run(USE_CITUS).is_ok())
                })
            },
        )
    }

    /// Opens a session on the coordinator.
    #[track_caller]
    pub fn session(&self) -> Result<Client> {
        let mut client = self.coordinator.connect("postgres")?;
        client.run("set client_min_messages = warning")?;
        Ok(client)
    }

    /// Tells all nodes the coordinator's present address.
    #[track_caller]
    pub fn set_coordinator(&self, database: &str) -> Result<()> {
        let call = format!("select citus_set_coordinator_host('127.0.0.1', {})", self.coordinator.port());
        self.coordinator.connect(database)?.run(&call)
    }

    /// Starts and adds another worker.
    #[track_caller]
    pub fn add(&mut self) -> Result<i32> {
        let worker = node().start()?;
        worker.create_citus("postgres")?;
        self.add_server(worker)
    }

    /// Adds a server as another worker, and returns its node id.
    #[track_caller]
    pub fn add_server(&mut self, worker: Server) -> Result<i32> {
        self.workers.push(worker);
        self.add_last("postgres")
    }

    /// Adds the last worker to the cluster of a database.
    #[track_caller]
    pub fn add_last(&self, database: &str) -> Result<i32> {
        let worker = &self.workers[self.workers.len() - 1];
        add(&mut self.coordinator.connect(database)?, worker)
    }

    /// Creates a second database on all servers, with a cluster of its own. Returns a session in it on the coordinator.
    #[track_caller]
    pub fn second(&self) -> Result<Client> {
        for server in self.servers() {
            server.connect("postgres")?.run("create database second")?;
            server.create_citus("second")?;
        }
        self.set_coordinator("second")?;
        let mut client = self.coordinator.connect("second")?;
        client.run("set client_min_messages = warning")?;
        for worker in &self.workers {
            add(&mut client, worker)?;
        }
        client.run("create extension snowflake_ids")?;
        Ok(client)
    }

    /// All servers, the coordinator first.
    pub fn servers(&self) -> impl Iterator<Item = &Server> {
        std::iter::once(&self.coordinator).chain(&self.workers)
    }
}

/// The problems that `citus_status` shows, by the ids of nodes.
#[track_caller]
pub fn problems(client: &mut Client) -> Result<BTreeMap<i32, Option<String>>> {
    let rows = client.query("select node_id, problem from snowflake_ids.citus_status()", &[])?;
    Ok(rows.iter().map(|row| (row.get(0), row.get(1))).collect())
}

/// Waits until `citus_status` shows that all nodes issue ids under different worker ids. On a busy machine, a node may lease its
/// worker id after `use_citus` has returned.
#[track_caller]
pub fn well(client: &mut Client, nodes: usize) -> Result<()> {
    let place = Location::caller();
    let mut found = BTreeMap::new();
    let done = wait::until_true("all nodes give ids", || {
        found = problems(client)?;
        Ok(found.len() == nodes && found.values().all(Option::is_none))
    });
    done.with_context(|| format!("{place}: {found:?}"))?;
    let workers = "select count(distinct worker_id) from snowflake_ids.citus_status()";
    ensure!(usize::try_from(client.one::<i64>(workers)?)? == nodes, "{place}: worker ids are shared");
    Ok(())
}

/// The DETAIL of an error of `use_citus` about failed nodes.
#[track_caller]
pub fn failed(client: &mut Client) -> Result<String> {
    let place = Location::caller();
    let error = client.error(USE_CITUS)?;
    let meant = error.code() == &SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE
        && error.message().ends_with("nodes of the cluster cannot issue unique ids")
        && error.hint().is_some_and(|hint| hint.contains(USE_CITUS.trim_start_matches("call ")));
    ensure!(meant, "{place}: {error:?}");
    Ok(error.detail().unwrap_or_default().to_owned())
}

/// Adds a server to the cluster of a session's database, and returns the node's id.
#[track_caller]
pub fn add(coordinator: &mut Client, worker: &Server) -> Result<i32> {
    coordinator.one(&format!("select citus_add_node('127.0.0.1', {})", worker.port()))
}
