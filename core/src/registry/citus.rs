//! A Citus cluster: how a worker reaches its coordinator, and what is wrong with nodes, given what each says of itself.

use crate::error::{Explain, Kind};
use crate::registry::client::Options;
use serde::Deserialize;
use std::collections::HashMap;

/// What stands in place of a foreign server's name for the coordinator, wherever it is.
pub const COORDINATOR: &str = "citus_coordinator";

/// The state of a server that nothing keeps from giving ids, and that gave none yet.
pub const IDLE: &str = "idle";

/// Reason why a server knows no coordinator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoCoordinatorError {
    /// It is the coordinator itself, or belongs to no cluster.
    #[error("this database is not a worker of a Citus cluster")]
    NotWorker,
    /// Its catalog has no row of it.
    #[error("this worker of a Citus cluster does not know where the coordinator is")]
    Unknown,
    /// What is said of connections cannot be read. Without it they might be less safe than was asked for.
    #[error("{0} is no list of options for connections")]
    Options(&'static str),
}

impl Explain for NoCoordinatorError {
    fn kind(&self) -> Kind {
        Kind::NotReady
    }

    fn detail(&self) -> Option<String> {
        Some(match self {
            Self::NotWorker => format!("\"{COORDINATOR}\" stands for the coordinator of a worker's cluster."),
            Self::Unknown => "pg_dist_node has no active primary of group 0.".to_owned(),
            Self::Options(_) => "It may ask for an sslmode, so it is not passed over.".to_owned(),
        })
    }

    fn hint(&self) -> Option<String> {
        Some(match self {
            Self::NotWorker => {
                "The coordinator is its own registry; there, CALL snowflake_ids.use_citus(). A server that left its \
                 cluster: SELECT snowflake_ids.use_local_registry()."
            }
            Self::Unknown => "On the coordinator: SELECT citus_set_coordinator_host('host', port).",
            Self::Options(_) => "Write it as libpq's connection strings are: name = value, with a space between options.",
        }
        .to_owned())
    }
}

/// Where the coordinator is, and as whom a worker connects to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Coordinator {
    /// As the catalog has it: it follows a coordinator that moves.
    pub host: String,
    /// As above.
    pub port: u16,
    /// The database is called the same on all nodes.
    pub database: String,
    /// The role that owns the extension's tables.
    pub user: String,
}

impl Coordinator {
    /// libpq's options, as Citus has them for its own connections: those of its setting, and those of the role over them.
    /// Neither says where to, nor as whom. Of one name the last counts.
    pub fn options(self, of_all: Options, of_role: Options) -> Options {
        let ours = [
            ("host", self.host),
            ("port", self.port.to_string()),
            ("dbname", self.database),
            ("user", self.user),
            ("target_session_attrs", "read-write".to_owned()),
        ];
        // An address would count in place of the host.
        let others = of_all.into_iter().chain(of_role).filter(|(name, _)| name != "hostaddr");
        let others = others.filter(|(name, _)| ours.iter().all(|(our, _)| our != name));
        others
            .collect::<Options>()
            .into_iter()
            .chain(ours.map(|(name, value)| (name.to_owned(), value)))
            .collect()
    }
}

/// What is known of a node: its row in the catalog, and what it answered.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct ClusterNode {
    /// Its number in `pg_dist_node`.
    pub node_id: i32,
    /// Where it is.
    pub node_name: String,
    /// As above.
    pub node_port: i32,
    /// Which group it is in; the coordinator in 0.
    pub group_id: i32,
    /// True if Citus uses it.
    pub is_active: bool,
    /// The version of the extension that it has; empty where it has none. None where it gave no answer.
    pub version: Option<String>,
    /// What it says of itself, in JSON.
    pub report: Option<String>,
    /// Reason why it says nothing.
    pub error: Option<String>,
}

/// What a node says of itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct ClusterReport {
    /// Which datacenter and worker it issues as, where it does.
    pub datacenter_id: Option<i64>,
    /// As above.
    pub worker_id: Option<i64>,
    /// Its layout.
    pub layout: String,
    /// Whether it issues, or why not.
    pub state: String,
    /// The registries that its ids come from; itself, where it uses none.
    pub identity: String,
    /// The timelines that they were seen on last.
    #[serde(default)]
    pub timeline: Option<String>,
    /// What it calls them; None where it is its own.
    pub registry: Option<String>,
    /// The database whose own table its worker id is leased from, where no registry on another server leases it.
    #[serde(default)]
    pub leased_from: Option<String>,
    /// The registry that gave no answer when it was asked last.
    #[serde(default)]
    pub failure: Option<Failure>,
    /// A digest of the defaults by which the cluster's tables take ids.
    #[serde(default)]
    pub defaults: Option<String>,
    /// A digest of its named generators.
    #[serde(default)]
    pub generators: Option<String>,
    /// A digest of its roles' rights on restricted tags.
    #[serde(default)]
    pub rights: Option<String>,
    /// A digest of the series that all nodes number in.
    #[serde(default)]
    pub series: Option<String>,
}

/// A registry that gave a node no answer when it was asked last.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct Failure {
    /// What the node calls it.
    pub server: String,
    /// Time at which that was.
    pub at: Option<String>,
    /// Why.
    pub error: Option<String>,
}

/// What is shown of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Judged {
    /// The node.
    pub node: ClusterNode,
    /// What it says of itself.
    pub report: Option<ClusterReport>,
    /// What is wrong with it.
    pub problem: Option<ClusterProblem>,
}

/// What is wrong with a node.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ClusterProblem {
    /// Citus does not use it.
    #[error("it is not active in pg_dist_node")]
    Inactive,
    /// It did not say which version it has.
    #[error("it cannot be asked: {0}")]
    Silent(String),
    /// It has no such extension.
    #[error("the extension snowflake_ids is not created there")]
    Missing,
    /// It has another one.
    #[error("it has version {its} of the extension, and node {other} {others}")]
    Version {
        /// What it has.
        its: String,
        /// The node that it is compared with.
        other: i32,
        /// What that has.
        others: String,
    },
    /// It has the extension, and says nothing of itself.
    #[error("it does not say how it fares: {0}")]
    Mute(String),
    /// Its ids would be made of other bits.
    #[error("its layout is {its}, and that of node {other} {others}")]
    Layout {
        /// What it has.
        its: String,
        /// The node that it is compared with.
        other: i32,
        /// What that has.
        others: String,
    },
    /// It is a worker, and none leases it a worker id.
    #[error("it uses no registry, and gives no ids beyond what it had before it was added")]
    Unregistered,
    /// Another of its databases leases it its worker id.
    #[error(
        "its worker id is leased from its own database \"{0}\", and the cluster's registry does not know of it"
    )]
    Elsewhere(String),
    /// It has its ids from elsewhere.
    #[error("its registry, {0}, is not the cluster's")]
    Stranger(String),
    /// It is a coordinator whose standby was promoted, and the nodes have seen that.
    #[error(
        "it is on timeline {its}, and node {other} has seen timeline {others} of it: it is a former primary"
    )]
    Former {
        /// Its timeline.
        its: String,
        /// The node that has seen a later one.
        other: i32,
        /// What that has seen.
        others: String,
    },
    /// The registry may be two: a former primary that nobody has stopped, and the one that was promoted.
    #[error(
        "its registry was on timeline {its} when it last asked, and on timeline {others} for node {other}: it asks a former \
         primary, or has not asked since"
    )]
    Timeline {
        /// What it has seen.
        its: String,
        /// The node that it is compared with.
        other: i32,
        /// What that has seen.
        others: String,
    },
    /// The registry gives it nothing, and it goes on with what it has.
    #[error("registry \"{server}\" failed when it asked last, at {at}: {error}")]
    Failing {
        /// What it calls the registry.
        server: String,
        /// Time at which it asked.
        at: String,
        /// Why.
        error: String,
    },
    /// Defaults may name generators that it has not.
    #[error("its named generators are not those of node {0}")]
    Generators(i32),
    /// A tag that is restricted on one may be open on the other.
    #[error("its rights on segment tags are not those of node {0}")]
    Rights(i32),
    /// Tables may take numbers of series that it has not.
    #[error("its series, or the rights on them, are not those of node {0}")]
    Series(i32),
    /// The extension was dropped there, or a default was written by hand.
    #[error("the cluster's tables take ids by other defaults there than on node {0}")]
    Defaults(i32),
    /// It issues nothing yet.
    #[error("it has no worker id: {0}")]
    Without(String),
    /// Both would give the same ids.
    #[error("its worker id {worker_id} is that of node {other}, too")]
    Shared {
        /// The worker id.
        worker_id: i64,
        /// The other node.
        other: i32,
    },
}

impl ClusterProblem {
    /// The way out.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Inactive => "SELECT citus_activate_node(...), or citus_remove_node(...)",
            Self::Silent(_) => "look whether it runs, and at pg_hba.conf there and citus.node_conninfo here",
            Self::Missing => "CALL snowflake_ids.use_citus(), which creates it, and attach its columns again",
            Self::Version { .. } => {
                "install one version on all nodes, and ALTER EXTENSION snowflake_ids UPDATE"
            }
            Self::Mute(_) => "load snowflake_ids via shared_preload_libraries there, and restart that server",
            Self::Layout { .. } => "set snowflake_ids.layout to the same on all nodes before they give ids",
            Self::Unregistered => "CALL snowflake_ids.use_citus()",
            Self::Elsewhere(_) => {
                "snowflake_ids.use_local_registry() in that database, or a registry outside of both clusters"
            }
            Self::Stranger(_) => {
                "stop inserts, snowflake_ids.use_local_registry() there, and CALL snowflake_ids.use_citus()"
            }
            Self::Former { .. } => "stop it, and connect to the coordinator that was promoted",
            Self::Timeline { .. } => "CALL snowflake_ids.use_citus(), and stop the former primary if it runs",
            Self::Failing { .. } => {
                "mend the connection from that node, by citus.node_conninfo or its foreign server"
            }
            Self::Generators(_) => {
                "CALL snowflake_ids.use_citus() makes those that it has not; of one name, alter one"
            }
            Self::Rights(_) => {
                "grant on the coordinator, see that its roles are there, too, and CALL snowflake_ids.use_citus()"
            }
            Self::Series(_) => {
                "CALL snowflake_ids.use_citus() makes those that it has not; of one that differs, drop it there first"
            }
            Self::Defaults(_) => "attach the columns again, from the coordinator",
            Self::Without(_) => "snowflake_ids.status there says why",
            Self::Shared { .. } => "stop inserts through one of them, and CALL snowflake_ids.use_citus()",
        }
    }

    /// Returns whether it may go away by itself: a server that has just joined has its former worker id for a moment.
    pub fn may_pass(&self) -> bool {
        matches!(self, Self::Without(_) | Self::Shared { .. } | Self::Elsewhere(_) | Self::Failing { .. })
    }
}

/// Returns what is wrong with each of the nodes of a cluster, compared with its coordinator; where that says nothing,
/// with the first that uses a registry.
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
    // Two that are both wrong else are not told of each other.
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
            // They have seen the coordinator that was promoted.
            Some(_) => compared.filter(|problem| !matches!(problem, ClusterProblem::Timeline { .. })),
            None => compared,
        };
        let problem = compared.or_else(|| {
            let report = report.as_ref()?;
            let worker_id = report.worker_id?;
            let all = issuers.get(&(report.datacenter_id, worker_id))?;
            let other = *all.iter().find(|other| **other != node.node_id)?;
            Some(ClusterProblem::Shared { worker_id, other })
        });
        Judged { node, report, problem }
    };
    nodes.into_iter().map(judged).collect()
}

/// Returns whether the coordinator is a former primary, by what nodes have seen of it.
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
    (latest > its).then(|| ClusterProblem::Former { its: its.to_string(), other, others: latest.to_string() })
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
        return Some(ClusterProblem::Version {
            its: version.clone(),
            other: *node_id,
            others: others.clone(),
        });
    }
    let Some(report) = report else { return Some(ClusterProblem::Mute(error())) };
    if let Some((ClusterNode { node_id, .. }, meant)) = other {
        if report.layout != meant.layout {
            let (its, others) = (report.layout.clone(), meant.layout.clone());
            return Some(ClusterProblem::Layout { its, other: *node_id, others });
        }
        if report.identity != meant.identity && (report.registry.is_some() || node.group_id == 0) {
            let named = report.registry.as_ref().map_or("itself".to_owned(), |name| format!("\"{name}\""));
            return Some(ClusterProblem::Stranger(named));
        }
        if let (Some(its), Some(others)) = (&report.timeline, &meant.timeline)
            && report.identity == meant.identity
            && its != others
        {
            return Some(ClusterProblem::Timeline {
                its: its.clone(),
                other: *node_id,
                others: others.clone(),
            });
        }
    }
    if report.registry.is_none() && node.group_id != 0 {
        return Some(ClusterProblem::Unregistered);
    }
    if let Some(Failure { server, at, error }) = report.failure.clone() {
        let or_not = |text: Option<String>| text.unwrap_or_else(|| "a time that is not known".to_owned());
        return Some(ClusterProblem::Failing { server, at: or_not(at), error: error.unwrap_or_default() });
    }
    if let Some(database) = report.leased_from.clone().filter(|_| report.registry.is_some()) {
        return Some(ClusterProblem::Elsewhere(database));
    }
    if let Some((ClusterNode { node_id, .. }, meant)) = other {
        let differ = |its: &Option<String>, others: &Option<String>| {
            its.is_some() && others.is_some() && its != others
        };
        if differ(&report.generators, &meant.generators) {
            return Some(ClusterProblem::Generators(*node_id));
        }
        if differ(&report.rights, &meant.rights) {
            return Some(ClusterProblem::Rights(*node_id));
        }
        if differ(&report.series, &meant.series) {
            return Some(ClusterProblem::Series(*node_id));
        }
        if differ(&report.defaults, &meant.defaults) {
            return Some(ClusterProblem::Defaults(*node_id));
        }
    }
    // A server that was not asked for ids since its start is well.
    let waits = report.worker_id.is_none() && report.state != IDLE;
    waits.then(|| ClusterProblem::Without(report.state.clone()))
}
