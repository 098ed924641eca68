//! The problems of a Citus cluster's nodes, according to the report of each node.

use serde::Deserialize;
use std::collections::HashMap;

/// The value of [`ClusterReport::state`] for a server that can issue ids and has not yet issued any id.
pub const IDLE: &str = "idle";

/// A node: its row in the catalog, and its answer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct ClusterNode {
    /// The node's id in `pg_dist_node`.
    pub node_id: i32,
    /// The host.
    pub node_name: String,
    /// The port.
    pub node_port: i32,
    /// The node's group. The coordinator has group 0.
    pub group_id: i32,
    /// True if Citus uses the node.
    pub is_active: bool,
    /// The version of the extension. Empty if the node does not have the extension; None if the node gave no answer.
    pub version: Option<String>,
    /// The node's report, in JSON.
    pub report: Option<String>,
    /// The reason why there is no report.
    pub error: Option<String>,
}

/// A node's report on itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct ClusterReport {
    /// The datacenter id under which the node issues ids.
    pub datacenter_id: Option<i64>,
    /// The worker id under which the node issues ids.
    pub worker_id: Option<i64>,
    /// The node's layout.
    pub layout: String,
    /// `ready`, or the reason why the node does not issue ids.
    pub state: String,
    /// The identities of the registries in use; the node's own identity if the node uses no registry.
    pub identity: String,
    /// The last seen timelines of the registries.
    pub timeline: Option<String>,
    /// The foreign servers of the registries. None if the node uses no registry.
    pub registry: Option<String>,
    /// The database of the node's own server from which the worker id is leased. None if the worker id is leased from a
    /// registry on another server.
    pub leased_from: Option<String>,
    /// The registry that did not answer the last request.
    pub failure: Option<Failure>,
    /// A digest of the id defaults of the cluster's tables.
    pub defaults: Option<String>,
    /// A digest of the node's named generators.
    pub generators: Option<String>,
    /// A digest of the roles' rights on restricted tags.
    pub rights: Option<String>,
    /// A digest of the series that all nodes share.
    pub series: Option<String>,
}

/// A registry that did not answer a node's last request.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct Failure {
    /// The name of the foreign server on that node.
    pub server: String,
    /// The time of the request.
    pub at: Option<String>,
    /// The reason.
    pub error: Option<String>,
}

/// A node with its report and its problem.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Judged {
    /// The node.
    pub node: ClusterNode,
    /// The node's report.
    pub report: Option<ClusterReport>,
    /// The node's problem, if any.
    pub problem: Option<ClusterProblem>,
}

/// A value of a node, and the value of the reference node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The node's value.
    pub its: String,
    /// The id of the reference node.
    pub other: i32,
    /// The reference node's value.
    pub others: String,
}

/// The problem of a node.
#[expect(missing_docs, reason = "each message names its figures")]
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ClusterProblem {
    #[error("it is not active in pg_dist_node")]
    Inactive,
    #[error("it could not be queried: {0}")]
    Silent(String),
    #[error("the extension snowflake_ids is not created there")]
    Missing,
    #[error("it has version {} of the extension, but node {} has {}", .0.its, .0.other, .0.others)]
    Version(Difference),
    #[error("it does not report its state: {0}")]
    Mute(String),
    #[error("its layout is {}, but that of node {} is {}", .0.its, .0.other, .0.others)]
    Layout(Difference),
    #[error("it uses no registry, and gives no ids beyond what it had before it was added")]
    Unregistered,
    #[error(
        "its worker id is leased from its own database \"{0}\", and the cluster's registry does not know of it"
    )]
    Elsewhere(String),
    #[error("its registry, {0}, is not the cluster's")]
    Stranger(String),
    #[error(
        "it is on timeline {}, and node {} has seen timeline {} of it: it is a former primary", .0.its, .0.other, .0.others
    )]
    Former(Difference),
    #[error(
        "its registry was on timeline {} when it last asked, and on timeline {} for node {}: it asks a former primary, or has \
         not asked since", .0.its, .0.others, .0.other
    )]
    Timeline(Difference),
    #[error("registry \"{0}\" failed when it asked last, at {1}: {2}")]
    Failing(String, String, String),
    #[error("its named generators are not those of node {0}")]
    Generators(i32),
    #[error("its rights on segment tags are not those of node {0}")]
    Rights(i32),
    #[error("its series, or the rights on them, are not those of node {0}")]
    Series(i32),
    #[error("the cluster's tables have other defaults for ids there than on node {0}")]
    Defaults(i32),
    #[error("it has no worker id: {0}")]
    Without(String),
    #[error("its worker id {0} is also that of node {1}")]
    SharedWorkerId(i64, i32),
}

impl ClusterProblem {
    /// Returns the remedy.
    fn hint(&self) -> &'static str {
        match self {
            Self::Inactive => "SELECT citus_activate_node(...), or citus_remove_node(...)",
            Self::Silent(_) => "check that it runs, and check pg_hba.conf there and citus.node_conninfo here",
            Self::Missing => "CALL snowflake_ids.use_citus(), which creates it, and attach its columns again",
            Self::Version(_) => {
                "install the same version on all nodes, and run ALTER EXTENSION snowflake_ids UPDATE there"
            }
            Self::Mute(_) => "load snowflake_ids via shared_preload_libraries there, and restart that server",
            Self::Layout(_) => {
                "set snowflake_ids.layout to the same value on all nodes before they issue ids"
            }
            Self::Unregistered => "CALL snowflake_ids.use_citus()",
            Self::Elsewhere(_) => {
                "SELECT snowflake_ids.use_local_registry() in that database, or use a registry outside of both clusters"
            }
            Self::Stranger(_) => {
                "stop inserts, SELECT snowflake_ids.use_local_registry() there, and CALL snowflake_ids.use_citus()"
            }
            Self::Former(_) => "stop it, and connect to the coordinator that was promoted",
            Self::Timeline(_) => "CALL snowflake_ids.use_citus(), and stop the former primary if it runs",
            Self::Failing(..) => {
                "correct the connection of that node to the registry, in citus.node_conninfo or its foreign server"
            }
            Self::Generators(_) => {
                "CALL snowflake_ids.use_citus(), which creates missing ones; alter those that differ"
            }
            Self::Rights(_) => {
                "grant on the coordinator, see that its roles are there, too, and CALL snowflake_ids.use_citus()"
            }
            Self::Series(_) => {
                "CALL snowflake_ids.use_citus(), which creates missing ones; first drop there those that differ"
            }
            Self::Defaults(_) => "attach the columns again, from the coordinator",
            Self::Without(_) => "see snowflake_ids.status there",
            Self::SharedWorkerId(..) => {
                "stop inserts through one of them, and CALL snowflake_ids.use_citus()"
            }
        }
    }

    /// Returns the problem with its remedy.
    pub fn with_hint(&self) -> String {
        format!("{self}. Hint: {}.", self.hint())
    }

    /// Returns whether the problem may disappear without action. A server that has just joined keeps its old worker id for a
    /// moment.
    pub fn may_pass(&self) -> bool {
        matches!(self, Self::Without(_) | Self::SharedWorkerId(..) | Self::Elsewhere(_) | Self::Failing(..))
    }
}

/// Returns the nodes with their problems. The reference node is the coordinator. If the coordinator has no report, the
/// reference is the first node that uses a registry.
pub fn judge(nodes: Vec<ClusterNode>) -> Vec<Judged> {
    let read = |node: ClusterNode| {
        let report = node.report.as_deref().map(serde_json::from_str::<ClusterReport>);
        match report {
            Some(Ok(report)) => (node, Some(report)),
            Some(Err(error)) => (ClusterNode { error: Some(error.to_string()), ..node }, None),
            None => (node, None),
        }
    };
    let nodes: Vec<(ClusterNode, Option<ClusterReport>)> = nodes.into_iter().map(read).collect();
    let speak = || nodes.iter().filter_map(|(node, report)| Some((node, report.as_ref()?)));
    let coordinator = speak().find(|(node, _)| node.group_id == 0);
    let other = coordinator.or_else(|| speak().find(|(_, report)| report.registry.is_some()));
    let other = other.map(|(node, report)| (node.clone(), report.clone()));
    let former = coordinator.and_then(|(node, report)| Some((node.node_id, former(report, speak())?)));
    // The nodes by worker id. Two nodes with the same worker id are reported even if neither is the coordinator.
    let mut issuers: HashMap<(Option<i64>, i64), Vec<i32>> = HashMap::new();
    for (node, report) in &nodes {
        if let Some((Some(worker), report)) = report.as_ref().map(|report| (report.worker_id, report)) {
            issuers.entry((report.datacenter_id, worker)).or_default().push(node.node_id);
        }
    }
    let judged = |(node, report): (ClusterNode, Option<ClusterReport>)| {
        let compared = problem(&node, report.as_ref(), other.as_ref());
        let compared = match &former {
            Some((coordinator, problem)) if *coordinator == node.node_id => {
                compared.or_else(|| Some(problem.clone()))
            }
            // The coordinator is a former primary, so a later timeline on a node is no problem of that node.
            Some(_) => compared.filter(|problem| !matches!(problem, ClusterProblem::Timeline(_))),
            None => compared,
        };
        let problem = compared.or_else(|| {
            let report = report.as_ref()?;
            let worker_id = report.worker_id?;
            let all = issuers.get(&(report.datacenter_id, worker_id))?;
            let other = *all.iter().find(|other| **other != node.node_id)?;
            Some(ClusterProblem::SharedWorkerId(worker_id, other))
        });
        Judged { node, report, problem }
    };
    nodes.into_iter().map(judged).collect()
}

/// Returns the problem of a coordinator that is a former primary: another node has seen a later timeline.
fn former<'n>(
    coordinator: &ClusterReport,
    nodes: impl Iterator<Item = (&'n ClusterNode, &'n ClusterReport)>,
) -> Option<ClusterProblem> {
    let number =
        |report: &ClusterReport| report.timeline.as_deref().and_then(|timeline| timeline.parse::<u32>().ok());
    let its = number(coordinator).filter(|_| coordinator.registry.is_none())?;
    let seen = nodes.filter(|(_, report)| report.identity == coordinator.identity);
    let (other, latest) =
        seen.filter_map(|(node, report)| Some((node.node_id, number(report)?))).max_by_key(|seen| seen.1)?;
    (latest > its).then(|| ClusterProblem::Former(difference(&its, other, &latest)))
}

fn difference(its: &impl ToString, other: i32, others: &impl ToString) -> Difference {
    Difference { its: its.to_string(), other, others: others.to_string() }
}

fn problem(
    node: &ClusterNode,
    report: Option<&ClusterReport>,
    other: Option<&(ClusterNode, ClusterReport)>,
) -> Option<ClusterProblem> {
    let error = || node.error.clone().unwrap_or_else(|| "no answer".to_owned());
    if !node.is_active {
        return Some(ClusterProblem::Inactive);
    }
    let Some(version) = &node.version else { return Some(ClusterProblem::Silent(error())) };
    if version.is_empty() {
        return Some(ClusterProblem::Missing);
    }
    if let Some((ClusterNode { node_id, version: Some(others), .. }, _)) = other
        && others != version
    {
        return Some(ClusterProblem::Version(difference(version, *node_id, others)));
    }
    let Some(report) = report else { return Some(ClusterProblem::Mute(error())) };
    if let Some((ClusterNode { node_id, .. }, meant)) = other {
        if report.layout != meant.layout {
            return Some(ClusterProblem::Layout(difference(&report.layout, *node_id, &meant.layout)));
        }
        if report.identity != meant.identity && (report.registry.is_some() || node.group_id == 0) {
            let named = report.registry.as_ref().map_or("itself".to_owned(), |name| format!("\"{name}\""));
            return Some(ClusterProblem::Stranger(named));
        }
        if let (Some(its), Some(others)) = (&report.timeline, &meant.timeline)
            && report.identity == meant.identity
            && its != others
        {
            return Some(ClusterProblem::Timeline(difference(its, *node_id, others)));
        }
    }
    if report.registry.is_none() && node.group_id != 0 {
        return Some(ClusterProblem::Unregistered);
    }
    if let Some(Failure { server, at, error }) = report.failure.clone() {
        let at = at.unwrap_or_else(|| "a time that is not known".to_owned());
        return Some(ClusterProblem::Failing(server, at, error.unwrap_or_default()));
    }
    if let Some(database) = report.leased_from.clone().filter(|_| report.registry.is_some()) {
        return Some(ClusterProblem::Elsewhere(database));
    }
    if let Some((ClusterNode { node_id, .. }, meant)) = other {
        let differ = |its: &Option<String>, others: &Option<String>| {
            its.is_some() && others.is_some() && its != others
        };
        let compared = [
            (&report.generators, &meant.generators, ClusterProblem::Generators(*node_id)),
            (&report.rights, &meant.rights, ClusterProblem::Rights(*node_id)),
            (&report.series, &meant.series, ClusterProblem::Series(*node_id)),
            (&report.defaults, &meant.defaults, ClusterProblem::Defaults(*node_id)),
        ];
        let found = compared.into_iter().find(|(its, others, _)| differ(its, others));
        if let Some((_, _, problem)) = found {
            return Some(problem);
        }
    }
    // A server that has issued no id since its start is healthy.
    let waits = report.worker_id.is_none() && report.state != IDLE;
    waits.then(|| ClusterProblem::Without(report.state.clone()))
}
