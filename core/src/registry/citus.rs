//! A Citus cluster: a worker node's connection to the coordinator.

mod judge;
mod unite;

pub use judge::{ClusterNode, ClusterProblem, ClusterReport, Difference, Failure, IDLE, Judged, judge};
pub use unite::{ClusterError, ClusterFacts, ClusterNotice, Faults, NodeAnswer};
pub use unite::{check_changed, check_found, conclude, lines};

use crate::error::Explain;
use crate::registry::client::Options;

/// The name of the coordinator, for use in place of a foreign server's name.
pub const COORDINATOR: &str = "citus_coordinator";

/// The reason why a server has no coordinator to connect to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error, Explain)]
#[explain(NotReady)]
pub enum NoCoordinatorError {
    /// The server is the coordinator, or does not belong to a cluster.
    #[error("this database is not a worker of a Citus cluster")]
    #[explain(
        detail = "\"{COORDINATOR}\" is the registry name for the coordinator, and works only on a worker of the cluster.",
        hint = "On the coordinator, CALL snowflake_ids.use_citus(). On a server that has left its cluster, SELECT \
                snowflake_ids.use_local_registry()."
    )]
    NotWorker,
    /// The worker node's catalog has no row for the coordinator.
    #[error("this worker of a Citus cluster does not know where the coordinator is")]
    #[explain(detail = "pg_dist_node has no active primary of group 0.")]
    #[explain(hint = "On the coordinator: SELECT citus_set_coordinator_host('host', port).")]
    Unknown,
    /// A setting with connection options cannot be parsed. The setting may require TLS, so the setting is not ignored.
    #[error("invalid connection options in {0}")]
    #[explain(
        detail = "An invalid setting is not ignored, because it may require an sslmode.",
        hint = "Write the options as in a libpq connection string: name = value pairs, separated by spaces."
    )]
    Options(&'static str),
}

/// The address of the coordinator, and the role of the connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Coordinator {
    /// The host, from Citus's catalog, which has the new host after the coordinator has moved.
    pub host: String,
    /// The port.
    pub port: u16,
    /// The database, which has the same name on all nodes.
    pub database: String,
    /// The role that owns the extension's tables.
    pub user: String,
}

impl Coordinator {
    /// Returns libpq's options for the coordinator. `of_all` comes from `citus.node_conninfo`, and `of_role` from the
    /// role's entry in Citus's catalog. If an option occurs twice, libpq uses the last value, so `of_role` wins over
    /// `of_all`, and the address in `self` wins over both.
    pub fn options(self, of_all: Options, of_role: Options) -> Options {
        let ours = [
            ("host", self.host),
            ("port", self.port.to_string()),
            ("dbname", self.database),
            ("user", self.user),
            ("target_session_attrs", "read-write".to_owned()),
        ];
        // libpq would use `hostaddr` instead of the host.
        let others = of_all.into_iter().chain(of_role).filter(|(name, _)| name != "hostaddr");
        let others = others.filter(|(name, _)| ours.iter().all(|(our, _)| our != name));
        others
            .collect::<Options>()
            .into_iter()
            .chain(ours.map(|(name, value)| (name.to_owned(), value)))
            .collect()
    }
}
