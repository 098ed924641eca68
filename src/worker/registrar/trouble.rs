//! Why the registrar could do nothing about the lease.

use crate::error::{self, ended};
use crate::pg::worker::Failed;
use crate::registry::NoAnswer;
use crate::tenure::Hindrance;
use crate::worker::say;
use pgrx::PgLogLevel;
use snowflake_ids_core::wire::NoLease;

/// Why a step was in vain.
pub enum Trouble {
    /// The registry's transaction failed.
    Failed(Failed),
    /// The registry on the server of this name gave no answer.
    Away(String, NoAnswer),
    /// The state does not let us.
    Hindered(Hindrance),
    /// There is no id to be had.
    None(NoLease),
}

impl Trouble {
    /// Whether another attempt may succeed: rows were locked.
    pub fn is_conflict(&self) -> bool {
        match self {
            Self::Failed(failed) => failed.is_lock_timeout(),
            Self::Away(_, no_answer) => no_answer.is_conflict(),
            Self::Hindered(_) | Self::None(_) => false,
        }
    }

    /// In a few words.
    pub fn why(&self) -> String {
        match self {
            Self::Failed(failed) => failed.message.clone(),
            Self::Away(_, no_answer) => no_answer.to_string(),
            Self::Hindered(hindrance) => hindrance.to_string(),
            Self::None(none) => none.to_string(),
        }
    }
}

impl From<Hindrance> for Trouble {
    fn from(hindrance: Hindrance) -> Self {
        Self::Hindered(hindrance)
    }
}

impl From<Trouble> for NoLease {
    fn from(trouble: Trouble) -> Self {
        match trouble {
            Trouble::None(none) => none,
            Trouble::Failed(failed) => failure(&failed),
            Trouble::Away(server, no_answer) => Self::yet(
                ended(format!("Registry \"{server}\", which leases worker ids: {}", no_answer.briefly())),
                no_answer.hint(),
            ),
            Trouble::Hindered(hindrance) => {
                Self::yet(format!("{hindrance}."), "Look at snowflake_ids.status and at the server's log.")
            }
        }
    }
}

/// The registry's tables can't be read or written.
pub fn failure(failed: &Failed) -> NoLease {
    let message = format!("snowflake_ids could not reach the registry of worker ids: {}", failed.message);
    say::once(PgLogLevel::LOG, message);
    NoLease::yet(
        format!(
            "The registry, the table snowflake_ids.worker, gives SQLSTATE {}: {}.",
            error::sqlstate(failed.code),
            failed.message
        ),
        "Ids go on by themselves when the table can be written to.",
    )
}
