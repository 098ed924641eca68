//! The refill worker's parts, and its transactions.

use super::task::RefillHost;
use crate::registry::client::{Network, RegistryClient};
use crate::registry::error::{RegistryError, SqlError};
use crate::registry::tables::Tables;
use crate::server::saved_range_file::{SavedRangeFile, SavedRanges};
use std::time::Duration;

/// The refill worker.
pub struct RefillWorker<'h, H, N: Network, F> {
    pub(super) host: &'h H,
    pub(super) saved_ranges: SavedRanges<F>,
    pub(super) client: RegistryClient<N>,
    /// True if the last round found registries on other servers in use.
    pub(super) is_remote: bool,
    /// The number of rounds, which selects the locked row to wait for.
    pub(super) rounds: usize,
    /// The uptime of the last wait for a locked row of a registry on another server.
    pub(super) waited: Duration,
    /// The uptime at which received ids were last lost, because they could not be recorded.
    pub(super) lost: Option<Duration>,
}

/// The reason why a registry reserved no ids.
pub enum RefillError {
    /// The registry gave no response.
    Away(RegistryError),
    /// A transaction on this database's own table of tags failed.
    Here(SqlError),
    /// A local transaction that reads or writes received ids failed.
    Unnoted(SqlError),
    /// The ids come from registries on other servers.
    Elsewhere,
    /// The server belongs to a cluster and does not use the cluster's registry yet.
    Unregistered,
    /// The registry is asked again only after a pause.
    Paused,
}

impl RefillError {
    /// Returns whether the error may concern a single tag, and not the registry as a whole.
    pub(super) fn is_of_tag(&self) -> bool {
        match self {
            Self::Away(error) => error.is_of_tag(),
            // A lock timeout concerns the whole table.
            Self::Here(failed) => !failed.is_lock_timeout(),
            _ => false,
        }
    }
}

impl<H: RefillHost, N: Network, F: SavedRangeFile> RefillWorker<'_, H, N, F> {
    /// Runs a transaction that reads or writes received ids.
    pub(super) fn transaction<T>(
        &self,
        work: impl FnOnce(&mut H::Tables) -> Result<T, <H::Tables as Tables>::Error>,
    ) -> Result<T, RefillError> {
        let there = |tables: &mut H::Tables| match tables.source() {
            Some(_) => work(tables).map(Some),
            None => Ok(None),
        };
        let done = self.host.transaction(there).map_err(RefillError::Unnoted)?;
        let gone = || {
            RefillError::Away(RegistryError::NoServer(SqlError::new(*b"42704", "the extension was dropped")))
        };
        done.ok_or_else(gone)
    }
}
