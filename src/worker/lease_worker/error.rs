//! Why the lease worker could do nothing about the lease.

use crate::issuer::IssuerError;
use crate::pg::report::{self, ended};
use crate::pg::worker::Failed;
use crate::registry::RegistryError;
use crate::worker::log;
use pgrx::PgLogLevel;
use snowflake_ids_core::wire::NoLease;

/// Why a step was in vain.
pub enum Trouble {
    /// The registry's transaction failed.
    Failed(Failed),
    /// The registry on the server of this name gave no answer.
    Away(String, RegistryError),
    /// The state does not let us.
    Hindered(IssuerError),
    /// There is no id to be had.
    None(NoLease),
}

impl Trouble {
    /// Whether another attempt may succeed: rows were locked.
    pub fn is_conflict(&self) -> bool {
        match self {
            Self::Failed(failed) => failed.is_lock_timeout(),
            Self::Away(_, error) => error.is_conflict(),
            Self::Hindered(_) | Self::None(_) => false,
        }
    }

    /// In a few words.
    pub fn why(&self) -> String {
        match self {
            Self::Failed(failed) => failed.message.clone(),
            Self::Away(_, error) => error.to_string(),
            Self::Hindered(error) => error.to_string(),
            Self::None(none) => none.to_string(),
        }
    }
}

impl From<IssuerError> for Trouble {
    fn from(error: IssuerError) -> Self {
        Self::Hindered(error)
    }
}

impl From<Trouble> for NoLease {
    fn from(trouble: Trouble) -> Self {
        match trouble {
            Trouble::None(none) => none,
            Trouble::Failed(failed) => failure(&failed),
            Trouble::Away(server, error) => Self::yet(
                ended(format!("Registry \"{server}\", which leases worker ids: {}", error.briefly())),
                error.hint(),
            ),
            Trouble::Hindered(error) => {
                Self::yet(format!("{error}."), "Look at snowflake_ids.status and at the server's log.")
            }
        }
    }
}

/// The registry's tables can't be read or written.
pub fn failure(failed: &Failed) -> NoLease {
    let message = format!("snowflake_ids could not reach the registry of worker ids: {}", failed.message);
    log::once(PgLogLevel::LOG, message);
    NoLease::yet(
        format!(
            "The registry, the table snowflake_ids.worker_lease, gives SQLSTATE {}: {}.",
            report::sqlstate(failed.code),
            failed.message
        ),
        "Ids go on by themselves when the table can be written to.",
    )
}
