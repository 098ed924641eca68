//! The call by which all nodes of a cluster begin to use one registry: the checks before it, and its result.

use super::judge::{ClusterProblem, Judged};
use crate::error::Explain;
use crate::registry::wire::RegistryName;
use serde::Deserialize;
use std::collections::BTreeMap;

/// Facts of the transaction, of the database and of the extension in it, and of the foreign server and the nodes.
#[expect(missing_docs, reason = "independent facts of the catalogs")]
#[derive(Clone, Default, Deserialize)]
pub struct ClusterFacts {
    pub isolation: String,
    pub is_worker: bool,
    pub coordinator: Option<String>,
    pub is_busy: bool,
    pub is_new: bool,
    pub used: Option<String>,
    pub version: String,
    /// The options of the user mapping for the foreign server. They may contain a password.
    pub mapping: Option<String>,
    pub inactive: Vec<String>,
}

impl ClusterFacts {
    /// Checks whether this database can set the registry of the cluster. `server` is the registry's foreign server; None if
    /// this database becomes the registry.
    pub fn check(&self, server: Option<&str>) -> Result<(), ClusterError> {
        Err(match (server, &self.used) {
            _ if !self.isolation.starts_with("read ") => ClusterError::Isolation(self.isolation.clone()),
            _ if self.is_worker => ClusterError::OnWorker(self.coordinator.clone()),
            _ if self.coordinator.is_none() => ClusterError::NoCoordinator,
            _ if self.is_busy => ClusterError::Busy,
            _ if self.is_new => ClusterError::Creating,
            (Some(server), _) if self.mapping.is_none() => ClusterError::NoServer(server.to_owned()),
            (None, Some(used)) => ClusterError::UsesRegistry(used.clone()),
            _ => return Ok(()),
        })
    }
}

/// A node's answer to a command.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct NodeAnswer {
    /// The node's id.
    pub node: i32,
    /// The node's id, host and port.
    pub place: String,
    /// True if the command succeeded.
    pub is_done: bool,
    /// The result, or the error.
    pub said: String,
}

/// The faults of nodes, by the nodes' ids.
pub type Faults = BTreeMap<i32, String>;

/// Returns a line for each answer.
pub fn lines(answers: &[NodeAnswer]) -> String {
    answers.iter().map(|answer| format!("{}: {}", answer.place, answer.said)).collect::<Vec<_>>().join("\n")
}

/// Fails if workers failed to make a change.
pub fn check_changed(failed: &[NodeAnswer]) -> Result<(), ClusterError> {
    if failed.is_empty() { Ok(()) } else { Err(ClusterError::Unchanged(failed.len(), lines(failed))) }
}

/// Checks that a node finds the registry that the coordinator named, or a promoted standby of it.
pub fn check_found(server: &str, found: &RegistryName, named: &RegistryName) -> Result<(), ClusterError> {
    if found.identity != named.identity {
        return Err(ClusterError::OtherFound(server.to_owned()));
    } else if found.timeline < named.timeline {
        return Err(ClusterError::FormerFound(server.to_owned(), found.timeline, named.timeline));
    }
    Ok(())
}

/// Returns the result of the call: all active nodes issue ids, each under a worker id of its own. `told` has the faults of the
/// commands so far, and `idle` the reasons why nodes gave no id. An error is returned with whether it may pass without action.
pub fn conclude(
    mut nodes: Vec<Judged>,
    told: &Faults,
    idle: &Faults,
) -> Result<ClusterNotice, (ClusterError, bool)> {
    nodes.retain(|judged| judged.node.is_active);
    nodes.sort_by_key(|judged| judged.node.node_id);
    let worker_id = |judged: &Judged| judged.report.as_ref().and_then(|report| report.worker_id);
    let (mut faults, mut may_pass) = (Vec::new(), false);
    for judged in &nodes {
        let (node, problem) = (&judged.node, judged.problem.as_ref());
        let told = told.get(&node.node_id);
        let passes = told.is_none() && problem.is_none_or(ClusterProblem::may_pass);
        let idle = || idle.get(&node.node_id).filter(|_| passes).cloned();
        let missing = || worker_id(judged).is_none().then(|| "it has no worker id yet".to_owned());
        let fault =
            told.cloned().or_else(idle).or_else(|| problem.map(ClusterProblem::with_hint)).or_else(missing);
        if let Some(fault) = fault {
            faults.push(format!("node {} ({}:{}): {fault}", node.node_id, node.node_name, node.node_port));
            may_pass |= passes;
        }
    }
    if !faults.is_empty() {
        return Err((ClusterError::Nodes(faults.len(), nodes.len(), faults.join("\n")), may_pass));
    }
    let mut workers: Vec<_> = nodes.iter().filter_map(worker_id).collect();
    workers.sort_unstable();
    let workers = workers.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    Ok(ClusterNotice::United(nodes.len(), workers))
}

/// A notice of the call: a node that is not active, or the number of nodes and their worker ids.
#[expect(missing_docs, reason = "each message names its figures")]
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, Explain)]
#[explain(Notice)]
pub enum ClusterNotice {
    #[error("skipping node {0}, which is not active")]
    #[explain(hint = "CALL snowflake_ids.use_citus() again after SELECT citus_activate_node(...).")]
    Skipped(String),
    #[error("{0} nodes use one registry, each with a worker id of its own")]
    #[explain(detail = "Worker ids: {1}.")]
    United(usize, String),
}

/// The reason why the nodes of a cluster do not use one registry, or were not changed.
#[expect(missing_docs, reason = "each message names its figures")]
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, Explain)]
#[explain(NotReady)]
pub enum ClusterError {
    #[error("this database does not have Citus")]
    #[explain(
        detail = "There is no table pg_dist_node.",
        hint = "Run CREATE EXTENSION citus first, or call snowflake_ids.use_registry to share a registry without Citus."
    )]
    NoCitus,
    #[error("permission denied to set the registry of a cluster")]
    #[explain(
        Denied,
        detail = "The registry is set on all nodes, and background workers there connect to it as the owner of the extension.",
        hint = "CALL snowflake_ids.use_citus() as a superuser."
    )]
    Denied,
    #[error("cannot set the registry of a cluster at isolation level \"{0}\"")]
    #[explain(
        InTransaction,
        detail = "The transaction's snapshot would not show changes that nodes make in the meantime.",
        hint = "Run the CALL outside of a transaction block, with default_transaction_isolation = 'read committed'."
    )]
    Isolation(String),
    #[error("this database is a worker of a Citus cluster")]
    #[explain(detail = "The coordinator sets the registry of all nodes of its cluster.")]
    #[explain(hint = "CALL snowflake_ids.use_citus() on the coordinator{}.", match _0 {
        Some(place) => format!(": {place}"),
        None => String::new(),
    })]
    OnWorker(Option<String>),
    #[error("the workers of this Citus cluster do not know where the coordinator is")]
    #[explain(detail = "pg_dist_node has no row of group 0.")]
    #[explain(
        hint = "Run SELECT citus_set_coordinator_host('host', port), with a host name by which workers reach this server."
    )]
    NoCoordinator,
    #[error("cannot change the registry in a transaction that has changed segment tags")]
    #[explain(
        InTransaction,
        hint = "Commit this transaction first, and then CALL snowflake_ids.use_citus()."
    )]
    Busy,
    /// Sessions on the workers would wait for Citus' own sessions, which create the extension there, and end only with this
    /// transaction.
    #[error("cannot set the registry of a cluster in the transaction that creates the extension")]
    #[explain(InTransaction, detail = "The other nodes do not see the extension yet.")]
    #[explain(hint = "Commit this transaction first, and then CALL snowflake_ids.use_citus().")]
    Creating,
    #[error("foreign server \"{0}\" does not exist, or has no user mapping for the owner of the extension")]
    #[explain(
        Undefined,
        hint = "On the coordinator, run CREATE SERVER ... FOREIGN DATA WRAPPER postgres_fdw, and CREATE USER MAPPING for the owner of the table \
                snowflake_ids.segment. Or CALL snowflake_ids.use_citus() without an argument: the coordinator is then the registry."
    )]
    NoServer(String),
    #[error("the coordinator takes its own ids from registry \"{0}\"")]
    #[explain(
        detail = "A database that uses a registry cannot itself be a registry.",
        hint = "To share that registry, CALL snowflake_ids.use_citus('{}'). To make the coordinator the registry, first SELECT snowflake_ids.use_local_registry().",
        _0.replace('\'', "''")
    )]
    UsesRegistry(String),
    /// Nodes would change to another registry one after another. A node that has changed could get the worker id or the
    /// numbers of a node that has not.
    #[error("some nodes of the cluster use another registry")]
    #[explain(
        detail = "{0}",
        hint = "Stop all inserts, SELECT snowflake_ids.use_local_registry() on each of these nodes, and CALL snowflake_ids.use_citus again before inserts resume."
    )]
    OtherRegistry(String),
    #[error("nodes of the cluster do not have this version of the extension")]
    #[explain(
        detail = "{0}",
        hint = "Install the same version on these nodes, run ALTER EXTENSION snowflake_ids UPDATE there, and CALL snowflake_ids.use_citus() again."
    )]
    OtherVersion(String),
    #[error("could not record the worker ids of the cluster's nodes")]
    #[explain(detail = "{0}")]
    #[explain(hint = "Correct the cause on each of these nodes, and CALL snowflake_ids.use_citus() again.")]
    NotHeld(String),
    #[error("{0} of {1} nodes of the cluster cannot issue unique ids")]
    #[explain(
        detail = "{2}",
        hint = "Correct the cause on each of these nodes, and CALL snowflake_ids.use_citus() again; the other nodes are not affected."
    )]
    Nodes(usize, usize, String),
    #[error("it uses another registry, \"{0}\"")]
    Uses(String),
    #[error("registry \"{0}\" as seen from this node is not the registry of that name on the coordinator")]
    OtherFound(String),
    #[error(
        "registry \"{0}\" as seen from this node is a former primary: it is on timeline {1}, but timeline {2} was seen before"
    )]
    FormerFound(String, u32, u32),
    #[error("{0} of the cluster's workers did not make the change")]
    #[explain(
        detail = "{1}",
        hint = "Correct the cause on each of these workers, and repeat the call. The call keeps the changes of other nodes, or makes them again."
    )]
    Unchanged(usize, String),
}
